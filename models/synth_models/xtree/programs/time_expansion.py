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
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.graph.symmetry import Permutation, orbits
from synth.network import Network
from synth.network.symmetry import point_symmetries, unit_translations
from synth.schedule import Schedule

Label = npt.NDArray[np.int32]


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
    """Index sets and rows of the time-expanded program; see the module docstring.

    ``weight`` is how many chunks one variable stands for in a link's capacity. Rows refer to variables by position
    in ``send`` and ``held``.
    """

    network: Network
    roots: npt.NDArray[np.int64]
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
        self._send_at: dict[tuple[int, int], int] = {}  # (k, a) -> position of its variable for t = 0 (imaginary)
        self._held_at: dict[tuple[int, int], int] = {}
        self.first_send: dict[tuple[int, int], int] = {}
        for k, root in enumerate(self.roots.tolist()):
            from_root = distance[root].tolist()
            for a in np.flatnonzero(self.arc_label[k] == np.arange(arcs) + k * arcs).tolist():
                first = from_root[self.tail[a]] + 1
                if self.head[a] != root and first <= self.horizon:
                    self.first_send[k, a] = first
                    self._send_at[k, a] = len(self.send) - first
                    self.send += [(k, a, t) for t in range(first, self.horizon + 1)]
            for v in np.flatnonzero(self.node_label[k] == np.arange(nodes) + k * nodes).tolist():
                if v != root:
                    self._held_at[k, v] = len(self.held) - from_root[v]
                    self.held += [(k, v, t) for t in range(from_root[v], self.horizon)]

    def _labels(self, chunks: int, arcs: int, nodes: int) -> tuple[Label, Label]:
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

    def held_variable(self, k: int, v: int, t: int) -> int:
        """Position of ``held[k, v, t]``'s representative, which must exist."""
        k, v = divmod(int(self.node_label[k, v]), self.network.nodes)
        return self._held_at[k, v] + t

    def capacity_rows(self) -> list[tuple[list[int], int, list[int], list[int]]]:
        """``(arcs, step, variables, coefficients)``: the load of each of these equivalent arcs, whose capacity is that
        of the first. Rows that cannot bind are left out."""
        arcs = len(self.tail)
        # arcs are images of each other iff the same pair is the smallest label in their columns
        smallest = self.arc_label.min(axis=0)
        alike: dict[int, list[int]] = {}
        for a, label in enumerate(smallest.tolist() if self.fold else range(arcs)):
            alike.setdefault(label, []).append(a)
        rows = []
        for group in alike.values():
            a = group[0]
            pairs = [
                (self._send_at[pair], self.first_send[pair], count * self.weight)
                for label, count in Counter(self.arc_label[:, a].tolist()).items()
                if (pair := divmod(label, arcs)) in self.first_send
            ]
            for t in range(1, self.horizon + 1):
                using = [(at + t, count) for at, first, count in pairs if first <= t]
                if sum(count for _, count in using) > self.capacity[a]:
                    rows.append((group, t, [i for i, _ in using], [n for _, n in using]))
        return rows

    def arrival_rows(self) -> list[tuple[tuple[int, int, int], list[int], list[int], int | None, int | None]]:
        """``((k, v, t), sends, coefficients, held before, held after)``: what arrives in step t plus what was there is
        what is there. ``held before`` None is 0, ``held after`` None is 1 (the end)."""
        rows = []
        distance = self.network.distances
        for (k, v), at in self._held_at.items():
            start = int(distance[self.roots[k], v])
            sources = Counter(divmod(int(self.arc_label[k, a]), len(self.tail)) for a in self.into[v])
            for t in range(start, self.horizon + 1):
                arriving = [
                    (self._send_at[pair] + t, n)
                    for pair, n in sources.items()
                    if pair in self.first_send and self.first_send[pair] <= t
                ]
                before = at + t - 1 if t > start else None
                after = at + t if t < self.horizon else None
                rows.append(((k, v, t), [i for i, _ in arriving], [n for _, n in arriving], before, after))
        return rows

    def departure_rows(self) -> list[tuple[int, int]]:
        """``(send, held)``: a chunk leaves a node in step t only if the node held it at the end of step t - 1."""
        rows = []
        roots = self.roots.tolist()
        for (k, a), first in self.first_send.items():
            u = self.tail[a]
            if u != roots[k]:
                at = self._send_at[k, a]
                rows += [(at + t, self.held_variable(k, u, t - 1)) for t in range(first, self.horizon + 1)]
        return rows

    def chunk_order_rows(self) -> list[tuple[int, int]]:
        """``(later, earlier)``: ``held[later] <= held[earlier]``. The chunks of one node are interchangeable, so they
        may be taken to arrive at the node farthest from it in the order of their numbers."""
        rows = []
        distance = self.network.distances
        for k in range(len(self.roots) - 1):
            root = self.roots[k]
            if self.roots[k + 1] == root:
                far = int(distance[root].argmax())
                for t in range(int(distance[root, far]), self.horizon):
                    rows.append((self.held_variable(k + 1, far, t), self.held_variable(k, far, t)))
        return rows

    def rotation_order_rows(self, group: Sequence[Permutation]) -> list[tuple[list[int], list[int]]]:
        """``(mine, theirs)``: ``sum held[mine] <= sum held[theirs]``. Among the images of a schedule under ``group``
        some has node r's chunks arrive at node w, in total, no earlier than g(r)'s chunks at g(w) for all g: the one
        that maximises that total. Renumbering the chunks of a node leaves totals alone, so this goes with
        :meth:`chunk_order_rows`. (r, w) is the first pair at the largest distance."""
        distance = self.network.distances
        r, w = divmod(int(distance.argmax()), self.network.nodes)
        mine = self._time_held(r, w)
        images = {(int(g[r]), int(g[w])) for g in group} - {(r, w)}
        # empty on both sides: all arrive in the last timestep, every image ties
        return [(mine, self._time_held(*image)) for image in sorted(images)] if mine else []

    def _time_held(self, root: int, node: int) -> list[int]:
        start = int(self.network.distances[root, node])
        chunks = np.flatnonzero(self.roots == root).tolist()
        return [self.held_variable(k, node, t) for k in chunks for t in range(start, self.horizon)]

    def schedule(self, chosen: Sequence[int] | npt.NDArray[np.intp]) -> Schedule:
        """The schedule of the chosen ``send`` variables, unfolded, arcs turned into links."""
        on = {self.send[i] for i in np.asarray(chosen).tolist()}
        times: dict[int, list[int]] = {}
        for k, a, t in on:
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


def _orbits(first: list[Any], second: list[Any], rows: int, cols: int) -> Label:
    """Smallest pair of each orbit of (row, column) pairs under the joint maps, numbered row-major."""
    pair = np.arange(rows * cols).reshape(rows, cols)
    images = [pair[np.ix_(f, s)].ravel() for f, s in zip(first, second, strict=True)]
    return orbits(rows * cols, images).reshape(rows, cols).astype(np.int32)
