"""Cycles that share no link and together use every link between ranks: of tori, hypercubes, circulants and their like.

A link and its opposite are an edge, a quicker one as many edges as it is times as quick. Where all ranks then have
equally many edges, :mod:`synth.graph.hamiltonian_cycles` decomposes the network. Each cycle is a ring in either
direction. Where the number of edges is odd every edge counts twice, or four times, at half or a quarter of the
bandwidth: the hypercube of dimension 5 has 10 rings, each at half a link's. What such rings send around takes all
of the bandwidth out of every rank, which is most.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import gcd
from typing import NamedTuple

import numpy as np

from synth.graph.hamiltonian_cycles import hamiltonian_cycles
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.references.ring.tuned import EDGE_PARTS, EDGE_TIMES

Cycle = tuple[int, ...]


class Rings(NamedTuple):
    """Cycles of ranks, and the link of every hop, from each rank to the next; ``bandwidth`` of each, bytes/s."""

    cycles: tuple[Cycle, ...]
    links: tuple[tuple[int, ...], ...]
    bandwidth: Fraction

    @property
    def total(self) -> Fraction:
        """Bytes/s of all together."""
        return self.bandwidth * len(self.cycles)


class _Joint(NamedTuple):
    """A link, its opposite, the places of their ends among the members, and the lesser bandwidth of the two."""

    there: int
    back: int
    tail: int
    head: int
    bandwidth: Fraction


def disjoint_rings(instance: FabricInstance, most: int, seed: int) -> Rings | None:
    """Rings, each followed by its reverse, at most ``most`` in all, whose bandwidths add up to what a rank can send, or
    nearly so where the links' bandwidths have no large common measure; None where none were found."""
    joints = _joints(instance)
    if not joints:
        return None
    least = min(joint.bandwidth for joint in joints)
    measure = Fraction(*reduce(_common, ((b.numerator, b.denominator) for b in {joint.bandwidth for joint in joints})))
    best: Rings | None = None
    for unit in dict.fromkeys([measure, *(least / parts for parts in EDGE_PARTS)]):
        for times in EDGE_TIMES:
            found = _of_edges(instance, joints, unit / times, most, seed)
            if found is not None and (best is None or found.total > best.total):
                best = found
            if found is not None:
                break
        if best is not None and best.bandwidth == measure / times:
            break
    return best


def _common(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """The largest fraction of which both are multiples, as numerator and denominator."""
    return gcd(one[0] * other[1], other[0] * one[1]), one[1] * other[1]


def _joints(instance: FabricInstance) -> list[_Joint]:
    """Links from member to member with their opposites, the quickest with the quickest where there are several."""
    machine = instance.machine
    net = machine.network
    place = {rank: k for k, rank in enumerate(instance.members)}
    between: dict[tuple[int, int], list[int]] = {}
    for e in np.argsort(-net.bandwidth, kind="stable").tolist():
        u, v = int(net.src[e]), int(net.dst[e])
        if u in place and v in place and u != v and machine.group[e] < 0:
            between.setdefault((place[u], place[v]), []).append(e)
    found = []
    for (u, v), links in between.items():
        for there, back in zip(links, between.get((v, u), ()), strict=False):
            if u < v:
                rate = min(exact(float(net.bandwidth[there])), exact(float(net.bandwidth[back])))
                found.append(_Joint(there, back, u, v, rate))
    return found


def _of_edges(instance: FabricInstance, joints: list[_Joint], unit: Fraction, most: int, seed: int) -> Rings | None:
    """The rings where every ``unit`` of bandwidth is an edge."""
    nodes, members = len(instance.members), instance.members
    count = [int(joint.bandwidth / unit) for joint in joints]
    if sum(count) > most * nodes // 2:
        return None
    joint_of = np.repeat(np.arange(len(joints)), count)
    tail = np.array([joint.tail for joint in joints], dtype=np.int64)[joint_of]
    head = np.array([joint.head for joint in joints], dtype=np.int64)[joint_of]
    found = hamiltonian_cycles(nodes, tail, head, seed)
    if found is None:
        return None
    cycles: list[Cycle] = []
    links: list[tuple[int, ...]] = []
    for order, edges in zip(found.nodes.tolist(), joint_of[found.edges].tolist(), strict=True):
        ways = [
            (j.there, j.back) if j.tail == u else (j.back, j.there)
            for u, j in zip(order, map(joints.__getitem__, edges), strict=True)
        ]
        cycles += [tuple(members[k] for k in order), tuple(members[k] for k in (order[0], *order[:0:-1]))]
        links += [tuple(there for there, _ in ways), tuple(back for _, back in reversed(ways))]
    return Rings(tuple(cycles), tuple(links), unit)
