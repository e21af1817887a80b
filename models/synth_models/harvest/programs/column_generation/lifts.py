"""Topologies that a group of renumberings maps onto themselves, written by what leaves one GPU of every orbit.

The group moves every GPU (it is semiregular), so a topology of n GPUs and d ports is ``targets`` (n / order, d): where
the links of the first GPU of each orbit lead, and what leaves the others are the images. With as many renumberings as
GPUs these are Cayley graphs, d numbers each; with the identity alone, all topologies. A link from a GPU to itself is an
idle port.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from synth.arrays import IntArray
from synth.graph.symmetry import generated, orbits_of_group
from synth_models.harvest.parts.topologies import count_links


@dataclass(frozen=True, eq=False)
class Lift:
    """``moved`` (order, gpus): the renumberings, the identity first; all are products of the ``generators``."""

    moved: IntArray
    generators: tuple[IntArray, ...] = ()

    @property
    def gpus(self) -> int:
        return int(self.moved.shape[1])

    @cached_property
    def sources(self) -> IntArray:
        """The first GPU of every orbit, ascending."""
        return np.unique(orbits_of_group(self.moved))

    @cached_property
    def orbit(self) -> IntArray:
        """Number of every GPU's orbit, shape (gpus,)."""
        found: IntArray = np.searchsorted(self.sources, orbits_of_group(self.moved)).astype(np.int64)
        return found

    @cached_property
    def by(self) -> IntArray:
        """Which renumbering moves the first GPU of its orbit to every GPU, shape (gpus,)."""
        found = np.empty(self.gpus, dtype=np.int64)
        order, orbits = self.moved[:, self.sources].shape
        found[self.moved[:, self.sources]] = np.repeat(np.arange(order)[:, None], orbits, axis=1)
        return found

    @cached_property
    def members(self) -> IntArray:
        """The GPUs of every orbit, shape (orbits, order)."""
        return np.ascontiguousarray(self.moved[:, self.sources].T)

    def unfolded(self, targets: IntArray) -> IntArray:
        """Where the links of every GPU lead, shape (gpus, ports)."""
        found: IntArray = self.moved[self.by[:, None], targets[self.orbit]]
        return found

    def links(self, targets: IntArray) -> IntArray:
        """The topology's rows (source, destination, parallel links)."""
        out = self.unfolded(targets)
        return count_links(self.gpus, np.repeat(np.arange(self.gpus, dtype=np.int64), out.shape[1]), out.ravel())

    def folded(self, links: IntArray, ports: int) -> IntArray | None:
        """``targets`` of a topology, idle ports filled with links from orbit to orbit; None where a renumbering changes
        the topology."""
        for moved in self.generators:
            if not np.array_equal(count_links(self.gpus, moved[links[:, 0]], moved[links[:, 1]], links[:, 2]), links):
                return None
        mine = [links[links[:, 0] == u] for u in self.sources.tolist()]
        rows = [np.repeat(one[:, 1], one[:, 2]).tolist() for one in mine]
        into = np.bincount([self.orbit[v] for row in rows for v in row], minlength=len(rows))
        free = [orbit for orbit, count in enumerate((ports - into).tolist()) for _ in range(count)]
        for number, row in enumerate(rows):
            while len(row) < ports:
                other = next((orbit for orbit in free if orbit != number), free[0])
                free.remove(other)
                choice = self.members[other]
                row.append(int(choice[0] if other != number else choice[-1]))
        return np.array(rows, dtype=np.int64)

    def regular(self, ports: int, random: np.random.Generator) -> IntArray:
        """Targets of a random topology with all ports in use."""
        orbits, order = self.members.shape
        targets = np.empty((orbits, ports), dtype=np.int64)
        for port in range(ports):
            targets[:, port] = self.members[random.permutation(orbits), random.integers(order, size=orbits)]
        return targets


def lifts(generators: Sequence[IntArray], gpus: int) -> list[Lift]:
    """Groups of renumberings that move every GPU, largest first: of all generators as far as they make one, then of a
    power of the one that is repeated most often, and so on down to the identity alone."""
    found: list[Lift] = []
    basis = [np.asarray(moved, dtype=np.int64) for moved in generators]
    while True:
        basis.sort(key=_order, reverse=True)
        group, used = np.arange(gpus, dtype=np.int64)[None, :], list[IntArray]()
        for moved in basis:
            larger = _closure([*used, moved], gpus)
            if larger is not None and len(larger) > len(group):
                group = larger
                used.append(moved)
        found.append(Lift(group, tuple(used)))
        if len(group) == 1:
            return found
        basis = [_power(used[0], _least_factor(_order(used[0]))), *used[1:]]


def _order(moved: IntArray) -> int:
    """How often the renumbering must be repeated to do nothing."""
    power, times = moved, 1
    while np.any(power != np.arange(len(moved))):
        power, times = moved[power], times + 1
    return times


def _power(moved: IntArray, times: int) -> IntArray:
    power = moved
    for _ in range(times - 1):
        power = moved[power]
    return power


def _least_factor(number: int) -> int:
    """The smallest prime that divides a number above 1."""
    return next(p for p in range(2, number + 1) if number % p == 0)


def _closure(generators: Sequence[IntArray], gpus: int) -> IntArray | None:
    """All products, shape (order, gpus), the identity first; None where one of them fixes a GPU but not all."""
    found = generated(generators, gpus, gpus)
    return None if found is None or np.any(found[1:] == found[0]) else found
