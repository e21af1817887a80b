"""Tables of traffic that ``synth make fabric demand=FILE`` reads: CSV or JSON, blocks with holders and wanters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from synth.errors import Fault, InputError
from synth.text import amounts
from synth.text.csv import choice_cell, typed_rows
from synth.text.input_file import InputFile
from synth.text.json_rows import elements
from synth_models.fabric.problem.node_words import nodes_meant
from synth_models.fabric.problem.place_faults import Places
from synth_models.fabric.problem.tables import demand_rows
from synth_models.fabric.problem.traffic import ANY, MOST_BYTES, SUM

NEEDED = ("bytes", "holders", "wanters")
COLUMNS = (*NEEDED, "mode")
MOST_BLOCKS = 2**17  # of a table


class Table(NamedTuple):
    """What a table asks for. ``demand``: rows (src, dst, bytes), if every block has one holder and one wanter, else
    ``traffic``: rows of bytes, holders, mode, wanters. ``lines``: where each stands in the file."""

    demand: list[list[int]] | None
    traffic: list[dict[str, Any]] | None
    lines: list[int]

    @property
    def bytes(self) -> int:
        """All that is asked for."""
        asked: list[int] = [size for _, _, size in self.demand or ()] + [row["bytes"] for row in self.traffic or ()]
        return sum(asked)


def read_table(file: InputFile, places: Places | None = None) -> Table:
    """What the file asks for; nodes by number or, where the places are known, by name. Raises :class:`InputError`."""
    header = file.text.lstrip("\ufeff").partition("\n")[0]
    if file.text.lstrip()[:1] == "[":
        rows = _of_json(file, places)
    elif set(re.split(r"[,\s\"]+", header)) & {"holders", "wanters"}:
        rows = typed_rows(file, _readers(places), NEEDED, "block", _wrong, line_key="line", most=MOST_BLOCKS)
    else:
        return Table(*_first_and_none(*demand_rows(file, places)))
    lines = [row.pop("line") for row in rows]
    rows = [{"mode": ANY} | row for row in rows]
    if all(len(row["holders"]) == len(row["wanters"]) == 1 for row in rows):
        return Table([[*row["holders"], *row["wanters"], row["bytes"]] for row in rows], None, lines)
    return Table(None, rows, lines)


def by_line(fault: Fault, file: InputFile, lines: Sequence[int]) -> Fault:
    """A fault of the instance's demand or traffic as one of the file it comes from."""
    found = re.fullmatch(r"(?:demand|traffic)\[(\d+)\](?:\.([a-z]+)|\[([0-2])\])?.*", fault.path)
    if found is None:
        return fault
    row, word, place = found.groups()
    column = word if place is None else ("src", "dst", "bytes")[int(place)]
    return replace(fault, path=f"{file}, line {lines[int(row)]}" + (f", {column}" if column else ""))


def _first_and_none(rows: list[list[int]], lines: list[int]) -> tuple[list[list[int]], None, list[int]]:
    return rows, None, lines


def _readers(places: Places | None) -> dict[str, Callable[[str], Any]]:
    names = None if places is None else places.names

    def nodes(text: str) -> list[int]:
        try:
            found = nodes_meant(text, "", names)
        except InputError as error:
            raise ValueError("; ".join(fault.message for fault in error.faults)) from None
        if places is not None:
            places.checked(found)
        return found

    return {"bytes": amounts.whole_bytes, "holders": nodes, "wanters": nodes, "mode": choice_cell(ANY, SUM)}


def _wrong(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not 1 <= row.get("bytes", 1) <= MOST_BYTES:
        yield "bytes", f"must be in 1..{MOST_BYTES}"
    for key in ("holders", "wanters"):
        nodes = row.get(key, ())
        yield from ((key, f"names rank {node} twice") for node, many in sorted(Counter(nodes).items()) if many > 1)


def _of_json(file: InputFile, places: Places | None) -> list[dict[str, Any]]:
    """The rows of a list of tables, each with the line on which it begins."""
    readers = _readers(places)
    rows, faults = list[dict[str, Any]](), list[Fault]()
    for line, stated in elements(file):
        if len(rows) + len(faults) >= MOST_BLOCKS:
            raise InputError(f"has more than {MOST_BLOCKS:,} blocks, or faults, the most that are supported", str(file))
        if not isinstance(stated, dict):
            faults.append(Fault(f"line {line}", f"is no table of {', '.join(COLUMNS)}"))
            continue
        pair: dict[str, str] = {"src": "holders", "dst": "wanters"} if {"src", "dst"} & set(stated) else {}
        if pair and {"holders", "wanters", "mode"} & set(stated):
            faults.append(Fault(f"line {line}", "has src and dst beside holders, wanters and mode: one or the other"))
            continue
        given: dict[str, Any] = {pair.get(str(key), str(key)): value for key, value in stated.items()}
        said = {column: word for word, column in pair.items()}
        for key in sorted(set(given) - set(COLUMNS)):
            faults.append(Fault(f"line {line}, {key}", f"no such key: there are {', '.join(COLUMNS)}"))
        row = {"line": line} | _values(line, given, readers, said, faults)
        faults += (Fault(f"line {line}, {said.get(key, key)}", text, given[key], True) for key, text in _wrong(row))
        rows.append(row)
    if not rows and not faults:
        faults.append(Fault("", "has no rows"))
    if faults:
        raise InputError(faults, str(file))
    return rows


def _values(
    line: int,
    given: Mapping[str, Any],
    readers: Mapping[str, Callable[[str], Any]],
    said: Mapping[str, str],
    faults: list[Fault],
) -> dict[str, Any]:
    """The values of a table as read; those that are missing or cannot be read are left out."""
    found: dict[str, Any] = {}
    for key, read in readers.items():
        value, path = given.get(key), f"line {line}, {said.get(key, key)}"
        if value in (None, "", []):
            faults += [Fault(path, "is missing")] if key in NEEDED else []
            continue
        try:
            found[key] = read(",".join(map(str, value)) if isinstance(value, list) else str(value))
        except ValueError as error:
            faults.append(Fault(path, str(error), value, True))
    return found
