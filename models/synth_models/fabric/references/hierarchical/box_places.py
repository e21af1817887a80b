"""Which box takes which place in the two trees, so that as few routes as possible meet on a link.

The trees (:mod:`.box_trees`) say which place sends to which in even rounds and which in
odd ones. Places of groups that are alike can be exchanged: that changes the routes, not the rounds. A link of the
network that more than one piece's time is asked of in a round holds the whole pipeline up; random exchanges in the
groups concerned go on until there is none, or a number of them has passed. Slow links from a leaf switch to its spines,
over which pieces go in turn (:mod:`synth_models.fabric.routes.spines`), are one link.

Where both trees enter a group at its one gate, two pieces never enter or leave it in one round, but the trees are about
twice as deep as with a gate for each; so both are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from synth.arrays import SAME, BoolArray, FloatArray, IntArray
from synth_models.fabric.plans.out_trees import Edge
from synth_models.fabric.references.hierarchical.box_rails import Rails
from synth_models.fabric.references.hierarchical.box_trees import Growth, PlacedTrees, two_trees
from synth_models.fabric.references.hierarchical.tuned import EXCHANGES_A_PASS
from synth_models.fabric.routes.box_routes import PairRoutes
from synth_models.fabric.routes.near_boxes import Groups, around, near_boxes, places, seconds_between
from synth_models.fabric.routes.spines import as_one


def placed(
    routes: PairRoutes, rails: Rails, boxes: Sequence[Sequence[int]], root: int, bandwidth: FloatArray, growth: Growth
) -> PlacedTrees:
    """Two trees from the box of ``root``; ``bandwidth`` of every link, bytes/s."""
    seconds = seconds_between(routes, boxes)
    order = around(seconds)
    order = np.roll(order, -int(np.flatnonzero(order == rails.box[root])[0]))
    groups = near_boxes(seconds, order)
    trees = two_trees(groups, *growth)
    search = _Exchanges(routes, rails, trees, order, bandwidth)
    search.run(groups)
    return PlacedTrees(trees, search.box)


class _Exchanges:
    """The ``box`` of every place, the ``load`` of every link in even and odd rounds (seconds for a byte, shape (2,
    links)), and the ``excess`` of all loads over what the slowest link of the best route takes."""

    def __init__(
        self, routes: PairRoutes, rails: Rails, trees: Sequence[list[Edge]], order: IntArray, bandwidth: FloatArray
    ) -> None:
        self._routes, self._rails, self._each = routes, rails, 1 / bandwidth
        rows = [
            (source, target, (which + wait) % 2) for which, edges in enumerate(trees) for source, target, wait in edges
        ]
        self._source, self._target, self._parity = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        self.box = order.copy()
        every = np.arange(len(self._source))
        self._pace = self._slowest(every)
        self._number, rate = as_one(routes.machine, self._each > self._pace * (1 + SAME))
        self._each = 1 / rate
        self.load = self._loads(every)
        self.excess = self._excess(self.load)

    def run(self, groups: Groups) -> None:
        """Exchange places at random, as long as that helps."""
        rng = np.random.default_rng(0)
        before = np.inf
        while self.excess < before:
            before = self.excess
            for parts in _alike(groups):
                if not self.excess:
                    return
                self._exchange(parts, rng)

    def _exchange(self, parts: IntArray, rng: np.random.Generator) -> None:
        """Try to exchange ``parts``, shape (parts, places of each)."""
        touched = np.isin(self._source, parts) | np.isin(self._target, parts)
        mine = np.flatnonzero(touched)
        others = self.load - self._loads(mine)
        for _ in range(EXCHANGES_A_PASS):
            if self._excess(self.load) <= self._excess(np.maximum(others, 0.0)):
                return  # no route from or to these places has a part in it
            before = self.box[parts]
            self.box[parts] = before[rng.permutation(len(parts))]
            load = others + self._loads(mine)
            excess = self._excess(load)
            if excess <= self.excess:
                self.load, self.excess = load, excess
            else:
                self.box[parts] = before

    def _routes_of(self, edges: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Links of the routes of these edges over all rails; of which route, and of which edge, each is."""
        rails = self._rails
        source, target = self.box[self._source[edges]], self.box[self._target[edges]]
        at = rails.rank[source]
        leaves, enters = rails.between(at, target[:, None], 0)
        start, link = self._routes.of(leaves.ravel(), enters.ravel())
        route = np.repeat(np.arange(len(start) - 1), np.diff(start))
        return link, route, edges[route // at.shape[1]]

    def _slowest(self, edges: IntArray) -> float:
        link, route, _ = self._routes_of(edges)
        slowest = np.zeros(int(route.max(initial=-1)) + 1)
        np.maximum.at(slowest, route, self._each[link])
        return float(slowest.min(initial=np.inf))

    def _loads(self, edges: IntArray) -> FloatArray:
        link, _, edge = self._routes_of(edges)
        link = self._number[link]
        cell = self._parity[edge] * len(self._each) + link
        return np.bincount(cell, self._each[link], 2 * len(self._each)).astype(float)

    def _excess(self, load: FloatArray) -> float:
        over: BoolArray = load > self._pace * (1 + SAME)
        return float(np.sum(load[over] - self._pace))


def _alike(groups: Groups) -> Iterator[IntArray]:
    """Of every group, the inner ones first, the places of parts that can be exchanged: of the same shape, none of them
    the root's; shape (parts, places)."""
    if isinstance(groups, int):
        return
    by_shape: dict[str, list[list[int]]] = {}
    for part in groups:
        yield from _alike(part)
        own = places(part)
        if 0 not in own:
            by_shape.setdefault(_shape(part), []).append(own)
    for parts in by_shape.values():
        if len(parts) > 1:
            yield np.array(parts, dtype=np.int64)


def _shape(groups: Groups) -> str:
    return "." if isinstance(groups, int) else f"({''.join(map(_shape, groups))})"
