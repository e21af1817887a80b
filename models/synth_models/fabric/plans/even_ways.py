"""Quickest ways from rank to rank that load all links alike.

Over switches each part of a block takes another of several equally quick routes (rails, spines). Without switches, on
tori, hypercubes and their like, ways lead over ranks. Blocks are routed one after the other, and then again
:data:`ROUNDS` times, each over the way whose links have least to do by then: least sum over its links of how much the
:data:`POWER`-th power of their seconds of use grows, so that the busiest counts most.

Complexity: for every block and round the links on its quickest ways.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import SAME, FloatArray, IntArray
from synth.graph.hops import hops
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.out_trees import channels
from synth_models.fabric.plans.pair_paths import once
from synth_models.fabric.routes.routes_in_turn import Edges
from synth_models.fabric.routes.search import Routes
from synth_models.fabric.scheduling.transfers import Transfers

ROUNDS, POWER = 2, 8
MOST_EDGES = 20_000
PARTS = (1, 2, 4)  # of a block that are tried, each with a way of its own


def evenly(instance: FabricInstance, whole: IntArray, edges: Edges, parts: int) -> Transfers | None:
    """Every block, of ``whole`` bytes, shape (blocks,), in so many pieces along its one edge over quickest ways that
    load links alike; part k of block b has the number ``parts b + k``. None where that is nothing new or not to be had:
    over switches with less routes than half the parts or fewer parts than routes; without, where there are buses, where
    every rank has one link to every other, or where a rank cannot be reached; and beyond :data:`MOST_EDGES`."""
    machine = instance.machine
    net, ranks = machine.network, len(machine.ranks)
    if parts * len(edges.piece) > MOST_EDGES:
        return None
    routes = channels(instance, int(whole.max(initial=1))) if ranks < machine.nodes else 0
    if routes and not (parts // 2 < routes <= parts and routes > 1):
        return None
    size = np.stack([whole * (k + 1) // parts - whole * k // parts for k in range(parts)], axis=1).reshape(-1)
    number = (parts * edges.piece[:, None] + np.arange(parts)).reshape(-1)
    edges = Edges(number, *(np.repeat(column, parts) for column in (edges.source, edges.target, edges.priority)))
    if routes:
        return once(instance, size, edges)
    pairs = len(np.unique(net.src.astype(np.int64) * machine.nodes + net.dst))
    if machine.group_names or pairs == net.links == ranks * (ranks - 1):
        return None
    ways = _Ways(instance, int(size.max(initial=1)), max(1, int(whole.sum())) / machine.links)
    if not all(np.isfinite(ways.seconds(u)).all() for u in set(edges.source.tolist())):
        return None
    rows = list(zip(edges.source.tolist(), edges.target.tolist(), size[edges.piece].tolist(), strict=True))
    taken: list[tuple[int, ...]] = [()] * len(rows)
    for _ in range(1 + ROUNDS):
        for k, (source, target, amount) in enumerate(rows):
            ways.use(taken[k], -amount)
            taken[k] = ways.least_used(source, target, amount)
            ways.use(taken[k], amount)
    return _transfers(size, edges, taken)


def _transfers(size: IntArray, edges: Edges, taken: list[tuple[int, ...]]) -> Transfers:
    """One transfer a link, each after the one that brings its piece."""
    piece: list[int] = []
    route: list[tuple[int, ...]] = []
    before: list[tuple[int, ...]] = []
    priority: list[int] = []
    last: dict[int, int] = {}
    for block, turn, links in zip(edges.piece.tolist(), edges.priority.tolist(), taken, strict=True):
        for e in links:
            before.append((last[block],) if block in last else ())
            last[block] = len(piece)
            piece.append(block)
            route.append((e,))
            priority.append(turn)
    return Transfers.of(np.arange(len(size)), size, piece, route, before, priority)


class _Ways:
    """The quickest ways for pieces of ``size`` bytes, and the bytes on every link so far, in units of ``mean``."""

    def __init__(self, instance: FabricInstance, size: int, mean: float) -> None:
        net = instance.machine.network
        self._routes = Routes.of(instance, size)
        self._place = {rank: k for k, rank in enumerate(instance.machine.ranks.tolist())}
        self._src = net.src.tolist()
        self._takes = (net.latency + size / net.bandwidth).tolist()
        self._slow: list[float] = (net.bandwidth.max() / net.bandwidth / mean).tolist()
        self._load = [0.0] * net.links
        _, _, start, into = net.in_links
        self._into = [into[start[v] : start[v + 1]].tolist() for v in range(net.nodes)]
        self._near: dict[int, list[list[int]]] = {}

    def seconds(self, source: int) -> FloatArray:
        return self._routes.seconds(source)

    def use(self, links: tuple[int, ...], amount: int) -> None:
        """Count so many bytes more on these links."""
        for e in links:
            self._load[e] += amount * self._slow[e]

    def _last(self, source: int) -> list[list[int]]:
        """For every node the links by which a quickest way from the source may enter it."""
        if source not in self._near:
            far = {rank: float(self.seconds(source)[k]) for rank, k in self._place.items()}
            last = [
                [e for e in into if far[self._src[e]] + self._takes[e] <= far[v] * (1 + SAME)]
                for v, into in enumerate(self._into)
            ]
            self._near[source] = self._onwards(source, far, last)
        return self._near[source]

    def _onwards(self, source: int, far: dict[int, float], last: list[list[int]]) -> list[list[int]]:
        """Of these links those that lead on: to a node that is farther, or as far and more hops away, so that ways over
        links that take no time, or next to none, do not go round."""
        kept = [[e for e in into if far[self._src[e]] <= far[v]] for v, into in enumerate(last)]
        if all(far[self._src[e]] < far[v] for v, into in enumerate(kept) for e in into):
            return kept
        heads = [v for v, into in enumerate(kept) for _ in into]
        tails = [self._src[e] for into in kept for e in into]
        away = hops(len(kept), np.array(tails), np.array(heads), [source])[0].tolist()
        return [
            [e for e in into if (far[self._src[e]], away[self._src[e]]) < (far[v], away[v])]
            for v, into in enumerate(kept)
        ]

    def least_used(self, source: int, target: int, amount: int) -> tuple[int, ...]:
        """The links of the least used quickest way, the first one first."""
        last = self._last(source)
        best: dict[int, tuple[float, tuple[int, ...]]] = {source: (0.0, ())}
        waiting = [target]
        while waiting:  # a way may be longer than calls may be deep
            v = waiting[-1]
            unknown = [self._src[e] for e in last[v] if self._src[e] not in best]
            if unknown:
                waiting += unknown
                continue
            waiting.pop()
            if v in best:
                continue
            found = []
            for e in last[v]:
                cost, links = best[self._src[e]]
                load = self._load[e]
                found.append((cost + (load + amount * self._slow[e]) ** POWER - load**POWER, (*links, e)))
            best[v] = min(found)
        return best[target][1]
