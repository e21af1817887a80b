"""One rank's part of rounds, ready to run: a send and a receive a peer and round, each of a few ranges of parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise, starmap
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray
from synth.exchange.rounds import Rounds


class Range(NamedTuple):
    """Units ``low`` to ``high`` of a part."""

    part: int
    low: int
    high: int


class Taken(NamedTuple):
    """A range that arrives."""

    range: Range
    adds: bool


class Take(NamedTuple):
    """What arrives of a peer in a round. ``direct``: into its place at once, also a round early: it is one range that
    replaces what this round does not send and the one before neither sends nor takes; what comes back with this rank's
    own share in it proves that the one message by which that left is over."""

    peer: int
    ranges: tuple[Taken, ...]
    direct: bool


class Send(NamedTuple):
    """What a peer gets in a round."""

    peer: int
    ranges: tuple[Range, ...]


@dataclass(frozen=True)
class Round:
    """What a rank does in a round; takes are in the order of the sums. Sends are numbered throughout: those of
    ``before_takes`` must have left before the round's receives are posted, which write at once, and those of
    ``before_sums`` before the rest of what arrives is put into its place."""

    sends: tuple[Send, ...]
    takes: tuple[Take, ...]
    before_takes: tuple[int, ...]
    before_sums: tuple[int, ...]


@dataclass(frozen=True)
class RankProgram:
    """All rounds of a rank in which it does anything."""

    rounds: tuple[Round, ...]


def program_of(rounds: Rounds, rank: int) -> RankProgram:
    """The rounds of a rank. Ranges that join are one, in the same order at both ends."""
    mine = (rounds.src == rank) | (rounds.dst == rank)
    columns = (rounds.round, rounds.src, rounds.dst, rounds.piece, rounds.adds, _returned(rounds, rank))
    rows = list(zip(*(column[mine].tolist() for column in columns), strict=True))
    ranges = [
        Range(part, low, low + size)
        for part, low, size in zip(rounds.part.tolist(), rounds.offset.tolist(), rounds.size.tolist(), strict=True)
    ]
    found, made = _Made(), []
    for _, some in groupby(rows, key=lambda row: row[0]):
        made.append(found.round([(src, dst, ranges[piece], *how) for _, src, dst, piece, *how in some], rank))
    return RankProgram(tuple(made))


def _returned(rounds: Rounds, rank: int) -> BoolArray:
    """Which messages carry something that this rank held at first, shape (messages,)."""
    has = np.zeros((rounds.ranks, len(rounds.part)), dtype=bool)
    has[rank] = True
    found = np.zeros(len(rounds.round), dtype=bool)
    edges = np.flatnonzero(np.diff(rounds.round, prepend=-1, append=-2))
    for low, high in pairwise(edges.tolist()):
        here = slice(low, high)
        at, piece, adds = rounds.dst[here], rounds.piece[here], rounds.adds[here]
        found[here] = sent = has[rounds.src[here], piece]
        has[at[~adds], piece[~adds]] = sent[~adds]
        has[at[adds & sent], piece[adds & sent]] = True
    return found


class _Made:
    """Rounds one after the other: what the last one sent and took, the number of the last send of every range that is
    sent from its place, and how often a piece was sent."""

    def __init__(self) -> None:
        self.sends = 0
        self.last: tuple[set[Range], set[Range]] = (set(), set())
        self.sent: dict[int, dict[Range, int]] = {}  # by part
        self.times: Counter[Range] = Counter()

    def round(self, rows: list[tuple[int, int, Range, bool, bool]], rank: int) -> Round:
        """The next round, of messages: from, to, what, whether it adds, whether it returns something."""
        over = self._ended(rows, rank)
        leave, arrive = _by_peer(rows, rank, 0), _by_peer(rows, rank, 1)
        sends = [Send(peer, tuple(what for what, _ in _joined(some))) for peer, some in leave]
        here = {what for send in sends for what in send.ranges}
        judged = [self._take(peer, some, here, over) for peer, some in arrive]
        takes = tuple(take for take, _ in judged)
        early = self._over(take.ranges[0].range for take, left in judged if take.direct and not left)
        self._send(sends)
        late = self._over(one.range for take in takes if not take.direct for one in take.ranges)
        self.times.update(what for src, _, what, _, _ in rows if src == rank)
        self.last = here, {one.range for take in takes for one in take.ranges}
        return Round(tuple(sends), takes, early, late)

    def _ended(self, rows: list[tuple[int, int, Range, bool, bool]], rank: int) -> set[Range]:
        """The pieces whose one message is over, as something of it returns."""
        return {what for _, dst, what, _, returns in rows if dst == rank and returns and self.times[what] == 1}

    def _send(self, sends: list[Send]) -> None:
        """Number sends, and keep what leaves from its place."""
        for send in sends:
            if len(send.ranges) == 1:
                self.sent.setdefault(send.ranges[0].part, {})[send.ranges[0]] = self.sends
            self.sends += 1

    def _take(self, peer: int, some: list[tuple[Range, bool]], here: set[Range], over: set[Range]) -> tuple[Take, bool]:
        """What a peer brings while ``here`` is sent, and whether that proves that all of it that was sent has left, as
        it does of the pieces of ``over``."""
        ranges = tuple(starmap(Taken, _joined(some)))
        left = all(what in over for what, _ in some)
        busy = here | self.last[1] | (set() if left else self.last[0])
        direct = len(ranges) == 1 and not ranges[0].adds and not _meets(ranges[0].range, busy)
        return Take(peer, ranges, direct), left

    def _over(self, written: Iterable[Range]) -> tuple[int, ...]:
        """The sends of what is now written, which are then no longer under way."""
        found = set()
        for what in written:
            mine = self.sent.get(what.part, {})
            gone = [one for one in mine if what.low < one.high and one.low < what.high]
            found |= {mine.pop(one) for one in gone}
        return tuple(sorted(found))


def _by_peer(
    rows: list[tuple[int, int, Range, bool, bool]], rank: int, end: int
) -> list[tuple[int, list[tuple[Range, bool]]]]:
    """What a rank sends (``end`` 0) or takes (1), by peer."""
    found: dict[int, list[tuple[Range, bool]]] = {}
    for src, dst, what, adds, _ in rows:
        if (src, dst)[end] == rank:
            found.setdefault((dst, src)[end], []).append((what, adds))
    return sorted(found.items())


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
