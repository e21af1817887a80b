"""Insertion on the epoch grid for data that is not copied: block after block, on the route that arrives first.

A block's shares are pushed along earliest arrivals in what the blocks before left free, as much at a time as fits the
whole route (a fluid: shares of one block may take several routes). Blocks with long routes go first; then the order is
improved by letting those that came last go earlier (squeaky wheel optimisation: Joslin and Clements 1999).
Complexity: pushes times (nodes^2 + routes), a push fills a link's epoch or ends a block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.clock.deadline import demand_time, left
from synth.graph.rows import rows_by
from synth.kernels import jit
from synth.kernels.clock import now
from synth_peers.teccl.programs.epoch_reservations import (
    EpochLinks,
    EpochReservations,
    EpochRoutes,
    amount_that_fits,
    earliest_epoch,
    new_epochs,
    reserve_epoch,
)
from synth_peers.teccl.programs.grid import UNREACHABLE_EPOCHS, Grid
from synth_peers.teccl.programs.switch_routes import SwitchRoutes, links_of


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
    grid: Grid, routes: SwitchRoutes, most: int, least: int, seed: int, rounds: int, more: Callable[[], bool]
) -> Streams | None:
    """The shortest plan of at most ``most`` epochs found in ``rounds``, or None; ends at ``least`` epochs."""
    generator = np.random.default_rng(seed)
    blocks = grid.instance.blocks
    far = grid.distance[blocks.origin, blocks.goal].astype(float)
    key = -far + 0.5 * generator.random(len(far))
    best, shortest = None, most + 1
    for _ in range(rounds):
        streams = placed(grid, routes, np.argsort(key, kind="stable").astype(np.int64), most)
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


def placed(grid: Grid, routes: SwitchRoutes, order: IntArray, most: int) -> Streams | None:
    """The blocks placed in this order within ``most`` epochs; None where one does not fit."""
    machine, blocks = grid.instance.machine, grid.instance.blocks
    first, by_src = rows_by(routes.src, machine.nodes)
    pushes, hops = _place(
        order,
        Demands(blocks.origin, blocks.goal, grid.demand),
        links_of(grid),
        routes.routes,
        Leaving(first, by_src),
        most,
        left(),
    )
    demand_time()
    if not len(pushes):
        return None
    return Streams(
        grid.unit, pushes[:, 0].copy(), pushes[:, 1].copy(), np.concatenate([[0], pushes[:, 2]]).astype(np.int64),
        hops[:, 0].copy(), hops[:, 1].copy(),
    )  # fmt: skip


class Demands(NamedTuple):
    """``origin``, ``goal`` and ``amount`` (shares) of every block, shape (blocks,)."""

    origin: IntArray
    goal: IntArray
    amount: IntArray


class Leaving(NamedTuple):
    """The routes that leave node v: ``route[row[v]:row[v + 1]]``."""

    row: IntArray
    route: IntArray


class Arrivals(NamedTuple):
    """The first ``epoch`` in which a share can be at every node, the ``route`` by which it comes (-1: none), when that
    starts, ``began``, and whether this is ``settled``; shape (nodes,)."""

    epoch: IntArray
    route: IntArray
    began: IntArray
    settled: BoolArray


@jit
def _search(
    origin: int, goal: int, links: EpochLinks, reserved: EpochReservations, routes: EpochRoutes, leaving: Leaving,
    arrivals: Arrivals,
) -> None:  # fmt: skip
    """Write the earliest arrivals of a share at the origin in epoch 0, until the goal's is settled."""
    epochs = reserved.used.shape[1]
    epoch, settled = arrivals.epoch, arrivals.settled
    epoch[:] = UNREACHABLE_EPOCHS
    settled[:] = False
    arrivals.route[:] = -1
    epoch[origin] = 0
    while True:
        u, soonest = -1, np.int64(UNREACHABLE_EPOCHS)
        for v in range(len(epoch)):
            if not settled[v] and epoch[v] < soonest:
                u, soonest = v, epoch[v]
        if u < 0 or u == goal:
            return
        settled[u] = True
        for s in range(leaving.row[u], leaving.row[u + 1]):
            r = leaving.route[s]
            v = routes.target[r]
            if settled[v]:
                continue
            k: Any = soonest
            while True:
                k = earliest_epoch(links, reserved, routes, r, k)
                if k + routes.lag[r] >= epoch[v] or k + routes.lag[r] > epochs:
                    break
                if amount_that_fits(links, reserved, routes, r, k) > 0:
                    epoch[v], arrivals.route[v], arrivals.began[v] = k + routes.lag[r], r, k
                    break
                k += 1


@jit
def _place(
    order: IntArray, demands: Demands, links: EpochLinks, routes: EpochRoutes, leaving: Leaving, epochs: int,
    seconds: float,
) -> Any:  # fmt: skip
    """Pushes (block, amount, end of its hops) and hops (link, epoch); no pushes where a block does not fit, or once
    ``seconds`` have passed."""
    end = now() + seconds
    nodes = len(leaving.row) - 1
    reserved = new_epochs(links, epochs, True)
    pushes = np.empty((1024, 3), dtype=np.int64)
    hops = np.empty((4096, 2), dtype=np.int64)
    count = total = 0
    arrivals = Arrivals(
        np.empty(nodes, dtype=np.int64),
        np.empty(nodes, dtype=np.int64),
        np.empty(nodes, dtype=np.int64),
        np.empty(nodes, dtype=np.bool_),
    )
    trail = np.empty(nodes, dtype=np.int64)
    for b in order:
        origin, goal, missing = demands.origin[b], demands.goal[b], demands.amount[b]
        while missing > 0:
            if now() > end:
                return pushes[:0], hops[:0]
            _search(origin, goal, links, reserved, routes, leaving, arrivals)
            if arrivals.route[goal] < 0:
                return pushes[:0], hops[:0]
            v, length, fits = goal, 0, missing
            while v != origin:
                trail[length] = v
                length += 1
                r = arrivals.route[v]
                fits = min(fits, amount_that_fits(links, reserved, routes, r, arrivals.began[v]))
                v = routes.source[r]
            for p in range(length - 1, -1, -1):
                r, began = arrivals.route[trail[p]], arrivals.began[trail[p]]
                for i in range(routes.row[r], routes.row[r + 1]):
                    e, t = routes.link[i], began + routes.offset[i]
                    if total == len(hops):
                        wider = np.empty((2 * total, 2), dtype=np.int64)
                        wider[:total] = hops
                        hops = wider
                    hops[total, 0], hops[total, 1] = e, t
                    total += 1
                    reserve_epoch(links, reserved, e, t, fits)
            if count == len(pushes):
                longer = np.empty((2 * count, 3), dtype=np.int64)
                longer[:count] = pushes
                pushes = longer
            pushes[count, 0], pushes[count, 1], pushes[count, 2] = b, fits, total
            count += 1
            missing -= fits
    return pushes[:count], hops[:total]
