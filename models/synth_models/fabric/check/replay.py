"""The check of a schedule: its replay in continuous time, from nothing but the instance.

Rules ▸: a link, and a group of links, carries one transfer at a time; a route is a path from rank to rank through
switches (with ``multicast`` an out-tree), or with ``store_and_forward`` one link; nobody sends on what has not fully
arrived; a switch that stores without ``buffer`` sends on at the tick of arrival or never, without ``copies`` once; in a
reduction no contribution is added twice and only complete sums are copied; nobody sends of its own before it is
ready (:mod:`synth_models.fabric.problem.ready`), or of an operation before all that it wants of those before has
arrived; the pieces of a block make up its bytes; at the end everything is where it is wanted. One collective is a
single operation; ``several`` lists them, and each moves on the links that it may use. Times are whole ticks in exact
arithmetic, so nothing is "about equal". Shares no code with what makes schedules.

In a reduction a switch that stores adds nothing to nothing: a hop out of it carries on what the last transfer listed
before it brought there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth.method import Verdict
from synth.schedule.collective import bus_factor
from synth.text.untrusted import exact_sum
from synth_models.fabric.check import quotient, scenarios
from synth_models.fabric.check.fault_words import (
    block_words,
    clash_faults,
    goal_faults,
    possession_faults,
    route_faults,
    stream_faults,
)
from synth_models.fabric.check.occupancy import clashes
from synth_models.fabric.check.plans import plan_verdict
from synth_models.fabric.check.possession import Held, held
from synth_models.fabric.check.route_hops import Hops, hops_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact, float_above
from synth_models.fabric.problem.order import in_order
from synth_models.fabric.problem.ready import in_ticks
from synth_models.fabric.problem.several import OneCollective, called, objective_of
from synth_models.fabric.solution import MOST_BYTES, MOST_EXPANDED, MOST_TICKS, Quotient, Schedule, expanded, part_of

MOST_FAULTS = 20
MOST_TRANSFERS = 2**31 - 1


def check_schedule(instance: FabricInstance, schedule: Schedule | Quotient) -> Verdict:
    """Replay the schedule; the value is the time of the last arrival in seconds, rounded up to a float.

    ``algbw_bytes_per_s`` and ``busbw_bytes_per_s`` as nccl-tests computes them; ``longest_chain``: transfers in the
    longest row of which each brings what the next one sends; ``redundant_arrivals``: at ranks that had it. Of a
    quotient, ``replayed_by``: on the quotient (:mod:`synth_models.fabric.check.quotient`), and up to
    :data:`synth_models.fabric.solution.MOST_EXPANDED` transfers one by one, too. Of several collectives the value is
    the instance's objective, and ``ends_s`` the end of each; of one plan as :func:`scenarios.plan_verdict` says.
    Complexity: n log n in links of routes; memory grows with them, and with one piece's contributions.
    """
    if instance.scenarios is not None:
        return scenarios.plan_verdict(instance, schedule, check_schedule)
    if words := _unsuited(instance, schedule):
        return Verdict(None, {}, [words])
    if isinstance(schedule, Quotient):
        return _check_quotient(instance, schedule)
    facts: dict[str, Any] = {"transfers": schedule.transfers, "pieces": len(schedule.piece_block)}
    faults = _Faults()
    moved = _moved(instance, schedule, faults)
    if not faults.count:
        _take_clashes(instance, schedule, _all_hops(instance, schedule, moved), faults)
    ends = {} if faults.count else _ends_in_order(instance, moved, faults)
    if faults.count:
        return Verdict(None, facts, faults.told())
    facts["longest_chain"] = max(end.held.longest_chain for end in ends.values())
    facts["redundant_arrivals"] = max(end.held.redundant for end in ends.values())
    seconds = [Fraction(ends[number].last, schedule.ticks_per_s) for number in range(len(moved))]
    value = float_above(objective_of(seconds, instance.operations, instance.objective))
    if instance.collectives is not None:
        return Verdict(value, facts | {"ends_s": [float_above(end) for end in seconds]}, [])
    plan = plan_verdict(instance, schedule)
    figures = _figures(instance, schedule.ticks_per_s, ends[0].last)
    return Verdict(value, facts | figures | plan.facts, plan.faults, plan.unverified)


def _unsuited(instance: FabricInstance, schedule: Schedule | Quotient) -> str | None:
    """Why this form of a schedule does not count for the instance."""
    if instance.collectives is not None and (isinstance(schedule, Quotient) or schedule.plan):
        return "of several collectives only a list of all transfers counts, with no plan"
    if instance.ready and isinstance(schedule, Quotient):
        return "where ranks are not ready at once only a list of all transfers counts"
    return None


class _Moved(NamedTuple):
    """What a schedule moves of one operation: a schedule of this part of the instance alone, and its links in time."""

    part: FabricInstance
    schedule: Schedule
    hops: Hops


class _End(NamedTuple):
    """How an operation went. ``ticks``: at which each node has all that it wants, shape (nodes,); ``last``: at which
    the last of its transfers has arrived, too."""

    held: Held
    ticks: IntArray
    last: int


def _moved(instance: FabricInstance, schedule: Schedule, faults: _Faults) -> list[_Moved]:
    """The operations, on the links that each may use. Sentences about one of several count its own transfers, pieces
    and blocks."""
    faults.take(_shape_faults(instance, schedule))
    found: list[_Moved] = []
    for number in range(0 if faults.count else len(instance.parts)):
        try:
            own = part_of(instance, schedule, number)[0]
        except ValueError as error:
            faults.take(iter([f"{called(number, instance.operations[number])}: {error}"]))
            continue
        part, its = instance.parts[number], _Faults()
        hops = _hops(part, own, its, part.collective)
        faults.take_of(its, _whose(instance, number))
        if hops is not None:
            found.append(_Moved(part, own, hops))
    return found


def _whose(instance: FabricInstance, number: int) -> str:
    """What a sentence about one of several operations begins with."""
    return f"{called(number, instance.operations[number])}, counted within it: " if instance.collectives else ""


def _all_hops(instance: FabricInstance, schedule: Schedule, moved: Sequence[_Moved]) -> Hops:
    """The links of all operations in time."""
    return hops_of(instance, schedule) if instance.collectives is not None else moved[0].hops


def _ends_in_order(instance: FabricInstance, moved: Sequence[_Moved], faults: _Faults) -> dict[int, _End]:
    """Replay who holds what, each operation behind those that it comes after; those that have no fault."""
    ends: dict[int, _End] = {}
    after = [one.after or () for one in instance.operations]
    for number in in_order(after, range(len(moved))):
        part, own, hops = moved[number]
        before = [ends[k].ticks for k in after[number] if k in ends]
        ready = np.maximum.reduce([_moments(part, instance.operations[number], own.ticks_per_s), *before])
        its = _Faults()
        what = _held(part, own, hops, ready, its)
        faults.take_of(its, _whose(instance, number))
        if what is not None:
            ends[number] = _End(what, *_ended(part, own, hops, ready))
    return ends


def _moments(part: FabricInstance, one: OneCollective, ticks_per_s: int) -> IntArray:
    """The first tick at which each node has its own part of an operation, whatever it comes after."""
    release = exact(one.release) * ticks_per_s
    first: IntArray = np.maximum(
        in_ticks(one.ready, part.machine.nodes, ticks_per_s),
        min(-(-release.numerator // release.denominator), 2**62),
    )
    return first


def _check_quotient(instance: FabricInstance, schedule: Quotient) -> Verdict:
    """Replay the origin's part, with what it occupies modulo the group; where they are not too many, all transfers."""
    part, members = schedule.part, len(instance.members)
    count = schedule.transfers_over(members)
    facts: dict[str, Any] = {"transfers": count, "pieces": len(part.piece_block) * members}
    faults = _Faults()
    faults.take(quotient.group_faults(instance, schedule))
    if part.plan:
        faults.take(iter(["the quotient: it has a plan, which is only checked for schedules that list all transfers"]))
    if faults.count:
        return Verdict(None, facts, faults.told())
    one, orbits = quotient.of_origin(instance), quotient.orbits_of(instance.machine, schedule.generators)
    faults.take(_shape_faults(one, part))
    hops = None if faults.count else _hops(one, part, faults, instance.collective)
    if hops is not None:
        faults.take(quotient.stays(instance, part, orbits))
    if hops is not None and not faults.count:
        count_modulo, found = quotient.clashes_modulo(instance, part, hops, orbits)
        faults.take(clash_faults(one, part, hops, found, "an image of transfer"))
        faults.count += count_modulo - len(found)
    nobody_late = np.zeros(one.machine.nodes, dtype=np.int64)
    what = None if hops is None or faults.count else _held(one, part, hops, nobody_late, faults)
    if hops is None or what is None:
        return Verdict(None, facts, faults.told())
    _, ticks = _ended(one, part, hops, nobody_late)
    value = float_above(Fraction(ticks, part.ticks_per_s))
    facts |= _figures(instance, part.ticks_per_s, ticks)
    facts["longest_chain"], facts["redundant_arrivals"] = what.longest_chain, what.redundant * members
    if count > MOST_EXPANDED:
        return Verdict(value, facts | {"replayed_by": "quotient"})
    whole = check_schedule(instance, expanded(instance, schedule))
    if whole.faults or whole.value != value:
        words = f"the quotient: its transfers one by one end at {whole.value}, one rank's at {value}"
        return Verdict(None, facts, whole.faults or [words])
    return Verdict(value, facts | {"replayed_by": "quotient and transfers"})


def _hops(instance: FabricInstance, schedule: Schedule, faults: _Faults, collective: str) -> Hops | None:
    """The links of all routes in time, of a schedule whose arrays fit; None where pieces, sums or routes have faults.
    ``collective``: the one that is meant where the instance is a part of it."""
    faults.take(_cutting_faults(instance, schedule))
    faults.take(_sum_faults(instance, schedule, collective))
    if faults.count:
        return None
    hops = hops_of(instance, schedule)
    faults.take(route_faults(instance, schedule, hops))
    faults.count += hops.wrong_count - len(hops.wrong)
    return None if faults.count else hops


def _take_clashes(instance: FabricInstance, schedule: Schedule, hops: Hops, faults: _Faults) -> None:
    """Links that would carry two transfers at a time, and switches that would work on too many."""
    count, found = clashes(instance.machine, schedule, hops)
    faults.take(clash_faults(instance, schedule, hops, found))
    faults.count += count - len(found)
    faults.take(stream_faults(instance, schedule, hops))


def _held(instance: FabricInstance, schedule: Schedule, hops: Hops, ready: IntArray, faults: _Faults) -> Held | None:
    """Who holds what, where every link carries one transfer at a time; None where somebody sends what it has not, or
    something is not where it is wanted."""
    what = held(instance, schedule, hops, ready)
    wrong = np.flatnonzero(what.code)
    first = wrong[np.argsort(schedule.start[wrong], kind="stable")][:MOST_FAULTS]
    faults.take(possession_faults(instance, schedule, hops, (what.code, ready), first))
    faults.count += len(wrong) - len(first)
    faults.take(goal_faults(instance, schedule, what.missing))
    faults.count += what.missing_count - len(what.missing)
    return None if faults.count else what


def _ended(instance: FabricInstance, schedule: Schedule, hops: Hops, ready: IntArray) -> tuple[IntArray, int]:
    """The tick at which each node has all that it wants, what it contributes to a sum itself included; 0 where it wants
    nothing; shape (nodes,). And that at which, too, the last transfer has arrived."""
    blocks, nodes = instance.blocks, instance.machine.nodes
    found = np.zeros(nodes, dtype=np.int64)
    for holds, wants in np.unique(np.stack([blocks.origin, blocks.goal], axis=1)[blocks.sums], axis=0).tolist():
        own = sorted(set(blocks.ranks(holds, instance.members)) & set(blocks.ranks(wants, instance.members)))
        found[own] = ready[own]
    head = instance.machine.network.dst[schedule.link]
    comes = np.flatnonzero(hops.arrive >= 0)
    goal = blocks.goal[schedule.piece_block[schedule.piece[hops.owner[comes]]]]
    comes = comes[blocks.mean(goal, head[comes], instance.members)]
    np.maximum.at(found, head[comes], hops.arrive[comes])
    return found, max(int(hops.arrive.max(initial=0)), int(found.max(initial=0)))


def _figures(instance: FabricInstance, ticks_per_s: int, ticks: int) -> dict[str, float]:
    """Bandwidths as nccl-tests computes them; none where nothing takes time."""
    if not ticks:
        return {}
    rate = Fraction(instance.bytes * ticks_per_s, ticks)
    factor = bus_factor(instance.collective, len(instance.members))
    return {"algbw_bytes_per_s": float(rate), "busbw_bytes_per_s": float(rate * factor)}


class _Faults:
    """The first sentences, and how many there are in all."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.count = 0

    def take(self, texts: Iterator[str]) -> None:
        for text in texts:
            self.count += 1
            if len(self.texts) < MOST_FAULTS:
                self.texts.append(text)

    def take_of(self, others: _Faults, whose: str) -> None:
        """Those of a part, each behind the words that name it."""
        self.take(whose + text for text in others.texts)
        self.count += others.count - len(others.texts)

    def told(self) -> list[str]:
        more = self.count - len(self.texts)
        return [*self.texts, f"and {more} more fault{'s' if more > 1 else ''}"] if more else self.texts


def _shape_faults(instance: FabricInstance, schedule: Schedule) -> Iterator[str]:
    """What :func:`synth_models.fabric.solution.unpack` refuses too; a method hands over its schedule directly."""
    count, pieces, hops = len(schedule.start), len(schedule.piece_block), len(schedule.link)
    lengths = {
        "piece_bytes": (schedule.piece_bytes, pieces),
        "piece": (schedule.piece, count),
        "adds": (schedule.adds, count),
        "route_start": (schedule.route_start, count + 1),
    }
    for name, (array, length) in lengths.items():
        if len(array) != length:
            yield f"{name} has {len(array)} entries, not {length}"
            return
    if max(count, pieces, hops) > MOST_TRANSFERS:
        yield f"more than {MOST_TRANSFERS} transfers, pieces or links of routes"
    if not 1 <= schedule.ticks_per_s <= MOST_TICKS:
        yield f"ticks_per_s is {schedule.ticks_per_s}, outside 1..{MOST_TICKS}"
    for name, array, least, most in (
        ("piece_block", schedule.piece_block, 0, len(instance.all_blocks[0]) - 1),
        ("piece_bytes", schedule.piece_bytes, 1, MOST_BYTES),
        ("start", schedule.start, 0, MOST_TICKS),
        ("piece", schedule.piece, 0, pieces - 1),
        ("link", schedule.link, 0, instance.machine.links - 1),
        ("route_start", schedule.route_start, 0, hops),
    ):
        if array.ndim != 1 or array.dtype != np.int64:
            yield f"{name} is no row of 64-bit whole numbers"
        elif len(array) and (array.min() < least or array.max() > most):
            i = int(np.flatnonzero((array < least) | (array > most))[0])
            yield f"{name}[{i}] is {array[i]}, outside {least}..{most}"
    begins = schedule.route_start
    if begins[0] != 0 or begins[-1] != hops or np.any(begins[1:] <= begins[:-1]):
        yield "route_start does not cut the links into routes of at least one link"


def _cutting_faults(instance: FabricInstance, schedule: Schedule) -> Iterator[str]:
    """Blocks whose pieces are not all of them."""
    total = _totals(schedule.piece_block, schedule.piece_bytes, len(instance.blocks))
    for b in np.flatnonzero(total != instance.blocks.bytes):
        amount = exact_sum(schedule.piece_bytes[schedule.piece_block == b]) if total[b] else 0
        whose = block_words(instance, int(b))
        yield f"block {b} ({whose}): its pieces have {amount} bytes, not {instance.blocks.bytes[b]}"


@jit
def _totals(block: IntArray, size: IntArray, blocks: int) -> IntArray:
    """Bytes per block, exact up to 2^62 and no less than that above it; a size is at most 2^48."""
    total = np.zeros(blocks, dtype=np.int64)
    for p in range(len(block)):
        total[block[p]] = min(total[block[p]] + size[p], np.int64(2**62))
    return total


def _sum_faults(instance: FabricInstance, schedule: Schedule, collective: str) -> Iterator[str]:
    sums = instance.blocks.sums[schedule.piece_block[schedule.piece]]
    for i in np.flatnonzero(schedule.adds & ~sums).tolist():
        what = f"block {schedule.piece_block[schedule.piece[i]]}" if instance.blocks.sums.any() else collective
        yield f"transfer {i}: adds to a partial sum, but {what} has no sums"
