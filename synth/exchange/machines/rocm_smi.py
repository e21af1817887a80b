"""What ``rocm-smi --showtopo`` (``--showtopoweight``, …) and ``amd-smi topology`` print: a table a property of pairs.

Tables: weight, hops, type of link, and the bandwidth that the driver states (``--shownodesbw``: least and most, MB/s).
A pair is joined by XGMI directly where its type is XGMI (or no table of types is there) and it is one hop apart: by the
table of weights (15, and 41 or 13 of some boxes; two hops are 30), as RCCL has it (src/misc/rocm_smi_wrap.cc
@0cbce2a7), or by that of hops where there is none. The most over the least bandwidth is how many links are bonded, also
as RCCL has it. Classes: XGMI, and where any pair is joined by PCIe: PCI (GPU to its NUMA node), SYS (between these).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeAlias

from synth.errors import Fault, InputError
from synth.exchange.machines.machine import NO_HINTS, Builder, Hints, Machine, listed
from synth.text.amounts import scaled_rate
from synth.text.quantities import counted

DIRECT_WEIGHTS, TWO_HOPS = (13, 15, 41), 30
MOST_GPUS = 512
_TABLES = {
    "weight": re.compile(r"weight (?:between two|table)", re.IGNORECASE),
    "hops": re.compile(r"hops (?:between two|table)", re.IGNORECASE),
    "type": re.compile(r"link type (?:between two|table)", re.IGNORECASE),
    "bandwidth": re.compile(r"bandwidth (?:between two|table)|numa bw table", re.IGNORECASE),
}
_OTHER_TABLE = re.compile(r"={3,}|[A-Z][A-Z -]+ TABLE:?")
_GPU = re.compile(r"(?:GPU|DCU|HCU)[0-9]{1,4}|[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
_NUMA = re.compile(r"(?:GPU|DCU|HCU)[ \[]{0,2}([0-9]{1,4})\]?\s*:\s*\(Topology\) Numa Node:\s*(-?[0-9]{1,4})\s*$")
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_MARKS = re.compile(
    r"^[^\w|\n]{0,99}(?:(?:weight|hops|link type|bandwidth|link accessibility) between two"
    r"|(?:link type|weight|hops|numa bw) table:"
    r"|(?:GPU|DCU|HCU)[ \[]*[0-9]+\]?[ \t]*: \(Topology\) Numa Node)",
    re.IGNORECASE | re.MULTILINE,
)
_NEEDED = {
    ("weight", "hops"): "which pairs are one hop apart",
    ("weight", "type"): "which pairs XGMI joins",
}  # what is not known where none of these tables is there
_WAYS = ("XGMI", "PCIE")
Pair: TypeAlias = tuple[str, str]
Bond: TypeAlias = tuple[int, float | None]  # links, and bytes/s of all


@dataclass
class _Tables:
    """What the text holds: names of the GPUs in order, cells by table, row and column, the NUMA node of each GPU."""

    gpus: list[str] = field(default_factory=list)
    cells: dict[str, dict[tuple[str, str], str]] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)  # by table and row, "" for that of the columns
    numa: dict[int, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Whether a text holds such a table."""
    return _MARKS.search(text) is not None


def read(text: str, name: str, hints: Hints = NO_HINTS) -> Machine:
    """The machine: GPUs are ranks in their order. Raises :class:`InputError` with every fault by its line."""
    tables = _tables(text)
    if tables.faults:
        raise InputError(tables.faults)
    if not any(kind in tables.cells for kind in _TABLES):
        raise InputError("holds no table of pairs of GPUs: rocm-smi --showtopo prints them")
    bonds, pcie = _pairs(tables)
    built = Builder()
    _say(built, tables, bonds, pcie)
    number = {gpu: built.rank(f"gpu{i}") for i, gpu in enumerate(tables.gpus)}
    for (a, b), (lanes, rate) in bonds.items():
        built.link(number[a], number[b], "XGMI", rate, lanes=lanes)
    if pcie:
        _add_pcie(built, tables, number)
    built.boxes.append(tuple(number.values()))
    words = f"rocm-smi --showtopo, {counted(len(tables.gpus), 'GPU')}"
    return built.machine(name, "rocm-smi", words)


def _say(built: Builder, tables: _Tables, bonds: Mapping[Pair, Bond], pcie: Collection[Pair]) -> None:
    """What is taken for granted of the pairs, and what the text leaves open."""
    every = set(combinations(tables.gpus, 2))
    far = every - set(bonds) - set(pcie)
    weights = sorted({tables.cells.get("weight", {}).get(pair, "") for pair in far} - {""})
    if far:
        of = f" (weight {listed(weights)})" if weights else ""
        built.assumed.append(f"{counted(len(far), 'pair')} of GPUs{of} have no link of their own: XGMI over other GPUs")
    if any(rate is not None for _, rate in bonds.values()):
        built.assumed.append("XGMI carries the most that the driver states for the pair, not what is reached")
    elif bonds:
        built.assumed.append("one XGMI link for a pair: the tables do not count them (an MI250 has up to four)")
    built.about |= dict.fromkeys(built.assumed, ("XGMI",))
    if not pcie and len(tables.gpus) > 1:
        built.unknown.append("how GPUs hang on PCIe: the tables name XGMI alone")
        built.about[built.unknown[-1]] = ("PCI", "SYS")


def _tables(text: str) -> _Tables:
    found = _Tables()
    table = ""
    columns: list[str] = []
    for n, line in enumerate(text.splitlines(), 1):
        title = _title(line)
        words = line.replace("|", " ").replace("*", " ").split()
        if title is not None:
            table, columns = title, []
        elif numa := _NUMA.search(line):
            found.numa[int(numa[1])] = int(numa[2])
        elif table and words and _GPU.fullmatch(words[0]) and columns:
            _row(found, table, columns, words, n)
        elif table and words and all(map(_GPU.fullmatch, words)):
            columns = words
            _new_columns(found, table, columns, n)
    found.faults += [fault for kind in found.cells for fault in _missing(found, kind)]
    return found


def _title(line: str) -> str | None:
    """The table that a line begins; empty for one that is not read; None where it begins none."""
    title = next((kind for kind, marks in _TABLES.items() if marks.search(line)), None)
    return "" if title is None and _OTHER_TABLE.match(line.strip()) else title


def _missing(found: _Tables, kind: str) -> Iterator[Fault]:
    rows = {row for row, _ in found.cells[kind]}
    without = [gpu for gpu in found.gpus if gpu not in rows]
    if without and len(found.gpus) > 1:
        yield Fault(f"line {found.lines[kind, '']}", f"of the table of {kind} the rows {listed(without)} are missing")


def _new_columns(found: _Tables, table: str, columns: list[str], n: int) -> None:
    where = f"line {n}"
    if len(columns) > MOST_GPUS:
        found.faults.append(Fault(where, f"{len(columns)} GPUs; at most {MOST_GPUS} are supported"))
    if len(set(columns)) < len(columns):
        found.faults.append(Fault(where, "a GPU stands twice"))
    if found.gpus and columns != found.gpus:
        words = f"other GPUs than in the tables before ({listed(found.gpus)}): one machine a file"
        found.faults.append(Fault(where, words, listed(columns), True))
    elif table in found.cells:
        found.faults.append(Fault(where, f"a second table of {table} begins: one machine a file"))
    found.gpus = found.gpus or columns
    found.cells[table] = {}
    found.lines[table, ""] = n


def _row(found: _Tables, table: str, columns: list[str], words: list[str], n: int) -> None:
    where, row = f"line {n}", words[0]
    if row not in columns:
        found.faults.append(Fault(where, f"the row {row} has no column"))
    elif (table, row) in found.lines:
        found.faults.append(Fault(where, f"the row {row} stands twice, first in line {found.lines[table, row]}"))
    elif len(words) != len(columns) + 1:
        found.faults.append(Fault(where, f"the row {row} has {len(words) - 1} cells, the header {len(columns)} GPUs"))
    else:
        found.lines[table, row] = n
        for column, word in zip(columns, words[1:], strict=True):
            if column == row:
                continue
            found.cells[table][row, column] = word
            message = _wrong(table, word)
            if message:
                found.faults.append(Fault(f"{where}, {row}-{column}", message, word, True))


def _wrong(table: str, word: str) -> str | None:
    """What is wrong with a cell; N/A is none."""
    if word.upper() == "N/A":
        return None
    if table == "type":
        return None if word.upper() in _WAYS else f"must be one of {', '.join(_WAYS)}"
    if table == "bandwidth":
        return (
            None if _RANGE.fullmatch(word) else "must be the least and the most bandwidth in MB/s, such as 50000-50000"
        )
    return None if word.isascii() and word.isdigit() and len(word) <= 9 else "must be a whole number"


def _pairs(tables: _Tables) -> tuple[dict[Pair, Bond], list[Pair]]:
    """The pairs joined by XGMI, with how many links and bytes/s where the text says, and those joined by PCIe."""
    needed = next((words for kinds, words in _NEEDED.items() if not set(kinds) & set(tables.cells)), None)
    if needed is not None:
        raise InputError(f"does not say {needed}: rocm-smi --showtopo prints the tables of weights, hops and types")
    faults = [fault for kind in tables.cells for fault in _one_way(tables, kind)]
    if faults:
        raise InputError(faults)
    bonds: dict[Pair, Bond] = {}
    pcie = []
    for pair in combinations(tables.gpus, 2):
        way = _way(tables, pair)
        if way == "XGMI":
            bonds[pair] = _bond(tables.cells.get("bandwidth", {}).get(pair, ""))
        elif way == "PCIE":
            pcie.append(pair)
    return bonds, pcie


def _way(tables: _Tables, pair: Pair) -> str:
    """What joins a pair: XGMI directly, PCIE, or nothing of its own."""
    kind = "weight" if "weight" in tables.cells else "hops"
    cell = tables.cells[kind][pair]
    number = int(cell) if cell.isdigit() else -1
    if "type" not in tables.cells:
        return "XGMI" if number in DIRECT_WEIGHTS else "PCIE" if number not in (-1, TWO_HOPS) else ""
    stated = tables.cells["type"].get(pair, "").upper()
    return stated if stated != "XGMI" or number in (DIRECT_WEIGHTS if kind == "weight" else (1,)) else ""


def _one_way(tables: _Tables, kind: str) -> Iterator[Fault]:
    """Pairs whose cells in the two rows differ."""
    cells = tables.cells[kind]
    for a, b in combinations(tables.gpus, 2):
        there, back = cells[a, b], cells[b, a]
        if there.upper() != back.upper():
            words = f"{there} one way, {back} back (line {tables.lines[kind, b]})"
            yield Fault(f"line {tables.lines[kind, a]}, {a}-{b}", words)


def _bond(bandwidth: str) -> Bond:
    """How many links, and bytes/s of all, from the least and the most in MB/s."""
    found = _RANGE.fullmatch(bandwidth)
    if not found or not int(found[1]) or not int(found[2]):
        return 1, None
    return max(int(found[2]) // int(found[1]), 1), scaled_rate(float(found[2]), 10**6)


def _add_pcie(built: Builder, tables: _Tables, number: Mapping[str, int]) -> None:
    """Every GPU at its NUMA node; without these all at one."""
    known = len(tables.numa) == len(tables.gpus) and set(tables.numa) == set(range(len(tables.gpus)))
    of = [tables.numa[i] if known else 0 for i in range(len(tables.gpus))]
    if not known:
        built.assumed.append("PCIe joins all GPUs at one host bridge: the file does not name the NUMA nodes of all")
    node = {numa: built.switch(f"numa{numa}" if known else "host") for numa in sorted(set(of))}
    for gpu, numa in zip(tables.gpus, of, strict=True):
        built.link(number[gpu], node[numa], "PCI")
    for a, b in combinations(node, 2):
        built.link(node[a], node[b], "SYS")
