"""Sets of boxes that are closer joined than with the rest: groups of a dragonfly, pods, boxes behind one leaf switch.

They are communities of the machine's graph with every box one vertex. Of all joined vertices those two are merged by
which modularity gains most, again and again (Clauset, Newman, Moore 2004), and whatever comes up on the way is looked
at. Nothing rests on how a set is found, because the cut around any set of nodes is a bound
(:mod:`synth_models.fabric.bounds.cuts`). Switches beside the boxes are on the side that more of their bandwidth leads
to. Kept are sets whose cut carries less than the boxes on one side can send and those on the other receive. Elsewhere
the cut around one of the boxes proves as much, latencies apart.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.crossing import rates

MOST_WORK = 1 << 25  # vertices times links of a machine that is searched,
MOST_FOUND = 64  # and sets that are kept
ROUNDS = 8  # in which switches choose their side


def neighbourhoods(links: Links, boxes: Sequence[BoolArray]) -> list[BoolArray]:
    """Sets of nodes, shape (nodes,) each, that hold several of the ``boxes`` (disjoint sets of nodes, same shape) whole
    and not all; those whose cut carries least, measured by what the boxes on its sides can, come first."""
    vertex = np.full(links.nodes, -1, dtype=np.int64)
    for b, box in enumerate(boxes):
        vertex[box] = b
    beside = np.flatnonzero(vertex < 0)
    vertices = len(boxes) + len(beside)
    vertex[beside] = np.arange(len(boxes), vertices)
    if len(boxes) < 3 or vertices * links.links > MOST_WORK or not links.links:
        return []
    own = np.array([_rates(links, box) for box in boxes], dtype=object)  # exact sums
    found: dict[tuple[int, ...], tuple[float, BoolArray]] = {}
    graph = _Graph.of(vertex[links.src], vertex[links.dst], links.rate, vertices)
    for community in graph.communities():
        here = [b for b in community if b < len(boxes)]
        there = sorted(set(range(len(boxes))) - set(here))
        if 1 < len(here) < len(boxes):
            inside = graph.with_switches(community, len(boxes))[vertex]
            share = _share(_rates(links, inside), own[here].sum(axis=0), own[there].sum(axis=0))
            key = min(tuple(sorted(here)), tuple(there))
            if share < found.get(key, (1.0,))[0]:
                found[key] = share, inside
    return [inside for _, inside in sorted(found.values(), key=lambda one: one[0])[:MOST_FOUND]]


def _share(cut: tuple[int, int], here: Any, there: Any) -> float:
    """What a cut carries out and in, as a share of what boxes on its sides can send and receive: the less of both."""
    could = min(here[0], there[1]), min(here[1], there[0])
    return min((rate / most for rate, most in zip(cut, could, strict=True) if most), default=1.0)


def _rates(links: Links, inside: BoolArray) -> tuple[int, int]:
    """Bytes a second that leave a set of nodes, and that come in, in multiples of :attr:`Links.unit`."""
    out, into = inside[links.src] & ~inside[links.dst], ~inside[links.src] & inside[links.dst]
    return sum(rates(links, out)[1].tolist()), sum(rates(links, into)[1].tolist())


@dataclass(frozen=True, eq=False)
class _Graph:
    """Vertices 0, 1, … joined in pairs, with the bandwidth of both directions together; shape (pairs,) each."""

    one: IntArray
    other: IntArray
    weight: FloatArray
    vertices: int

    @classmethod
    def of(cls, src: IntArray, dst: IntArray, rate: IntArray, vertices: int) -> _Graph:
        apart = src != dst
        key = np.minimum(src, dst)[apart] * vertices + np.maximum(src, dst)[apart]
        pairs, row = np.unique(key, return_inverse=True)
        weight = np.zeros(len(pairs))
        np.add.at(weight, row.reshape(-1), rate[apart].astype(np.float64))
        return cls(pairs // vertices, pairs % vertices, weight, vertices)

    def communities(self) -> Iterator[list[int]]:
        """Those that are merged, from the first to all that hangs together."""
        joined: list[dict[int, float]] = [{} for _ in range(self.vertices)]
        for u, v, weight in zip(self.one.tolist(), self.other.tolist(), self.weight.tolist(), strict=True):
            joined[u][v] = joined[v][u] = weight
        degree = [sum(near.values()) for near in joined]
        whole = sum(degree)
        members = [[v] for v in range(self.vertices)]
        merged = [0] * self.vertices  # how often; what was queued before that is out of date

        def queued(u: int, v: int) -> tuple[float, int, int, int, int]:
            a, b = min(u, v), max(u, v)
            return degree[a] * degree[b] / whole - joined[a][b], a, b, merged[a], merged[b]

        queue = [queued(u, v) for u in range(self.vertices) for v in joined[u] if u < v]
        heapq.heapify(queue)
        while queue:
            _, a, b, *then = heapq.heappop(queue)
            if then != [merged[a], merged[b]]:
                continue
            members[a] += members[b]
            for v, weight in joined[b].items():
                del joined[v][b]
                if v != a:
                    joined[a][v] = joined[v][a] = joined[a].get(v, 0.0) + weight
            degree[a] += degree[b]
            merged[a], merged[b] = merged[a] + 1, -1
            for v in joined[a]:
                heapq.heappush(queue, queued(a, v))
            yield members[a]

    def with_switches(self, community: Sequence[int], boxes: int) -> BoolArray:
        """The community's boxes (vertices below ``boxes``) and the switches that hang more on this side, shape
        (vertices,)."""
        inside = np.zeros(self.vertices, dtype=bool)
        inside[list(community)] = True
        for _ in range(ROUNDS):
            lean = np.zeros(self.vertices)
            np.add.at(lean, self.one, np.where(inside[self.other], self.weight, -self.weight))
            np.add.at(lean, self.other, np.where(inside[self.one], self.weight, -self.weight))
            before = inside.copy()
            inside[boxes:] = np.where(lean[boxes:] == 0, inside[boxes:], lean[boxes:] > 0)
            if np.array_equal(before, inside):
                break
        return inside
