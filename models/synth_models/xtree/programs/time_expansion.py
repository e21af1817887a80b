"""The time-expanded index sets that the programs of this family share.

For a horizon T, chunk k of node r, arc a = (u, v) (parallel links merged, since no chunk needs to pass twice between
the same two nodes) and timestep t:

* ``send[k, a, t]``: chunk k is sent over a in step t. Exists only for ``dist(r, u) < t <= T`` and ``v != r``.
* ``held[k, v, t]``: v holds k at the end of step t. Exists only for ``dist(r, v) <= t < T`` and ``v != r``; before
  that it is 0, at r it is 1, and at the end of step T it must be 1.

*Folding* identifies variables that automorphisms of the network map onto each other. Restricting a program to folded
schedules only finds symmetric ones; folding its LP relaxation loses nothing, because averaging a fractional solution
over the group gives a symmetric one. For the same reason the chunks of one node share their variables in the folded
LP, which then does not grow with C.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from synth.arrays import Int32Array, IntArray
from synth.graph.symmetry import Permutation, orbits
from synth.network import Network
from synth.network.symmetry import point_symmetries, unit_translations
from synth.schedule import Schedule

Sends = tuple[int, int, int, int]
"""How often a chunk and arc count (with their images), the chunk, the arc, and the first timestep of its variables."""


def all_generators(network: Network) -> list[Permutation]:
    """Automorphisms that generate all known symmetries (rotations, reflections, translations): for relaxations."""
    return point_symmetries(network)[1:] + unit_translations(network)


def free_generators(network: Network) -> list[Permutation]:
    """Generators of a group that leaves schedules room: the translations, or else the half turn of the grid. (Under
    a reflection, say, a chunk may only use links that are mirrored onto links it may use too.)"""
    half_turn = np.arange(network.nodes)[::-1]
    turns = [g for g in point_symmetries(network)[1:] if np.array_equal(g, half_turn)]
    return unit_translations(network) or turns


@dataclass
class TimeExpansion:
    """Index sets of the time-expanded program; see the module docstring.

    ``send`` holds the indices (k, a, t) and ``held`` the (k, v, t) of variables, one of all that symmetries map onto
    each other. ``weight`` is how many chunks one variable stands for in a link's capacity.
    """

    network: Network
    roots: IntArray
    horizon: int
    weight: int = 1
    fold: Sequence[Permutation] = ()
    send: list[tuple[int, int, int]] = field(default_factory=list)
    held: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.horizon < self.network.diameter:
            raise ValueError("the horizon is shorter than the network's diameter: there is no schedule")
        tail, head, capacity, _ = self.network.arcs
        self.tail, self.head, self.capacity = tail.tolist(), head.tolist(), capacity.tolist()
        self.into: list[list[int]] = [[] for _ in range(self.network.nodes)]
        for a, v in enumerate(self.head):
            self.into[v].append(a)
        distance = self.network.distances
        chunks, arcs, nodes = len(self.roots), len(self.tail), self.network.nodes
        self.arc_label, self.node_label = self._labels(chunks, arcs, nodes)
        self.first_send: dict[tuple[int, int], int] = {}  # by chunk and arc: the first timestep
        self.first_held: dict[tuple[int, int], int] = {}  # by chunk and node
        for k, root in enumerate(self.roots.tolist()):
            from_root = distance[root].tolist()
            for a in np.flatnonzero(self.arc_label[k] == np.arange(arcs) + k * arcs).tolist():
                first = from_root[self.tail[a]] + 1
                if self.head[a] != root and first <= self.horizon:
                    self.first_send[k, a] = first
                    self.send += [(k, a, t) for t in range(first, self.horizon + 1)]
            for v in np.flatnonzero(self.node_label[k] == np.arange(nodes) + k * nodes).tolist():
                if v != root:
                    self.first_held[k, v] = from_root[v]
                    self.held += [(k, v, t) for t in range(from_root[v], self.horizon)]

    def _labels(self, chunks: int, arcs: int, nodes: int) -> tuple[Int32Array, Int32Array]:
        """For every (chunk, arc) and (chunk, node) the smallest equivalent pair, numbered row-major."""
        if not self.fold:
            return (
                np.arange(chunks * arcs, dtype=np.int32).reshape(chunks, arcs),
                np.arange(chunks * nodes, dtype=np.int32).reshape(chunks, nodes),
            )
        per_root = Counter(self.roots.tolist())
        rank = np.concatenate([np.arange(per_root[r]) for r in sorted(per_root)])
        chunk_of = {(int(r), int(c)): k for k, (r, c) in enumerate(zip(self.roots, rank, strict=True))}
        arc_of = {(u, v): a for a, (u, v) in enumerate(zip(self.tail, self.head, strict=True))}
        chunk_maps, arc_maps, node_maps = [], [], []
        for g in self.fold:
            chunk_maps.append(np.array([chunk_of[int(g[r]), int(c)] for r, c in zip(self.roots, rank, strict=True)]))
            arc_maps.append(np.array([arc_of[int(g[u]), int(g[v])] for u, v in zip(self.tail, self.head, strict=True)]))
            node_maps.append(np.asarray(g))
        return _orbits(chunk_maps, arc_maps, chunks, arcs), _orbits(chunk_maps, node_maps, chunks, nodes)

    @property
    def timesteps(self) -> range:
        """1, 2, …, T."""
        return range(1, self.horizon + 1)

    @cached_property
    def equivalent_arcs(self) -> dict[int, list[int]]:
        """The arcs that symmetries map onto each other, by the first of them."""
        # arcs are images of each other iff the same pair is the smallest label in their columns
        smallest = self.arc_label.min(axis=0).tolist() if self.fold else range(len(self.tail))
        alike: dict[int, list[int]] = {}
        for a, label in enumerate(smallest):
            alike.setdefault(label, []).append(a)
        return {group[0]: group for group in alike.values()}

    def crossing(self, a: int) -> list[Sends]:
        """All chunks that may cross arc ``a``."""
        return self._counted(self.arc_label[:, a].tolist(), self.weight)

    def entering(self, k: int, v: int) -> list[Sends]:
        """All arcs over which chunk ``k`` may come to node ``v``."""
        return self._counted([int(self.arc_label[k, a]) for a in self.into[v]], 1)

    def _counted(self, labels: list[int], weight: int) -> list[Sends]:
        arcs = len(self.tail)
        return [
            (count * weight, *pair, self.first_send[pair])
            for label, count in Counter(labels).items()
            if (pair := divmod(label, arcs)) in self.first_send
        ]

    def stands_for(self, k: int, v: int) -> tuple[int, int]:
        """The chunk and node whose ``held`` variables are those of ``k`` at ``v``."""
        chunk, node = divmod(int(self.node_label[k, v]), self.network.nodes)
        return chunk, node

    def schedule(self, chosen: Iterable[tuple[int, int, int]]) -> Schedule:
        """The schedule of the chosen ``send`` variables, unfolded, arcs turned into links."""
        times: dict[int, list[int]] = {}
        for k, a, t in set(chosen):
            times.setdefault(k * len(self.tail) + a, []).append(t)
        _, _, _, arc_of_link = self.network.arcs
        links_of = [np.flatnonzero(arc_of_link == a) for a in range(len(self.tail))]
        used: Counter[tuple[int, int]] = Counter()
        transfers = []
        for (k, a), label in np.ndenumerate(self.arc_label):
            for t in times.get(int(label), ()):
                transfers.append((t, int(links_of[a][used[a, t]]), k))
                used[a, t] += 1
        transfers.sort()
        table = np.array(transfers, dtype=np.int64).reshape(-1, 3)
        return Schedule.of(table[:, 0], table[:, 1], table[:, 2])


def _orbits(first: list[Any], second: list[Any], rows: int, cols: int) -> Int32Array:
    """Smallest pair of each orbit of (row, column) pairs under the joint maps, numbered row-major."""
    pair = np.arange(rows * cols).reshape(rows, cols)
    images = [pair[np.ix_(f, s)].ravel() for f, s in zip(first, second, strict=True)]
    return orbits(rows * cols, images).reshape(rows, cols).astype(np.int32)
