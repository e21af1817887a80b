"""Whether rounds make the collective that they say: a replay from the definition, which no file can talk out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby, islice

import numpy as np

from synth.errors import Fault, InputError
from synth.exchange.rounds.plan import Rounds
from synth.ranks.goals import Goals, goals_of
from synth.schedule.collective import NAMES, REDUCING, ROOTED

MOST_PLACES = 2**24  # ranks times pieces
MOST_BITS = 2**32  # of contributions that ranks hold of pieces of sums
MOST_NAMED = 3
EVERYONE = -1


def demand_right(rounds: Rounds) -> None:
    """Raises :class:`InputError` with the first faults, where numbers name nothing, where pieces do not cover their
    part, where a rank sends what it has not, counts a contribution twice, or ends without what it must have."""
    faults = _forms(rounds) or _cover(rounds) or _replay(rounds)
    if faults:
        raise InputError(faults[:MOST_NAMED])


def _forms(r: Rounds) -> list[Fault]:
    """Numbers that name nothing."""
    if r.collective not in NAMES:
        return [Fault("collective", f"must be one of {', '.join(NAMES)}", r.collective, True)]
    if (r.root is not None) != (r.collective in ROOTED) or not 0 <= (r.root or 0) < r.ranks:
        return [Fault("root", f"is no root of {r.collective} among {r.ranks} ranks", r.root, True)]
    if r.ranks * len(r.part) > MOST_PLACES:
        return [Fault("pieces", f"{len(r.part):,} pieces at {r.ranks:,} ranks are too many")]
    if r.parts > MOST_PLACES:
        return [Fault("ranks", f"{r.parts:,} parts of {r.collective} are too many", r.ranks, True)]
    if r.collective in REDUCING and r.ranks * len(r.part) * r.ranks > MOST_BITS:
        return [Fault("pieces", f"{len(r.part):,} pieces, each of {r.ranks:,} contributions at as many, are too many")]
    lasts = {"part": r.parts, "src": r.ranks, "dst": r.ranks, "piece": len(r.part), "round": len(r.round)}
    found = []
    for name, last in lasts.items():
        column = getattr(r, name)
        outside = np.flatnonzero((column < 0) | (column >= last))[:1]
        found += [Fault(f"{name}[{k}]", f"must be in 0..{last - 1}", int(column[k]), True) for k in outside]
    back, same = np.flatnonzero(np.diff(r.round) < 0)[:1], np.flatnonzero(r.src == r.dst)[:1]
    found += [Fault(f"dst[{k}]", "is its sender") for k in same]
    return found + [Fault(f"round[{k + 1}]", "is less than the one before it") for k in back]


def _cover(r: Rounds) -> list[Fault]:
    """Pieces that leave a gap, overlap or leave their part."""
    order = np.lexsort((r.offset, r.part))
    part, low, high = r.part[order], r.offset[order], (r.offset + r.size)[order]
    new = np.concatenate([[True], part[1:] != part[:-1]]) if len(part) else np.zeros(0, dtype=bool)
    begins = np.where(new, 0, np.concatenate([[0], high[:-1]])) if len(part) else low
    last = np.concatenate([new[1:], [True]]) if len(part) else new
    bad = (low != begins) | (r.size[order] < 1) | (last & (high != r.units))
    return [Fault(f"piece {order[k]}", f"does not join its neighbours in part {part[k]}") for k in np.flatnonzero(bad)]


Holds = dict[tuple[int, int], int]  # sets of contributions, a bit a rank, by rank and piece


def _replay(r: Rounds) -> list[Fault]:
    """The rounds from the definition: in sums every rank has its own bit, elsewhere a part has its origin's."""
    goals = goals_of(r.collective, r.ranks, r.root)
    holds: Holds = {}
    for k, origin in enumerate(goals.origin[r.part].tolist()):
        for rank in range(r.ranks) if origin == EVERYONE else (origin,):
            holds[rank, k] = 1 << rank
    rows = zip(*(x.tolist() for x in (r.round, r.src, r.dst, r.piece, r.adds)), strict=True)
    at = 0
    for _, some in groupby(rows, key=lambda row: row[0]):
        together = [row[1:] for row in some]
        for k, words in _one_round(together, holds):
            return [Fault(f"message {at + k}", words)]
        at += len(together)
    return list(islice(_ends(r, goals, holds), MOST_NAMED))


def _one_round(rows: list[tuple[int, int, int, bool]], holds: Holds) -> Iterator[tuple[int, str]]:
    """Put a round into what ranks hold; yields each message that may not be, and why."""
    came = Counter((dst, piece) for _, dst, piece, _ in rows)
    sent = [holds.get((src, piece), 0) for src, _, piece, _ in rows]
    for k, (bits, (src, dst, piece, adds)) in enumerate(zip(sent, rows, strict=True)):
        have = holds.get((dst, piece), 0)
        if came[dst, piece] > 1 and not adds:
            yield k, f"rank {dst} gets piece {piece} from several at once"
        if not bits:
            yield k, f"rank {src} does not hold piece {piece}"
        if adds and (bits & have or not have):
            yield k, f"rank {dst} would add to piece {piece} what it may not"
        holds[dst, piece] = bits | have if adds else bits


def _ends(r: Rounds, goals: Goals, holds: Holds) -> Iterator[Fault]:
    """What ranks lack in the end."""
    needed = np.flatnonzero((goals.origin != goals.goal) | (goals.origin == EVERYONE)) if r.ranks > 1 else r.part
    yield from (Fault(f"part {part}", "nobody sends it") for part in np.setdiff1d(needed, r.part)[:MOST_NAMED])
    everyone = (1 << r.ranks) - 1
    for k, (origin, goal) in enumerate(zip(goals.origin[r.part].tolist(), goals.goal[r.part].tolist(), strict=True)):
        want = everyone if origin == EVERYONE else 1 << origin
        ends = range(r.ranks) if goal == EVERYONE else (goal,)
        lacking = (rank for rank in ends if holds.get((rank, k)) != want)
        yield from (Fault(f"piece {k}", f"rank {rank} does not end with all of it") for rank in lacking)
