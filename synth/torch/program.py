"""One rank's part of rounds, ready to run: a send and a receive a peer and round, each of a few ranges of parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from synth.exchange.rounds import Rounds


class Range(NamedTuple):
    """Units ``low`` to ``high`` of a part."""

    part: int
    low: int
    high: int


class Taken(NamedTuple):
    """A range that arrives. ``direct``: into its place at once, as it replaces what nobody sends in this round."""

    range: Range
    adds: bool
    direct: bool


@dataclass(frozen=True)
class Round:
    """What a rank does in a round: ranges to send by peer, and what to take from a peer, in the order of the sums."""

    sends: tuple[tuple[int, tuple[Range, ...]], ...]
    takes: tuple[tuple[int, tuple[Taken, ...]], ...]


@dataclass(frozen=True)
class RankProgram:
    """All rounds of a rank in which it does anything."""

    rounds: tuple[Round, ...]


def program_of(rounds: Rounds, rank: int) -> RankProgram:
    """The rounds of a rank. Ranges that join are one, in the same order at both ends."""
    mine = (rounds.src == rank) | (rounds.dst == rank)
    columns = (rounds.round, rounds.src, rounds.dst, rounds.piece, rounds.adds)
    rows = list(zip(*(column[mine].tolist() for column in columns), strict=True))
    ranges = [
        Range(part, low, low + size)
        for part, low, size in zip(rounds.part.tolist(), rounds.offset.tolist(), rounds.size.tolist(), strict=True)
    ]
    found, at = [], 0
    while at < len(rows):
        end = at
        while end < len(rows) and rows[end][0] == rows[at][0]:
            end += 1
        found.append(_round([(src, dst, ranges[piece], adds) for _, src, dst, piece, adds in rows[at:end]], rank))
        at = end
    return RankProgram(tuple(found))


def _round(rows: list[tuple[int, int, Range, bool]], rank: int) -> Round:
    sends: dict[int, list[tuple[Range, bool]]] = {}
    takes: dict[int, list[tuple[Range, bool]]] = {}
    for src, dst, what, adds in rows:
        (sends if src == rank else takes).setdefault(dst if src == rank else src, []).append((what, adds))
    sent = {what for ranges in sends.values() for what, _ in ranges}
    times = Counter(what for ranges in takes.values() for what, _ in ranges)
    busy = sent | {what for what, many in times.items() if many > 1}
    return Round(
        tuple((peer, tuple(what for what, _ in _joined(ranges))) for peer, ranges in sorted(sends.items())),
        tuple(
            (peer, tuple(Taken(what, adds, not adds and not _meets(what, busy)) for what, adds in _joined(ranges)))
            for peer, ranges in sorted(takes.items())
        ),
    )


def _joined(ranges: list[tuple[Range, bool]]) -> Iterator[tuple[Range, bool]]:
    """The ranges in the order of parts and places, those that join and do the same as one."""
    open_one: tuple[Range, bool] | None = None
    for what, adds in sorted(ranges):
        if open_one and open_one[1] == adds and open_one[0].part == what.part and open_one[0].high == what.low:
            open_one = (open_one[0]._replace(high=what.high), adds)
            continue
        if open_one:
            yield open_one
        open_one = (what, adds)
    if open_one:
        yield open_one


def _meets(what: Range, others: set[Range]) -> bool:
    return any(what.part == other.part and what.low < other.high and other.low < what.high for other in others)
