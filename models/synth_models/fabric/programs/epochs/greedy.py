"""List scheduling on the epoch grid for data that is copied: a start for the program, and often all that is needed.

Epoch by epoch, slow links first, every link takes the chunk whose arrival brings most: summed over the nodes that want
it, the epochs that they would get it sooner than without this send, if nothing else were in the way. Ties and near
ties are broken at random, so that several seeds give several schedules. Complexity: epochs times links times chunks
times nodes at the most; epochs in which nothing becomes free or arrives are skipped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from synth.deadline import demand_time, left
from synth.kernel_clock import now
from synth.kernels import jit
from synth_models.fabric.programs.epochs.grid import FAR, Grid
from synth_models.fabric.programs.epochs.sends import Sends
from synth_models.fabric.programs.epochs.ways import Ways

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]


def greedy(grid: Grid, ways: Ways, most: int, seed: int, noise: float) -> Sends | None:
    """A plan of at most ``most`` epochs, or None. ``noise``: in epochs a node, how far ties reach."""
    generator = np.random.default_rng(seed)
    jitter = generator.random((grid.instance.machine.links, len(grid.origin)))
    pace = np.array([float(c) for c in grid.capacity])
    order = np.argsort(pace + pace.min(initial=1.0) * 1e-6 * generator.random(len(pace)), kind="stable")
    machine = grid.instance.machine
    late_start, late = _offsets(ways, machine.links)
    count, rows = _run(
        grid.origin, grid.wanted, grid.distance, grid.holds, grid.window, grid.quota, grid.lag,
        machine.group, grid.group_window, grid.cost, grid.group_budget, grid.copies,
        ways.src, ways.dst, ways.lag, ways.start, ways.link, ways.offset, ways.by_last, late_start, late,
        order.astype(np.int64), noise * jitter, seed % 2**31, most, left(),
    )  # fmt: skip
    demand_time()
    if count < 0:
        return None
    return Sends(rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy())


def _offsets(ways: Ways, links: int) -> tuple[IntArray, IntArray]:
    """The offsets at which ways use every link, as rows: a link that is free again is so for ways begun earlier."""
    pairs = np.unique(np.stack([ways.link, ways.offset]), axis=1)
    return np.searchsorted(pairs[0], np.arange(links + 1)).astype(np.int64), pairs[1].astype(np.int64)


@jit
def _free(
    e: int, t: int, used: IntArray, window: IntArray, quota: IntArray, group: IntArray, group_used: IntArray,
    group_window: IntArray, cost: IntArray, budget: int, more: int,
) -> bool:  # fmt: skip
    """Whether link e can begin one more chunk in epoch t, and its group carry it and ``more``. Where a window has
    several epochs its quota is 1."""
    w, most = window[e], used.shape[1]
    if t >= most:
        return False
    if w == 1:
        if used[e, t] >= quota[e]:
            return False
    else:
        for other in range(max(0, t - w + 1), min(most, t + w)):
            if used[e, other] > 0:
                return False
    g = group[e]
    if g >= 0:
        span = group_window[g]
        for first in range(max(0, t - span + 1), t + 1):
            total = cost[e] + more
            for other in range(first, min(most, first + span)):
                total += group_used[g, other]
            if total > budget * span:
                return False
    return True


@jit
def _all_free(
    first: int, last: int, k: int, way_link: IntArray, way_offset: IntArray, used: IntArray, window: IntArray,
    quota: IntArray, group: IntArray, group_used: IntArray, group_window: IntArray, cost: IntArray, budget: int,
) -> bool:  # fmt: skip
    """Whether the links ``first:last`` of a way that starts in epoch k can all take it, those of one group together."""
    for i in range(first, last):
        e = way_link[i]
        more: Any = np.int64(0)
        if group[e] >= 0:
            for j in range(first, i):
                if group[way_link[j]] == group[e]:
                    more += cost[way_link[j]]
        if not _free(e, k + way_offset[i], used, window, quota, group, group_used, group_window, cost, budget, more):
            return False
    return True


@jit
def _shared(c: int, first: int, last: int, k: int, way_link: IntArray, way_offset: IntArray, carried: IntArray) -> int:
    """How many of the links ``first:last`` of a way carry the chunk at the right time already."""
    for i in range(first, last):
        if carried[c, way_link[i]] != k + way_offset[i]:
            return int(i - first)
    return last - first


@jit
def _gain(c: int, v: int, done: int, wanted: BoolArray, arrive: IntArray, soonest: IntArray, distance: IntArray) -> int:
    """Epochs, summed over who wants the chunk, that it comes sooner if it is at v when ``done``."""
    gain: Any = np.int64(0)
    for w in range(wanted.shape[1]):
        if wanted[c, w] and arrive[c, w] > done + distance[v, w]:
            gain += max(0, soonest[c, w] - done - distance[v, w])
    return int(gain)


@jit
def _look(k: int, arrive: IntArray, distance: IntArray, soonest: IntArray) -> None:
    """When every node could have every chunk if nothing were sent in epoch k and nothing in the way later."""
    chunks, nodes = arrive.shape
    soonest[:] = FAR
    for c in range(chunks):
        for v in range(nodes):
            if arrive[c, v] < FAR:
                since = max(arrive[c, v], k + 1)
                for w in range(nodes):
                    soonest[c, w] = min(soonest[c, w], since + distance[v, w])


@jit
def _run(
    origin: IntArray, wanted: BoolArray, distance: IntArray, holds: BoolArray, window: IntArray, quota: IntArray,
    lag: IntArray, group: IntArray, group_window: IntArray, cost: IntArray, budget: int, copies: bool,
    way_src: IntArray, way_dst: IntArray, way_lag: IntArray, way_start: IntArray, way_link: IntArray,
    way_offset: IntArray, by_last: IntArray, late_start: IntArray, late: IntArray, order: IntArray, jitter: FloatArray,
    seed: int, most: int, seconds: float,
) -> Any:  # fmt: skip
    """Number of sends and their rows (chunk, link, epoch); -1 where ``most`` epochs are not enough, or once
    ``seconds`` have passed."""
    end = now() + seconds
    np.random.seed(seed)
    chunks, nodes, links = len(origin), len(holds), len(window)
    arrive = np.full((chunks, nodes), FAR, dtype=np.int64)
    missing = 0
    for c in range(chunks):
        arrive[c, origin[c]] = 0
        for v in range(nodes):
            if wanted[c, v] and v != origin[c]:
                missing += 1
    used = np.zeros((links, most), dtype=np.int64)
    group_used = np.zeros((len(group_window), most), dtype=np.int64)
    busy = np.zeros(most + 2, dtype=np.bool_)  # epochs in which something changes
    busy[0] = True
    carried = np.full((chunks, links), -1, dtype=np.int64)  # when the link last began this chunk
    rows = np.empty((1024, 3), dtype=np.int64)
    count = 0
    soonest = np.full((chunks, nodes), FAR, dtype=np.int64)
    for k in range(most):
        if not busy[k]:
            continue
        if missing == 0:
            break
        _look(k, arrive, distance, soonest)
        for at in range(links):
            e = order[at]
            if by_last[e] == by_last[e + 1]:
                continue
            while True:
                if now() > end:
                    return -1, rows[:0]
                best, best_way, best_chunk = 0.0, -1, -1
                for r in range(by_last[e], by_last[e + 1]):
                    u, v = way_src[r], way_dst[r]
                    done = k + way_lag[r]
                    if done > most:
                        continue
                    first, last = way_start[r], way_start[r + 1]
                    if not _all_free(last - 1, last, k, way_link, way_offset, used, window, quota, group, group_used,
                                     group_window, cost, budget):  # fmt: skip
                        continue
                    whole = _all_free(first, last, k, way_link, way_offset, used, window, quota, group, group_used,
                                      group_window, cost, budget)  # fmt: skip
                    for c in range(chunks):
                        if arrive[c, u] > k or arrive[c, v] <= done or carried[c, e] == k + way_offset[last - 1]:
                            continue
                        shared = _shared(c, first, last - 1, k, way_link, way_offset, carried) if copies else 0
                        if not whole and shared < last - first - 1:
                            continue
                        gain = _gain(c, v, done, wanted, arrive, soonest, distance)
                        if gain <= 0:
                            continue
                        score = gain + jitter[e, c] + 0.4 * shared + 0.01 * np.random.random()
                        if score > best:
                            best, best_way, best_chunk = score, r, c
                if best_way < 0:
                    break
                r, c = best_way, best_chunk
                alone = False
                for i in range(way_start[r], way_start[r + 1]):
                    link, t = way_link[i], k + way_offset[i]
                    final = i == way_start[r + 1] - 1
                    if copies and not final and not alone and carried[c, link] == t:
                        continue
                    alone = True
                    used[link, t] += 1
                    carried[c, link] = t
                    if group[link] >= 0:
                        group_used[group[link], t] += cost[link]
                        busy[min(most, t + group_window[group[link]])] = True
                    for i_late in range(late_start[link], late_start[link + 1]):
                        again = t + window[link] - late[i_late]
                        if again > k:
                            busy[min(most, again)] = True
                    if count == len(rows):
                        more = np.empty((2 * count, 3), dtype=np.int64)
                        more[:count] = rows
                        rows = more
                    rows[count, 0], rows[count, 1], rows[count, 2] = c, link, t
                    count += 1
                v, done = way_dst[r], k + way_lag[r]
                if wanted[c, v] and arrive[c, v] == FAR:
                    missing -= 1
                arrive[c, v] = done
                busy[min(most, done)] = True
                for w in range(nodes):
                    soonest[c, w] = min(soonest[c, w], done + distance[v, w])
    if missing:
        return -1, rows[:0]
    return count, rows[:count]
