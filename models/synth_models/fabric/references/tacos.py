"""Method ``tacos`` (reference): TACOS's random greedy matching of links and chunks, made causal.

Won, Elavazhagan, Srinivasan, Gupta, Krishna: "TACOS: Topology-Aware Collective Algorithm Synthesizer for Distributed
Machine Learning", MICRO 2024; written from the text. At every moment at which a link becomes free or a chunk arrives,
the free links are visited in random order, the quicker first, and each takes a random chunk that its tail holds and
its head neither holds nor is being sent. The published program lets a chunk leave on a fast link before it has arrived
on a slow one; here it counts from its arrival on. Switches are unwound as TACOS does, into links between ranks: each
quickest direct route from rank to rank is one, and routes that share a physical link or group wait for each other.
Reductions are the spreading of the machine turned around, played backwards; allreduce is both.

Complexity: O(moments x routes) plus a draw by rejection a transfer; memory N^2 bytes a chunk. No guarantee but
completion. The seed's ``restarts`` schedules (parameter, as many as the time limit allows), each for a few numbers of
chunks, the quickest kept.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.deadline import demand_time, left
from synth.family import Outcome
from synth.graph.rows import rows_by
from synth.kernel_clock import now as read_clock
from synth.kernels import jit
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.spreading import SPREADING, SUMMING, empty, refusal
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import Transfers, timed
from synth_models.fabric.scheduling.moves import only_useful, pieces_of
from synth_models.fabric.scheduling.reversal import joined, mirrored, turned
from synth_models.fabric.scheduling.routes import Route, Routes
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
    best: tuple[Fraction, Schedule, str] | None = None
    made = 0

    def attempt(count: int, nth: int) -> Fraction | None:
        nonlocal best, made
        schedule = _schedule(instance, count, (seeds[2 * nth], seeds[2 * nth + 1]))
        took = chunks.seconds(instance, schedule)
        made += 1
        if best is None or took < best[0]:
            best = took, schedule, f"{count} chunks" if count > 1 else "1 chunk"
        return took

    members, shared = len(instance.members), instance.collective == "allreduce"
    pieces = members if shared else len(instance.blocks)
    largest = int(instance.blocks.bytes.max()) // (members if shared else 1)
    times: dict[int, Fraction] = {}
    for count in CHUNKS:
        if count > 1 and (count > largest or count * pieces * members > MOST_TRANSFERS or options.out_of_time()):
            break
        took = attempt(count, 0)
        assert took is not None
        if times and took > min(times.values()) * Fraction(11, 10):
            break
        times[count] = took
    good = sorted(times, key=lambda count: times[count])[:2]
    for nth in range(1, restarts):
        for count in good:
            if not options.out_of_time():
                attempt(count, nth)
    assert best is not None
    words = f"{best[2]}, best of {made} schedules{chunks.hurried(options)}"
    return Outcome("finished", solution=best[1], message=words)


def _schedule(instance: FabricInstance, count: int, seeds: tuple[int, int]) -> Schedule:
    blocks, members = instance.blocks, instance.members
    if instance.collective == "allreduce":
        sizes = [chunks.cut(int(blocks.bytes[0]), len(members) * count)]
        block, size = pieces_of(sizes)
        holder = np.array([members[k % len(members)] for k in range(len(size))], dtype=np.int64)
        there = turned(instance)
        up = _spread(there, block, size, holder, seeds[0])
        down = _spread(instance, block, size, holder, seeds[1])
        backwards = mirrored(there, up, timed(there, up))
        return timed(instance, joined(instance.machine, backwards, down))
    block, size = pieces_of([chunks.cut(int(n), count) for n in blocks.bytes])
    if instance.collective in SPREADING:
        return timed(instance, _spread(instance, block, size, blocks.origin[block], seeds[0]))
    assert instance.collective in SUMMING
    there = turned(instance)
    up = _spread(there, block, size, blocks.goal[block], seeds[0])
    return timed(instance, mirrored(there, up, timed(there, up)))


@dataclass(frozen=True)
class _Ways:
    """The links of the unwound machine: direct routes from rank to rank."""

    routes: list[Route]
    src: IntArray  # of each, as a place among the ranks
    dst: IntArray
    seconds: FloatArray
    busy: FloatArray  # seconds until the next may start on the same
    start: IntArray  # links and groups of route i: used[start[i]:start[i + 1]]
    used: IntArray


def _ways(instance: FabricInstance, size: int) -> _Ways:
    machine = instance.machine
    net = machine.network
    routes = Routes.of(instance, size)
    place = {int(rank): k for k, rank in enumerate(machine.ranks)}
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
                way = min(equal, key=lambda route: max(routes.load[e] for e in route))
                routes.take(way)
                found.append(way)
    # a slower link beside a quicker one, or beside a way through switches, is a link too
    known = set(found)
    rank_link = ~machine.is_switch[net.src] & ~machine.is_switch[net.dst]
    found += [(int(e),) for e in np.flatnonzero(rank_link) if (int(e),) not in known]
    groups = [[net.links + int(machine.group[e]) for e in way if machine.group[e] >= 0] for way in found]
    rows = [list(dict.fromkeys([*way, *more])) for way, more in zip(found, groups, strict=True)]
    amount = size / net.bandwidth
    hop_by_hop = instance.switching.mode == "store_and_forward"
    busy = np.array([max(amount[e] for e in way) for way in found])
    latency = np.array([sum(net.latency[e] for e in way) for way in found])
    carried = np.array([sum(amount[e] for e in way) for way in found]) if hop_by_hop else busy
    return _Ways(
        found,
        np.array([place[int(net.src[way[0]])] for way in found], dtype=np.int64),
        np.array([place[int(net.dst[way[-1]])] for way in found], dtype=np.int64),
        latency + carried,
        busy,
        np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64),
        np.array([e for row in rows for e in row], dtype=np.int64),
    )


def _spread(instance: FabricInstance, block: Any, size: Any, holder: Any, seed: int) -> Transfers:
    """Every piece from its holder to all members, retimed exactly with the greedy's order as priority."""
    machine = instance.machine
    ways = _ways(instance, int(size.max()))
    place = np.full(machine.nodes, -1, dtype=np.int64)
    place[machine.ranks] = np.arange(len(machine.ranks))
    wants = np.zeros(len(machine.ranks), dtype=np.bool_)
    wants[place[list(instance.members)]] = True
    way, piece, came = _greedy(
        ways.src, ways.dst, ways.seconds, ways.busy, ways.start, ways.used, *rows_by(ways.src, len(wants)),
        *_by_resource(ways, machine.links + len(machine.group_names)), place[holder], wants, seed, left(),
    )  # fmt: skip
    demand_time()
    made = Transfers.of(
        block,
        size,
        piece,
        [ways.routes[k] for k in way.tolist()],
        [(b,) if b >= 0 else () for b in came.tolist()],
        np.arange(len(way)),
    )
    return only_useful(machine, made, instance.members)


def _by_resource(ways: _Ways, resources: int) -> tuple[IntArray, IntArray]:
    owner = np.repeat(np.arange(len(ways.routes), dtype=np.int64), np.diff(ways.start))
    start, order = rows_by(ways.used, resources)
    return start, owner[order]


@jit
def _greedy(
    src: IntArray,
    dst: IntArray,
    seconds: Any,
    busy: Any,
    start: IntArray,
    used: IntArray,
    out_start: IntArray,
    out: IntArray,
    by_start: IntArray,
    by: IntArray,
    holder: IntArray,
    wants: Any,
    seed: int,
    limit_s: float,
) -> Any:
    """Way, piece and the transfer that brought the piece to the way's tail (-1: held at first), per transfer."""
    end = read_clock() + limit_s
    np.random.seed(seed)
    ranks, total = len(wants), len(holder)
    held = np.zeros((ranks, total), np.bool_)
    got = np.full((ranks, total), -1, np.int32)
    missing = np.empty((ranks, total), np.int32)  # missing[v, :left[v]]: neither held nor on its way
    listed = np.empty((ranks, total), np.int32)
    left = np.zeros(ranks, np.int64)
    for v in range(ranks):
        for p in range(total):
            if holder[p] == v:
                held[v, p] = True
            else:
                missing[v, left[v]] = p
                listed[v, p] = left[v]
                left[v] += 1
    wanted = 0
    for v in range(ranks):
        if wants[v]:
            wanted += left[v]
    most = left.sum()
    out_way, out_piece, out_came = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    done, moment = 0, 1
    free = np.zeros(len(by_start) - 1)
    stamp = np.zeros(len(src), np.int64)
    candidates = np.arange(len(src))
    count = len(src)
    events = [(0.0, np.int64(0), np.int64(0)) for _ in range(0)]
    now = 0.0
    while wanted > 0 and read_clock() <= end:
        chosen = candidates[:count].copy()
        np.random.shuffle(chosen)
        chosen = chosen[np.argsort(seconds[chosen], kind="mergesort")]  # the quicker first, else at random
        for w in chosen:
            u, v = src[w], dst[w]
            if left[v] == 0:
                continue
            blocked = False
            for k in range(start[w], start[w + 1]):
                if free[used[k]] > now:
                    blocked = True
                    break
            if blocked:
                continue
            piece = np.int64(-1)
            for _ in range(DRAWS):
                p = missing[v, np.random.randint(left[v])]
                if held[u, p]:
                    piece = np.int64(p)
                    break
            if piece < 0:
                seen = 0
                for k in range(left[v]):
                    p = missing[v, k]
                    if held[u, p]:
                        seen += 1
                        if np.random.randint(seen) == 0:
                            piece = np.int64(p)
            if piece < 0:
                continue
            left[v] -= 1
            last, hole = missing[v, left[v]], listed[v, piece]
            missing[v, hole], listed[v, last] = last, hole
            if wants[v]:
                wanted -= 1
            out_way[done], out_piece[done], out_came[done] = w, piece, got[u, piece]
            got[v, piece] = done
            heapq.heappush(events, (now + seconds[w], np.int64(0), np.int64(done)))
            for k in range(start[w], start[w + 1]):
                free[used[k]] = now + busy[w]
                heapq.heappush(events, (now + busy[w], np.int64(1), used[k]))
            done += 1
        if len(events) == 0:
            break
        now = events[0][0]
        count = 0
        moment += 1
        while len(events) and events[0][0] <= now:
            _, kind, number = heapq.heappop(events)
            if kind == 0:
                v = dst[out_way[number]]
                held[v, out_piece[number]] = True
                for k in range(out_start[v], out_start[v + 1]):
                    if stamp[out[k]] != moment:
                        stamp[out[k]] = moment
                        candidates[count] = out[k]
                        count += 1
            else:
                for k in range(by_start[number], by_start[number + 1]):
                    if stamp[by[k]] != moment:
                        stamp[by[k]] = moment
                        candidates[count] = by[k]
                        count += 1
    return out_way[:done], out_piece[:done], out_came[:done]
