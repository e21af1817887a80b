"""The epoch grid: time and links as TE-CCL (Liu et al., SIGCOMM 2024, sections 3 and 4) counts them.

Two rules. ``copied``: whole chunks that nodes copy (its MILP; allgather, broadcast, and reductions backwards).
``fluid``: shares of chunks from one rank to one other (its LP; alltoall, gather, scatter, demands).

| symbol | here | unit |
|---|---|---|
| tau | ``tau`` | s |
| chunk | ``chunk`` | bytes |
| capacity of a link | ``capacity`` | chunks an epoch, exact |
| a = ceil(alpha / tau), 0 where alpha / tau <= 1/10 | ``_latency_epochs`` | epochs |
| b = ceil(1 / capacity) - 1 | ``window`` - 1 | epochs |

What is sent in epoch k can be used at the other end from epoch ``k + lag`` on. Copied: ``lag = a + b + 1``, into a
switch ``a``, and over any b + 1 epochs a link sends at most ``(b + 1) * capacity``. Fluid: ``lag = a + 1``, and in
every epoch at most ``capacity``. A plan of K epochs sends in epochs 0 … K - 1, and all is in place at epoch K.

Beyond the paper: groups take turns (over any ``group_window`` epochs the parts of an epoch that its links are busy add
up to at most as many), and chunks per block may be more than one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import UnsupportedError
from synth.graph.shortest_paths import UNREACHABLE, all_pairs
from synth.options import read_duration
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import exact

Rule = Literal["copied", "fluid"]

UNREACHABLE_EPOCHS = 2**40  # epochs to what cannot be reached
MOST_EPOCHS = 2**31
MOST_COST = 2**61  # of a share, in parts of what a group carries in an epoch
UNFIT = "epochs of this length are too many or carry too much; choose tau=<seconds>"
MOST_UNITS = 10**6  # a chunk is told apart in at most so many shares
NO_LATENCY = Fraction(1, 10)  # of an epoch: a latency up to this counts as none


@dataclass(frozen=True, eq=False)
class Grid:
    """An instance on a grid of epochs. Arrays have the shape (links,) unless said otherwise.

    ``unit``: the shares that a chunk is counted in (1 where chunks stay whole). ``lag``, ``window`` in epochs;
    ``quota``: shares that a link may begin to send over any ``window`` epochs. ``cost``: a share's part of the group's
    epoch, in 1/``group_budget``-ths of the group's window (0 for links without a group).
    """

    instance: FabricInstance
    rule: Rule
    tau: Fraction
    chunk: Fraction
    chunks: int
    unit: int
    lag: IntArray
    window: IntArray
    quota: IntArray
    capacity: tuple[Fraction, ...]
    group_window: IntArray  # shape (groups,)
    cost: IntArray
    group_budget: int

    @property
    def src(self) -> IntArray:
        """First node of every link."""
        found: IntArray = self.instance.machine.network.src.astype(np.int64)
        return found

    @property
    def dst(self) -> IntArray:
        """Second node of every link."""
        found: IntArray = self.instance.machine.network.dst.astype(np.int64)
        return found

    @property
    def copies(self) -> bool:
        """Whether a switch may send what came once over several links."""
        switching = self.instance.switching
        store = switching.mode == "store_and_forward"
        return self.rule == "copied" and (switching.copies if store else switching.multicast)

    @cached_property
    def holds(self) -> BoolArray:
        """Nodes that keep what they have: ranks, and switches with a buffer; shape (nodes,)."""
        machine, switching = self.instance.machine, self.instance.switching
        kept = switching.mode == "store_and_forward" and switching.buffer
        found: BoolArray = ~machine.is_switch | kept
        return found

    @cached_property
    def distance(self) -> IntArray:
        """Least epochs from node to node, shape (nodes, nodes); :data:`UNREACHABLE_EPOCHS` where there is no way."""
        nodes = self.instance.machine.nodes
        direct = np.full((nodes, nodes), UNREACHABLE, dtype=np.int64)
        np.minimum.at(direct, (self.src, self.dst), self.lag)
        return np.minimum(all_pairs(direct), UNREACHABLE_EPOCHS)

    @cached_property
    def origin(self) -> IntArray:
        """Where every chunk begins (copied), shape (all chunks,)."""
        return np.repeat(self.instance.blocks.origin, self.chunks).astype(np.int64)

    @cached_property
    def wanted(self) -> BoolArray:
        """Who must hold each chunk in the end (copied), shape (all chunks, nodes)."""
        blocks, nodes = self.instance.blocks, self.instance.machine.nodes
        found = np.zeros((len(blocks), nodes), dtype=bool)
        for b, goal in enumerate(blocks.goal.tolist()):
            found[b, list(self.instance.members) if goal == EVERYONE else [goal]] = True
        return np.repeat(found, self.chunks, axis=0)

    @cached_property
    def demand(self) -> IntArray:
        """Shares of the block that every block is (fluid), shape (blocks,)."""
        amounts = [Fraction(int(n)) * self.unit / self.chunk for n in self.instance.blocks.bytes]
        assert all(amount.denominator == 1 for amount in amounts)
        return np.array([int(amount) for amount in amounts], dtype=np.int64)


def grid_of(instance: FabricInstance, tau: Fraction, chunks: int = 1) -> Grid:
    """The grid with epochs of ``tau`` seconds and ``chunks`` chunks a block.

    Raises :class:`UnsupportedError` where the blocks of a copied collective are of unlike size.
    """
    rule = _rule_of(instance)
    chunk = Fraction(int(instance.blocks.bytes.max()), chunks)
    capacity = [exact(float(b)) * tau / chunk for b in instance.machine.network.bandwidth]
    away = _latency_epochs(instance, tau)
    if rule == "copied":
        window = [math.ceil(1 / c) for c in capacity]
        into = instance.machine.is_switch[instance.machine.network.dst]
        lag = [a if s else a + w for a, w, s in zip(away, window, into, strict=True)]
        unit, quota = 1, [math.floor(w * c) for w, c in zip(window, capacity, strict=True)]
    else:
        window, lag = [1] * len(capacity), [a + 1 for a in away]
        unit = _unit(capacity, [Fraction(int(n)) / chunk for n in instance.blocks.bytes])
        quota = [math.floor(c * unit) for c in capacity]
    if max(lag, default=0) > MOST_EPOCHS or max(window, default=0) > MOST_EPOCHS or max(quota, default=0) > 2**40:
        raise UnsupportedError(UNFIT)
    span, cost, budget = _turns(instance, capacity, window, unit)
    lags, windows, quotas = (np.array(row, dtype=np.int64) for row in (lag, window, quota))
    return Grid(
        instance, rule, tau, chunk, chunks, unit, lags, windows, quotas, tuple(capacity), span, cost, budget
    )  # fmt: skip


def _rule_of(instance: FabricInstance) -> Rule:
    """Whether data is copied. Raises :class:`UnsupportedError` where it is and no program fits."""
    blocks, switching = instance.blocks, instance.switching
    if not np.any(blocks.goal == EVERYONE):
        return "fluid"
    if switching.mode == "store_and_forward" and switching.buffer and not switching.copies:
        raise UnsupportedError("epochs has no program for switches that keep data but do not copy it")
    if int(blocks.bytes.min()) != int(blocks.bytes.max()):
        raise UnsupportedError("epochs takes blocks of one size where data is copied")
    return "copied"


def epoch_seconds(instance: FabricInstance, tau: str, chunks: int = 1) -> Fraction:
    """The length of an epoch: of a ``chunk`` on the fastest link (``fast``) or the slowest (``slow``), or as given."""
    if tau not in ("fast", "slow"):
        return exact(read_duration(tau))
    chunk = Fraction(int(instance.blocks.bytes.max()), chunks)
    bandwidth = instance.machine.network.bandwidth
    return chunk / exact(float(bandwidth.max() if tau == "fast" else bandwidth.min()))


def _latency_epochs(instance: FabricInstance, tau: Fraction) -> list[int]:
    """a of every link."""
    parts = [exact(float(alpha)) / tau for alpha in instance.machine.network.latency]
    return [math.ceil(part) if part > NO_LATENCY else 0 for part in parts]


def _unit(capacity: list[Fraction], demand: list[Fraction]) -> int:
    """Shares of a chunk in which demands, and if that is not too fine capacities, are whole."""
    least = math.lcm(*(amount.denominator for amount in demand))
    if least > MOST_UNITS * MOST_UNITS:
        raise UnsupportedError("the demands share no unit that is coarse enough")
    unit = math.lcm(least, *(c.denominator for c in capacity))
    return unit if unit <= max(least, MOST_UNITS) else least * max(1, MOST_UNITS // least)


def _turns(
    instance: FabricInstance, capacity: list[Fraction], window: list[int], unit: int
) -> tuple[IntArray, IntArray, int]:
    """The windows of the groups, what a share costs of them, and the budget of a window of one epoch."""
    machine = instance.machine
    group, groups = machine.group.tolist(), len(machine.group_names)
    span = np.ones(groups, dtype=np.int64)
    for g, w in zip(group, window, strict=True):
        if g >= 0:
            span[g] = max(span[g], w)
    part: Callable[[Fraction], Fraction] = lambda c: 1 / (c * unit)  # noqa: E731
    costs = [part(c) if g >= 0 else Fraction(0) for c, g in zip(capacity, group, strict=True)]
    budget = math.lcm(*(c.denominator for c in costs)) if costs else 1
    if budget > 2**40:
        budget = 2**40
    cost = [math.ceil(c * budget) for c in costs]
    if max(cost, default=0) > MOST_COST:
        raise UnsupportedError(UNFIT)
    return span, np.array(cost, dtype=np.int64), budget
