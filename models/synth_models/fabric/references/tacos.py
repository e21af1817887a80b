"""Method ``tacos`` (reference): TACOS's random greedy matching of links and chunks, made causal.

Won, Elavazhagan, Srinivasan, Gupta, Krishna: "TACOS: Topology-Aware Collective Algorithm Synthesizer for Distributed
Machine Learning", MICRO 2024; written from the text. At every moment at which a link becomes free or a chunk arrives,
the free links are visited in random order, the quicker first, and each takes a random chunk that its tail holds and
its head neither holds nor is being sent. The published program lets a chunk leave on a fast link before it has arrived
on a slow one; here it counts from its arrival on. Switches are unwound as TACOS does, into links between ranks: each
quickest direct route from rank to rank is one, and routes that share a physical link or group wait for each other.
A reduction is spreading on the reversed machine, played backwards in time; allreduce is both.

In the allgathers that its own tests print it takes at most a hundredth more than they say.

Complexity: O(moments x routes) plus a draw by rejection a transfer; memory N^2 bytes a chunk. No guarantee but
completion. The seed's ``restarts`` schedules (parameter, as many as the time limit allows), each for a few numbers of
chunks, the quickest kept.
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, Int32Array, IntArray
from synth.clock.deadline import demand_time, left
from synth.graph.rows import rows_by
from synth.kernels import jit
from synth.kernels.clock import now as read_clock
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.plans.out_trees import SPREADING, SUMMING, empty, refusal
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.routes.search import Route, Routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.moves import only_useful, pieces_of
from synth_models.fabric.scheduling.reversal import joined, reversed_instance, reversed_transfers
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

KNOWN = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")
CHUNKS = (1, 2, 4, 8, 16, 32, 64, 128)  # a block
MOST_TRANSFERS = 20_000  # of a schedule with more than one chunk a block
DRAWS = 12  # chunks drawn before all are counted; both ways every candidate is equally likely


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``tacos``."""
    refused = refusal(instance, KNOWN, "tacos")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    restarts = options.method.get("restarts", 8)
    seeds = np.random.SeedSequence(options.seed).generate_state(2 * restarts).tolist()
    incumbent, times = Incumbent(instance, options), dict[int, Fraction]()
    worse = 0  # numbers of chunks in a row
    for count in CHUNKS:
        if count > 1 and (_too_many(instance, count) or options.out_of_time()):
            break
        incumbent.offer(_schedule(instance, count, (seeds[0], seeds[1])), chunks.in_words(count))
        found = incumbent.times[chunks.in_words(count)]
        worse = worse + 1 if times and found > min(times.values()) * Fraction(11, 10) else 0
        if worse == 2:
            break
        times[count] = found
    good = sorted(times, key=lambda count: times[count])[:2]
    for nth in range(1, restarts):
        for count in good:
            if not options.out_of_time():
                schedule = _schedule(instance, count, (seeds[2 * nth], seeds[2 * nth + 1]))
                incumbent.offer(schedule, chunks.in_words(count))
    words = f"{incumbent.told}, best of {incumbent.tried} schedules{chunks.hurried(options)}"
    return Outcome("finished", solution=incumbent.best, message=words)


def _too_many(instance: FabricInstance, count: int) -> bool:
    """Whether a block has not so many bytes, or a schedule of so many chunks a block is too large."""
    members, shared = len(instance.members), instance.collective == "allreduce"
    pieces = members if shared else len(instance.blocks)
    largest = int(instance.blocks.bytes.max()) // (members if shared else 1)
    return count > largest or count * pieces * members > MOST_TRANSFERS


def _schedule(instance: FabricInstance, count: int, seeds: tuple[int, int]) -> Schedule:
    blocks, members = instance.blocks, instance.members
    if instance.collective == "allreduce":
        sizes = [chunks.cut(int(blocks.bytes[0]), len(members) * count)]
        block, size = pieces_of(sizes)
        holder = np.array([members[k % len(members)] for k in range(len(size))], dtype=np.int64)
        there = reversed_instance(instance)
        up = _spread(there, block, size, holder, seeds[0])
        down = _spread(instance, block, size, holder, seeds[1])
        summing = reversed_transfers(there, up, timed(there, up))
        return timed(instance, joined(instance.machine, summing, down))
    block, size = pieces_of([chunks.cut(int(n), count) for n in blocks.bytes])
    if instance.collective in SPREADING:
        return timed(instance, _spread(instance, block, size, blocks.origin[block], seeds[0]))
    assert instance.collective in SUMMING
    there = reversed_instance(instance)
    up = _spread(there, block, size, blocks.goal[block], seeds[0])
    return timed(instance, reversed_transfers(there, up, timed(there, up)))


class UnwoundLinks(NamedTuple):
    """The links of the unwound machine, each a direct route from rank to rank; ranks by their place among all ranks.

    ``src``, ``dst``: shape (routes,); ``seconds``: until a piece has arrived, and ``busy``: until the next may start on
    the same resources, s, shape (routes,). Resources are links and, behind them, groups: route i occupies
    ``resource[resource_row[i]:resource_row[i + 1]]``, resource x is occupied by ``user[user_row[x]:user_row[x + 1]]``,
    and ``leaving[leaving_row[v]:leaving_row[v + 1]]`` are the routes that leave rank v.
    """

    src: IntArray
    dst: IntArray
    seconds: FloatArray
    busy: FloatArray
    resource_row: IntArray
    resource: IntArray
    user_row: IntArray
    user: IntArray
    leaving_row: IntArray
    leaving: IntArray


class Possession(NamedTuple):
    """Who has what, shape (ranks, pieces) where not said otherwise. ``held``: it has arrived. ``lacking[v]``: how many
    pieces rank v neither holds nor is being sent, shape (ranks,), ``lacked[v, :lacking[v]]`` which, and ``place[v, p]``
    where p stands there. ``bringer``: the transfer that brings a piece to a rank (-1: none)."""

    held: BoolArray
    lacking: IntArray
    lacked: Int32Array
    place: Int32Array
    bringer: Int32Array


class Sent(NamedTuple):
    """The transfers in the order in which they were chosen: ``route``, ``piece`` and ``after``, the transfer that
    brought the piece to the route's tail (-1: held at first), shape (transfers,)."""

    route: IntArray
    piece: IntArray
    after: IntArray


class Moment(NamedTuple):
    """Which routes may have become usable since the last moment: ``route[:count]``; ``seen``: the last moment at which
    each was entered. Shape (routes,)."""

    route: IntArray
    seen: IntArray


def _direct_routes(machine: Machine, routes: Routes) -> list[Route]:
    """The quickest direct routes between ranks: of several that share links the one with least to do, parallel links
    all; and every other link between ranks, however slow."""
    net = machine.network
    found: list[Route] = []
    for u in machine.ranks.tolist():
        times = routes.direct_seconds(u)
        for v in machine.ranks.tolist():
            if u == v or not np.isfinite(times[v]):
                continue
            equal = routes.equal(u, v)
            if len(equal[0]) == 1:
                found += equal  # parallel links are links of their own
            else:
                least = min(equal, key=lambda route: max(routes.load[e] for e in route))
                routes.take(least)
                found.append(least)
    # a slower link beside a quicker one, or beside a route through switches, is a link too
    known = set(found)
    rank_link = ~machine.is_switch[net.src] & ~machine.is_switch[net.dst]
    return found + [(int(e),) for e in np.flatnonzero(rank_link) if (int(e),) not in known]


def _unwound(instance: FabricInstance, size: int) -> tuple[list[Route], UnwoundLinks]:
    """The direct routes for pieces of ``size`` bytes, and the same as links between ranks."""
    machine = instance.machine
    net = machine.network
    found = _direct_routes(machine, Routes.of(instance, size))
    groups = [[net.links + int(machine.group[e]) for e in route if machine.group[e] >= 0] for route in found]
    rows = [list(dict.fromkeys([*route, *more])) for route, more in zip(found, groups, strict=True)]
    lengths = [len(row) for row in rows]
    resource_row = starts(lengths)
    resource = np.array([x for row in rows for x in row], dtype=np.int64)
    user_row, order = rows_by(resource, machine.links + len(machine.group_names))
    user = np.repeat(np.arange(len(found), dtype=np.int64), lengths)[order]
    place = np.full(machine.nodes, -1, dtype=np.int64)
    place[machine.ranks] = np.arange(len(machine.ranks))
    src = np.array([place[net.src[route[0]]] for route in found], dtype=np.int64)
    dst = np.array([place[net.dst[route[-1]]] for route in found], dtype=np.int64)
    leaving = rows_by(src, len(machine.ranks))
    seconds, busy = _times(instance, found, size)
    return found, UnwoundLinks(src, dst, seconds, busy, resource_row, resource, user_row, user, *leaving)


def _times(instance: FabricInstance, routes: list[Route], size: int) -> tuple[FloatArray, FloatArray]:
    """Seconds until a piece has arrived over each route, and until the next may start on the same links."""
    net = instance.machine.network
    amount = size / net.bandwidth
    busy = np.array([max(amount[e] for e in route) for route in routes])
    latency = np.array([sum(net.latency[e] for e in route) for route in routes])
    if instance.switching.mode == "store_and_forward":
        return latency + np.array([sum(amount[e] for e in route) for route in routes]), busy
    return latency + busy, busy


def _spread(instance: FabricInstance, block: IntArray, size: IntArray, holder: IntArray, seed: int) -> Transfers:
    """Every piece from its holder to all members, retimed exactly with the greedy's order as priority."""
    machine = instance.machine
    routes, links = _unwound(instance, int(size.max()))
    place = np.full(machine.nodes, -1, dtype=np.int64)
    place[machine.ranks] = np.arange(len(machine.ranks))
    wants = np.zeros(len(machine.ranks), dtype=np.bool_)
    wants[place[list(instance.members)]] = True
    sent = _greedy(links, place[holder], wants, seed, left())
    demand_time()
    made = Transfers.of(
        block,
        size,
        sent.piece,
        [routes[k] for k in sent.route.tolist()],
        [(b,) if b >= 0 else () for b in sent.after.tolist()],
        np.arange(len(sent.route)),
    )
    return only_useful(machine, made, instance.members)


@jit
def _greedy(links: UnwoundLinks, holder: IntArray, wants: BoolArray, seed: int, limit_s: float) -> Sent:
    """Spread every piece from its holder to all ranks that want it (shape (ranks,)), or what of it ``limit_s`` allows.
    Occupied links are kept in seconds: the ticks of :mod:`~synth_models.fabric.scheduling.reservations` would let
    moments fall together that the published program tells apart."""
    end = read_clock() + limit_s
    np.random.seed(seed)
    has = _held_at_first(holder, len(wants))
    wanted, most = 0, 0
    for v in range(len(wants)):
        most += has.lacking[v]
        wanted += has.lacking[v] * wants[v]
    sent = Sent(np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64))
    free = np.zeros(len(links.user_row) - 1)  # s, of every resource
    due = Moment(np.arange(len(links.src)), np.zeros(len(links.src), np.int64))
    count = len(links.src)
    arrivals = [(0.0, np.int64(0), np.int64(0))]  # s, 0, transfer; and when resources become free: s, 1, resource
    arrivals.pop()
    done, moment, now = 0, 0, 0.0
    while wanted > 0 and read_clock() <= end:
        chosen = due.route[:count].copy()
        np.random.shuffle(chosen)
        for route in chosen[np.argsort(links.seconds[chosen], kind="mergesort")]:  # the quicker first, else at random
            u, v = links.src[route], links.dst[route]
            if has.lacking[v] == 0 or not _is_free(links, free, route, now):
                continue
            piece = _drawn(has, u, v)
            if piece < 0:
                continue
            sent.route[done], sent.piece[done], sent.after[done] = route, piece, has.bringer[u, piece]
            has.bringer[v, piece] = done
            has.lacking[v] -= 1
            last, hole = has.lacked[v, has.lacking[v]], has.place[v, piece]
            has.lacked[v, hole], has.place[v, last] = last, hole
            wanted -= wants[v]
            heapq.heappush(arrivals, (now + links.seconds[route], np.int64(0), np.int64(done)))
            for k in range(links.resource_row[route], links.resource_row[route + 1]):
                free[links.resource[k]] = now + links.busy[route]
                heapq.heappush(arrivals, (now + links.busy[route], np.int64(1), links.resource[k]))
            done += 1
        if len(arrivals) == 0:
            break
        now, moment, count = arrivals[0][0], moment + 1, 0
        while len(arrivals) and arrivals[0][0] <= now:
            _, freed, number = heapq.heappop(arrivals)
            if freed:
                count = _enter(due, count, moment, links.user, links.user_row, int(number))
            else:
                v = links.dst[sent.route[number]]
                has.held[v, sent.piece[number]] = True
                count = _enter(due, count, moment, links.leaving, links.leaving_row, v)
    return Sent(sent.route[:done], sent.piece[:done], sent.after[:done])


@jit
def _held_at_first(holder: IntArray, ranks: int) -> Possession:
    """Every piece at its holder, and nothing on its way."""
    shape = (ranks, len(holder))
    has = Possession(
        np.zeros(shape, np.bool_),
        np.zeros(ranks, np.int64),
        np.empty(shape, np.int32),
        np.empty(shape, np.int32),
        np.full(shape, -1, np.int32),
    )
    for v in range(ranks):
        for p in range(len(holder)):
            if holder[p] == v:
                has.held[v, p] = True
            else:
                has.lacked[v, has.lacking[v]] = p
                has.place[v, p] = has.lacking[v]
                has.lacking[v] += 1
    return has


@jit
def _is_free(links: UnwoundLinks, free: FloatArray, route: int, now: float) -> bool:
    """Whether all that the route occupies is free by now."""
    k, end = links.resource_row[route], links.resource_row[route + 1]
    while k < end and free[links.resource[k]] <= now:
        k += 1
    return bool(k == end)


@jit
def _drawn(has: Possession, u: int, v: int) -> int:
    """A piece that rank u holds and rank v lacks, all equally likely; -1: there is none."""
    for _ in range(DRAWS):
        p = has.lacked[v, np.random.randint(has.lacking[v])]
        if has.held[u, p]:
            return int(p)
    piece, seen = -1, 0
    for k in range(has.lacking[v]):
        p = has.lacked[v, k]
        if has.held[u, p]:
            seen += 1
            if np.random.randint(seen) == 0:
                piece = int(p)
    return piece


@jit
def _enter(due: Moment, count: int, moment: int, routes: IntArray, row: IntArray, at: int) -> int:
    """Enter ``routes[row[at]:row[at + 1]]`` behind the ``count`` routes of this moment, each once; the new count."""
    for k in range(row[at], row[at + 1]):
        if due.seen[routes[k]] != moment:
            due.seen[routes[k]] = moment
            due.route[count] = routes[k]
            count += 1
    return count
