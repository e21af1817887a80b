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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from synth.arrays import AnyIntArray, IntArray
from synth.graph.rows import lists_by, rows_by
from synth.graph.symmetry import Permutation, arc_images, orbits
from synth.network import Network
from synth.network.symmetry import point_symmetries, unit_translations
from synth.schedule import Schedule
from synth.time_expanded.orbits import FoldedTerm, generated_orbits, item_images, unfolded
from synth.time_expanded.windows import TimedIndex, Windows, at_nodes, on_arcs


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

    ``roots``: the node of every chunk, shape (chunks,). ``weight`` is how many chunks one variable stands for in a
    link's capacity. ``fold``: automorphisms by which the program is folded. Raises ``ValueError`` for a ``horizon``
    below the network's diameter.
    """

    network: Network
    roots: IntArray
    horizon: int
    weight: int = 1
    fold: Sequence[Permutation] = ()

    def __post_init__(self) -> None:
        if self.horizon < self.network.diameter:
            raise ValueError("the horizon is shorter than the network's diameter: there is no schedule")
        tail, head, capacity, _ = self.network.arcs
        self.tail, self.head, self.capacity = tail.tolist(), head.tolist(), capacity.tolist()
        self.into = lists_by(head, self.network.nodes)
        chunks, arcs = len(self.roots), len(tail)
        self.arc_images = [_found(arc_images(g, tail, head)) for g in self.fold]
        self.arc_orbits, self.node_orbits = unfolded(chunks, arcs), unfolded(chunks, self.network.nodes)
        if self.fold:
            chunk_images = [_found(item_images(self.roots, g)) for g in self.fold]
            self.arc_orbits = generated_orbits(chunk_images, self.arc_images)
            self.node_orbits = generated_orbits(chunk_images, self.fold)
        from_root = self.network.distances[self.roots]
        in_time = on_arcs(from_root + 1, np.full(from_root.shape, self.horizon), tail, head, lag=0)
        self.sending = in_time.only(self.arc_orbits.kept & (head != self.roots[:, None]))
        elsewhere = np.arange(self.network.nodes) != self.roots[:, None]
        self.arriving = at_nodes(from_root, self.horizon).only(self.node_orbits.kept & elsewhere)

    @cached_property
    def send(self) -> list[TimedIndex]:
        """The indices (k, a, t) of variables, one of all that symmetries map onto each other."""
        return self.sending.indices()

    @cached_property
    def held(self) -> list[TimedIndex]:
        """The indices (k, v, t) of variables, one of all that symmetries map onto each other."""
        return Windows(self.arriving.first, np.minimum(self.arriving.last, self.horizon - 1)).indices()

    @property
    def timesteps(self) -> range:
        """1, 2, …, T."""
        return range(1, self.horizon + 1)

    @cached_property
    def equivalent_arcs(self) -> dict[int, list[int]]:
        """The arcs that symmetries map onto each other, by the first of them."""
        alike: dict[int, list[int]] = {}
        least = orbits(len(self.tail), self.arc_images).tolist() if self.fold else range(len(self.tail))
        for a, first in enumerate(least):
            alike.setdefault(first, []).append(a)
        return alike

    def crossing(self, a: int) -> list[FoldedTerm]:
        """All chunks that may cross arc ``a``: how often each counts, and the chunk and arc of its variables."""
        return self.arc_orbits.of_place(a)

    def entering(self, k: int, v: int) -> list[FoldedTerm]:
        """All arcs over which chunk ``k`` may come to node ``v``, as :meth:`crossing` gives them."""
        return self.arc_orbits.of_item(k, self.into[v])

    def stands_for(self, k: int, v: int) -> tuple[int, int]:
        """The chunk and node whose ``held`` variables are those of ``k`` at ``v``."""
        return self.node_orbits.stands_for(k, v)

    def schedule(self, chosen: Iterable[TimedIndex]) -> Schedule:
        """The schedule of the chosen ``send`` variables, unfolded, arcs turned into links."""
        points = np.array(sorted(set(chosen)), dtype=np.int64).reshape(-1, 3)
        chunk, arc, which = self.arc_orbits.images(points[:, 0], points[:, 1])
        timestep = points[which, 2]
        link = links_taken(self.network, arc, timestep)
        order = np.lexsort((chunk, link, timestep))
        return Schedule.of(timestep[order], link[order], chunk[order])


def links_taken(network: Network, arc: AnyIntArray, timestep: AnyIntArray) -> IntArray:
    """Return a link for every use of an arc in a timestep, shape (uses,) each: the first use takes the arc's first
    link, and so on. No arc may be used more often in a timestep than it has links."""
    start, links = rows_by(network.arcs[3], len(network.arcs[0]))
    order = np.lexsort((timestep, arc))
    use = np.stack([arc, timestep])[:, order]
    new = np.flatnonzero(np.any(use[:, 1:] != use[:, :-1], axis=0)) + 1
    first = np.concatenate([[0], new]).astype(np.int64)
    rank = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = links[start[arc[order]] + rank]
    return found


def _found(image: Permutation | None) -> Permutation:
    """An automorphism's image of arcs or chunks, which is there."""
    assert image is not None
    return image
