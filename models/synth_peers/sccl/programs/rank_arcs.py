"""The machine as SCCL sees it: pairs of ranks, and how many chunks a round goes from one to the other.

Bandwidths become whole capacities: their ratio to the greatest number that divides them all (25 and 50 GB/s are 1 and
2 chunks a round). The links from one rank to another add up to one arc; a plan is dealt out to the links at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.graph.hops import hops
from synth.graph.rows import lists_by
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.machine import Machine

MOST_CAPACITY = 2**20  # chunks a round: more is no ratio that anybody schedules by
UNREACHABLE = 2**31


@dataclass(frozen=True, eq=False)
class RankArcs:
    """``tail``, ``head``, ``capacity``: shape (arcs,). ``links``: the links of every arc with their capacities.
    ``nodes``: numbers of ranks go up to this. ``unit``: bytes/s of capacity 1."""

    nodes: int
    tail: IntArray
    head: IntArray
    capacity: IntArray
    links: tuple[tuple[tuple[int, int], ...], ...]
    unit: Fraction

    @property
    def count(self) -> int:
        """Number of arcs."""
        return len(self.tail)

    @cached_property
    def into(self) -> list[list[int]]:
        """RankArcs by the rank that they enter."""
        return lists_by(self.head, self.nodes)

    @cached_property
    def out_of(self) -> list[list[int]]:
        """RankArcs by the rank that they leave."""
        return lists_by(self.tail, self.nodes)

    @cached_property
    def hops(self) -> IntArray:
        """Fewest arcs from rank to rank, shape (nodes, nodes); :data:`UNREACHABLE` where there is no path."""
        apart = hops(self.nodes, self.tail, self.head, range(self.nodes)).astype(np.int64)
        return np.where(apart < 0, UNREACHABLE, apart)

    @cached_property
    def two_way(self) -> bool:
        """Whether there is as much room one way as the other between any two ranks."""
        rows = {
            (u, v): c for u, v, c in zip(self.tail.tolist(), self.head.tolist(), self.capacity.tolist(), strict=True)
        }
        return all(rows.get((v, u)) == c for (u, v), c in rows.items())

    def reversed(self) -> RankArcs:
        """Every arc from its end to its start; numbers stay."""
        return RankArcs(self.nodes, self.head, self.tail, self.capacity, self.links, self.unit)


def rank_arcs(machine: Machine) -> RankArcs:
    """The arcs of a machine. Raises :class:`UnsupportedError` for one with switches or groups, which SCCL's steps do
    not know, and for bandwidths without a small common measure."""
    net = machine.network
    if np.any(machine.is_switch[net.src] | machine.is_switch[net.dst]):
        raise UnsupportedError("steps are counted on links from rank to rank: this machine has switches")
    if np.any(machine.group >= 0):
        raise UnsupportedError("steps are counted on links that know nothing of each other: this machine has groups")
    rates = [exact(float(value)) for value in net.bandwidth]
    unit = Fraction(1)
    if rates:
        below = math.lcm(*(rate.denominator for rate in rates))
        unit = Fraction(math.gcd(*(int(rate * below) for rate in rates)), below)
    rows: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for e, (u, v) in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True)):
        rows.setdefault((u, v), []).append((e, int(rates[e] / unit)))
    room = [sum(c for _, c in row) for row in rows.values()]
    if max(room, default=0) > MOST_CAPACITY:
        raise UnsupportedError(f"the bandwidths have no common measure: a link would carry {max(room)} chunks a round")
    pairs = np.array(list(rows), dtype=np.int64).reshape(-1, 2)
    links = tuple(tuple(row) for row in rows.values())
    return RankArcs(machine.nodes, pairs[:, 0], pairs[:, 1], np.array(room, dtype=np.int64), links, unit)
