"""When ranks have their own parts of each operation of a job, at the earliest, and what is left when one has ended.

One collective is a job of one operation: its ranks have their parts when they are ready, and nothing follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.text import untrusted
from synth_models.fabric.check.windows import UNREACHABLE, Fabric
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.ready import moments
from synth_models.fabric.problem.several import links_in

LATEST = 2**59  # ticks


def least_moments(instance: FabricInstance) -> list[dict[int, Fraction]]:
    """The moment at which each rank of every operation has its own part, at the earliest. Where it comes after others,
    none before all that the rank wants of them can have come: from every source after the least latency, and all of it
    behind the first that can come, at the rate of all links into the rank."""
    found: dict[int, dict[int, Fraction]] = {}
    ends: dict[int, dict[int, Fraction]] = {}
    operations = instance.operations
    while len(found) < len(operations):
        number = next(k for k, one in enumerate(operations) if k not in found and set(one.after or ()) <= set(found))
        one, fabric = operations[number], Fabric(instance.parts[number])
        found[number] = dict.fromkeys(fabric.members.tolist(), exact(one.release))
        for moments_of in (moments(one.ready), *(ends[k] for k in one.after or ())):
            for rank in moments_of.keys() & found[number].keys():
                found[number][rank] = max(found[number][rank], moments_of[rank])
        if any(number in (other.after or ()) for other in operations):
            ends[number] = _ends(fabric, found[number])
    return [found[number] for number in range(len(operations))]


def _ends(fabric: Fabric, ready: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """When each rank can have all that it wants of one operation."""
    blocks, bandwidth = fabric.instance.blocks, fabric.instance.machine.network.bandwidth
    away = {u: fabric.reach(fabric.mask([u]), fabric.delay) for u in ready}
    found: dict[int, Fraction] = {}
    everyone, sums = tuple(ready), blocks.sums
    origins, origin = np.unique(blocks.origin, return_inverse=True)
    goals, goal = np.unique(blocks.goal, return_inverse=True)
    holds, wants = (blocks.masks(codes, everyone, fabric.nodes) for codes in (origins, goals))
    for rank in ready:
        wanted = wants[goal.reshape(-1), rank] & (sums | ~holds[origin.reshape(-1), rank])
        times: list[Fraction] = []
        adds = False
        for k, is_sum in np.unique(np.stack([origin.reshape(-1), sums])[:, wanted], axis=1).T.tolist():
            come = [
                ready[u] + Fraction(int(away[u][rank]), fabric.ticks_per_s)
                for u in blocks.ranks(int(origins[k]), everyone)
                if u != rank and away[u][rank] < UNREACHABLE
            ]
            times += come if is_sum else [min(come)] if come else []
            adds |= bool(is_sum and holds[k, rank])
        if not times:
            continue
        rate = sum((exact(float(value)) for value in bandwidth[fabric.head == rank]), Fraction(0))
        volume = untrusted.exact_sum(blocks.bytes[wanted])
        found[rank] = max(max(times), min(times) + volume / rate, ready[rank] if adds else Fraction(0))
    return found


class Followers:
    """What is left where an operation has ended, if others follow, in ticks of the whole machine, rounded down."""

    def __init__(self, instance: FabricInstance) -> None:
        self.whole, self.parts = Fabric(instance), instance.parts
        self.after = [tuple(one.after or ()) for one in instance.operations]
        self.known: dict[int, tuple[BoolArray, IntArray, IntArray]] = {}

    def tails(self, chosen: frozenset[int]) -> dict[int, IntArray]:
        """By operation, for each node the ticks at least from when it has ended there until all chosen ones have."""
        found: dict[int, IntArray] = {}
        while len(found) < len(chosen):
            left = chosen - set(found)
            number = next(i for i in left if all(i not in self.after[j] for j in left))
            rows = [self._goes_on(j, found[j]) for j in found if number in self.after[j]]
            found[number] = np.maximum.reduce([np.zeros(self.whole.nodes, dtype=np.int64), *rows])
        return found

    def _goes_on(self, number: int, tail: IntArray) -> IntArray:
        """From when each rank is ready, until what it alone has, or contributes, is where it is wanted, and on."""
        if number not in self.known:
            self.known[number] = self._given(self.parts[number])
        wanted, away, leaving = self.known[number]
        least = np.where(wanted, away + tail, UNREACHABLE).min(axis=1)
        most = np.where(wanted, away + tail, 0).max(axis=1)
        found: IntArray = np.where(wanted.any(axis=1), np.minimum(np.maximum(most, least + leaving), LATEST), 0)
        return found

    def _given(self, part: FabricInstance) -> tuple[BoolArray, IntArray, IntArray]:
        """Who wants something that only a rank has or to which it contributes, and how far away that is, shape (nodes,
        nodes); the ticks in which all of it leaves the rank, shape (nodes,)."""
        own, blocks, everyone = Fabric(part), part.blocks, part.members
        delay, nodes = self.whole.delay[links_in(self.whole.instance.machine, part.machine)], part.machine.nodes
        wanted, volume = np.zeros((nodes, nodes), dtype=bool), [0] * nodes
        kinds, which = np.unique(np.stack([blocks.origin, blocks.goal, blocks.sums]), axis=1, return_inverse=True)
        for k, (origin, goal, adds) in enumerate(kinds.T.tolist()):
            holders, wanters = blocks.ranks(origin, everyone), blocks.ranks(goal, everyone)
            size = untrusted.exact_sum(blocks.bytes[which.reshape(-1) == k])
            for rank in holders if adds or len(holders) == 1 else ():
                others = [u for u in wanters if u != rank]
                wanted[rank, others] = True
                volume[rank] += size if others else 0
        away, leaving = np.zeros((nodes, nodes), dtype=np.int64), np.zeros(nodes, dtype=np.int64)
        for rank in np.flatnonzero(wanted.any(axis=1)).tolist():
            row = own.reach(own.mask([rank]), delay)
            wanted[rank] &= row < UNREACHABLE
            away[rank] = np.where(wanted[rank], row, 0)
            back = Fabric(part, True).reach(wanted[rank], delay)
            ways = (own.tail == rank) & (back[own.head] < UNREACHABLE)
            rates = [exact(float(b)) for b in part.machine.network.bandwidth[ways]]
            leaving[rank] = min(int(volume[rank] * self.whole.ticks_per_s / sum(rates, Fraction(0))), LATEST)
        return wanted, away, leaving
