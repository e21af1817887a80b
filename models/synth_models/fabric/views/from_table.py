"""A schedule from its flat table, as ``synth show --csv`` prints it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.errors import Fault, InputError, UnsupportedError
from synth.text.csv import typed_rows, whole_cell
from synth.text.input_file import InputFile
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.clock import ticks_per_second
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.solution import MOST_BYTES, MOST_TICKS, Schedule

DERIVED = (
    "origin", "end_tick", "file_links", "hop_src", "hop_dst", "hop_start", "hop_ticks", "hop_arrive",
    "hop_leaves", "contributions", "collective",
)  # fmt: skip
EXACT = ("start_tick", "ticks_per_s")
MOST_SECONDS = 10**9
_DECIMAL = re.compile(r"[0-9]{1,10}(\.[0-9]{0,60})?([eE][+-]?[0-9]{1,2})?")


def from_table(instance: FabricInstance, file: InputFile) -> Schedule:
    """Return the transfers in the order of the file. A table without ``start_tick`` and ``ticks_per_s`` has its
    ``start_s`` rounded to ticks that suit the instance. ``src`` and ``dst`` may be left out. Raises :class:`InputError`
    with every faulty line; what the transfers do is the check's."""
    blocks, _ = instance.all_blocks
    reduces = bool(np.any(blocks.sums))
    readers: dict[str, Callable[[str], Any]] = {
        "start_s": _seconds,
        "piece": whole_cell(MOST_TICKS),
        "block": whole_cell(max(len(blocks) - 1, 0)),
        "bytes": whole_cell(MOST_BYTES, 1),
        "links": _numbers_reader(instance.machine.links),
        "src": _numbers_reader(instance.machine.nodes),
        "dst": _numbers_reader(instance.machine.nodes),
        "start_tick": whole_cell(MOST_TICKS),
        "ticks_per_s": whole_cell(MOST_TICKS, 1),
    } | dict.fromkeys(DERIVED, str)
    readers |= {"adds": whole_cell(1)} if reduces else {}
    needed = ("piece", "block", "bytes", "links", *(("adds",) if reduces else ()))
    rows = typed_rows(file, readers, needed, "transfer", _wrong_ends(instance), line_key="line")
    ticks, start = _starts(instance, file, rows)
    number, size = (np.array([row[key] for row in rows], dtype=np.int64) for key in ("piece", "bytes"))
    block = np.array([row["block"] for row in rows], dtype=np.int64)
    _, first, piece = np.unique(number, return_index=True, return_inverse=True)
    piece = piece.reshape(-1).astype(np.int64)
    for key, column in (("block", block), ("bytes", size)):
        odd = np.flatnonzero(column != column[first][piece])
        if len(odd):
            row, other = rows[int(odd[0])], rows[int(first[piece[odd[0]]])]
            words = f"in line {other['line']} the same piece has {other[key]}"
            raise InputError([Fault(f"line {row['line']}, {key}", words, row[key], True)], str(file))
    adds = np.array([bool(row.get("adds", 0)) for row in rows])
    lengths = [len(row["links"]) for row in rows]
    links = np.array([link for row in rows for link in row["links"]], dtype=np.int64)
    route_start = starts(lengths)
    return Schedule(ticks, block[first], size[first], start, piece, adds, route_start, links)


def _starts(instance: FabricInstance, file: InputFile, rows: list[dict[str, Any]]) -> tuple[int, IntArray]:
    """Ticks a second, and the tick at which every transfer starts."""
    if all(key in row for row in rows for key in EXACT):
        ticks = int(rows[0]["ticks_per_s"])
        other = next((row for row in rows if row["ticks_per_s"] != ticks), None)
        if other is not None:
            fault = Fault(
                f"line {other['line']}, ticks_per_s", f"must be {ticks}, as before", other["ticks_per_s"], True
            )
            raise InputError([fault], str(file))
        return ticks, np.array([row["start_tick"] for row in rows], dtype=np.int64)
    missing = next((row for row in rows if "start_s" not in row), None)
    if missing is not None:
        words = "is missing: give start_s in every row, or start_tick and ticks_per_s in every row"
        raise InputError([Fault(f"line {missing['line']}, start_s", words)], str(file))
    try:
        ticks = ticks_per_second(instance.machine, float(4 * max(row["start_s"] for row in rows) + 1))
    except UnsupportedError as error:
        raise InputError(str(error), str(file)) from None
    starts = [round(row["start_s"] * ticks) for row in rows]
    assert max(starts) < Fraction(MOST_TICKS)
    return ticks, np.array(starts, dtype=np.int64)


def _numbers_reader(count: int) -> Callable[[str], list[int]]:
    """What reads numbers of links or nodes, of which there are ``count``, separated by spaces."""
    read = whole_cell(max(count - 1, 0))

    def numbers(text: str) -> list[int]:
        return [read(word) for word in text.split()]

    return numbers


def _wrong_ends(instance: FabricInstance) -> Callable[[Mapping[str, Any]], Iterator[tuple[str, str]]]:
    """What says of a row whose ``src`` or ``dst`` are not those of its route."""
    net, is_switch = instance.machine.network, instance.machine.is_switch
    tails, heads = net.src.tolist(), net.dst.tolist()

    def wrong(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        route = row.get("links")
        if not route:
            return
        ends, odd = {"src": [tails[e] for e in route], "dst": [heads[e] for e in route]}, {}
        for key, along in ends.items():
            only = along[0] if key == "src" else along[-1]
            ranks = {v for v in along if not is_switch[v]} if len(route) > 1 else {only}
            if key in row and set(row[key]) not in (ranks, {only}):
                odd[key] = " ".join(map(str, sorted(ranks)))
        if len(odd) == 2:
            yield "links", f"this route leads from {odd['src']} to {odd['dst']}, which src and dst do not say"
        else:
            yield from ((key, f"the route of this row has {words}") for key, words in odd.items())

    return wrong


def _seconds(text: str) -> Fraction:
    """A time, exactly the decimal that is written."""
    text = text.strip()
    if _DECIMAL.fullmatch(text) is None:
        raise ValueError("not a number of seconds")
    value = Fraction(text)
    if not 0 <= value <= MOST_SECONDS:
        raise ValueError(f"must be a time in 0..{MOST_SECONDS} seconds")
    return value
