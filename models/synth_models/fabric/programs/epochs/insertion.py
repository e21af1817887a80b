"""Insertion on the epoch grid for data that is not copied: block after block, on the way that arrives first.

A block's shares are pushed along earliest arrivals in what the blocks before left free, as much at a time as fits the
whole way (a fluid: shares of one block may take several ways). Blocks with long ways go first; then the order is
improved by letting those that came last go earlier (squeaky wheel optimisation: Joslin and Clements 1999).
Complexity: pushes times (nodes^2 + ways), a push fills a link's epoch or ends a block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.deadline import demand_time, left
from synth.graph.rows import rows_by
from synth.kernel_clock import now
from synth.kernels import jit
from synth_models.fabric.programs.epochs.grid import Grid
from synth_models.fabric.programs.epochs.ways import Ways

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Streams:
    """Shares in motion, ``unit`` to a chunk: ``amount`` shares of ``block`` make the hops ``start[i]:start[i + 1]`` of
    ``link`` and ``epoch``; ``block``, ``amount``: shape (streams,)."""

    unit: int
    block: IntArray
    amount: IntArray
    start: IntArray
    link: IntArray
    epoch: IntArray

    def __len__(self) -> int:
        return len(self.block)


def ends_of(grid: Grid, streams: Streams) -> IntArray:
    """The epoch in which every stream has arrived, shape (streams,)."""
    last = streams.start[1:] - 1
    found: IntArray = streams.epoch[last] + grid.lag[streams.link[last]]
    return found


def inserted(
    grid: Grid, ways: Ways, most: int, least: int, seed: int, rounds: int, more: Callable[[], bool]
) -> Streams | None:
    """The shortest plan of at most ``most`` epochs found in ``rounds``, or None; ends at ``least`` epochs."""
    generator = np.random.default_rng(seed)
    blocks = grid.instance.blocks
    far = grid.distance[blocks.origin, blocks.goal].astype(float)
    key = -far + 0.5 * generator.random(len(far))
    best, shortest = None, most + 1
    for _ in range(rounds):
        streams = placed(grid, ways, np.argsort(key, kind="stable").astype(np.int64), most)
        if streams is not None:
            ends = np.zeros(len(blocks), dtype=np.int64)
            np.maximum.at(ends, streams.block, ends_of(grid, streams))
            if int(ends.max()) < shortest:
                best, shortest = streams, int(ends.max())
            rare = int((ends > least).sum()) * 4 < len(ends)
            late = ends > least if rare else ends == ends.max()
            key = key - late * (0.5 + generator.random(len(key))) * max(1.0, float(far.std()))
        else:
            key = key + generator.normal(0.0, max(0.5, float(far.std())), len(key))
        if shortest <= least or not more():
            break
    return best


def placed(grid: Grid, ways: Ways, order: IntArray, most: int) -> Streams | None:
    """The blocks placed in this order within ``most`` epochs; None where one does not fit."""
    machine, blocks = grid.instance.machine, grid.instance.blocks
    first, by_src = rows_by(ways.src, machine.nodes)
    pushes, hops = _place(
        order, blocks.origin, blocks.goal, grid.demand, grid.quota, machine.group, grid.cost, grid.group_budget,
        len(machine.group_names), by_src, first, ways.src, ways.dst, ways.lag, ways.start, ways.link, ways.offset,
        machine.nodes, most, left(),
    )  # fmt: skip
    demand_time()
    if not len(pushes):
        return None
    return Streams(
        grid.unit, pushes[:, 0].copy(), pushes[:, 1].copy(), np.concatenate([[0], pushes[:, 2]]).astype(np.int64),
        hops[:, 0].copy(), hops[:, 1].copy(),
    )  # fmt: skip


@jit
def _room(
    r: int, k: int, way_start: IntArray, way_link: IntArray, way_offset: IntArray, room: IntArray, group: IntArray,
    group_room: IntArray, cost: IntArray,
) -> int:  # fmt: skip
    """Shares that fit on way r when it starts in epoch k."""
    fits: Any = np.int64(2**62)
    for i in range(way_start[r], way_start[r + 1]):
        e, t = way_link[i], k + way_offset[i]
        if t >= room.shape[1]:
            return 0
        fits = min(fits, room[e, t])
        g = group[e]
        if g >= 0 and cost[e] > 0:
            times = np.int64(0)  # one way may cross a group twice in one epoch
            for j in range(way_start[r], way_start[r + 1]):
                if group[way_link[j]] == g and k + way_offset[j] == t:
                    times += cost[way_link[j]]
            fits = min(fits, group_room[g, t] // times)
    return int(fits)


@jit
def _open(
    e: int, t: int, room: IntArray, group: IntArray, group_room: IntArray, cost: IntArray, later: npt.NDArray[np.int32]
) -> int:
    """The first epoch from t on in which link e has room by itself; epochs once full stay full and are skipped."""
    most = room.shape[1]
    g = group[e] if cost[e] > 0 else np.int64(-1)
    u: Any = t
    while u < most and (room[e, u] == 0 or (g >= 0 and group_room[g, u] < cost[e])):
        u = np.int64(later[e, u])
    passed: Any = t
    while passed < u:
        following = np.int64(later[e, passed])
        later[e, passed] = u
        passed = following
    return int(u)


@jit
def _soonest(
    r: int, k: int, way_start: IntArray, way_link: IntArray, way_offset: IntArray, room: IntArray, group: IntArray,
    group_room: IntArray, cost: IntArray, later: npt.NDArray[np.int32],
) -> int:  # fmt: skip
    """The first epoch from k on in which way r can start, as far as each of its links tells by itself."""
    i = way_start[r]
    while i < way_start[r + 1]:
        e, t = way_link[i], k + way_offset[i]
        if t >= room.shape[1]:
            return int(k)
        u = _open(e, t, room, group, group_room, cost, later)
        if u > t:
            k, i = u - way_offset[i], way_start[r]
        else:
            i += 1
    return int(k)


@jit
def _place(
    order: IntArray, origin: IntArray, goal: IntArray, demand: IntArray, quota: IntArray, group: IntArray,
    cost: IntArray, budget: int, groups: int, by_src: IntArray, first: IntArray, way_src: IntArray, way_dst: IntArray,
    way_lag: IntArray, way_start: IntArray, way_link: IntArray, way_offset: IntArray, nodes: int, most: int,
    seconds: float,
) -> Any:  # fmt: skip
    """Pushes (block, amount, end of its hops) and hops (link, epoch); no pushes where a block does not fit, or once
    ``seconds`` have passed."""
    end = now() + seconds
    links = len(quota)
    room = np.empty((links, most), dtype=np.int64)
    for e in range(links):
        room[e, :] = quota[e]
    group_room = np.full((groups, most), budget, dtype=np.int64)
    later = np.empty((links, most), dtype=np.int32)  # where a link without room in an epoch may next have some
    for e in range(links):
        later[e, :] = np.arange(1, most + 1)
    pushes = np.empty((1024, 3), dtype=np.int64)
    hops = np.empty((4096, 2), dtype=np.int64)
    count = total = 0
    arrive = np.empty(nodes, dtype=np.int64)
    done = np.empty(nodes, dtype=np.bool_)
    by = np.empty(nodes, dtype=np.int64)
    began = np.empty(nodes, dtype=np.int64)
    trail = np.empty(nodes, dtype=np.int64)
    for at in range(len(order)):
        b = order[at]
        missing = demand[b]
        while missing > 0:
            if now() > end:
                return pushes[:0], hops[:0]
            arrive[:] = 2**40
            done[:] = False
            by[:] = -1
            arrive[origin[b]] = 0
            while True:
                u, soonest = -1, np.int64(2**40)
                for v in range(nodes):
                    if not done[v] and arrive[v] < soonest:
                        u, soonest = v, arrive[v]
                if u < 0 or u == goal[b]:
                    break
                done[u] = True
                for s in range(first[u], first[u + 1]):
                    r = by_src[s]
                    v = way_dst[r]
                    if done[v]:
                        continue
                    k: Any = soonest
                    while True:
                        k = _soonest(r, k, way_start, way_link, way_offset, room, group, group_room, cost, later)
                        if k + way_lag[r] >= arrive[v] or k + way_lag[r] > most:
                            break
                        if _room(r, k, way_start, way_link, way_offset, room, group, group_room, cost) > 0:
                            arrive[v], by[v], began[v] = k + way_lag[r], r, k
                            break
                        k += 1
            if by[goal[b]] < 0:
                return pushes[:0], hops[:0]
            v, length, fits = goal[b], 0, missing
            while v != origin[b]:
                trail[length] = v
                length += 1
                r = by[v]
                fits = min(fits, _room(r, began[v], way_start, way_link, way_offset, room, group, group_room, cost))
                v = way_src[r]
            for p in range(length - 1, -1, -1):
                v = trail[p]
                r = by[v]
                for i in range(way_start[r], way_start[r + 1]):
                    e, t = way_link[i], began[v] + way_offset[i]
                    if total == len(hops):
                        wider = np.empty((2 * total, 2), dtype=np.int64)
                        wider[:total] = hops
                        hops = wider
                    hops[total, 0], hops[total, 1] = e, t
                    total += 1
                    room[e, t] -= fits
                    if group[e] >= 0:
                        group_room[group[e], t] -= fits * cost[e]
            if count == len(pushes):
                longer = np.empty((2 * count, 3), dtype=np.int64)
                longer[:count] = pushes
                pushes = longer
            pushes[count, 0], pushes[count, 1], pushes[count, 2] = b, fits, total
            count += 1
            missing -= fits
    return pushes[:count], hops[:total]
