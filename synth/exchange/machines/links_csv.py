"""Links in a CSV file: the header ``src,dst,bandwidth[,latency][,group][,class]``, one direction a line.

Nodes are numbers from 0 on (all up to the largest exist) or names, in the order in which they first stand. Numbers
are in bytes/s and seconds, or carry their unit (``25GB/s``, ``0.7us``); a header may carry one for its column:
``bandwidth (GB/s)``. Links of one group take turns. Cells left empty are unknown.
"""

from __future__ import annotations

import csv
import io
import re

from synth.csvfile import MOST_FAULTS
from synth.errors import Fault, InputError
from synth.exchange.machines.machine import MOST_NODES, NO_HINTS, Hints, Machine
from synth.exchange.machines.rows import Row, machine_of
from synth.quantities import counted

COLUMNS = ("src", "dst", "bandwidth", "latency", "group", "class")
_COLUMN = re.compile(r"\s*([a-z]+)\s*(?:[\[(]\s*([A-Za-zµμ/]+)\s*[\])])?\s*")


def looks_like(text: str) -> bool:
    """Whether the first line is such a header."""
    header = _header(text.lstrip("\ufeff\n").partition("\n")[0])
    return {"src", "dst"} <= {name for name, _ in header}


def read(text: str, name: str, hints: Hints = NO_HINTS) -> Machine:
    """The machine. Raises :class:`InputError` with every fault by its line."""
    try:
        reader = csv.reader(io.StringIO(text.lstrip("\ufeff")), skipinitialspace=True, strict=True)
        lines = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(f"not valid CSV: {error}") from None
    header = [_column(cell) for cell in (lines[0][1] if lines else [])]
    names = [column for column, _ in header]
    wrong = {column for column in names if column not in COLUMNS or names.count(column) > 1}
    if wrong or not {"src", "dst"} <= set(names) or len(lines) < 2:
        raise InputError("needs a header line src,dst,bandwidth[,latency][,group][,class] and at least one link")
    faults: list[Fault] = []
    rows: list[Row] = []
    for number, cells in lines[1:]:
        if len(faults) >= MOST_FAULTS:
            raise InputError([*faults, Fault("", f"{MOST_FAULTS:,} faults and more: the rest was not read")])
        where = f"line {number}"
        if len(cells) != len(header):
            faults.append(Fault(where, f"has {len(cells)} cells, the header {len(header)}"))
            continue
        values = {
            column: f"{cell.strip()}{unit}" if cell.strip() and _bare(cell) else cell.strip()
            for (column, unit), cell in zip(header, cells, strict=True)
        }
        ends = values.pop("src")[:100], values.pop("dst")[:100]
        faults += [
            Fault(f"{where}, {end}", "is missing") for end, node in zip(("src", "dst"), ends, strict=True) if not node
        ]
        rows.append(Row(where, ends[0], ends[1], values))
    if any(_whole(node) for row in rows for node in (row.src, row.dst)):
        rows = _by_number(rows, faults)
    nodes = dict.fromkeys(node for row in rows for node in (row.src, row.dst))
    if all(node.isdigit() for node in nodes):
        last = max(map(int, nodes), default=0)
        nodes = dict.fromkeys(str(v) for v in range(last + 1)) if last < MOST_NODES else nodes
    return machine_of(rows, nodes, hints, name, "csv", f"links CSV, {counted(len(rows), 'link')}", faults)


def _by_number(rows: list[Row], faults: list[Fault]) -> list[Row]:
    """Where one node is a number, all must be, small enough and each written in one way."""
    found = []
    for row in rows:
        for end, node in (("src", row.src), ("dst", row.dst)):
            if node and not _whole(node):
                faults.append(Fault(f"{row.where}, {end}", "nodes are numbers or names, not both", node, True))
            elif node and int(node) >= MOST_NODES:
                faults.append(Fault(f"{row.where}, {end}", f"must be less than {MOST_NODES:,}", node, True))
        found.append(Row(row.where, _plain(row.src), _plain(row.dst), row.values))
    return found


def _whole(node: str) -> bool:
    return node.isascii() and node.isdigit() and len(node) < 19


def _plain(node: str) -> str:
    return str(int(node)) if _whole(node) else node


def _bare(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _header(line: str) -> list[tuple[str, str]]:
    return [_column(cell) for cell in line.split(",")]


def _column(cell: str) -> tuple[str, str]:
    """A header's name and unit; the name as it stands where it is of no such form."""
    found = _COLUMN.fullmatch(cell.lower() if "(" not in cell and "[" not in cell else cell)
    return (found[1], found[2] or "") if found else (cell.strip(), "")
