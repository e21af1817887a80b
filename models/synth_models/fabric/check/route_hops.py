"""When every link of every route is occupied, and when what crosses it arrives; routes that are none."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.kernels import jit
from synth_models.fabric.check import gathered_hops, without_kernels
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.solution import Schedule

LONGEST = 2**61 - 1  # ticks from a transfer's start until it has arrived: a start up to 2^62 plus two of these fit
DENSE = 2**16  # sizes times bandwidths up to which every combination is computed
MOST_KEPT = 20  # wrong routes that are told

FROM_SWITCH, APART, THROUGH_RANK, TO_SWITCH, TWICE, SEVERAL, TOO_LONG = range(1, 8)


@dataclass(frozen=True)
class Hops:
    """One row a link of a route, in the order of ``Schedule.link``.

    ``owner``: its transfer. ``begin``: the tick from which the link is occupied. ``span``: index into ``ticks``, the
    distinct durations, of how long. ``arrive``: the tick at which the transfer has arrived behind the link, -1 where
    it only passes (a switch that cuts through). ``leaves``: where some routes have several sources, the tick at which
    the tail of the link must hold what it sends, -1 where that is no source. ``wrong``: rows (transfer, row, what) of
    the first routes that are none; ``wrong_count``: how many there are.
    """

    owner: Int32Array
    begin: IntArray
    span: Int32Array
    ticks: IntArray
    arrive: IntArray
    wrong: IntArray
    wrong_count: int
    leaves: IntArray | None = None


class _OccupiedRows(NamedTuple):
    """``start`` (ticks): shape (transfers,). ``link[route_start[i]:route_start[i + 1]]``: the route of transfer i;
    ``span``: how long each of its links is occupied, an index into ``ticks``."""

    start: IntArray
    route_start: IntArray
    link: IntArray
    span: Int32Array
    ticks: IntArray


class _Links(NamedTuple):
    """``src``, ``dst``, ``latency`` (ticks): shape (links,). ``is_switch``, ``copies``: shape (nodes,)."""

    src: Int32Array
    dst: Int32Array
    latency: IntArray
    is_switch: BoolArray
    copies: BoolArray


def hops_of(instance: FabricInstance, schedule: Schedule) -> Hops:
    """All hops with their times, computed from bandwidths, latencies and bytes in exact arithmetic, rounded up to
    whole ticks."""
    machine, ticks = instance.machine, schedule.ticks_per_s
    net = machine.network
    owner = np.repeat(np.arange(schedule.transfers, dtype=np.int32), np.diff(schedule.route_start))
    span, durations = _durations(instance, schedule, owner)
    latency = np.zeros(net.links, dtype=np.int64)
    values, which = np.unique(net.latency, return_inverse=True)
    if len(values):
        latency = np.array([_whole(exact(float(value)) * ticks) for value in values], dtype=np.int64)[which]
    begin, arrive = np.empty(len(owner), dtype=np.int64), np.empty(len(owner), dtype=np.int64)
    wrong = np.zeros((MOST_KEPT, 3), dtype=np.int64)
    several = _of_several_sources(instance, schedule, owner)
    if not len(several):
        simple = _by_arrays(instance, schedule, latency, durations, span)
        if simple is not None:
            return Hops(owner, simple[0], span, durations, simple[1], wrong[:0], 0)
    gathered = np.zeros(schedule.transfers, dtype=bool)
    gathered[several] = True
    count = _place(
        _OccupiedRows(schedule.start, schedule.route_start, schedule.link, span, durations),
        _Links(net.src, net.dst, latency, machine.is_switch, _may_fork(instance)),
        instance.switching.mode == "store_and_forward",
        gathered,
        begin,
        arrive,
        wrong,
    )
    if not len(several):
        return Hops(owner, begin, span, durations, arrive, wrong[: min(count, MOST_KEPT)], int(count))
    leaves = np.full(len(owner), -1, dtype=np.int64)
    single = np.flatnonzero(~gathered)
    leaves[schedule.route_start[single]] = schedule.start[single]
    routes = gathered_hops.LinkRows(schedule.start, schedule.route_start, schedule.link, net.src, net.dst, latency)
    nodes = gathered_hops.Nodes(machine.is_switch, machine.abilities.adds, machine.abilities.copies)
    onward, before = np.empty((2, len(owner)), dtype=np.int64)
    shape = gathered_hops.Shape(onward, before, np.zeros(len(owner), dtype=bool))
    odd = np.zeros((MOST_KEPT, 3), dtype=np.int64)
    more = gathered_hops.shapes(routes, nodes, several, shape, odd)
    if not more:
        span, durations = _slowed_sums(instance, schedule, owner, np.flatnonzero(shape.is_sum), span, durations)
        filled = gathered_hops.Filled(begin, arrive, leaves)
        more = gathered_hops.times(routes, nodes, shape, durations[span], several, filled, odd)
    wrong = np.concatenate([wrong[: min(count, MOST_KEPT)], odd[: min(more, MOST_KEPT)]])[:MOST_KEPT]
    return Hops(owner, begin, span, durations, arrive, wrong, int(count + more), leaves)


def _by_arrays(
    instance: FabricInstance, schedule: Schedule, latency: IntArray, ticks: IntArray, span: Int32Array
) -> tuple[IntArray, IntArray] | None:
    """``begin`` and ``arrive`` without kernels, where that is wanted and possible."""
    machine, link = instance.machine, schedule.link
    if instance.switching.mode != "cut_through" or not without_kernels.wanted(len(link)):
        return None
    tail, head = machine.network.src[link], machine.network.dst[link]
    routes = without_kernels.HopRows(schedule.start, schedule.route_start, tail, head, latency[link], ticks[span])
    return without_kernels.paths(routes, machine.is_switch, LONGEST)


def _may_fork(instance: FabricInstance) -> BoolArray:
    """Where routes of one source may part: with ``multicast`` anywhere, else in switches that copy."""
    copies: BoolArray = instance.machine.abilities.copies | instance.switching.multicast
    return copies


def _of_several_sources(instance: FabricInstance, schedule: Schedule, owner: Int32Array) -> IntArray:
    """The transfers with a link out of a rank that does not come first, on machines where switches add."""
    machine = instance.machine
    if not machine.abilities.adds.any() or instance.switching.mode == "store_and_forward":
        return np.zeros(0, dtype=np.int64)
    starts = ~machine.is_switch[machine.network.src[schedule.link]]
    starts[schedule.route_start[:-1]] = False
    return np.unique(owner[starts]).astype(np.int64)


def _slowed_sums(
    instance: FabricInstance, schedule: Schedule, owner: Int32Array, sums: IntArray, span: Int32Array, ticks: IntArray
) -> tuple[Int32Array, IntArray]:
    """``span`` and ``ticks`` with those of ``sums``, links of routes, at the rate of the switch that adds, if that is
    less than the link's."""
    machine = instance.machine
    net, rate = machine.network, machine.abilities.add_rate
    link = schedule.link[sums]
    sums, span, found = sums[rate[net.src[link]] < net.bandwidth[link]], span.copy(), ticks.tolist()
    known: dict[tuple[float, int], int] = {}
    for k in sums.tolist():
        value, size = float(rate[net.src[schedule.link[k]]]), int(schedule.piece_bytes[schedule.piece[owner[k]]])
        if (value, size) not in known:
            known[value, size] = len(found)
            found.append(_whole(Fraction(size) * schedule.ticks_per_s / exact(value)))
        span[k] = known[value, size]
    return span, np.array(found, dtype=np.int64)


def _whole(ticks: Fraction) -> int:
    """Rounded up; what is too long for the clock becomes ``LONGEST + 1``."""
    return min(-(-ticks.numerator // ticks.denominator), LONGEST + 1)


def _durations(instance: FabricInstance, schedule: Schedule, owner: Int32Array) -> tuple[Int32Array, IntArray]:
    """For every hop an index into durations in ticks, computed in whole numbers of any size: those of every bandwidth
    and every piece, or every size where that is less, or of what occurs."""
    values, row = np.unique(instance.machine.network.bandwidth, return_inverse=True)
    if not len(owner):
        return np.zeros(0, dtype=np.int32), np.ones(1, dtype=np.int64)
    most = max(DENSE, len(owner))
    sizes, size = schedule.piece_bytes, schedule.piece
    if len(values) * len(sizes) > most:
        sizes, which = np.unique(schedule.piece_bytes, return_inverse=True)
        size = which.reshape(-1)[size]
    first = row.reshape(-1) * len(sizes)
    if len(values) * len(sizes) <= most:
        used = np.arange(len(values) * len(sizes))
        span = first.astype(np.int32)[schedule.link] + np.repeat(size.astype(np.int32), np.diff(schedule.route_start))
    else:
        used, inverse = np.unique(first[schedule.link] + size[owner], return_inverse=True)
        span = inverse.reshape(-1).astype(np.int32)
    found = np.empty(len(used), dtype=np.int64)
    edges = np.searchsorted(used, np.arange(len(values) + 1) * len(sizes)).tolist()
    for value, first, last in zip(values.tolist(), edges, edges[1:], strict=False):
        some = sizes[used[first:last] % len(sizes)]
        found[first:last] = _ticks_of(some, Fraction(schedule.ticks_per_s) / exact(value))
    return span, found


def _ticks_of(sizes: IntArray, per_byte: Fraction) -> IntArray:
    """Whole ticks, rounded up, for so many bytes each; what is too long for the clock becomes ``LONGEST + 1``."""
    above, below = per_byte.numerator, per_byte.denominator
    if max(int(sizes.max(initial=1)) * above, below) <= LONGEST:
        return -(-sizes * above // below)
    distinct, which = np.unique(sizes, return_inverse=True)
    ticks = [min(-(-size * above // below), LONGEST + 1) for size in distinct.tolist()]
    return np.array(ticks, dtype=np.int64)[which.reshape(-1)]


@jit
def _place(
    routes: _OccupiedRows,
    links: _Links,
    stores: bool,
    gathered: BoolArray,
    begin: IntArray,
    arrive: IntArray,
    wrong: IntArray,
) -> int:
    """Fill ``begin``, ``arrive`` and ``wrong`` of routes of one source; the number of wrong ones."""
    start, route_start, link, span, ticks = routes
    src, dst, latency, is_switch, copies = links
    nodes = len(is_switch)
    seen = np.full(nodes, -1, dtype=np.int64)  # the last transfer that reached a node,
    passed = np.zeros(nodes, dtype=np.int64)  # after how many ticks its front did,
    slowest = np.zeros(nodes, dtype=np.int64)  # the longest duration on its way there,
    goes_on = np.full(nodes, -1, dtype=np.int64)  # and the last transfer that left it
    count = 0
    for i in range(len(start)):
        if gathered[i]:
            continue
        first, end = route_start[i], route_start[i + 1]
        source = src[link[first]]
        what, where = 0, first
        if stores and end - first > 1:
            what = SEVERAL
        elif not stores and is_switch[source]:
            what = FROM_SWITCH
        seen[source], passed[source], slowest[source] = i, 0, 0
        for k in range(first, end):
            if what:
                break
            e = link[k]
            u, v = src[e], dst[e]
            where = k
            if seen[u] != i or (goes_on[u] == i and not copies[u]):
                what = APART
            elif u != source and not is_switch[u]:
                what = THROUGH_RANK
            elif seen[v] == i:
                what = TWICE
            elif latency[e] > LONGEST or ticks[span[k]] > LONGEST or passed[u] + latency[e] > LONGEST:
                what = TOO_LONG
            else:
                begin[k] = start[i] + passed[u]
                seen[v], goes_on[u] = i, i
                passed[v] = passed[u] + latency[e]
                slowest[v] = max(slowest[u], ticks[span[k]])
                arrive[k] = start[i] + passed[v] + slowest[v]
        if not what and not stores:
            for k in range(first, end):
                v = dst[link[k]]
                if is_switch[v]:
                    arrive[k] = -1
                    if goes_on[v] != i:
                        what, where = TO_SWITCH, k
                        break
        if what:
            if count < len(wrong):
                wrong[count, 0], wrong[count, 1], wrong[count, 2] = i, where, what
            count += 1
    return count
