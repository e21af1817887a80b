"""Method ``spines``, colouring and joining: in which group every flow goes.

Flows over one spine are edges between its up-links and its down-links, and every spine has its own. So König colours
each spine alone with as many groups as its most loaded link has flows. The direct flows are coloured by a Latin square,
all others after it by alternating paths.

A flow over two spines is two such edges, of one group. Every spine's groups are put in an order by chance; then first
and second halves that the counts ask for are joined where they fall into one group. Two that never do are brought
together by exchanging two groups of a spine in which nothing is joined yet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.kernels import jit
from synth_models.mlfm.parts.leaf_phases import spine_links
from synth_models.mlfm.references.spine_counts import Counted


class Timetable(NamedTuple):
    """What goes in every group, links as in :class:`Counted`: ``to`` (links, groups) the down-link that an up-link's
    flow takes, ``came`` the up-link that a down-link's flow took, -1 for none. ``onto``: the up-link on which a first
    half goes on, -1 for none; ``second``: whether an up-link's flow is a second half."""

    to: Int32Array
    came: Int32Array
    onto: Int32Array
    second: BoolArray


def timetable(usable: BoolArray, found: Counted, each: int, groups: int, seed: int) -> Timetable | None:
    """All flows in so many groups; None where some halves are not brought together."""
    leaves, columns = usable.shape
    links = leaves * columns
    to, came, onto = (np.full((links, groups), -1, dtype=np.int32) for _ in range(3))
    made = Timetable(to, came, onto, np.zeros((links, groups), dtype=bool))
    _direct(made, usable, each)
    random = np.random.default_rng(seed)
    order = random.permutation(len(found.up))
    _coloured(made, found.up[order], found.down[order], found.flows[order], seed)
    for a in range(columns):
        for c in range(a):
            rows = spine_links(a, c, leaves, columns)
            turn = random.permutation(groups)
            made.to[rows], made.came[rows] = made.to[rows][:, turn], made.came[rows][:, turn]
    untouched = np.ones((columns * columns, groups), dtype=bool)
    joins = found.joins[random.permutation(len(found.joins))]
    joined = _joined(made, joins, untouched, columns, seed)
    return made if joined else None


@jit
def _direct(made: Timetable, usable: BoolArray, each: int) -> None:
    """Flows over the spine of both columns: layer i to layer i + s in the s-th ``each`` groups."""
    leaves, columns = usable.shape
    layers = leaves // columns
    for x in range(leaves):
        a = x % columns
        for b in range(columns):
            for shift in range(layers if b != a else 0):
                y = (x // columns + shift) % layers * columns + b
                if usable[x, b] and usable[y, a]:
                    for g in range(shift * each, shift * each + each):
                        made.to[x * columns + b, g] = y * columns + a
                        made.came[y * columns + a, g] = x * columns + b


@jit
def _coloured(made: Timetable, ups: IntArray, downs: IntArray, flows: IntArray, seed: int) -> None:
    """Further flows, in groups in which both links are idle, else after an alternating path."""
    to, came = made.to, made.came
    groups = to.shape[1]
    np.random.seed(seed)
    for e in range(len(ups)):
        up, down, left = ups[e], downs[e], flows[e]
        begin = np.random.randint(groups)
        for turn in range(groups):
            g = (begin + turn) % groups
            if left > 0 and to[up, g] < 0 and came[down, g] < 0:
                to[up, g], came[down, g] = down, up
                left -= 1
        g = h = 0
        for _ in range(left):
            while to[up, g] >= 0:
                g += 1
            while came[down, h] >= 0:
                h += 1
            if came[down, g] >= 0:
                _alternated(to, came, down, g, h)
            to[up, g], came[down, g] = down, up


@jit
def _alternated(to: Int32Array, came: Int32Array, down: int, g: int, h: int) -> None:
    """Exchange groups g and h along the path that starts at ``down`` with g; it then has h, and g is idle there."""
    y, x = down, came[down, g]
    came[y, g] = -1
    while True:
        following = to[x, h]
        to[x, h], came[y, h] = y, x
        if following < 0:
            to[x, g] = -1
            return
        to[x, g] = following
        before = came[following, g]
        came[following, g] = x
        if before < 0:
            came[following, h] = -1
            return
        x, y = before, following


@jit
def _joined(made: Timetable, joins: IntArray, untouched: BoolArray, columns: int, seed: int) -> bool:
    """Join halves, by ``joins`` of :class:`Counted`; whether all are. ``untouched`` (spines, groups): nothing is joined
    there."""
    to, groups = made.to, made.to.shape[1]
    np.random.seed(seed)
    lacking = np.zeros(len(joins), np.int64)
    for j in range(len(joins)):
        up, middle, further, down, left = joins[j]
        begin = np.random.randint(groups)
        for turn in range(groups):
            g = (begin + turn) % groups
            if left == 0:
                break
            if to[up, g] == middle and to[further, g] == down and _unused(made, up, g) and _unused(made, further, g):
                _join(made, untouched, up, further, g, columns)
                left -= 1
        lacking[j] = left
    for j in range(len(joins)):
        up, middle, further, down, _ = joins[j]
        for _ in range(lacking[j]):
            if not _brought_together(made, untouched, (up, middle, further, down), columns):
                return False
    return True


@jit
def _unused(made: Timetable, up: int, g: int) -> bool:
    """Whether the flow of an up-link is no half of two that were joined."""
    return made.onto[up, g] < 0 and not made.second[up, g]


@jit
def _spine(up: int, columns: int) -> int:
    """The number of an up-link's spine in ``untouched``."""
    a, c = up // columns % columns, up % columns
    return min(a, c) * columns + max(a, c)


@jit
def _join(made: Timetable, untouched: BoolArray, up: int, further: int, g: int, columns: int) -> None:
    made.onto[up, g] = further
    made.second[further, g] = True
    untouched[_spine(up, columns), g] = untouched[_spine(further, columns), g] = False


@jit
def _brought_together(made: Timetable, untouched: BoolArray, halves: tuple[int, int, int, int], columns: int) -> bool:
    """Exchange two groups of the first or of the second half's spine so that both fall into one, and join them."""
    up, middle, further, down = halves
    to, groups = made.to, made.to.shape[1]
    one, other = _spine(up, columns), _spine(further, columns)
    begin = np.random.randint(groups)
    for turn in range(groups):
        g = (begin + turn) % groups
        if to[up, g] != middle or not _unused(made, up, g):
            continue
        for h in range(groups):
            if to[further, h] != down or not _unused(made, further, h):
                continue
            if untouched[one, g] and untouched[one, h]:
                _exchange(made, up, g, h, columns)
                _join(made, untouched, up, further, h, columns)
                return True
            if untouched[other, g] and untouched[other, h]:
                _exchange(made, further, g, h, columns)
                _join(made, untouched, up, further, g, columns)
                return True
    return False


@jit
def _exchange(made: Timetable, up: int, g: int, h: int, columns: int) -> None:
    """Exchange two groups of an up-link's spine."""
    a, c = up // columns % columns, up % columns
    for layer in range(len(made.to) // columns // columns):
        for end in range(2):
            leaf = layer * columns + (c if end else a)
            link = leaf * columns + (a if end else c)
            made.to[link, g], made.to[link, h] = made.to[link, h], made.to[link, g]
            made.came[link, g], made.came[link, h] = made.came[link, h], made.came[link, g]
