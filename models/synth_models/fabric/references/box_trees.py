"""Two binary trees over boxes that carry half of the data each, along few edges out of a group of boxes.

Sanders, Speck, Träff: "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 2009.
No box has children in both trees, so that each sends as much as it receives. Pieces take the trees in turn; an edge is
then in use in every other round, and by colours no box sends two pieces in a round or receives two.

Boxes behind the same leaf switches are a group, and such groups may be one again (hosts, routers and groups of a
dragonfly). The groups are joined by two trees themselves, which enter each at its first box; the others hang below that
by two trees of their own. Of the 2 n sends of n boxes in two rounds, 2 (n - 1)
stay inside, and the two that are left are those to other groups: for even n of one box, hence never in the same round.
So between groups goes at most what one box sends, whatever their size, and an oversubscribed switch that carries as
much holds nothing up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth_models.fabric.references.double_tree import parents
from synth_models.fabric.references.out_trees import Edge
from synth_models.fabric.scheduling.box_routes import PairRoutes

Groups = int | Sequence["Groups"]  # a box, or groups next to each other

NOBODY = -1
SAME = 1e-6  # distances that differ by less, relatively, count as equal


def two_trees(groups: Groups) -> list[list[Edge]]:
    """The edges of both trees from box 0, the first of the first group, in the order of their rounds: from box, to box,
    rounds after the piece left the root. A box receives before it sends. ``groups`` may consist of groups."""
    count = _boxes(groups)
    parent = [[NOBODY] * count, [NOBODY] * count]
    _hang(groups, parent)
    colour = _colours(parent)
    trees: list[list[Edge]] = []
    for which, above in enumerate(parent):
        children: dict[int, list[int]] = {}
        for box, over in enumerate(above[1:], 1):
            children.setdefault(over, []).append(box)
        edges, queue = [], [(0, 0)]
        for box, soonest in queue:  # which grows
            for child in children.get(box, ()):
                wait = soonest + (soonest + which + colour[which][child]) % 2
                edges.append((box, child, wait))
                queue.append((child, wait + 1))
        trees.append(sorted(edges, key=_wait))
    return trees


def seconds_between(routes: PairRoutes, boxes: Sequence[Sequence[int]]) -> FloatArray:
    """Seconds of the quickest route from the first rank of every box to any of every other, inf to itself; shape
    (boxes, boxes)."""
    members = np.array([rank for box in boxes for rank in box])
    first = np.cumsum([0, *map(len, boxes[:-1])])
    found = np.array([np.minimum.reduceat(routes.seconds_from(box[0])[members], first) for box in boxes])
    np.fill_diagonal(found, np.inf)
    return found


def around(seconds: FloatArray) -> IntArray:
    """A way around all boxes, shape (boxes,): from each to the nearest that is left, of those to the next by number."""
    count = len(seconds)
    left, order = np.ones(count, dtype=bool), np.zeros(count, dtype=np.int64)
    for k in range(1, count):
        here = order[k - 1]
        left[here] = False
        away = np.where(left, seconds[here], np.inf)
        near = np.flatnonzero(left & (away <= away.min() * (1 + SAME)))
        order[k] = near[np.argmin(np.abs(near - here))]
    return order


def near_boxes(seconds: FloatArray, order: IntArray) -> list[Groups]:
    """Groups of boxes that are all as near to each other as any are, by their place in ``order``, and of such groups
    those that are next nearest, and so on; that of the first goes first."""
    farthest = seconds[order][:, order]  # between any two boxes of two groups
    found: list[Groups] = list(range(len(order)))
    while True:
        near = farthest <= farthest.min(initial=np.inf) * (1 + SAME)
        free, groups = np.ones(len(found), dtype=bool), list[list[int]]()
        for first in range(len(found)):
            if free[first]:
                group, fits = [first], near[first] & free
                fits[first] = False
                while fits.any():
                    group.append(int(np.argmax(fits)))
                    fits &= near[group[-1]]
                    fits[group[-1]] = False
                free[group] = False
                groups.append(group)
        if len(groups) in (1, len(found)):
            return found
        found = [[found[k] for k in group] for group in groups]
        rows, starts = np.concatenate(groups), np.cumsum([0, *map(len, groups[:-1])])
        farthest = farthest[rows][:, rows]
        for axis in (0, 1):
            farthest = np.maximum.reduceat(farthest, starts, axis=axis)
        np.fill_diagonal(farthest, np.inf)


def _boxes(groups: Groups) -> int:
    return 1 if isinstance(groups, int) else sum(map(_boxes, groups))


def _hang(groups: Groups, parent: list[list[int]]) -> tuple[int, list[int]]:
    """Note in either tree the ``parent`` of every box but the first. That first one, by which both trees enter, and the
    boxes that send less than they could, once for every piece that they could send in two rounds: two in all."""
    if isinstance(groups, int):
        return groups, [groups, groups]
    (gate, idle), *inner = (_hang(group, parent) for group in groups)
    for which in (0, 1) if inner else ():
        for (box, _), over in zip(inner, parents(len(inner), which), strict=True):
            parent[which][box] = (idle if over < 0 else inner[over][1]).pop(0)
    return gate, [*idle, *(box for _, left in inner for box in left)]


def _colours(parent: Sequence[Sequence[int]]) -> list[list[int]]:
    """Whether the edge into a box is used in even or odd rounds, for either tree (section 4 of the paper): the edges
    into a box differ, and so do a box's two edges to children. Alternating so, one walks around even cycles."""
    count = len(parent[0])
    out: dict[int, list[tuple[int, int]]] = {}
    for which in (0, 1):
        for box in range(1, count):
            out.setdefault(parent[which][box], []).append((which, box))
    colour = [[NOBODY] * count for _ in parent]
    for start in [*out[0], *((which, box) for which in (0, 1) for box in range(1, count))]:
        first, box = start
        stack = [(start, first)] if colour[first][box] == NOBODY else []
        while stack:
            (which, box), own = stack.pop()
            if colour[which][box] != NOBODY:
                continue
            colour[which][box] = own
            beside = [edge for edge in out[parent[which][box]] if edge != (which, box)]
            stack += [(edge, 1 - own) for edge in (*beside, (1 - which, box))]
    return colour


def _wait(edge: Edge) -> int:
    _, _, wait = edge
    return wait
