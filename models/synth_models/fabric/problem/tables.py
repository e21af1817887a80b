"""Tables that the keys of ``synth make fabric`` name: a demand, a list of collectives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from synth.errors import Fault, InputError
from synth.exchange.machines.machine import listed
from synth.schedule.collective import NAMES
from synth.text import amounts
from synth.text.csv import typed_rows, whole_cell
from synth.text.input_file import InputFile
from synth_models.fabric.problem.blocks import undivided
from synth_models.fabric.problem.failures import node_number
from synth_models.fabric.problem.node_words import digits, node_meant, nodes_meant
from synth_models.fabric.problem.order import order_faults
from synth_models.fabric.problem.place_faults import Places
from synth_models.fabric.problem.ready_keys import late_cell
from synth_models.fabric.problem.several import MOST_BYTES, MOST_PRIORITY

MOST_COLLECTIVES = 10_000  # of one table
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


def _wrong_demand(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from _wrong_ends(row, "rank")
    yield from _wrong_size(row.get("bytes", 1))


def _wrong_size(size: int) -> Iterator[tuple[str, str]]:
    if not 1 <= size <= MOST_BYTES:
        yield "bytes", "must be >= 1" if size < 1 else f"must be <= {MOST_BYTES}"


def _wrong_ends(row: Mapping[str, Any], what: str) -> Iterator[tuple[str, str]]:
    ends = [row.get("src"), row.get("dst")]
    yield from (
        (key, "must be >= 0") for key, end in zip(("src", "dst"), ends, strict=True) if isinstance(end, int) and end < 0
    )
    if None not in ends and ends[0] == ends[1]:
        yield "", f"goes from a {what} to itself"


def demand_rows(file: InputFile, places: Places | None = None) -> tuple[list[list[int]], list[int]]:
    """Rows (src, dst, bytes) and the line of each; nodes by number or, where the places are known, by name."""

    def end(word: str) -> int | str:
        numbered = re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", word)
        if places is None or (numbered and word.strip() not in places.names):
            found: int | str | None = int(word) if numbered else word
        else:
            found = node_number(word.strip(), places.machine)
        if found is None:
            raise ValueError("no such node")
        words = places.fault(found) if places is not None and isinstance(found, int) and found >= 0 else None
        if words:
            raise ValueError(words)
        return found

    columns = {"src": end, "dst": end, "bytes": amounts.whole_bytes}
    rows = typed_rows(file, columns, tuple(columns), "row", _wrong_demand, line_key="line")
    return [[row["src"], row["dst"], row["bytes"]] for row in rows], [row["line"] for row in rows]


def collective_rows(file: InputFile, places: Places | None = None) -> tuple[list[dict[str, Any]], list[int]]:
    """``collectives`` of an instance from a CSV file, and the line of each; ``ranks`` as ``"0,1,4-7"`` or by name."""

    def nodes(text: str) -> list[int]:
        return _in_cell(nodes_meant, text, "ranks", places)

    def node(text: str) -> int:
        return _in_cell(lambda *cell: [node_meant(*cell)], text, "root", places)[0]

    readers = {
        "name": _name,
        "collective": _known,
        "bytes": amounts.whole_bytes,
        "ranks": nodes,
        "root": node,
        "release": lambda text: 0.0 if text.strip() == "0" else amounts.duration(text),
        "priority": whole_cell(MOST_PRIORITY, 1),
        "late": lambda text: late_cell(text, places),
        "after": lambda text: re.split(r"[\s,;]+", text.strip()),
    }
    needed = "collective", "bytes"
    try:
        rows = typed_rows(file, readers, needed, "collective", _wrong_own, line_key="line", most=MOST_COLLECTIVES)
    except InputError as error:
        try:
            words: dict[str, Any] = {**dict.fromkeys(readers, str), "after": readers["after"]}
            rows = typed_rows(file, words, needed, "collective", line_key="line", most=MOST_COLLECTIVES)
        except InputError:
            raise error from None
        raise InputError([*error.faults, *_numbered(rows), *_order(rows)], error.source) from None
    if faults := _numbered(rows):
        raise InputError([*faults, *_order(rows)], str(file))
    for row in rows:
        if "late" in row:
            row["ready"] = row.pop("late")
    return rows, [row.pop("line") for row in rows]


def _wrong_own(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Bytes that are none or do not divide; a root, or late ranks, that are not among the row's own ranks."""
    size = row.get("bytes", 1)
    words = undivided(row.get("collective", ""), size, len(row["ranks"])) if "ranks" in row else None
    yield from [("bytes", words)] if words else _wrong_size(size)
    for key, nodes in (("root", [row.get("root")]), ("late", [rank for rank, _ in row.get("late", ())])):
        outside = sorted({node for node in nodes if node is not None} - set(row.get("ranks", nodes)))
        yield from ((key, f"{node} is no member of ranks") for node in outside)


def _numbered(rows: Sequence[dict[str, Any]]) -> list[Fault]:
    """Put numbers in place of names in ``after``; the faults of those that mean nothing."""
    number: dict[str, int] = {}
    twice: set[str] = set()
    for k, row in enumerate(rows):
        if "name" in row and number.setdefault(row["name"].strip(), k) != k:
            twice.add(row["name"].strip())
    known = listed(list(number)) if number else "none has a name"
    faults: list[Fault] = []
    for row in rows:
        numbers = []
        for word in row.get("after", ()):
            where = f"line {row['line']}, after"
            if word in twice:
                faults.append(Fault(where, "is the name of several collectives", word, True))
            elif word in number or digits(word):
                numbers.append(number[word] if word in number else int(word))
            else:
                faults.append(Fault(where, f"no such collective: {known}", word, True))
        if "after" in row:
            row["after"] = numbers
    return faults


def _order(rows: Sequence[dict[str, Any]]) -> list[Fault]:
    """What is wrong with the numbers in ``after``; an instance made of the rows would say the same."""
    lines = [row["line"] for row in rows]
    return [of_line(fault, None, lines) for fault in order_faults({"collectives": rows})]


def _in_cell(
    read: Callable[[str, str, Sequence[str] | None], list[int]], text: str, key: str, places: Places | None
) -> list[int]:
    """The nodes that a cell means. Raises ``ValueError``."""
    try:
        found = read(text, key, None if places is None else places.names)
    except InputError as error:
        raise ValueError("; ".join(fault.message for fault in error.faults)) from None
    if places is not None:
        places.checked(found)
    return found


def of_line(fault: Fault, file: InputFile | None, lines: Sequence[int]) -> Fault:
    """A fault of the instance's collectives as one of the file they come from, which is named where it is given."""
    found = re.fullmatch(r"collectives\[(\d+)\](?:[.,] ?(.*))?", fault.path)
    if found is None:
        return fault
    row, column = found.groups()
    column = re.sub(r"^ready.*", "late", column or "")
    where = f"line {lines[int(row)]}" + (f", {column}" if column else "")
    return replace(fault, path=where if file is None else f"{file}, {where}")


def _name(text: str) -> str:
    if NAME.fullmatch(text.strip()) is None:
        raise ValueError("must be up to 40 letters, digits, dots, dashes")
    return text.strip()


def _known(text: str) -> str:
    word = text.strip()
    if word not in NAMES:
        raise ValueError(f"must be one of {', '.join(NAMES)}")
    return word
