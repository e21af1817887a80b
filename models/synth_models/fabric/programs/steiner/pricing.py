"""Least Steiner trees under prices of links: the pricing problem of the packing.

A tree leads from a root to all terminals. It may part at every terminal, which is a rank that sends what it has once
more, and at every switch that copies; what passes another switch is one stream for one link out of it.

**Exact** up to :data:`MOST_EXACT` terminals: Dreyfus and Wagner ("The Steiner problem in graphs", Networks 1971). With
D(S, v) the least cost to serve the terminals S from a stream at v, ``D(S, v) = min over parts A of S of D(A, v) +
D(S - A, v)`` where v may part, and ``D(S, v) = min over links (v, w) of c + D(S, w)``. All roots at once; O(3^k n +
2^k n m) for k terminals, n nodes and m links.

**Else** by the nearest terminal (Takahashi and Matsuyama, "An approximate solution for the Steiner problem in graphs",
Math. Japonica 1980): a tree grows by the cheapest path to a terminal that it has not, from where it may part. That
proves nothing about the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.graph.rows import rows_by
from synth.graph.shortest_paths import UNREACHABLE, search
from synth.kernels import jit
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.programs.steiner.tuned import MOST_CELLS, MOST_EXACT

FAR = 2**60


class Tree(NamedTuple):
    """Streams out of ``node``: ``below`` (link, tree behind it) each. One without any ends there."""

    node: int
    below: tuple[tuple[int, Tree], ...]


class Costs(NamedTuple):
    """Whole prices of a byte, shape (links,): ``passing``, and where the link leads to a node at which the stream
    parts, ``parting``."""

    passing: IntArray
    parting: IntArray


class _Graph(NamedTuple):
    """``parts``: where a stream may part, shape (nodes,); ``terminal``: the number of each, -1 for others."""

    src: Int32Array
    dst: Int32Array
    is_switch: BoolArray
    parts: BoolArray
    terminal: IntArray


class _Least(NamedTuple):
    """By subset of terminals and node, shape (2**terminals, nodes) each: ``whole``, the least cost where the stream
    parts there, and ``first``, one of the subsets that it parts for; ``onward``, where it goes on, and over which link
    ``by``; ``parted``: whether it parts behind that link."""

    whole: IntArray
    first: IntArray
    onward: IntArray
    by: IntArray
    parted: BoolArray


@dataclass(frozen=True, eq=False)
class Pricing:
    """Least trees to ``terminals`` (ranks) on a machine."""

    machine: Machine
    terminals: tuple[int, ...]

    @property
    def exact(self) -> bool:
        """Whether trees are the least."""
        few = len(self.terminals) <= MOST_EXACT
        return few and 2 ** len(self.terminals) * self.machine.nodes <= MOST_CELLS

    def trees(self, costs: Costs, roots: Sequence[int]) -> list[tuple[int, Tree] | None]:
        """Cost and tree from every root, None where there is none."""
        graph = self._graph()
        if not self.exact:
            return [_nearest(self.machine, graph, costs, root, self.terminals) for root in roots]
        least = _dreyfus_wagner(graph, costs, len(self.terminals))
        return [_tree_from(graph, least, root) for root in roots]

    def _graph(self) -> _Graph:
        net = self.machine.network
        parts = self.machine.is_switch & self.machine.abilities.copies
        parts[list(self.terminals)] = True
        number = np.full(self.machine.nodes, -1, dtype=np.int64)
        number[list(self.terminals)] = np.arange(len(self.terminals))
        return _Graph(net.src, net.dst, self.machine.is_switch, parts, number)


@jit
def _dreyfus_wagner(graph: _Graph, costs: Costs, terminals: int) -> _Least:
    nodes, subsets = len(graph.parts), 1 << terminals
    far = np.full((subsets, nodes), FAR, dtype=np.int64)
    least = _Least(far, far.copy(), far.copy(), far.copy(), np.zeros((subsets, nodes), dtype=np.bool_))
    for mask in range(1, subsets):
        for v in range(nodes):
            if graph.parts[v]:
                _part(graph, least, mask, v)
        moved = True
        while moved:
            moved = False
            for e in range(len(graph.src)):
                u, v = graph.src[e], graph.dst[e]
                if graph.terminal[u] >= 0 and mask >> graph.terminal[u] & 1:
                    continue  # it has what it would send to itself
                if graph.is_switch[v]:
                    cost, parted = least.onward[mask, v] + costs.passing[e], False
                    if least.whole[mask, v] + costs.parting[e] < cost:
                        cost, parted = least.whole[mask, v] + costs.parting[e], True
                elif graph.terminal[v] >= 0 and mask >> graph.terminal[v] & 1:
                    cost, parted = least.whole[mask, v] + costs.passing[e], True
                else:
                    continue
                if cost < least.onward[mask, u]:
                    least.onward[mask, u], least.by[mask, u], least.parted[mask, u] = cost, e, parted
                    moved = True
    return least


@jit
def _part(graph: _Graph, least: _Least, mask: int, v: int) -> None:
    """The least cost to serve ``mask`` by streams that part at v; a terminal that is all of it is served."""
    own = 1 << graph.terminal[v] if graph.terminal[v] >= 0 else 0
    if mask == own:
        least.whole[mask, v], least.first[mask, v] = 0, 0
        return
    low = mask & -mask
    part = (mask - 1) & mask
    while part:
        if part & low:
            other = mask ^ part
            one = min(least.whole[part, v], least.onward[part, v])
            two = min(least.whole[other, v], least.onward[other, v])
            if one + two < least.whole[mask, v]:
                least.whole[mask, v], least.first[mask, v] = one + two, part
        part = (part - 1) & mask


def _tree_from(graph: _Graph, least: _Least, root: int) -> tuple[int, Tree] | None:
    """The tree from a root to all terminals."""
    full = len(least.whole) - 1
    if graph.parts[root] and least.whole[full, root] <= least.onward[full, root]:
        cost, parted = int(least.whole[full, root]), True
    else:
        cost, parted = int(least.onward[full, root]), False
    if cost >= FAR:
        return None
    dst = graph.dst

    def built(mask: int, v: int, parts: bool) -> list[tuple[int, Tree]]:
        if parts:
            first = int(least.first[mask, v])
            if not first:
                return []
            found = []
            for one in (first, mask ^ first):
                found += built(one, v, bool(least.whole[one, v] <= least.onward[one, v]))
            return found
        e = int(least.by[mask, v])
        there = int(dst[e])
        return [(e, Tree(there, tuple(built(mask, there, bool(least.parted[mask, v])))))]

    return cost, Tree(root, tuple(built(full, root, parted)))


def _nearest(
    machine: Machine, graph: _Graph, costs: Costs, root: int, terminals: Sequence[int]
) -> tuple[int, Tree] | None:
    """A tree that grows to the nearest terminal, and what it costs."""
    src, dst = graph.src.astype(np.int64), graph.dst.astype(np.int64)
    rows = rows_by(src, machine.nodes)
    entered, settled = np.empty((2, machine.nodes), dtype=np.int64)
    through = graph.is_switch
    into: dict[int, int] = {}
    missing = set(terminals) - {root}
    children: dict[int, list[int]] = {root: []}
    copies: dict[int, int] = {}  # links of streams through switches that do not part: by the link before
    total = 0
    behind: dict[int, list[int]] = {}
    while missing:
        first = np.full(machine.nodes, UNREACHABLE, dtype=np.int64)
        first[list(children)] = 0
        away = search(*rows, dst, costs.parting, first, through, entered, settled)
        v = min(missing, key=lambda node: (int(away[node]), node))
        if away[v] >= UNREACHABLE:
            return None
        missing.discard(v)
        path = []
        while v not in children:
            path.append(int(entered[v]))
            v = int(src[path[-1]])
        path.reverse()
        total += sum(int(costs.parting[e]) for e in path)
        behind.setdefault(v, []).append(len(copies))
        for k, e in enumerate(path):
            copies[len(copies)] = e
            node = int(dst[e])
            if graph.parts[node]:
                children.setdefault(node, [])
                into[node] = len(copies) - 1
            if k + 1 < len(path):
                behind.setdefault(node if graph.parts[node] else -len(copies), []).append(len(copies))

    def built(stream: int) -> tuple[int, Tree]:
        e = copies[stream]
        node = int(dst[e])
        more = behind.get(node if graph.parts[node] else -(stream + 1), [])
        return e, Tree(node, tuple(built(other) for other in more))

    return total, Tree(root, tuple(built(stream) for stream in behind.get(root, [])))
