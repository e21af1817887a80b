"""The moves of a schedule as CSV, for programs of a user's own: a row a move, written as a stream, and read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import Fault, FaultsByKind, InputError
from synth.exchange.transfers import Demand, Ticks, Transfers, parts_of
from synth.schedule.collective import ROOTED
from synth.text.csv import typed_rows, whole_cell
from synth.text.input_file import InputFile

COLUMNS = (
    "start_s", "end_s", "piece", "part", "offset", "bytes", "src", "dst", "adds", "start_tick", "end_tick",
    "ticks_per_s",
)  # fmt: skip
OF_DEMAND = ("origin", "goal")
NEEDED = ("start_s", "end_s", "piece", "part", "offset", "bytes", "src", "dst", "adds")
ROWS = 100_000  # written at a time
DEMAND = "demand"
MOST_RANKS = 2**16
MOST = 2**62  # of whole numbers
MOST_SECONDS = 1e300


def write(transfers: Transfers, path: Path) -> None:
    """Columns ``start_s,end_s,piece,part,offset,bytes,src,dst,adds,start_tick,end_tick,ticks_per_s``.

    Piece is ``bytes`` bytes from ``offset`` on of part ``part``, ranks are places in the process group
    (:class:`Transfers` says what parts are). The seconds are rounded to floats; the last three columns state the same
    times exactly, in whole ticks (timesteps where a family has no clock), empty where the times are no whole numbers.
    Of a demand two columns more, ``origin,goal``, say which rank has a part and which needs it.
    Raises :class:`InputError` where the file cannot be written."""
    import pandas as pd

    t, exact, demand = transfers, transfers.exact, transfers.demand
    names = COLUMNS if demand is None else COLUMNS + OF_DEMAND
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(",".join(names) + "\n")
            for first in range(0, len(t.piece), ROWS):
                rows = slice(first, first + ROWS)
                piece = t.piece[rows]
                values = (
                    t.start_s[rows], t.end_s[rows], piece, t.piece_part[piece], t.piece_offset[piece],
                    t.piece_bytes[piece], t.src[rows], t.dst[rows], t.adds[rows].astype(np.int8),
                    *((None,) * 3 if exact is None else (exact.start[rows], exact.end[rows], exact.per_s)),
                    *(() if demand is None else (ends[t.piece_part[piece]] for ends in demand[:2])),
                )  # fmt: skip
                frame = pd.DataFrame(dict(zip(names, values, strict=True)))
                frame.to_csv(file, header=False, index=False)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None


class Table(NamedTuple):
    """The ``transfers`` of a table, whose pieces are numbered 0, 1, …, and the table's numbers for them, ``pieces``."""

    transfers: Transfers
    pieces: IntArray


def read(path: Path, collective: str, root: int | None = None) -> Table:
    """The moves of a table of one ``collective`` (``root``: of a rooted one, 0 where none is named), in its order; of
    a ``demand`` every part goes from ``origin`` to ``goal``, as long as its pieces reach. Whether they are a schedule
    is not looked at: only that every number is in range. There are as many ranks as the table names, by number or by
    their parts.

    Raises :class:`InputError` naming file and lines.
    """
    file = InputFile(path)
    of_demand = collective == DEMAND
    needed = NEEDED + OF_DEMAND if of_demand else NEEDED
    rows = typed_rows(file, _COLUMNS, needed, "move", _wrong, line_key="line")
    if not of_demand:
        _demand_none(rows, collective, file)
    columns = {name: np.array([row[name] for row in rows], dtype=np.int64) for name in needed[2:]}
    ranks = _ranks(columns, collective)
    faults = FaultsByKind()
    pieces, first, piece = np.unique(columns["piece"], return_index=True, return_inverse=True)
    _add_part_faults(columns, rows, collective, ranks, faults)
    _add_disagreements_of_pieces(columns, first[piece], rows, faults)
    demand = _demand(columns, rows, faults) if of_demand and not faults.total else None
    at = (root or 0) if collective in ROOTED else None
    if at is not None and at >= ranks:
        faults.add(Fault("--root", f"the table has ranks 0..{ranks - 1}", root, True))
    if faults.total:
        raise InputError(faults.kept(), str(file))
    transfers = Transfers(
        name=path.stem,
        collective=collective,
        ranks=ranks,
        root=at,
        part_bytes=int((columns["offset"] + columns["bytes"]).max()),
        piece_part=columns["part"][first],
        piece_offset=columns["offset"][first],
        piece_bytes=columns["bytes"][first],
        piece=piece.reshape(-1).astype(np.int64),
        src=columns["src"],
        dst=columns["dst"],
        adds=columns["adds"].astype(bool),
        start_s=np.array([row["start_s"] for row in rows], dtype=np.float64),
        end_s=np.array([row["end_s"] for row in rows], dtype=np.float64),
        channel_hint=np.full(len(rows), -1, dtype=np.int64),
        ticks=_ticks(rows),
        demand=demand,
    )
    return Table(transfers, pieces)


def _demand_none(rows: Sequence[Mapping[str, Any]], collective: str, file: InputFile) -> None:
    """Raise :class:`InputError` where a table is of a demand."""
    if any(name in row for row in rows for name in OF_DEMAND):
        words = f"columns {' and '.join(OF_DEMAND)} say that it is of a demand, which is no {collective}"
        raise InputError(f"{words}: name it with --collective {DEMAND}", str(file))


def _ranks(columns: Mapping[str, IntArray], collective: str) -> int:
    """As many ranks as the table names, by number or by their parts."""
    ranks = int(max(columns[name].max() for name in ("src", "dst", *OF_DEMAND) if name in columns)) + 1
    if collective in ("allgather", "gather", "reduce_scatter", "scatter"):
        ranks = max(ranks, int(columns["part"].max()) + 1)
    return ranks


def _add_disagreements_of_pieces(
    columns: Mapping[str, IntArray], first: IntArray, rows: list[dict[str, Any]], faults: FaultsByKind
) -> None:
    """A fault for every row that says otherwise of its piece than the piece's ``first`` row."""
    for name in ("part", "offset", "bytes"):
        _add_disagreements(columns[name], name, first, "piece", rows, faults)


def _add_part_faults(
    columns: Mapping[str, IntArray], rows: list[dict[str, Any]], collective: str, ranks: int, faults: FaultsByKind
) -> None:
    """A fault for every row of a part that the collective has not."""
    parts = parts_of(collective, ranks) if collective != DEMAND else len(rows)
    words = f"{collective} of {ranks} ranks has parts 0..{parts - 1}"
    if collective == DEMAND:
        words = f"{parts} moves are of parts 0..{parts - 1} at most"
    for k in np.flatnonzero(columns["part"] >= parts).tolist():
        faults.add(Fault(f"line {rows[k]['line']}, part", words, rows[k]["part"], True))


def _add_disagreements(
    column: IntArray, name: str, first: IntArray, what: str, rows: list[dict[str, Any]], faults: FaultsByKind
) -> None:
    """A fault for every row that says otherwise of its piece or part (``what``) than the first row of it; ``first``:
    that row for every row."""
    for k in np.flatnonzero(column != column[first]).tolist():
        words = f"in line {rows[first[k]]['line']} the same {what} has {column[first[k]]}"
        faults.add(Fault(f"line {rows[k]['line']}, {name}", words, rows[k][name], True))


def _demand(columns: Mapping[str, IntArray], rows: list[dict[str, Any]], faults: FaultsByKind) -> Demand:
    """The parts of a demand: those of which the table has no piece have no bytes and stay at rank 0. Adds a fault for
    every row that says otherwise of its part than the part's first."""
    part = columns["part"]
    count = int(part.max()) + 1
    _, first, which = np.unique(part, return_index=True, return_inverse=True)
    ends: dict[str, IntArray] = {}
    for name in OF_DEMAND:
        _add_disagreements(columns[name], name, first[which], "part", rows, faults)
        ends[name] = np.zeros(count, dtype=np.int64)
        ends[name][part[first]] = columns[name][first]
    size = np.zeros(count, dtype=np.int64)
    np.maximum.at(size, part, columns["offset"] + columns["bytes"])
    return Demand(ends["origin"], ends["goal"], size)


def _ticks(rows: list[dict[str, Any]]) -> Ticks | None:
    """The exact times, where every row has them, of one clock."""
    if not all(name in row for row in rows for name in COLUMNS[-3:]) or len({row["ticks_per_s"] for row in rows}) > 1:
        return None
    start, end = (np.array([row[name] for row in rows], dtype=np.int64) for name in ("start_tick", "end_tick"))
    return Ticks(start, end, rows[0]["ticks_per_s"])


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("not a number") from None
    if not 0 <= value <= MOST_SECONDS:
        raise ValueError("must be a time, at least 0")
    return value


_COLUMNS: Mapping[str, Callable[[str], Any]] = {
    "start_s": _seconds, "end_s": _seconds, "piece": whole_cell(MOST), "part": whole_cell(MOST),
    "offset": whole_cell(MOST // 2), "bytes": whole_cell(MOST // 2, 1), "src": whole_cell(MOST_RANKS - 1),
    "dst": whole_cell(MOST_RANKS - 1), "adds": whole_cell(1),
    "origin": whole_cell(MOST_RANKS - 1),
    "goal": whole_cell(MOST_RANKS - 1),
    "start_tick": whole_cell(MOST), "end_tick": whole_cell(MOST), "ticks_per_s": whole_cell(MOST, 1),
}  # fmt: skip


def _wrong(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Rows that no move can be."""
    if "src" in row and row.get("src") == row.get("dst"):
        yield "dst", "is the sender itself"
