"""Method ``bfb`` (reference): breadth-first broadcast of the direct-connect paper.

Zhao, Maurya, et al.: "Efficient Direct-Connect Topologies for Collective Communications", NSDI 2025. From every root
the data spread by distance: in step t every rank v at distance t gets the root's block over its links from ranks at
distance t - 1. How much of each root's block crosses which of them is balanced: for every v and t, the largest load of
a link into v is least. That is a fractional assignment of roots to links, whose optimum is ``max over sets S of links:
roots that can use S only / bandwidth of S`` (Hall's condition); it is computed here exactly, in fractions, and blocks
are then cut so that an integral flow meets it. Reduce-scatter is this backwards, allreduce both.

``T_L`` is the number of steps (the diameter); ``T_B``, the sum over steps of the largest load, is told as a multiple of
M / B for M bytes and a node of B bytes/s: K4,4 has T_L 2 and T_B 7/8, the hypercube of 16 and the 4x4 torus 4 and
15/16. The paper's schedule waits for the end of each step; here transfers start when they can, steps being priorities.

Links between ranks only: where a route leads through a switch, links from rank to rank share what the algorithm
balances, and its steps mean nothing; such machines are refused. Complexity: N^2 in the degree for loads, N^2 transfers
a chunk. Guarantee: least T_B of all schedules that follow shortest paths step by step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.graph.hops import hops
from synth.graph.max_flow import MaximumFlow
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.plans.out_trees import SPREADING, SUMMING, empty, refusal
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.moves import only_useful, pieces_of
from synth_models.fabric.scheduling.reversal import joined, reversed_instance, reversed_transfers
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

KNOWN = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")
MOST_SETS = 4096  # sets of links that Hall's condition is looked at for
MOST_PARTS = 64  # a block is cut into
MOST_TRANSFERS = 300_000


@dataclass(frozen=True)
class Loads:
    """What a breadth-first broadcast from some roots puts on the links.

    ``distance``: from root k to every node, shape (roots, nodes), -1 where there is no path. ``least[v, t]``: the least
    largest load of a link into v in step t, in blocks over bytes/s. ``worst``: the largest per step t = 1, 2, ….
    """

    roots: tuple[int, ...]
    distance: IntArray
    least: Mapping[tuple[int, int], Fraction]
    worst: tuple[Fraction, ...]

    @property
    def steps(self) -> int:
        """T_L."""
        return len(self.worst)

    @property
    def total(self) -> Fraction:
        """Seconds for all steps, the blocks being of one byte, without latency."""
        return sum(self.worst, Fraction(0))


class Phases(NamedTuple):
    """What a collective is made of: ``up``, the loads of summing up, on ``there``, the reversed machine; and
    ``down``, those of spreading out. None where it has no such phase."""

    there: FabricInstance | None
    up: Loads | None
    down: Loads | None

    @property
    def loads(self) -> list[Loads]:
        """Those of the phases that there are."""
        return [found for found in (self.up, self.down) if found is not None]


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``bfb``."""
    refused = refusal(instance, KNOWN, "bfb")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    net, is_switch = instance.machine.network, instance.machine.is_switch
    if np.any(is_switch[net.src] | is_switch[net.dst]):
        return Outcome(
            "unsupported", message="the machine has switches: breadth-first broadcast balances links between ranks"
        )
    try:
        phases = _phases(instance)
    except _TooManySets:
        return Outcome("unsupported", message=f"more than {MOST_SETS} sets of links into a rank to balance")
    incumbent = Incumbent(instance, options)
    for number in _numbers_of_parts(instance, phases):
        amount = number * len(instance.members) * max(len(instance.blocks), 1)
        too_many = amount > MOST_TRANSFERS or number > instance.bytes
        if incumbent.best is None or not (too_many or options.out_of_time()):
            incumbent.offer(_schedule(instance, phases, number), f"blocks in {number} parts")
    return Outcome("finished", solution=incumbent.best, message=f"{_in_words(instance, phases)}; {incumbent.told}")


def _phases(instance: FabricInstance) -> Phases:
    there = reversed_instance(instance) if instance.collective not in SPREADING else None
    up = None if there is None else loads(there.machine, _roots(there))
    return Phases(there, up, loads(instance.machine, _roots(instance)) if instance.collective not in SUMMING else None)


def _numbers_of_parts(instance: FabricInstance, phases: Phases) -> list[int]:
    """How many parts of a block are tried."""
    whole = _whole_parts(instance, phases.loads)
    parts = sorted({1, 2, 4, *whole})
    if instance.the_root is not None:  # one source: in chunks, each in as many parts
        parts += [whole[-1] * 2**k for k in range(1, 8)]
    return parts


def _in_words(instance: FabricInstance, phases: Phases) -> str:
    """T_L and T_B in words: T_B as a multiple of the collective's bytes over the least bandwidth out of a rank."""
    net = instance.machine.network
    out = dict.fromkeys(instance.machine.ranks.tolist(), Fraction(0))
    for u, bandwidth in zip(net.src.tolist(), net.bandwidth.tolist(), strict=True):
        out[u] += exact(bandwidth)
    node = min(out[v] for v in instance.members)
    share = 1 if instance.the_root is not None else len(instance.members)
    total = sum((found.total for found in phases.loads), Fraction(0)) * node / share
    return f"T_L {sum(found.steps for found in phases.loads)}, T_B {total} M/B with B = {float(node) / 1e9:.4g} GB/s"


def _roots(instance: FabricInstance) -> tuple[int, ...]:
    return instance.members if instance.the_root is None else (instance.the_root,)


class _TooManySets(Exception):
    """Hall's condition has too many sets to look at."""


def loads(machine: Machine, roots: Sequence[int]) -> Loads:
    """The balanced loads of breadth-first broadcasts from ``roots``, all at once, exactly."""
    net = machine.network
    distance = _distances(machine, roots)
    least: dict[tuple[int, int], Fraction] = {}
    worst: list[Fraction] = [Fraction(0)] * int(distance.max(initial=0))
    _, _, start, into = net.in_links
    for v in machine.ranks.tolist():
        links = into[start[v] : start[v + 1]]
        bandwidth = tuple(exact(float(b)) for b in net.bandwidth[links])
        near = (distance[:, net.src[links]] == distance[:, [v]] - 1) & (distance[:, net.src[links]] >= 0)
        for t in np.unique(distance[:, v]).tolist():
            if t < 1:
                continue
            rows, count = np.unique(near[distance[:, v] == t], axis=0, return_counts=True)
            masks = [sum(1 << k for k in np.flatnonzero(row).tolist()) for row in rows]
            classes = tuple(sorted(zip(masks, count.tolist(), strict=True)))
            least[v, t] = least_load(classes, bandwidth)
            worst[t - 1] = max(worst[t - 1], least[v, t])
    return Loads(tuple(roots), distance, least, tuple(worst))


@lru_cache(maxsize=65536)
def least_load(classes: tuple[tuple[int, int], ...], bandwidth: tuple[Fraction, ...]) -> Fraction:
    """Least largest ``load / bandwidth`` of a link when ``count`` blocks may each be shared out over the links of
    ``mask``, for all (mask, count) in ``classes``: the maximum over unions of masks S of ``blocks that can use S only
    / bandwidth of S``."""
    unions: set[int] = set()
    for mask, _ in classes:
        joined_by = {mask}
        for union in [other for other in unions if mask & other]:  # of several that only it joins, too
            joined_by |= {one | union for one in joined_by}
            if len(joined_by) > MOST_SETS:
                raise _TooManySets
        unions |= joined_by
        if len(unions) > MOST_SETS:
            raise _TooManySets
    worst = Fraction(0)
    for union in unions:
        inside = sum(count for mask, count in classes if mask | union == union)
        width = sum((b for k, b in enumerate(bandwidth) if union >> k & 1), Fraction(0))
        worst = max(worst, inside / width)
    return worst


def _distances(machine: Machine, roots: Sequence[int]) -> IntArray:
    net = machine.network
    return hops(machine.nodes, net.src, net.dst, roots).astype(np.int64)


def _whole_parts(instance: FabricInstance, found: Sequence[Loads]) -> list[int]:
    """Numbers of parts of a block at which every balanced load is a whole number, if it is small enough; otherwise the
    most."""
    net = instance.machine.network
    parts = 1
    for b in np.unique(net.bandwidth):
        for loaded in found:
            for value in set(loaded.least.values()):
                parts = lcm(parts, (value * exact(float(b))).denominator)
    return [parts] if parts <= MOST_PARTS else [8, 16, MOST_PARTS]


def _schedule(instance: FabricInstance, phases: Phases, parts: int) -> Schedule:
    blocks, (there, up, down) = instance.blocks, phases
    if instance.collective == "allreduce":
        sizes = chunks.cut(int(blocks.bytes[0]), len(instance.members) * parts)
        block, size = pieces_of([sizes])
        owner = np.arange(len(sizes)) % len(instance.members)
    else:
        block, size = pieces_of([chunks.cut(int(n), parts) for n in blocks.bytes])
        owner = block  # block k is root k's
    first = None
    if there is not None and up is not None:
        spread = _transfers(there, up, block, size, owner, parts)
        first = reversed_transfers(there, spread, timed(there, spread))
        if down is None:
            return timed(instance, first)
    assert down is not None
    second = _transfers(instance, down, block, size, owner, parts)
    return timed(instance, second if first is None else joined(instance.machine, first, second))


def _transfers(
    instance: FabricInstance, loaded: Loads, block: IntArray, size: IntArray, owner: IntArray, parts: int
) -> Transfers:
    machine = instance.machine
    net = machine.network
    _, _, start, into = net.in_links
    pieces: list[list[int]] = [[] for _ in loaded.roots]
    for piece, root in enumerate(owner.tolist()):
        pieces[root].append(piece)
    got: dict[tuple[int, int], int] = {}  # (piece, rank) -> transfer
    piece_of: list[int] = []
    route: list[tuple[int, ...]] = []
    before: list[tuple[int, ...]] = []
    step: list[int] = []
    several = len(loaded.roots) > 1
    for t in range(1, loaded.steps + 1):
        for v in machine.ranks.tolist():
            if (v, t) not in loaded.least:
                continue
            links = into[start[v] : start[v + 1]]
            at = np.flatnonzero(loaded.distance[:, v] == t)
            near = loaded.distance[np.ix_(at, net.src[links])] == t - 1
            shares = _shares(near, net.bandwidth[links], loaded.least[v, t], parts)
            for row, root in enumerate(at.tolist()):
                mine = pieces[root]
                taken = _dealt(shares[row])
                for k, piece in enumerate(mine):
                    e = int(links[taken[(k + v) % len(taken)]])
                    came = got.get((piece, int(net.src[e])), -1)
                    got[piece, v] = len(piece_of)
                    piece_of.append(piece)
                    route.append((e,))
                    before.append((came,) if came >= 0 else ())
                    step.append(t if several else t + k)
    made = Transfers.of(block, size, piece_of, route, before, step)
    return only_useful(machine, made, instance.members)


def _dealt(shares: IntArray) -> list[int]:
    """Every link as often as its share says, evenly mixed."""
    at = [((k + 0.5) / share, e) for e, share in enumerate(shares.tolist()) for k in range(share)]
    return [e for _, e in sorted(at)]


def _shares(near: BoolArray, bandwidth: FloatArray, least: Fraction, parts: int) -> IntArray:
    """How many of its ``parts`` every root (row of ``near``, shape (roots, links)) sends over which link: an integral
    flow that loads no link by more than ``least``, rounded up to whole parts."""
    roots, links = near.shape
    limit = [-(-(value := least * parts * exact(float(b))).numerator // value.denominator) for b in bandwidth]
    source, sink = roots + links, roots + links + 1
    row, column = np.nonzero(near)
    tail = np.concatenate([np.full(roots, source), row, roots + np.arange(links)])
    head = np.concatenate([np.arange(roots), roots + column, np.full(links, sink)])
    capacity = np.concatenate([np.full(roots, parts), np.full(len(row), parts), np.minimum(limit, roots * parts)])
    flow = MaximumFlow(sink + 1, tail, head, capacity, source, sink)
    assert flow.value == roots * parts
    found = np.zeros((roots, links), dtype=np.int64)
    found[row, column] = flow.on_arcs[roots : roots + len(row)]
    return found
