"""Phases from their flat table, as ``synth show --csv`` prints it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.errors import Fault, InputError
from synth.text.csv import typed_rows, whole_cell
from synth.text.input_file import InputFile
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.column_phases import NOTHING
from synth_models.mlfm.solution import MAX_ROWS, MOST, PhaseTable

COLUMNS = ("phase", "src", "dst", "via")


def from_table(instance: MLFMInstance, file: InputFile) -> PhaseTable:
    """Return the phases; who does not stand in one is idle. Raises :class:`InputError` with every faulty line, and for
    a server that sends twice in a phase; what the transfers do is the check's."""
    rank = {instance.server_name(number): number for number in range(instance.ranks)}

    def server(text: str) -> int:
        if text not in rank:
            raise ValueError("is no server of the job, as layer.column.slot")
        return rank[text]

    def wrong(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        if all(key in row for key in ("src", "dst", "via")):
            ends = row["via"][0], row["via"][-1]
            if ends != (instance.server_leaf[row["src"]], instance.server_leaf[row["dst"]]):
                yield "via", "must begin at the sender's leaf and end at the receiver's"

    readers: dict[str, Callable[[str], Any]] = {
        "phase": whole_cell(MOST - 1), "src": server, "dst": server, "via": _route_reader(instance),
    }  # fmt: skip
    rows = typed_rows(file, readers, COLUMNS, "transfer", wrong, line_key="line")
    phase, src = (np.array([row[key] for row in rows], dtype=np.int64) for key in ("phase", "src"))
    phases = int(phase.max()) + 1
    if phases * instance.ranks > MAX_ROWS:
        raise InputError(f"{phases} phases of {instance.ranks} servers are more than {MAX_ROWS} places", str(file))
    _demand_one_each(file, rows, phase * instance.ranks + src)
    tables = np.full((4, phases, instance.ranks), NOTHING, dtype=np.int32)
    for row in rows:
        route = [*row["via"][1:-1], *[NOTHING] * 3][:3]
        tables[:, row["phase"], row["src"]] = (row["dst"], *route)
    dest, spine, middle, second = tables
    if np.all(middle == NOTHING) and np.all(second == NOTHING):
        return PhaseTable(dest, spine)
    return PhaseTable(dest, spine, middle, second)


def _route_reader(instance: MLFMInstance) -> Callable[[str], tuple[int, ...]]:
    """What reads ``0.1 1-3 2.3`` as leaf, spine, leaf: one, three or five numbers."""
    numbers = {instance.leaf_name(leaf): leaf for leaf in range(instance.leaves)}
    spines = {instance.spine_name(spine): spine for spine in range(len(instance.spine_columns))}

    def read(text: str) -> tuple[int, ...]:
        words = text.split()
        if len(words) not in (1, 3, 5):
            raise ValueError("must be a leaf, or leaves with a spine between any two: 0.1 1-3 2.3")
        found = []
        for place, word in enumerate(words):
            known, what = (spines, "spine column-column") if place % 2 else (numbers, "leaf layer.column")
            if word not in known:
                raise ValueError(f"{re.sub(r'[^0-9.-]', '?', word)[:20]} is no {what} of the machine")
            found.append(known[word])
        return tuple(found)

    return read


def _demand_one_each(file: InputFile, rows: list[dict[str, Any]], key: IntArray) -> None:
    """Raise :class:`InputError` for a server that sends twice in a phase."""
    order = np.argsort(key, kind="stable")
    again = order[1:][key[order[1:]] == key[order[:-1]]]
    if len(again):
        first = int(again.min())
        words = f"this server sends in phase {rows[first]['phase']} already"
        raise InputError([Fault(f"line {rows[first]['line']}, src", words)], str(file))
