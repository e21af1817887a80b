"""Two binary trees over boxes that carry half of the data each, along few edges out of a group of boxes.

Sanders, Speck, Träff: "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 2009.
No box has children in both trees, so that each sends as much as it receives. Pieces take the trees in turn; an edge is
then in use in every other round, and by colours no box sends two pieces in a round or receives two.

Boxes behind the same leaf switches are a group. The groups are joined by two trees themselves, which enter each at its
first box; the others hang below that by two trees of their own. Of the 2 n sends of n boxes in two rounds, 2 (n - 1)
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

NOBODY = -1
SAME = 1e-6  # distances that differ by less, relatively, count as equal


def two_trees(groups: Sequence[Sequence[int]]) -> list[list[Edge]]:
    """The edges of both trees from box 0, the first of the first group, in the order of their rounds: from box, to box,
    rounds after the piece left the root. A box receives before it sends."""
    parent = _parents(groups)
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


def near_boxes(seconds: FloatArray, order: IntArray) -> list[list[int]]:
    """Groups of boxes that are nearest to each other, by their place in ``order``; that of the first goes first."""
    count = len(seconds)
    away = seconds[order][:, order]
    near = away <= away.min(initial=np.inf) * (1 + SAME)
    group, found = np.full(count, NOBODY), list[list[int]]()
    for first in range(count):
        if group[first] == NOBODY:
            stack, group[first] = [first], len(found)
            while stack:
                fresh = np.flatnonzero(near[stack.pop()] & (group == NOBODY))
                group[fresh] = len(found)
                stack += fresh.tolist()
            found.append(np.flatnonzero(group == len(found)).tolist())
    return found


def _parents(groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """The parent of every box in either tree, :data:`NOBODY` for box 0."""
    count = sum(map(len, groups))
    parent = [[NOBODY] * count, [NOBODY] * count]
    idle: list[list[int]] = []  # of every group: boxes that send less than they could
    for gate, *inner in groups:
        sends = dict.fromkeys((gate, *inner), 0)
        for which in (0, 1):
            for box, over in zip(inner, parents(len(inner), which) if inner else (), strict=True):
                parent[which][box] = gate if over < 0 else inner[over]
                sends[parent[which][box]] += 1
        idle.append([box for box, count in sends.items() for _ in range(2 - count)])
    for which in (0, 1) if len(groups) > 1 else ():
        for (gate, *_), above in zip(groups[1:], parents(len(groups) - 1, which), strict=True):
            parent[which][gate] = idle[above + 1].pop(0)
    return parent


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
