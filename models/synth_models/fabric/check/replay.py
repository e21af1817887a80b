"""The check of a schedule: its replay in continuous time, from nothing but the instance.

Rules ▸: a link, and a group of links, carries one transfer at a time; a route is a path from rank to rank through
switches (with ``multicast`` an out-tree), or with ``store_and_forward`` one link; nobody sends on what has not fully
arrived; a switch that stores without ``buffer`` sends on at the tick of arrival or never, without ``copies`` once; in a
reduction no contribution is added twice and only complete sums are copied; nobody sends of its own before it is
ready (:mod:`synth_models.fabric.problem.ready`); the pieces of a block make up its bytes;
at the end everything is where the collective wants it. Times are whole ticks in exact arithmetic, so nothing is "about
equal". Shares no code with what makes schedules.

In a reduction a switch that stores adds nothing to nothing: a hop out of it carries on what the last transfer listed
before it brought there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth.method import Verdict
from synth.schedule.collective import bus_factor
from synth.text.quantities import SECONDS, shown
from synth.text.untrusted import exact_sum
from synth_models.fabric.check import contributions, gathered_hops, quotient, route_hops, scenarios
from synth_models.fabric.check.occupancy import Clash, clashes, streams_at_once
from synth_models.fabric.check.plans import plan_verdict
from synth_models.fabric.check.possession import Held, held
from synth_models.fabric.check.route_hops import Hops, hops_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
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
    if instance.collectives is not None:
        return _check_several(instance, schedule, instance.collectives)
    if instance.scenarios is not None:
        return scenarios.plan_verdict(instance, schedule, check_schedule)
    if isinstance(schedule, Quotient):
        if instance.ready:
            return Verdict(None, {}, ["where ranks are not ready at once only a list of all transfers counts"])
        return _check_quotient(instance, schedule)
    return _check_one(instance, schedule, in_ticks(instance.ready, instance.machine.nodes, schedule.ticks_per_s))


def _check_one(instance: FabricInstance, schedule: Schedule, ready: IntArray) -> Verdict:
    """Replay one collective whose nodes have their own part from these ticks on."""
    facts: dict[str, Any] = {"transfers": schedule.transfers, "pieces": len(schedule.piece_block)}

    def clash_faults(hops: Hops, faults: _Faults) -> None:
        count, found = clashes(instance.machine, schedule, hops)
        faults.take(_clash_faults(instance, schedule, hops, found))
        faults.count += count - len(found)
        faults.take(_stream_faults(instance, schedule, hops))

    faults, ticks, what = _replayed(instance, schedule, clash_faults, ready)
    if what is None:
        return Verdict(None, facts, faults.told())
    facts |= _figures(instance, schedule.ticks_per_s, ticks)
    facts["longest_chain"] = what.longest_chain
    facts["redundant_arrivals"] = what.redundant
    plan = plan_verdict(instance, schedule)
    value = float_above(Fraction(ticks, schedule.ticks_per_s))
    return Verdict(value, facts | plan.facts, plan.faults, plan.unverified)


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

    def clash_faults(hops: Hops, faults: _Faults) -> None:
        faults.take(quotient.stays(instance, part, orbits))
        if not faults.count:
            count, found = quotient.clashes_modulo(instance, part, hops, orbits)
            faults.take(_clash_faults(one, part, hops, found, "an image of transfer"))
            faults.count += count - len(found)

    nobody_late = np.zeros(one.machine.nodes, dtype=np.int64)
    faults, ticks, what = _replayed(one, part, clash_faults, nobody_late, instance.collective)
    if what is None:
        return Verdict(None, facts, faults.told())
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


def _check_several(
    instance: FabricInstance, schedule: Schedule | Quotient, collectives: Sequence[OneCollective]
) -> Verdict:
    """Replay what moves of every collective alone, on the links that it may use, behind those that it comes after; then
    that no link carries transfers of two. Sentences about one collective count its own transfers, pieces and blocks."""
    if isinstance(schedule, Quotient) or schedule.plan:
        return Verdict(None, {}, ["of several collectives only a list of all transfers counts, with no plan"])
    facts: dict[str, Any] = {"transfers": schedule.transfers, "pieces": len(schedule.piece_block)}
    faults = _Faults()
    faults.take(_shape_faults(instance, schedule))
    ended = {} if faults.count else _each_in_order(instance, schedule, collectives, faults, facts)
    if faults.count:
        return Verdict(None, facts, faults.told())
    hops = hops_of(instance, schedule)
    count, found = clashes(instance.machine, schedule, hops)
    faults.take(_clash_faults(instance, schedule, hops, found))
    faults.count += count - len(found)
    faults.take(_stream_faults(instance, schedule, hops))
    if faults.count:
        return Verdict(None, facts, faults.told())
    of = instance.all_blocks[1][schedule.piece_block][schedule.piece]
    last = np.array([ended[number].max(initial=0) for number in range(len(collectives))], dtype=np.int64)
    np.maximum.at(last, of[hops.owner], hops.arrive)
    ends = [Fraction(int(tick), schedule.ticks_per_s) for tick in last]
    facts["ends_s"] = [float_above(end) for end in ends]
    return Verdict(float_above(objective_of(ends, collectives, instance.objective)), facts, [])


def _each_in_order(
    instance: FabricInstance,
    schedule: Schedule,
    collectives: Sequence[OneCollective],
    faults: _Faults,
    facts: dict[str, Any],
) -> dict[int, IntArray]:
    """Replay each collective alone, behind those that it comes after; the tick at which each node has all that it wants
    of it, where there is no fault. Faults and facts are added to what is there."""
    ended: dict[int, IntArray] = {}
    for number in in_order([one.after or () for one in collectives], range(len(collectives))):
        one, whole = collectives[number], instance.parts[number]
        try:
            part, _ = part_of(instance, schedule, number)
        except ValueError as error:
            faults.take(iter([f"{called(number, one)}: {error}"]))
            continue
        before = [ended[k] for k in one.after or () if k in ended]
        ready = np.maximum.reduce([_moments(whole, one, part.ticks_per_s), *before])
        verdict = _check_one(whole, part, ready)
        faults.take(f"{called(number, one)}, counted within it: {fault}" for fault in verdict.faults)
        for key in ("longest_chain", "redundant_arrivals"):
            facts[key] = max(facts.get(key, 0), verdict.facts.get(key, 0))
        if verdict.ok:
            ended[number] = _ended(whole, part, hops_of(whole, part), ready)
    return ended


def _moments(part: FabricInstance, one: OneCollective, ticks_per_s: int) -> IntArray:
    """The first tick at which each node has its own part of a collective, whatever it comes after."""
    release = exact(one.release) * ticks_per_s
    first: IntArray = np.maximum(
        in_ticks(one.ready, part.machine.nodes, ticks_per_s),
        min(-(-release.numerator // release.denominator), 2**62),
    )
    return first


def _replayed(
    instance: FabricInstance,
    schedule: Schedule,
    clash_faults: Callable[[Hops, _Faults], None],
    ready: IntArray,
    part_of: str | None = None,
) -> tuple[_Faults, int, Held | None]:
    """The faults of shape, routes, links and possession, the ticks until the last arrival and who held what; None for
    that where there are faults. ``clash_faults`` adds those of links that would carry two transfers. ``part_of``: the
    collective that is meant where the instance is a part of it."""
    faults = _Faults()
    faults.take(_shape_faults(instance, schedule))
    if not faults.count:
        faults.take(_cutting_faults(instance, schedule))
        faults.take(_sum_faults(instance, schedule, part_of or instance.collective))
    if faults.count:
        return faults, 0, None
    hops = hops_of(instance, schedule)
    faults.take(_route_faults(instance, schedule, hops))
    faults.count += hops.wrong_count - len(hops.wrong)
    if not faults.count:
        clash_faults(hops, faults)
    if faults.count:  # who holds what is asked where every link carries one transfer at a time
        return faults, 0, None
    what = held(instance, schedule, hops, ready)
    wrong = np.flatnonzero(what.code)
    first = wrong[np.argsort(schedule.start[wrong], kind="stable")][:MOST_FAULTS]
    faults.take(_possession_faults(instance, schedule, hops, (what.code, ready), first))
    faults.count += len(wrong) - len(first)
    faults.take(_goal_faults(instance, schedule, what.missing))
    faults.count += what.missing_count - len(what.missing)
    return faults, _last_tick(instance, schedule, hops, ready), None if faults.count else what


def _last_tick(instance: FabricInstance, schedule: Schedule, hops: Hops, ready: IntArray) -> int:
    """When all that is wanted has arrived, and of a sum what its ranks themselves contribute is there."""
    return max(int(hops.arrive.max(initial=0)), int(_ended(instance, schedule, hops, ready).max(initial=0)))


def _ended(instance: FabricInstance, schedule: Schedule, hops: Hops, ready: IntArray) -> IntArray:
    """The tick at which each node has all that it wants, what it contributes to a sum itself included; 0 where it wants
    nothing; shape (nodes,)."""
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
    return found


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
        yield f"block {b} ({_block(instance, int(b))}): its pieces have {amount} bytes, not {instance.blocks.bytes[b]}"


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


def _route_faults(instance: FabricInstance, schedule: Schedule, hops: Hops) -> Iterator[str]:
    net, names = instance.machine.network, instance.machine.names
    shape = "no out-tree" if instance.switching.multicast else "no path"
    for i, k, what in hops.wrong.tolist():
        e = int(schedule.link[k])
        u, v = int(net.src[e]), int(net.dst[e])
        said = {
            route_hops.FROM_SWITCH: f"starts at the switch {names[u]}",
            route_hops.APART: f"its links are {shape}: none before this one leads to node {u}"
            if instance.switching.multicast
            else f"its links are {shape}: the one before does not lead to node {u}",
            route_hops.THROUGH_RANK: f"passes through rank {u}; only switches cut through",
            route_hops.TO_SWITCH: f"ends at the switch {names[v]}",
            route_hops.TWICE: f"its links are {shape}: it reaches node {v} twice",
            route_hops.SEVERAL: f"has a route of {schedule.route_start[i + 1] - schedule.route_start[i]} links, but "
            "switches that store are reached by transfers of their own",
            route_hops.TOO_LONG: f"takes longer than {route_hops.LONGEST} ticks",
            gathered_hops.NO_TREE: "the links of its several sources do not meet in one place",
            gathered_hops.NO_ADDING: f"streams meet in node {v}, which does not add",
            gathered_hops.NO_COPYING: f"parts in node {u}, which does not copy",
            gathered_hops.FROM_SWITCH: f"starts at the switch {names[u]}",
            gathered_hops.TO_SWITCH: f"ends at the switch {names[v]}",
            gathered_hops.TOO_LONG: f"takes longer than {gathered_hops.LONGEST} ticks",
        }[what]
        yield f"{_where(instance, schedule, i, e, int(schedule.start[i]))}: {said}"


def _clash_faults(
    instance: FabricInstance, schedule: Schedule, hops: Hops, found: list[Clash], other_one: str = "transfer"
) -> Iterator[str]:
    machine = instance.machine
    for k, other, of_group in found:
        i, j, e = int(hops.owner[k]), int(hops.owner[other]), int(schedule.link[k])
        until = _time(schedule, int(hops.begin[other] + hops.ticks[hops.span[other]]))
        thing = f"group {_group(instance, int(machine.group[e]))}" if of_group else "the link"
        where = _where(instance, schedule, i, e, int(hops.begin[k]))
        yield f"{where}: {thing} carries {other_one} {j} until {until}"


def _stream_faults(instance: FabricInstance, schedule: Schedule, hops: Hops) -> Iterator[str]:
    """Switches that copy or add more transfers at once than they can."""
    for node, most, tick, count in streams_at_once(instance.machine, schedule, hops):
        name = instance.machine.names[node]
        yield f"switch {name} at {_time(schedule, tick)}: copies or adds {count} transfers at once, {most} at most"


def _group(instance: FabricInstance, group: int) -> str:
    names = instance.machine.group_names
    return names[group] if group < len(names) else str(group)


def _possession_faults(
    instance: FabricInstance, schedule: Schedule, hops: Hops, found: tuple[Any, IntArray], first: IntArray
) -> Iterator[str]:
    """What is wrong with the transfers ``first``, by the codes ``found`` of all, and ticks at which nodes are ready."""
    code, ready = found
    net, names = instance.machine.network, instance.machine.names
    for i in first.tolist():
        k = int(schedule.route_start[i])
        e, p, now = int(schedule.link[k]), int(schedule.piece[i]), int(schedule.start[i])
        u = int(net.src[e])
        what = int(code[i])
        if what == contributions.LEFT_TWICE:
            said = f"piece {p} has left the switch {names[u]} already, which makes no copies"
        elif what == contributions.INCOMPLETE:
            said = f"node {u} passes on piece {p} as complete, but its sum is not"
        elif what == contributions.NO_SUM:
            said = f"has several sources, but {instance.collective} has no sums"
        elif what == contributions.DOUBLED and len(_sources(instance, schedule, i)) > 1:
            said = f"adds a contribution to piece {p} twice"
        elif what == contributions.DOUBLED:
            said = f"adds a contribution to piece {p} that its receiver already has"
        else:
            early = now < ready[u] and not instance.machine.is_switch[u]
            own = f" of its own before it is ready ({shown(ready[u] / schedule.ticks_per_s, SECONDS)})"
            said = f"node {u} sends piece {p}{own if early else _when_there(instance, schedule, hops, u, p, now)}"
        yield f"{_where(instance, schedule, i, e, now)}: {said}"


def _sources(instance: FabricInstance, schedule: Schedule, transfer: int) -> list[int]:
    """The ranks from which a transfer starts."""
    first, end = schedule.route_start[transfer : transfer + 2].tolist()
    tails: list[int] = instance.machine.network.src[schedule.link[first:end]].tolist()
    return [v for v in tails if not instance.machine.is_switch[v]]


def _when_there(instance: FabricInstance, schedule: Schedule, hops: Hops, node: int, piece: int, now: int) -> str:
    there = (schedule.piece[hops.owner] == piece) & (instance.machine.network.dst[schedule.link] == node)
    ticks = np.sort(hops.arrive[there & (hops.arrive >= 0)])
    later = ticks[ticks > now]
    if len(later):
        return f" before it has arrived there ({_time(schedule, int(later[0]))})"
    if len(ticks):
        return f", which came at {_time(schedule, int(ticks[-1]))}: the switch has no buffer"
    return ", which it never gets"


def _goal_faults(instance: FabricInstance, schedule: Schedule, missing: IntArray) -> Iterator[str]:
    for piece, rank, lacking, first in missing.tolist():
        called = instance.machine.names[rank]
        name = f"rank {rank}" + (f" ({called})" if called != str(rank) else "")
        what = f"piece {piece} of block {schedule.piece_block[piece]}"
        if lacking:
            whose = f"{lacking} contributions lack, first rank {instance.members[first]}'s"
            yield f"end: {name} does not hold the complete sum of {what}: {whose}"
        else:
            yield f"end: {name} does not hold {what} ({_block(instance, int(schedule.piece_block[piece]))})"


def _block(instance: FabricInstance, block: int) -> str:
    blocks = instance.blocks
    holders, wanters = (
        "all" if code == EVERYONE else f"rank{'s' * (code < 0)} {', '.join(map(str, blocks.ranks(code, ())))}"
        for code in (int(blocks.origin[block]), int(blocks.goal[block]))
    )
    if blocks.sums[block]:
        whose = "the sum" if blocks.origin[block] == EVERYONE else f"the sum over {holders}"
    else:
        whose = f"of {holders}"
    return f"{whose}, for {wanters}"


def _where(instance: FabricInstance, schedule: Schedule, transfer: int, link: int, tick: int) -> str:
    net = instance.machine.network
    return f"transfer {transfer}, link {link} ({net.src[link]}->{net.dst[link]}) at {_time(schedule, tick)}"


def _time(schedule: Schedule, tick: int) -> str:
    return f"tick {tick} ({shown(tick / schedule.ticks_per_s, SECONDS)})"
