"""Method ``spines``, counting: over which columns flows go that have a choice, so that no link has more than G.

Flows between leaves of different columns whose cables to their common spine work go directly. All others choose: flows
inside a column one of the spines that both leaves reach, flows that lost their spine a leaf between. A choice adds to
the load of one up-link of the source and one down-link of the target, and over two spines of two links between.

First every pair spreads its flows evenly over the columns that it may use. Then flows leave links with more than G for
others with room; links at leaves with failed cables are full in nearly all groups, those of whole leaves are not, so a
flow rarely stands between two full links. Leaves between are chosen last, the least loaded first. The search proves
nothing: more groups are tried where it fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.kernels import jit

MOVES = 4_000_000  # flows that are looked at
TRIES = 50  # of a link, times the pairs of its leaf, before the next link's turn
CROWDED = 1_000_000  # what a crowded link costs, in flows of its load


@dataclass(frozen=True)
class Counted:
    """Flows over links: from up-link ``up`` to down-link ``down``, ``flows`` of each, all (E,), links as ``leaf *
    columns + column of the spine's other end``. ``joins`` (J, 5): up-link and down-link of a first half, up-link and
    down-link of the second, and how many flows join the two."""

    up: IntArray
    down: IntArray
    flows: IntArray
    joins: IntArray


def counted(usable: BoolArray, each: int, groups: int, seed: int) -> Counted | None:
    """Columns for all flows, ``each`` from every leaf to every other one, in so many groups; None if none are found.

    ``usable`` (leaves, columns): whether a cable works."""
    leaves, columns = usable.shape
    x, y = (part.ravel() for part in np.indices((leaves, leaves)))
    a, b = x % columns, y % columns
    direct = (a != b) & usable[x, b] & usable[y, a]
    load = np.zeros((2, leaves * columns), dtype=np.int64)
    np.add.at(load[0], x[direct] * columns + b[direct], each)
    np.add.at(load[1], y[direct] * columns + a[direct], each)
    chosen = np.flatnonzero(~direct & (x != y))
    x, y, a, b = x[chosen], y[chosen], a[chosen], b[chosen]
    between = np.arange(columns)
    may = usable[x] & usable[y]
    may &= (a == b)[:, None] | ((a[:, None] != between) & (b[:, None] != between))
    if not may.any(axis=1).all():
        return None
    counts = np.zeros(may.shape, dtype=np.int64)
    pairs = Pairs(x, y, may, counts, load)
    _spread(pairs, each)
    if not _relieved(pairs, _grouped(x, leaves), _grouped(y, leaves), groups, seed):
        return None
    pair, over = np.nonzero(counts)
    flows = counts[pair, over]
    inside = a[pair] == b[pair]
    one = pair[inside], over[inside]
    halves = np.stack([x[pair], y[pair], over, flows], axis=1)[~inside]
    joins = np.zeros((int(flows[~inside].sum()), 4), dtype=np.int64)
    if not _between(halves, usable, load, groups, joins):
        return None
    joins, times = np.unique(joins, axis=0, return_counts=True)
    up = np.concatenate([x[one[0]] * columns + one[1], joins[:, 0], joins[:, 2]])
    down = np.concatenate([y[one[0]] * columns + one[1], joins[:, 1], joins[:, 3]])
    return Counted(up, down, np.concatenate([flows[inside], times, times]), np.column_stack([joins, times]))


class Pairs(NamedTuple):
    """Leaves x to y (pairs,), the columns that they may use and the flows over each, (pairs, columns), and the load of
    up-links and down-links, (2, links)."""

    x: IntArray
    y: IntArray
    may: BoolArray
    counts: IntArray
    load: IntArray


class Ends(NamedTuple):
    """Pairs in order of a leaf, (pairs,), and where each leaf's begin, (leaves + 1,)."""

    order: IntArray
    begins: IntArray


def _grouped(leaf: IntArray, leaves: int) -> Ends:
    return Ends(np.argsort(leaf, kind="stable"), np.searchsorted(np.sort(leaf), np.arange(leaves + 1)))


@jit
def _put(pairs: Pairs, pair: int, c: int, flows: int) -> None:
    """Let a pair have so many flows more over a column."""
    columns = pairs.may.shape[1]
    pairs.counts[pair, c] += flows
    pairs.load[0, pairs.x[pair] * columns + c] += flows
    pairs.load[1, pairs.y[pair] * columns + c] += flows


@jit
def _spread(pairs: Pairs, each: int) -> None:
    """Every pair's flows evenly over its columns, the odd ones where the load is least."""
    x, y, may, counts, load = pairs
    columns = may.shape[1]
    for pair in range(len(x)):
        allowed = 0
        for c in range(columns):
            allowed += may[pair, c]
        for c in range(columns):
            if may[pair, c]:
                _put(pairs, pair, c, each // allowed)
    for pair in range(len(x)):
        left = each
        for c in range(columns):
            left -= counts[pair, c]
        for _ in range(left):
            best, least = -1, 0
            for c in range(columns):
                height = max(load[0, x[pair] * columns + c], load[1, y[pair] * columns + c])
                if may[pair, c] and (best < 0 or height < least):
                    best, least = c, height
            _put(pairs, pair, best, 1)


@jit
def _moved(pairs: Pairs, pair: int, c: int, groups: int) -> None:
    """Move a flow of a pair from a column to where fewest links are crowded, unless that is more than now."""
    x, y, may, counts, load = pairs
    columns = may.shape[1]
    if counts[pair, c] == 0:
        return
    best, least = -1, 0
    now = 1 if load[0, x[pair] * columns + c] > groups else 0
    now += 1 if load[1, y[pair] * columns + c] > groups else 0
    shift = np.random.randint(columns)
    for step in range(columns):
        other = (step + shift) % columns
        if other != c and may[pair, other]:
            up, down = load[0, x[pair] * columns + other], load[1, y[pair] * columns + other]
            price = max(up, down)
            price += CROWDED if up >= groups else 0
            price += CROWDED if down >= groups else 0
            if best < 0 or price < least:
                best, least = other, price
    if best >= 0 and least // CROWDED <= now:
        _put(pairs, pair, c, -1)
        _put(pairs, pair, best, 1)


@jit
def _relieved(pairs: Pairs, by_source: Ends, by_target: Ends, groups: int, seed: int) -> bool:
    """Move flows from links with more than ``groups`` to others; whether none is left."""
    load, columns = pairs.load, pairs.may.shape[1]
    np.random.seed(seed)
    looks = 0
    while looks < MOVES:
        crowded = 0
        for way in range(2):
            order, begins = by_source if way == 0 else by_target
            for link in range(load.shape[1]):
                leaf, c = link // columns, link % columns
                count = begins[leaf + 1] - begins[leaf]
                tries = 0
                while load[way, link] > groups and tries < TRIES * count:
                    crowded += 1
                    tries += 1
                    _moved(pairs, order[begins[leaf] + np.random.randint(count)], c, groups)
                looks += tries
        if crowded == 0:
            return True
        looks += 1
    return False


@jit
def _between(halves: IntArray, usable: BoolArray, load: IntArray, groups: int, joins: IntArray) -> bool:
    """The leaf between for every flow over two spines, written to ``joins``; whether its links have room."""
    leaves, columns = usable.shape
    at = 0
    for row in range(len(halves)):
        x, y, c, flows = halves[row]
        a, b = x % columns, y % columns
        for _ in range(flows):
            best, least = -1, groups
            for layer in range(leaves // columns):
                z = layer * columns + c
                if usable[z, a] and usable[z, b]:
                    height = max(load[0, z * columns + b], load[1, z * columns + a])
                    if height < least:
                        best, least = z, height
            if best < 0:
                return False
            load[0, best * columns + b] += 1
            load[1, best * columns + a] += 1
            joins[at, 0], joins[at, 1] = x * columns + c, best * columns + a
            joins[at, 2], joins[at, 3] = best * columns + b, y * columns + c
            at += 1
    return True
