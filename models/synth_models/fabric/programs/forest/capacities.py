"""The machine as a fluid: whole capacities between nodes, and the greatest rate at which the roots can send to all.

A group whose links share their tail (or head) and bandwidth is one capacity: a node of its own stands behind the tail
(before the head). Other groups take turns in a way that no capacity says; they are left out and named.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from synth.arrays import IntArray
from synth.clock.deadline import OutOfTime, left
from synth.graph.max_flow import Residual, augment, of_matrix, reached
from synth.kernels import jit
from synth.kernels.clock import now
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.programs.forest.tuned import LEAST_SHARE

FINEST = 2**36  # units that a capacity may have, so that sums of products with ratios fit 64 bits
Share = tuple[int, tuple[int, ...]]  # an amount of capacity and the links that it runs over


@dataclass
class Fluid:
    """Capacities between nodes in whole units.

    ``capacity``: shape (nodes + 1, nodes + 1); the last node is the source, joined to every root by ``weight`` of the
    root times ``trees`` once the rate is known. ``unit``: bytes/s of a unit. ``shares``: what the capacity from u to v
    is made of. ``members``: the nodes that must be reached. ``rounded``: capacities had to be rounded down.
    ``ignored``: groups that no capacity stands for.
    """

    capacity: IntArray
    unit: Fraction
    members: IntArray
    weight: IntArray
    shares: dict[tuple[int, int], list[Share]]
    rounded: bool = False
    ignored: int = 0
    trees: int = 0

    @property
    def nodes(self) -> int:
        """Members, other nodes and groups, without the source."""
        return len(self.capacity) - 1

    @property
    def rate(self) -> Fraction:
        """Bytes/s that every root of weight 1 sends to everybody."""
        return self.trees * self.unit


def fluid_of(machine: Machine, members: IntArray, roots: dict[int, int]) -> Fluid:
    """The fluid of a machine; ``roots``: weight of every root. The source is not joined to the roots yet."""
    net = machine.network
    bandwidth = [exact(float(b)) for b in net.bandwidth]
    kinds = _groups(machine)
    unit = _unit(bandwidth)
    rounded = max(bandwidth, default=Fraction(1)) / unit > FINEST
    if rounded:
        unit = max(bandwidth) / FINEST
    whole = [math.floor(b / unit) for b in bandwidth]
    extra = [g for g, kind in kinds.items() if kind]
    number = {g: machine.nodes + i for i, g in enumerate(extra)}
    nodes = machine.nodes + len(extra)
    shares = _shares(machine, whole, number, kinds)
    capacity = np.zeros((nodes + 1, nodes + 1), dtype=np.int64)
    for (u, v), parts in shares.items():
        capacity[u, v] = sum(amount for amount, _ in parts)
    weight = np.array([roots.get(int(v), 0) for v in range(nodes)], dtype=np.int64)
    ignored = sum(not kind for kind in kinds.values())
    return Fluid(capacity, unit, members, weight, shares, rounded, ignored)


def _shares(
    machine: Machine, whole: list[int], number: dict[int, int], kinds: dict[int, str]
) -> dict[tuple[int, int], list[Share]]:
    """What the capacity between nodes is made of: links with ``whole`` units each, those of a group through the node
    that stands for it, ``number``."""
    net = machine.network
    shares: dict[tuple[int, int], list[Share]] = defaultdict(list)
    for e in range(net.links):
        u, v, group = int(net.src[e]), int(net.dst[e]), int(machine.group[e])
        if group in number and kinds[group] == "tail":
            u = number[group]
        elif group in number:
            v = number[group]
        shares[u, v].append((whole[e], (e,)))
    for group, node in number.items():
        links = np.flatnonzero(machine.group == group)
        cap = whole[int(links[0])]
        if kinds[group] == "tail":
            shares[int(net.src[links[0]]), node].append((cap, ()))
        else:
            shares[node, int(net.dst[links[0]])].append((cap, ()))
    return dict(shares)


def _groups(machine: Machine) -> dict[int, str]:
    """What the links of every group of two or more share: ``tail``, ``head`` or nothing."""
    net, kinds = machine.network, {}
    for group in np.unique(machine.group[machine.group >= 0]).tolist():
        links = np.flatnonzero(machine.group == group)
        if len(links) < 2:
            continue
        alike = len(np.unique(net.bandwidth[links])) == 1
        tail, head = len(np.unique(net.src[links])) == 1, len(np.unique(net.dst[links])) == 1
        kinds[group] = "tail" if alike and tail else "head" if alike and head else ""
    return kinds


def _unit(values: list[Fraction]) -> Fraction:
    """The greatest number that all values are whole multiples of."""
    denominator = math.lcm(*(value.denominator for value in values))
    return Fraction(math.gcd(*(int(value * denominator) for value in values)), denominator)


def set_rate(fluid: Fluid) -> None:
    """Find the greatest rate exactly and scale capacities so that every root of weight 1 sends ``trees`` whole units.

    By cuts: at rate x every node set S that misses a member lets x times the weight of the roots in S out, so
    x <= capacity out of S / weight in S; Newton's steps on that ratio from one violated cut to the next, each found by
    maximum flows from a source joined to the roots; the least ratio is reached by Edmonds' theorem. Raises
    ``ValueError`` where a member cannot be reached.
    """
    cap, source = fluid.capacity, fluid.nodes
    total = int(fluid.weight.sum())
    ratio = None
    for v in fluid.members.tolist():  # cuts around single members to start from
        inside = total - int(fluid.weight[v])
        if inside:
            first = Fraction(int(cap[:source, v].sum()), inside)
            ratio = first if ratio is None else min(ratio, first)
    if ratio is None:
        raise ValueError("nobody to send to")
    while True:
        if ratio == 0:
            few = f"; links of less than 1/{FINEST} of the quickest count for nothing" if fluid.rounded else ""
            raise ValueError(f"a member cannot be reached{few}")
        p, q = ratio.numerator, ratio.denominator
        scaled = cap * q
        scaled[source, :source] = fluid.weight * p
        _, who = shortfall(scaled, source, fluid.members, p * total, 1)
        if who < 0:
            break
        network = of_matrix(scaled)
        augment(network, source, int(fluid.members[who]), p * total)
        side = reached(network, source)[:source]
        ratio = Fraction(int(cap[:source, :source][np.ix_(side, ~side)].sum()), int(fluid.weight[side].sum()))
    p, q = ratio.numerator, ratio.denominator
    _rescale(fluid, q)
    fluid.trees = p
    shrink = math.gcd(p, *(amount for parts in fluid.shares.values() for amount, _ in parts))
    _rescale(fluid, Fraction(1, shrink))
    fluid.trees = p // shrink
    join_source(fluid)


def set_trees(fluid: Fluid, trees: int) -> None:
    """Count capacity in shares of so many equal ``trees`` of every root, of the greatest size for which the cuts allow
    them; a link carries a whole number of shares. Called after :func:`set_rate`. Raises ``ValueError`` where no share
    above :data:`LEAST_SHARE` of what the rate allows will do.

    At the greatest size some link is just full: it is a link's capacity over a whole number.
    """
    amounts = {amount for parts in fluid.shares.values() for amount, _ in parts}
    most = Fraction(fluid.trees, trees)
    sizes = sorted(
        {
            Fraction(amount, count)
            for amount in amounts
            for count in range(math.ceil(amount / most), math.floor(amount / (most * LEAST_SHARE)) + 1)
            if count
        },
        reverse=True,
    )
    few, many = 0, len(sizes)  # sizes[many] will do, those before few will not
    while few < many:
        middle = (few + many) // 2
        if _will_do(fluid, sizes[middle], trees):
            many = middle
        else:
            few = middle + 1
    if few == len(sizes):
        raise ValueError(f"{trees} trees a root reach too little")
    _count(fluid, sizes[few], trees)


def _will_do(fluid: Fluid, size: Fraction, trees: int) -> bool:
    """Whether the cuts allow so many trees of such shares."""
    counted = replace(fluid, capacity=fluid.capacity.copy(), shares=dict(fluid.shares))
    _count(counted, size, trees)
    need = trees * int(fluid.weight.sum())
    return shortfall(counted.capacity, fluid.nodes, fluid.members, need, 1)[1] < 0


def _count(fluid: Fluid, size: Fraction, trees: int) -> None:
    """Capacities as whole numbers of shares of ``size`` units."""
    _rescale(fluid, 1 / size)
    fluid.shares = {pair: [part for part in parts if part[0]] for pair, parts in fluid.shares.items()}
    fluid.trees = trees
    join_source(fluid)


def _rescale(fluid: Fluid, factor: Fraction | int) -> None:
    fluid.unit /= factor
    fluid.shares = {pair: [(int(a * factor), r) for a, r in parts] for pair, parts in fluid.shares.items()}
    for (u, v), parts in fluid.shares.items():
        fluid.capacity[u, v] = sum(amount for amount, _ in parts)


def join_source(fluid: Fluid) -> None:
    """Join the source to every root with what it sends."""
    fluid.capacity[fluid.nodes, : fluid.nodes] = fluid.weight * fluid.trees


def shortfall(capacity: IntArray, source: int, sinks: IntArray, need: int, enough: int) -> tuple[int, int]:
    """How much the worst sink misses of ``need`` units from the source, and its number in ``sinks`` (-1: none
    misses anything); stops at the first that misses ``enough``. Raises :class:`OutOfTime` at the time limit."""
    worst, who = _shortfall(capacity, source, sinks, need, enough, left())
    if worst < 0:
        raise OutOfTime
    return worst, who


@jit
def _shortfall(
    capacity: IntArray, source: int, sinks: IntArray, need: int, enough: int, seconds: float
) -> tuple[int, int]:
    """As :func:`shortfall`; (-1, -1) when the seconds are over."""
    network = of_matrix(capacity)
    worst, who = 0, -1
    end = now() + seconds
    for i in range(len(sinks)):
        if now() > end:
            return -1, -1
        left = Residual(network.start, network.arc, network.head, network.room.copy())
        missing = need - augment(left, source, sinks[i], need)
        if missing > worst:
            worst, who = missing, i
            if worst >= enough:
                break
    return worst, who
