"""What all bounds compute with: a machine's links as whole numbers, forwards or with every link turned round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.graph.rows import rows_by
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.ready import moments

ROOM = 2**61  # the longest path's latency in ticks
FINEST = 10**18  # ticks a second at most


@dataclass(frozen=True, eq=False)
class Links:
    """A machine and a collective, as seen from one direction of time.

    Bandwidths are ``rate`` (int64) times ``unit`` bytes/s; latencies are ``delay`` ticks of ``1 / ticks`` s, rounded
    down where they do not fit (which only weakens a bound). ``is_reversed``: time runs backwards, every link leads from
    its end to its start, and what is wanted somewhere was there from the beginning; a schedule read backwards moves the
    same bytes over the same links, so a bound of the reversed problem is one of the problem.
    """

    instance: FabricInstance
    src: IntArray
    dst: IntArray
    rate: IntArray
    unit: Fraction
    delay: IntArray
    ticks: int
    is_reversed: bool

    @classmethod
    def of(cls, instance: FabricInstance) -> Links:
        """The links of the instance's usable machine."""
        net = instance.machine.network
        rate, unit = _whole_multiples(net.bandwidth)
        delay, ticks = _in_ticks(net.latency, net.nodes, sorted(set(moments(instance.ready).values())))
        return cls(instance, net.src.astype(np.int64), net.dst.astype(np.int64), rate, unit, delay, ticks, False)

    @cached_property
    def reverse(self) -> Links:
        """The same with time running backwards."""
        return Links(
            self.instance, self.dst, self.src, self.rate, self.unit, self.delay, self.ticks, not self.is_reversed
        )

    @property
    def nodes(self) -> int:
        """Ranks and switches."""
        return self.instance.machine.nodes

    @property
    def links(self) -> int:
        """Number of links."""
        return len(self.src)

    @property
    def group(self) -> IntArray:
        """Group of every link, -1 for none."""
        return self.instance.machine.group

    @property
    def is_switch(self) -> BoolArray:
        """True for a switch, shape (nodes,)."""
        return self.instance.machine.is_switch

    @cached_property
    def members(self) -> IntArray:
        """Ranks of the process group."""
        return np.array(self.instance.members, dtype=np.int64)

    @cached_property
    def out(self) -> tuple[IntArray, IntArray]:
        """Links by the node they leave: ``links[start[v]:start[v + 1]]``."""
        return rows_by(self.src, self.nodes)

    @cached_property
    def lag(self) -> tuple[IntArray, IntArray]:
        """Ticks from the moment at which something enters a link until it occupies it, and from the end of that until
        it has come out, shape (links,) each: 0 and the latency, with time running backwards the other way round. It
        matters where links of unlike latencies share a group, which is occupied at their beginnings."""
        nothing = np.zeros_like(self.delay)
        return (self.delay, nothing) if self.is_reversed else (nothing, self.delay)

    @cached_property
    def begins(self) -> IntArray:
        """The tick from which each node has its own part, rounded down, shape (nodes,); 0 for all with time running
        backwards, where that is what it gets last."""
        first = np.zeros(self.nodes, dtype=np.int64)
        for rank, seconds in moments(None if self.is_reversed else self.instance.ready).items():
            first[rank] = min(int(seconds * self.ticks), ROOM)
        return first

    @cached_property
    def blocks(self) -> tuple[IntArray, IntArray, IntArray]:
        """Origin, goal and bytes of every block, as this direction of time has them."""
        blocks = self.instance.blocks
        if self.is_reversed:
            return blocks.goal, blocks.origin, blocks.bytes
        return blocks.origin, blocks.goal, blocks.bytes

    @cached_property
    def held_and_wanted(self) -> tuple[BoolArray, BoolArray]:
        """True where a node holds, and where it wants, a block, shape (blocks, nodes) each; forwards in time."""
        blocks, members = self.instance.blocks, self.instance.members
        return blocks.masks(blocks.origin, members, self.nodes), blocks.masks(blocks.goal, members, self.nodes)

    @cached_property
    def holders_and_wanters(self) -> tuple[IntArray, IntArray]:
        """How many nodes hold, and how many want, each block, shape (blocks,) each; forwards in time."""
        holds, wants = self.held_and_wanted
        return holds.sum(axis=1), wants.sum(axis=1)

    @cached_property
    def rows_from(self) -> dict[int, IntArray]:
        """Numbers of the blocks of every origin (:data:`EVERYONE` too)."""
        return _rows_by(self.blocks[0])

    @cached_property
    def rows_to(self) -> dict[int, IntArray]:
        """Numbers of the blocks of every goal (:data:`EVERYONE` too)."""
        return _rows_by(self.blocks[1])

    @cached_property
    def volume_from(self) -> dict[int, int]:
        """Bytes of the blocks of every origin (:data:`EVERYONE` too)."""
        return {u: int(self.blocks[2][rows].sum()) for u, rows in self.rows_from.items()}

    def seconds(self, ticks: int) -> Fraction:
        """Ticks of latency as seconds."""
        return Fraction(int(ticks), self.ticks)


def crossing_bytes(links: Links, sources: BoolArray, sinks: BoolArray) -> int:
    """Bytes of the blocks that start at one of the sources and are wanted at one of the sinks."""
    origin, goal, size = links.blocks
    if links.instance.blocks.sets and not links.is_reversed:
        return _crossing_traffic(links, sources, sinks)
    starts = sources[origin] | (origin == EVERYONE) if sources.any() else np.zeros(len(origin), dtype=bool)
    ends = sinks[goal] | (goal == EVERYONE) if sinks.any() else np.zeros(len(goal), dtype=bool)
    return sum(size[starts & ends].tolist())


def _crossing_traffic(links: Links, sources: BoolArray, sinks: BoolArray) -> int:
    """The same of blocks with several holders: those that the sources alone hold, and sums to which one contributes."""
    holds, wants = links.held_and_wanted
    all_held, all_wanted = links.holders_and_wanters
    held = _among(holds, all_held, sources, links.members)
    starts = np.where(links.instance.blocks.sums, held > 0, held == all_held)
    return sum(links.blocks[2][starts & (_among(wants, all_wanted, sinks, links.members) > 0)].tolist())


def _among(rows: BoolArray, whole: IntArray, chosen: BoolArray, members: IntArray) -> IntArray:
    """How many of the chosen columns are true, by row; ``whole``: of all columns, which only ``members`` have. Reads
    the fewer columns."""
    few = 2 * int(chosen[members].sum()) <= len(members)
    part: IntArray = rows[:, members[chosen[members] == few]].sum(axis=1)
    return part if few else whole - part


def group_rows(links: Links, chosen: BoolArray) -> tuple[IntArray, int]:
    """A row for every chosen link such that links share a row where they share a group, shape (chosen,), and the number
    of rows."""
    group = links.group[chosen]
    key = np.where(group >= 0, group, len(links.instance.machine.group_names) + np.arange(len(group)))
    values, row = np.unique(key, return_inverse=True)
    return row.reshape(-1).astype(np.int64), len(values)


def least_time(weight: Sequence[int], start: IntArray, volume: Fraction) -> tuple[int, Fraction]:
    """The least x with ``sum of weight * max(0, x - start) >= volume``; weights in any unit, starts in ticks. Returned
    as (ticks so far, rest in ticks). Raises ``ValueError`` where all weights are 0."""
    order = np.argsort(start, kind="stable")
    begins, positions = np.unique(start[order], return_index=True)
    sums = [sum(weight[i] for i in part.tolist()) for part in np.split(order, positions[1:])]
    slope, done, at = 0, Fraction(0), 0
    for begin, more in zip(begins.tolist(), sums, strict=True):
        if slope and done + slope * (begin - at) >= volume:
            break
        done, at, slope = done + slope * (begin - at), begin, slope + more
    if slope <= 0:
        raise ValueError("nothing can cross")
    return at, (volume - done) / slope


def _rows_by(values: IntArray) -> dict[int, IntArray]:
    """The places of every value."""
    order = np.argsort(values, kind="stable").astype(np.int64)
    distinct, first = np.unique(values[order], return_index=True)
    return dict(zip(distinct.tolist(), np.split(order, first[1:]), strict=True))


def _whole_multiples(values: FloatArray) -> tuple[IntArray, Fraction]:
    """The values as whole multiples of a common unit. Where these would not fit, rounded up (a bound is weaker)."""
    distinct, which = np.unique(values, return_inverse=True)
    exactly = [exact(float(value)) for value in distinct]
    if not exactly:
        return np.zeros(0, dtype=np.int64), Fraction(1)
    bottom = math.lcm(*(value.denominator for value in exactly))
    unit = Fraction(math.gcd(*(int(value * bottom) for value in exactly)), bottom)
    unit = max(unit, max(exactly) / 2**53)
    whole = [-(-value // unit) for value in exactly]
    return np.array([int(value) for value in whole], dtype=np.int64)[which.reshape(-1)], unit


def _in_ticks(values: FloatArray, nodes: int, ready: Sequence[Fraction] = ()) -> tuple[IntArray, int]:
    """Latencies in ticks in which these moments are whole too, if they fit, and the ticks of a second."""
    distinct, which = np.unique(values, return_inverse=True)
    exactly = [exact(float(value)) for value in distinct]
    ticks = math.lcm(*(value.denominator for value in (*exactly, *ready)))
    largest: Fraction = max((*exactly, *ready), default=Fraction(0))
    if ticks > FINEST or largest * ticks * nodes > ROOM:
        ticks = max(1, min(FINEST, int(ROOM // max(Fraction(1), largest * nodes))))
    whole = [min(int(value * ticks), ROOM // nodes) for value in exactly]
    return np.array(whole, dtype=np.int64)[which.reshape(-1)], ticks
