"""Method ``pull`` (ours): every node pulls the rarest chunks it misses, as many per timestep as it has links.

Per timestep the nodes are visited in random order. Node ``v`` matches its in-links to missing chunks that the links'
tails hold, by a maximum bipartite matching that prefers the chunks with the fewest holders; chunks already promised
in this timestep count as held, so that neighbours do not all spread the same one. Ties are random. The whole is
restarted with other random numbers and the shortest schedule kept.

Complexity: one restart reads each (node, chunk) bit once per link and timestep, O(T * links * NC / 64) word operations,
and ranks the chunks offered; memory N * NC bits and the schedule. No guarantee in general: it ends with every chunk
delivered on a strongly connected network, at most one timestep per missing pair; the distance to the bound is in every
record.
"""

from __future__ import annotations

from copy import copy
from functools import partial

import numpy as np

from synth.arrays import Int32Array, IntArray, WordArray
from synth.clock.deadline import demand_time, left
from synth.errors import UnsupportedError
from synth.kernels import jit
from synth.kernels.clock import now
from synth.method import Outcome
from synth.network import LinksByNode, Network
from synth.options import RunOptions
from synth.schedule import Schedule
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references.from_allgather import by_allgather
from synth_models.xtree.references.list_scheduler import list_schedule
from synth_models.xtree.references.matching import MAX_SLOTS, augment
from synth_models.xtree.references.multitree import hold_first

OVERLAP_LIMIT = 4_000_000  # (chunk, node) pairs up to which an allreduce tries to overlap its halves


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``pull``. Stops restarting at the bound, at the time limit or after ``restarts``."""
    bound, proof, certificate = lower_bound(instance)
    options.held.offer_bound(float(bound), proof, certificate)
    if instance.chunks > 1:  # else a restart takes half as long as that
        hold_first(instance, options)
    best: Schedule | None = None
    used = 0
    for restart in range(int(options.method.get("restarts", 10))):
        if best is not None and (options.out_of_time() or best.steps <= bound):
            break
        schedule = once(instance, options.seed, restart)
        used += 1
        if best is None or schedule.steps < best.steps:
            best = schedule
            options.held.offer(partial(copy, schedule), schedule.steps, f"best of {used} restarts")
    message = f"best of {used} restart{'s' if used > 1 else ''}"
    return Outcome("finished", best, float(bound), proof, certificate, message)


def once(instance: XTreeInstance, seed: int, restart: int) -> Schedule:
    """One restart for the instance's collective; an allreduce also tries its two halves overlapped."""
    seeds = np.random.SeedSequence([seed, restart])
    schedule = by_allgather(instance, lambda network, chunks: allgather(network, chunks, seeds.spawn(1)[0]))
    if instance.collective != "allreduce" or instance.total_chunks * instance.topology.nodes > OVERLAP_LIMIT:
        return schedule
    return min(schedule, overlapped(instance, schedule), key=lambda candidate: candidate.steps)


def overlapped(instance: XTreeInstance, schedule: Schedule) -> Schedule:
    """The allreduce along the same trees without the barrier between its halves (list-scheduled; the chunks j of all
    nodes form a wave, and while wave j is handed down, wave j + 1 is being summed)."""
    network, total = instance.topology, instance.total_chunks
    up = np.full((total, network.nodes), -1, dtype=np.int32)
    down = up.copy()
    sums, copies = schedule.adds, ~schedule.adds
    up[schedule.chunk[sums], network.src[schedule.link[sums]]] = schedule.link[sums]
    down[schedule.chunk[copies], network.dst[schedule.link[copies]]] = schedule.link[copies]
    wave = (np.arange(total) % instance.chunks).astype(np.int32)
    return list_schedule(network, np.arange(total, dtype=np.int32), down, up, group=wave)


def allgather(network: Network, chunks: int, seed: np.random.SeedSequence) -> Schedule:
    """One randomised allgather schedule. Raises :class:`UnsupportedError` beyond 62 links into one node."""
    if network.in_degree.max() > MAX_SLOTS:
        raise UnsupportedError(f"pull takes at most {MAX_SLOTS} links into a node")
    step, link, chunk = _pull(network.in_links, chunks, int(seed.generate_state(1)[0]), left())
    demand_time()
    return Schedule.of(step, link, chunk)


@jit
def _promise(k: int, holders: IntArray, order: IntArray, place: IntArray, end: IntArray) -> None:
    """Count one more holder of ``k``, keeping ``order`` sorted by holders: swap it to its bucket's end, shrink it."""
    count = holders[k]
    last = end[count] - 1
    other = order[last]
    order[last], order[place[k]] = k, other
    place[other], place[k] = place[k], last
    end[count] -= 1
    holders[k] = count + 1


SHORTLIST = 16  # rarest offered chunks that are ranked before all offered chunks are sorted
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
BIT_OF = np.zeros(64, np.int64)  # BIT_OF[(DE_BRUIJN << i) >> 58] = i: the place of a single set bit
for _bit in range(64):
    BIT_OF[((int(DE_BRUIJN) << _bit) & (2**64 - 1)) >> 58] = _bit


@jit(wraps=True)  # DE_BRUIJN
def _offered(v: int, by_head: LinksByNode, held: WordArray, place: IntArray, ranks: IntArray) -> int:
    """Write the ranks of the chunks that v misses and some in-link's tail holds into ``ranks``; return how many."""
    src, links = by_head.src, by_head.links
    first, slots = by_head.pointer[v], by_head.pointer[v + 1] - by_head.pointer[v]
    count = 0
    for w in range(held.shape[1]):
        some = np.uint64(0)
        for j in range(slots):
            some |= held[src[links[first + j]], w]
        some &= ~held[v, w]
        while some:
            low = some & (~some + np.uint64(1))
            ranks[count] = place[w * 64 + BIT_OF[(low * DE_BRUIJN) >> np.uint64(58)]]
            count += 1
            some ^= low
    return count


@jit
def _shortlist(ranks: IntArray, count: int, best: IntArray) -> None:
    """The smallest of ``ranks[:count]``, as many as ``best`` takes, ascending."""
    size = len(best)
    best[:] = np.iinfo(np.int64).max
    for i in range(count):
        rank = ranks[i]
        if rank < best[size - 1]:
            j = size - 1
            while j > 0 and best[j - 1] > rank:
                best[j] = best[j - 1]
                j -= 1
            best[j] = rank


@jit
def _pull(by_head: LinksByNode, chunks: int, seed: int, seconds: float) -> tuple[Int32Array, Int32Array, Int32Array]:
    until = now() + seconds
    np.random.seed(seed)
    src, dst, pointer, links = by_head.src, by_head.dst, by_head.pointer, by_head.links
    nodes = len(pointer) - 1
    total = nodes * chunks
    one = np.uint64(1)
    held = np.zeros((nodes, (total + 63) // 64), np.uint64)  # a bit per (node, chunk)
    holders = np.ones(total, np.int64)
    left = np.full(nodes, total - chunks)
    for k in range(total):
        held[k // chunks, k // 64] |= one << np.uint64(k % 64)
    goal = left.sum()
    out_step, out_link, out_chunk = np.empty(goal, np.int32), np.empty(goal, np.int32), np.empty(goal, np.int32)
    place, end = np.empty(total, np.int64), np.zeros(nodes + 2, np.int64)
    ranks, best = np.empty(total, np.int64), np.empty(SHORTLIST, np.int64)
    most = 0
    for v in range(nodes):
        most = max(most, pointer[v + 1] - pointer[v])
    taken, masks = np.empty(most, np.int64), np.zeros(most, np.int64)
    parent, queue = np.empty(most, np.int64), np.empty(most, np.int64)
    done = step = 0
    while done < goal and now() <= until:
        step += 1
        begin = done
        order = np.argsort(holders + np.random.random(total))  # by holders, ties at random
        end[:] = 0
        for i in range(total):
            place[order[i]] = i
            end[holders[i]] += 1
        for count in range(1, nodes + 2):
            end[count] += end[count - 1]
        for v in np.random.permutation(nodes):
            if left[v] == 0:
                continue
            first, slots = pointer[v], pointer[v + 1] - pointer[v]
            taken[:slots] = -1
            matched = 0
            offered = _offered(v, by_head, held, place, ranks)
            _shortlist(ranks, offered, best)
            for i in range(offered):
                if i == SHORTLIST:
                    ranks[:offered].sort()
                k = order[best[i] if i < SHORTLIST else ranks[i]]
                bit = one << np.uint64(k % 64)
                offers = np.int64(0)
                for j in range(slots):
                    if held[src[links[first + j]], k // 64] & bit:
                        offers |= np.int64(1) << j
                if augment(k, offers, taken, masks, parent, queue, slots):
                    matched += 1
                    if matched == slots:
                        break
            for j in range(slots):
                if taken[j] >= 0:
                    out_step[done], out_link[done], out_chunk[done] = step, links[first + j], taken[j]
                    _promise(taken[j], holders, order, place, end)
                    done += 1
        for i in range(begin, done):  # arrivals count from the next timestep on
            v, k = dst[out_link[i]], out_chunk[i]
            held[v, k // 64] |= one << np.uint64(k % 64)
            left[v] -= 1
    return out_step, out_link, out_chunk
