"""Matrices of how every two devices are connected, as GPU makers' tools print them: text to cells.

The tools differ in what they call devices and in the words of their cells (a :class:`Dialect`); all print a header line
of devices, then a row a device. A text may hold the matrix several times; one that differs is refused by its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from synth.errors import Fault, InputError
from synth.exchange.machines.links_csv import ALWAYS_READ

LEVELS = ("PSB", "PIX", "PXB", "PHB", "NODE", "SYS")
OLD_NAMES = {"SOC": "SYS"}
NOT_SHOWN = ("N/A", "NA", "UNK")
PEER_ACCESS = ("OK", "CNS", "GNS", "TNS", "NS", "DR", "U")  # what topo -p2p prints
MOST_DEVICES = 512
_ESCAPES = re.compile(
    r"\x1b\[[0-9;]*[A-Za-z]|(?:\^\[|\u241b)?\[[0-9;]{0,9}m"
)  # pasted colours have lost their first character
_DEVICE = re.compile(r"[A-Za-z][\w./:-]*")
_NIC = re.compile(r"\s{0,9}(NIC[0-9]{1,4}): ([\w.-]{1,60})\s{0,9}")  # of the legend
_AFTER_DEVICES = ("CPU", "NUMA", "GPU", "Node")  # first words of the columns that follow


@dataclass(frozen=True)
class Dialect:
    """One tool's words.

    ``device``: names of its GPUs or NPUs. ``bonds``: class of link by the cells that name direct ones, the first group
    how many are bonded (one where there is none); those of the classes in ``switched`` lead to a switch. ``apart``: a
    cell of devices that no level of PCIe joins. ``links``: what the tool calls a direct link, in words; ``most``: how
    many any device has; ``own``: what a device's cell with itself says; ``tree``: the command that shows PCIe alone.
    ``unread``: cells that tell the tool, of unknown meaning. ``rewritten``: what is changed in every line before
    it is cut into words.
    """

    name: str
    command: str
    device: re.Pattern[str]
    bonds: Mapping[str, re.Pattern[str]]
    known: str
    links: str
    most: int | None = None
    switched: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    own: str = "X"
    tree: str = ""
    unread: tuple[str, ...] = ()
    rewritten: tuple[tuple[re.Pattern[str], str], ...] = ()

    def bond(self, cell: str | None) -> tuple[str, int] | None:
        """The class and number of links that a cell names; None where it names none."""
        for kind, words in self.bonds.items():
            found = words.fullmatch(cell or "")
            if found:
                return kind, int(found[1]) if found.groups() and found[1] else 1
        return None

    def cell(self, word: str) -> str | None:
        """The word as a cell of the matrix, None where it is none."""
        word = OLD_NAMES.get(word, word)
        return word if word in (*LEVELS, *NOT_SHOWN, *self.apart, self.own) or self.bond(word) else None

    def lines(self, text: str) -> list[str]:
        """The text's lines, as words stand in them: without colours and the bars of a table in Markdown."""
        lines = [_ESCAPES.sub("", line).replace("|", " ").replace("**", "") for line in text.splitlines()]
        for words, other in self.rewritten:
            lines = [words.sub(other, line) for line in lines]
        return lines


@dataclass(frozen=True)
class Matrix:
    """The devices in the order of the header, their cells by row and column. ``left_out``: what else the text holds;
    ``called``: what the legend calls NICs that the header numbers."""

    dialect: Dialect
    devices: tuple[str, ...]
    cells: Mapping[tuple[str, str], str]
    left_out: tuple[str, ...] = ()
    called: Mapping[str, str] = field(default_factory=dict)

    @property
    def gpus(self) -> list[str]:
        """The GPUs, in order."""
        return [device for device in self.devices if self.dialect.device.fullmatch(device)]

    def cell(self, a: str, b: str) -> str | None:
        """What joins two devices, from either row; None where no row shows it."""
        return self.cells.get((a, b), self.cells.get((b, a)))


def header(dialect: Dialect, lines: list[str], start: int = 0) -> int | None:
    """The index of the first line of devices from ``start`` on."""
    for n in range(start, len(lines)):
        words = lines[n].split()
        if words and dialect.device.fullmatch(words[0]) and _is_header(dialect, lines[n]):
            return n
    return None


def _is_header(dialect: Dialect, line: str) -> bool:
    """A matrix begins with device 0, or with two devices of the tool's own, and has names alone in its first line."""
    devices = _devices(line)
    if not all(map(_DEVICE.fullmatch, devices)):
        return False
    two = len(devices) > 1 and dialect.device.fullmatch(devices[1]) is not None
    return (devices[0].endswith("0") or two) and not any(dialect.cell(word) for word in line.split()[1:])


def parsed(dialect: Dialect, text: str) -> Matrix:
    """The matrix as printed. Raises :class:`InputError`."""
    lines = dialect.lines(text)
    at = header(dialect, lines)
    if at is None:
        raise InputError(f"no header line of devices ({dialect.command}) is found")
    matrix, end = _one(dialect, lines, at)
    left_out = []
    while (again := header(dialect, lines, end)) is not None:
        if _is_access(dialect, lines, again):
            left_out.append(f"the matrix of line {again + 1}: who may access whom (topo -p2p)")
            end = again + 1
            continue
        other, end = _one(dialect, lines, again)
        if (other.devices, other.cells) != (matrix.devices, matrix.cells):
            words = f"a second matrix begins, unlike that of line {at + 1}: one machine a file; keep one of them in it"
            raise InputError([Fault(f"line {again + 1}", words)])
        left_out.append(f"the matrix of line {again + 1}: the same as that of line {at + 1}")
    legend = filter(None, map(_NIC.fullmatch, lines[at:]))
    called: dict[str, str] = {}
    for found in legend:
        called.setdefault(found[1], found[2])
    return Matrix(dialect, matrix.devices, matrix.cells, tuple(left_out[:3]), called)


def _is_access(dialect: Dialect, lines: list[str], at: int) -> bool:
    rows = (line.split() for line in lines[at + 1 : at + 1 + MOST_DEVICES])
    first = next((words for words in rows if words and dialect.device.fullmatch(words[0])), [])
    return any(word in PEER_ACCESS for word in first[1:])


def _one(dialect: Dialect, lines: list[str], at: int) -> tuple[Matrix, int]:
    """The matrix below the header at this index, and the index of the line after its last row. Raises
    :class:`InputError`."""
    devices = _devices(lines[at])
    if len(devices) > MOST_DEVICES:
        faults = [Fault(f"line {at + 1}", f"{len(devices)} devices; at most {MOST_DEVICES} are supported")]
    else:
        faults = [Fault(f"line {at + 1}", f"{device} stands twice") for device in devices if devices.count(device) > 1]
    if faults:
        raise InputError(faults)
    rows, cells = _rows(dialect, lines, at, devices, faults)
    faults += [
        Fault(f"line {at + 1}", f"the row {device} is missing")
        for device in devices
        if device not in rows and dialect.device.fullmatch(device)
    ]
    faults += [
        Fault(f"line {rows[a]}", f"{b} is {cells[a, b]}, but {a} in the row {b} is {cells[b, a]} (line {rows[b]})")
        for a, b in combinations(devices, 2)
        if (a, b) in cells and (b, a) in cells and cells[a, b] != cells[b, a]
    ]
    if faults:
        raise InputError(faults)
    return Matrix(dialect, tuple(devices), cells), max(rows.values())


def _rows(
    dialect: Dialect, lines: list[str], at: int, devices: list[str], faults: list[Fault]
) -> tuple[dict[str, int], dict[tuple[str, str], str]]:
    """The line of each device's row, and the cells, below the header's line."""
    cells: dict[tuple[str, str], str] = {}
    rows: dict[str, int] = {}
    for n, line in enumerate(lines[at + 1 :], at + 2):
        words = line.split()
        if rows and header(dialect, [line]) is not None:
            break
        if not words or words[0] not in devices:
            if rows and dialect.device.fullmatch(words[0] if words else ""):
                faults.append(Fault(f"line {n}", f"the row {words[0]} has no column"))
            if len(rows) == len(devices) or (rows and words[:1] == ["Legend:"]):
                break
            continue
        if words[0] in rows:
            faults.append(Fault(f"line {n}", f"the row {words[0]} stands twice, first in line {rows[words[0]]}"))
            continue
        rows[words[0]] = n
        faults += _read_row(dialect, words[0], words[1:], devices, f"line {n}", cells)
    return rows, cells


def _devices(line: str) -> list[str]:
    found: list[str] = []
    for word in line.split():
        if word in _AFTER_DEVICES:
            break
        found.append(word)
    return found


def _read_row(
    dialect: Dialect, row: str, words: list[str], devices: list[str], where: str, cells: dict[tuple[str, str], str]
) -> Iterator[Fault]:
    if len(words) < len(devices):
        yield Fault(where, f"the row {row} has {len(words)} cells, the header {len(devices)} devices")
        return
    if set(words[: len(devices)]) <= {"X", *PEER_ACCESS} and "X" in words and len(devices) > 1:
        yield Fault(where, "is of nvidia-smi topo -p2p, who may access whom; needed is what topo -m prints")
        return
    for column, word in zip(devices, words, strict=False):
        cell = dialect.cell(word)
        if word in dialect.unread:
            words_of_tool = f"what {dialect.command} means by it is not read; {ALWAYS_READ}"
            yield Fault(f"{where}, {row}-{column}", words_of_tool, word, True)
        elif cell is None:
            known = ", ".join((dialect.own, dialect.known, *LEVELS))
            yield Fault(f"{where}, {row}-{column}", f"must be one of {known} ({dialect.command})", word, True)
        elif (cell == dialect.own) != (row == column):
            words_of_own = f"{dialect.own} stands for a device and itself, nowhere else"
            yield Fault(f"{where}, {row}-{column}", words_of_own, word, True)
        elif cell != dialect.own:
            cells[row, column] = cell
