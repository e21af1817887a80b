"""Symmetries of a machine: permutations of its nodes and groups that keep links, switches and the ranks' roles.

Found by individualisation and refinement (McKay, "Practical graph isomorphism", 1981): vertices that are to be mapped
onto each other get a colour of their own, colours are refined, a class that is left is told apart by choosing one of
it. What is found is verified link by link; where the search is cut short (:data:`MOST_CHOICES`) a symmetry may be
missed, never made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from synth.arrays import IntArray, WordArray
from synth_models.fabric.problem.automorphism import CHOSEN, link_images, link_kinds, mixed, refined
from synth_models.fabric.problem.machine import Machine

MOST_CHOICES = 256  # of one search
Pins = Sequence[tuple[int, int]]
"""Vertices and their images; vertex ``nodes + g`` is group g."""


@dataclass(eq=False)
class Symmetries:
    """Those of ``machine`` that keep ``role``, a number for every node, shape (nodes,).

    ``generators``: images of all vertices (nodes, then groups), shape (vertices,) each, as far as they have been asked
    for (:meth:`mapping`).
    """

    machine: Machine
    role: IntArray
    generators: list[IntArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Colour the vertices by what symmetries keep."""
        machine, able = self.machine, self.machine.abilities
        columns = [machine.is_switch, self.role, able.copies, able.adds, able.streams, able.add_rate, able.copy_rate]
        rows = np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)
        code = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1) + 1
        groups = np.zeros(len(machine.group_names), dtype=code.dtype)
        first = mixed(np.concatenate([code, groups]).astype(np.uint64) + np.uint64(1))
        self._kind = link_kinds(machine)
        self._colour, _ = refined(machine, self._kind, first, first.copy())

    @property
    def colour(self) -> WordArray:
        """A word for every vertex: vertices that a symmetry maps onto each other have the same, shape (vertices,)."""
        return self._colour

    def mapping(self, pins: Pins) -> IntArray | None:
        """Images of all vertices under a symmetry that maps each first vertex of ``pins`` to the second; None where
        there is none, or none was found. It joins the generators."""
        if any(self._colour[u] != self._colour[v] for u, v in pins):
            return None
        ours, theirs = self._colour.copy(), self._colour.copy()
        for place, (u, v) in enumerate(pins):
            ours[u] = theirs[v] = mixed(np.array([place + 1], dtype=np.uint64) * np.uint64(CHOSEN))[0]
        found = self._search(ours, theirs, [MOST_CHOICES])
        if found is not None:
            self.generators.append(found)
        return found

    def _search(self, ours: WordArray, theirs: WordArray, left: list[int]) -> IntArray | None:
        """Images of the vertices that keep these colours, with at most ``left[0]`` choices."""
        ours, theirs = refined(self.machine, self._kind, ours, theirs)
        mine, yours = np.argsort(ours, kind="stable"), np.argsort(theirs, kind="stable")
        if not np.array_equal(ours[mine], theirs[yours]):
            return None
        image = np.empty(len(mine), dtype=np.int64)
        image[mine] = yours
        if self._is_symmetry(image):  # classes that are left are mapped in the order of their numbers
            return image
        twice = np.flatnonzero(ours[mine][1:] == ours[mine][:-1])
        if not len(twice):
            return None
        chosen = ours[mine[twice[0]]]
        u = int(mine[twice[0]])
        for v in np.flatnonzero(theirs == chosen).tolist():
            if left[0] <= 0:
                return None
            left[0] -= 1
            tried, there = ours.copy(), theirs.copy()
            tried[u] += np.uint64(CHOSEN)
            there[v] += np.uint64(CHOSEN)
            found = self._search(tried, there, left)
            if found is not None:
                return found
        return None

    def _is_symmetry(self, image: IntArray) -> bool:
        """Whether links go to their like; colours have told everything else apart."""
        return link_images(self.machine, image) is not None
