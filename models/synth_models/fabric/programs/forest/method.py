"""``forest``: throughput-optimal trees for any machine, cut into pieces and pipelined.

The fluid optimum (:mod:`.capacities`, :mod:`.edge_splitting`, :mod:`.tree_packing`) is exact: whole trees that use no
link for longer than the cut that bounds every algorithm. The finite schedule repeats a round of all trees by a
timetable (:mod:`.rounds`). The number of rounds is tried in powers of two and the best is kept. Plain list scheduling
and trees of least latency are tried beside it; they win where messages are small.

A reduction is the same on the reversed machine, run backwards; allreduce reduces every piece up a tree and broadcasts
it down another from the same root.

Trees by edge splitting and Edmonds' theorem with multiplicities were proposed for collectives by ForestColl (Zhao and
others, 2024); the code here is written from the theorems.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from synth.arrays import IntArray
from synth.method import Outcome
from synth.options import RELATIVE_GAP, RunOptions
from synth.schedule.collective import REDUCING
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.programs.forest.forest import equal_rates
from synth_models.fabric.programs.forest.least_latency_tree import least_latency_tree
from synth_models.fabric.programs.forest.rounds import Placement, Round, round_of, rounds
from synth_models.fabric.programs.forest.tree_choice import block_of, planned, roots_of
from synth_models.fabric.programs.forest.tree_plan import (
    PackedTrees,
    Table,
    TreeEdge,
    stopping_at_ranks,
    table_of,
    transfers_of,
    up_and_down,
)
from synth_models.fabric.programs.forest.tuned import (
    ENOUGH,
    EQUAL,
    FAR,
    LISTED,
    MORE_TRANSFERS,
    MOST_PACKED,
    MOST_TRANSFERS,
)
from synth_models.fabric.scheduling.list_scheduling import completion, summed_up, timed
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule


@dataclass
class _Finite:
    """Offers schedules of finite pieces to the incumbent."""

    incumbent: Incumbent

    @property
    def instance(self) -> FabricInstance:
        return self.incumbent.instance

    @property
    def options(self) -> RunOptions:
        return self.incumbent.options

    @property
    def seconds(self) -> Fraction | None:
        """Those of the quickest."""
        return self.incumbent.time

    @cached_property
    def _least(self) -> Fraction:
        return quick_bound(self.instance)

    def enough(self) -> bool:
        """Whether there is no time to go on, or the best is within a gap, asked for beyond the usual, of a bound."""
        gap = self.options.relative_gap
        if self.seconds is None or gap <= RELATIVE_GAP or self.options.out_of_time():
            return self.options.out_of_time()
        return self.seconds * Fraction(1 - gap) <= self._least

    def offer(self, transfers: Transfers, how: str, in_order: bool) -> Fraction:
        """Give it start times; keep it if it is the fastest. Returns its seconds."""
        transfers = summed_up(self.instance, stopping_at_ranks(transfers, self.instance.machine))
        made = timed(self.instance, transfers, in_order=in_order)
        self.incumbent.offer(made, f"finite schedule {how}")
        return Fraction(completion(self.instance, made), made.ticks_per_s)


def propose(instance: FabricInstance, options: RunOptions, incumbent: Incumbent) -> Outcome:
    """The best schedule found within the time limit; the message says the fluid optimum and what became of it."""
    if instance.collective not in ("allgather", "broadcast", *REDUCING):
        return Outcome("unsupported", message=f"forest packs trees; {instance.collective} needs the method flow")
    if not len(instance.blocks):
        return Outcome("finished", _empty())
    began = time.monotonic()
    best = _Finite(incumbent)
    try:
        fluid_s, words, seconds = (_whole if options.method.get("transfers") is None else _few)(best)
    except ValueError as error:
        return Outcome("unsupported", message=str(error))
    spent = ", ".join(f"{name} {value:.3f}" for name, value in seconds.items())
    assert best.seconds is not None
    loss = 1 - fluid_s / best.seconds
    rate = instance.bytes / best.seconds / 10**9
    message = (
        f"{words}; {incumbent.told}: {float(rate):.6g} GB/s, {float(100 * loss):.3g} % below the fluid "
        f"optimum, best of {incumbent.tried}; seconds: {spent}"
    )
    return Outcome("finished", incumbent.best, message=message, solve_s=time.monotonic() - began)


def _whole(best: _Finite) -> tuple[Fraction, str, dict[str, float]]:
    """Offer schedules of trees at the greatest rate. Returns the seconds of their fluid, words about it, and seconds
    per part. Raises ``ValueError`` where there are no trees."""
    plan, fluid_s, words, seconds = planned(best.instance)
    began = time.monotonic()
    _schedule(best.instance, plan, fluid_s, best, best.options)
    seconds["scheduling"] = time.monotonic() - began
    return fluid_s, words, seconds


def _empty() -> Schedule:
    none = np.zeros(0, dtype=np.int64)
    return Schedule(1, none, none, none, none, np.zeros(0, dtype=bool), np.zeros(1, dtype=np.int64), none)


def _schedule(
    instance: FabricInstance, plan: PackedTrees, fluid_s: Fraction, best: _Finite, options: RunOptions
) -> None:
    """Offer every candidate to ``best``."""
    machine, sizes = instance.machine, instance.blocks.bytes
    fluid_ns = float(fluid_s) * 1e9
    table = table_of(plan, machine)
    chunks = options.method.get("chunks")
    per_block = _per_block(table)
    if chunks is None:
        near = table_of(_least_latency_plan(instance), machine)
        _listed(best, near, sizes, 1.0, fluid_ns, "by nearest trees in one piece")
        _listed(best, near, sizes, 4.0, fluid_ns, "by nearest trees in 4 pieces")
        _listed(best, table, sizes, 1.0, fluid_ns, "by list scheduling of a piece a tree")
    one = round_of(table, machine, sizes, per_block)
    _rounds(best, one, sizes, fluid_s, chunks, options)
    if best.seconds is None:
        best.offer(transfers_of(table, sizes, 1.0, fluid_ns, 1.0)[0], "by list scheduling of a piece a tree", False)


def _few(best: _Finite) -> tuple[Fraction, str, dict[str, float]]:
    """Offer rounds that have as many transfers in all as is asked for, each a piece of few equal trees a root. Returns
    and raises as :func:`_whole`, of the trees of the best."""
    instance, machine = best.instance, best.instance.machine
    said: tuple[Fraction, str, dict[str, float]] | None = None
    error = ValueError("no equal trees reach all")
    for equal in _worth_packing(instance, best.options.method["transfers"]):
        try:
            plan, fluid_s, words, seconds = planned(instance, equal)
        except ValueError as why:  # what switches take in and let out is uneven, too
            error = why
            continue
        began, before = time.monotonic(), best.seconds
        if best.seconds is not None and fluid_s >= best.seconds:
            continue
        pieces = equal * len(roots_of(instance)) // len(instance.blocks)
        one = round_of(table_of(plan, machine), machine, instance.blocks.bytes, float(pieces))
        times = best.options.method["transfers"] // len(stopping_at_ranks(one.transfers, machine).piece)
        even = (_even(instance.blocks.bytes, pieces, most) for most in (times, times // 2))
        for number in dict.fromkeys((max(times, 1), *even)):
            _offer_rounds(best, one, instance.blocks.bytes, number, _placements(instance))
        if best.seconds is not None and (before is None or best.seconds < before):
            said = fluid_s, f"{equal} equal trees a root: {words}", seconds | {"scheduling": time.monotonic() - began}
        if best.enough():
            break
    if said is None:
        raise error
    return said


def _even(sizes: IntArray, pieces: int, most: int) -> int:
    """Rounds up to so many, one at least, whose ``pieces`` of a block have equal bytes if that takes no fewer than half
    of them; ``sizes``: bytes of every block."""
    even = (times for times in range(most, most // 2, -1) if not np.any(sizes % (pieces * times)))
    return next(even, max(most, 1))


def _worth_packing(instance: FabricInstance, most: int) -> list[int]:
    """Numbers of equal trees a root to try: each reaches more than all smaller ones."""
    reducing = instance.collective in REDUCING
    machine = instance.machine.reversed() if reducing else instance.machine
    members, roots = list(instance.members), roots_of(instance)
    each = len(roots) * (len(members) - 1) * (2 if instance.collective == "allreduce" else 1)
    rates = equal_rates(machine, members, roots, [count for count in EQUAL if count * each <= most] or [EQUAL[0]])
    kept: list[int] = []
    for count, rate in rates.items():
        if not kept or rate > rates[kept[-1]]:
            kept.append(count)
    return kept[-MOST_PACKED:]


def _placements(instance: FabricInstance) -> list[Placement]:
    """Those to try."""
    both = instance.collective == "allreduce"
    return [Placement(True, both), Placement(False, both)] + [Placement(True, False)] * both


def _rounds(
    best: _Finite, one: Round, sizes: IntArray, fluid_s: Fraction, chunks: int | None, options: RunOptions
) -> None:
    """Offer once, twice, four times … as many rounds while that helps."""
    first = chunks or 1
    times, before, idle = first, None, 0
    placements = _placements(best.instance)
    spent_s = 0.0
    while options.fits(2 * spent_s) and not best.enough():  # twice as many rounds take twice as long
        began = time.monotonic()
        if times > first and one.size * times > _most_transfers(best, fluid_s):
            break
        took = _offer_rounds(best, one, sizes, times, placements)
        if not took or chunks is not None:
            break
        seconds, fastest = min(took)
        if times >= 4:
            placements = [fastest]
        idle = idle + 1 if before is not None and seconds > before * (1 - ENOUGH) else 0
        if idle > 1:
            break
        before = seconds if before is None else min(before, seconds)
        times *= 2
        spent_s = time.monotonic() - began


def _most_transfers(best: _Finite, fluid_s: Fraction) -> int:
    """How many transfers a schedule may have: more where the best so far is far from the fluid optimum."""
    far = best.seconds is None or best.seconds * (1 - FAR) > fluid_s
    return MORE_TRANSFERS if far else MOST_TRANSFERS


def _offer_rounds(
    best: _Finite, one: Round, sizes: IntArray, times: int, placements: list[Placement]
) -> list[tuple[Fraction, Placement]]:
    """The seconds of ``times`` rounds with each placement, of those that there are."""
    took: list[tuple[Fraction, Placement]] = []
    for placement in placements:
        made = rounds(one, sizes, times, placement)
        if made is not None:
            how = f"of {times} rounds with {len(one.tree)} pieces"
            took.append((best.offer(made, how, True), placement))
    return took


def _listed(best: _Finite, table: Table, sizes: IntArray, per_block: float, fluid_ns: float, how: str) -> None:
    count = float(np.diff(table.tree_start).mean()) * max(per_block * len(sizes), len(table.block))
    if count <= LISTED and per_block <= int(sizes.min()):
        best.offer(transfers_of(table, sizes, per_block, fluid_ns, 1.0)[0], how, False)


def _per_block(table: Table) -> float:
    """Pieces of a block in a round: whole multiples of all weights if these are few, otherwise about a piece a tree."""
    import math

    blocks = len(np.unique(table.block))
    total = sum(table.weight, Fraction(0)) / blocks
    exact = math.lcm(*(weight.denominator for weight in table.weight)) * total
    few = 4 * len(table.block) / blocks
    return float(exact) if exact <= max(few, 64) else few


def _least_latency_plan(instance: FabricInstance) -> PackedTrees:
    machine, members = instance.machine, list(instance.members)
    plan, block, roots = PackedTrees(), block_of(instance), list(roots_of(instance))
    reducing = instance.collective in REDUCING
    there: Machine = machine.reversed() if reducing else machine
    size = max(int(instance.blocks.bytes.max()) // (len(roots) if instance.collective == "allreduce" else 1), 1)
    into: dict[int, float] = {}
    outof: dict[int, float] = {}
    for root in roots:
        edges = least_latency_tree(there, members, root, size, into)
        if reducing:
            edges = _reversed_edges(edges)
        if instance.collective == "allreduce":
            edges = up_and_down(edges, least_latency_tree(machine, members, root, size, outof))
        plan.add(block(root), Fraction(1), edges)
    return plan


def _reversed_edges(edges: list[TreeEdge]) -> list[TreeEdge]:
    """An out-tree of the reversed machine as an in-tree."""
    count = len(edges)
    after: list[list[int]] = [[] for _ in edges]
    for i, edge in enumerate(edges):
        for j in edge.before:
            after[j].append(i)
    return [
        TreeEdge(
            [(amount, tuple(reversed(route))) for amount, route in edges[i].options],
            True,
            tuple(count - 1 - j for j in after[i]),
        )
        for i in range(count - 1, -1, -1)
    ]
