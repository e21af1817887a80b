"""Bounds of tokens: what has to come into a box or a rank, and what has to leave it.

A token that any rank of a box wants comes into the box at least once, one that anybody else wants leaves its rank and
its box at least once, whoever hands it on. Backwards, a sum of what ranks of a box have made of a token leaves the box
at least once. Each is a cut (:mod:`synth_models.fabric.bounds.cuts`) of the traffic, whatever else tokens share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.many_demands import MOST_LINES, Cut, Earning, of_cut
from synth_models.fabric.bounds.proven import NOTHING, Proven
from synth_models.fabric.bounds.traffic_cuts import with_own_switches
from synth_models.fabric.instance import FabricInstance


class Crossing(NamedTuple):
    """Tokens that have to leave and to enter every rank and every box at least; shape (ranks,) and (boxes,)."""

    leave_rank: IntArray
    enter_rank: IntArray
    leave_box: IntArray
    enter_box: IntArray

    @property
    def back(self) -> Crossing:
        """The same on the way back."""
        return Crossing(self.enter_rank, self.leave_rank, self.enter_box, self.leave_box)


class TokenBounds:
    """The cuts around every rank and every box of a machine, found once; ``boxes``: the ranks of each."""

    def __init__(self, machine: FabricInstance) -> None:
        self._machine, self._links = machine, Links.of(machine)
        links, member = self._links, np.zeros(machine.machine.nodes, dtype=bool)
        member[list(machine.members)] = True
        sides = []
        for rank in (rank for box in machine.boxes for rank in box):
            alone = np.zeros(links.nodes, dtype=bool)
            alone[rank] = True
            sides.append(alone)
        around = [with_own_switches(links, box) for box in machine.boxes] if len(machine.boxes) > 1 else []
        out = [[Cut(side, side & member, ~side & member) for side in part] for part in (sides, around)]
        into = [[Cut(~side, ~side & member, side & member) for side in part] for part in (sides, around)]
        self._cuts = [*out[0], *into[0], *out[1], *into[1]] if len(sides) > 1 else []
        self._earning = [Earning.over(links, *cut) for cut in self._cuts]
        rows = [np.concatenate(earning.lines(links, MOST_LINES)) for earning in self._earning]
        self._lines = np.array(rows).reshape(len(rows), 2, MOST_LINES)

    def strongest(self, crossing: Crossing, token_bytes: int) -> Proven:
        """The strongest of the cuts for tokens of so many bytes."""
        counts = np.concatenate(crossing)[: len(self._cuts)]
        if not counts.any():
            return NOTHING
        about = (self._lines[:, 0] * (counts * float(token_bytes))[:, None] + self._lines[:, 1]).min(axis=1)
        best = int(np.argmax(np.where(counts > 0, about, 0.0)))
        seconds = self._earning[best].least(self._links, int(counts[best]) * token_bytes)
        return of_cut(self._machine, self._cuts[best], seconds)
