"""List scheduling on the epoch grid for data that is copied: a start for the program, and often all that is needed.

Epoch by epoch, slow links first, every link takes the chunk whose arrival brings most: summed over the nodes that want
it, the epochs that they would get it sooner than without this send, if nothing else were in the way. Ties and near
ties are broken at random, so that several seeds give several schedules. Complexity: epochs times links times chunks
times nodes at the most; epochs in which nothing becomes free or arrives are skipped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.clock.deadline import demand_time, left
from synth.kernels import jit
from synth.kernels.clock import now
from synth_peers.teccl.programs.epoch_reservations import (
    EpochLinks,
    EpochReservations,
    EpochRoutes,
    fits_route,
    new_epochs,
    reserve_epoch,
)
from synth_peers.teccl.programs.grid import UNREACHABLE_EPOCHS, Grid
from synth_peers.teccl.programs.sends import Sends
from synth_peers.teccl.programs.switch_routes import SwitchRoutes, links_of


def greedy(grid: Grid, routes: SwitchRoutes, most: int, seed: int, noise: float) -> Sends | None:
    """A plan of at most ``most`` epochs, or None. ``noise``: in epochs a node, how far ties reach."""
    generator = np.random.default_rng(seed)
    jitter = generator.random((grid.instance.machine.links, len(grid.origin)))
    pace = np.array([float(c) for c in grid.capacity])
    order = np.argsort(pace + pace.min(initial=1.0) * 1e-6 * generator.random(len(pace)), kind="stable")
    count, rows = _run(
        Chunks(grid.origin, grid.wanted, grid.distance, grid.copies),
        links_of(grid),
        routes.routes,
        routes.by_last,
        _offsets(routes, grid.instance.machine.links),
        order.astype(np.int64),
        noise * jitter,
        seed % 2**31,
        most,
        left(),
    )
    demand_time()
    if count < 0:
        return None
    return Sends(rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy())


class Chunks(NamedTuple):
    """``origin``, shape (chunks,); ``wanted``: by whom, shape (chunks, nodes); ``distance``: least epochs from node to
    node, shape (nodes, nodes); ``copies``: whether switches send what came once over several links."""

    origin: IntArray
    wanted: BoolArray
    distance: IntArray
    copies: bool


class Offsets(NamedTuple):
    """The offsets at which routes use link e: ``offset[row[e]:row[e + 1]]``, epochs."""

    row: IntArray
    offset: IntArray


class Progress(NamedTuple):
    """The epoch in which nodes have chunks, ``arrive``, and in which they could have them at the soonest if nothing
    were in the way, ``soonest``; shape (chunks, nodes). When links last began a chunk, ``carried``, shape
    (chunks, links), -1: never. Epochs in which something changes, ``busy``, shape (epochs + 2,)."""

    arrive: IntArray
    soonest: IntArray
    carried: IntArray
    busy: BoolArray


def _offsets(routes: SwitchRoutes, links: int) -> Offsets:
    """The offsets at which routes use every link: a link that is free again is so for routes begun earlier."""
    pairs = np.unique(np.stack([routes.link, routes.offset]), axis=1)
    return Offsets(np.searchsorted(pairs[0], np.arange(links + 1)).astype(np.int64), pairs[1].astype(np.int64))


@jit
def _shared(c: int, first: int, last: int, k: int, routes: EpochRoutes, carried: IntArray) -> int:
    """How many of the links ``first:last`` of a route carry the chunk at the right time already."""
    for i in range(first, last):
        if carried[c, routes.link[i]] != k + routes.offset[i]:
            return int(i - first)
    return last - first


@jit
def _gain(c: int, v: int, done: int, chunks: Chunks, progress: Progress) -> int:
    """Epochs, summed over who wants the chunk, that it comes sooner if it is at v when ``done``."""
    gain: Any = np.int64(0)
    for w in range(chunks.wanted.shape[1]):
        if chunks.wanted[c, w] and progress.arrive[c, w] > done + chunks.distance[v, w]:
            gain += max(0, progress.soonest[c, w] - done - chunks.distance[v, w])
    return int(gain)


@jit
def _look(k: int, progress: Progress, distance: IntArray) -> None:
    """When every node could have every chunk if nothing were sent in epoch k and nothing in the way later."""
    arrive, soonest = progress.arrive, progress.soonest
    chunks, nodes = arrive.shape
    soonest[:] = UNREACHABLE_EPOCHS
    for c in range(chunks):
        for v in range(nodes):
            if arrive[c, v] < UNREACHABLE_EPOCHS:
                since = max(arrive[c, v], k + 1)
                for w in range(nodes):
                    soonest[c, w] = min(soonest[c, w], since + distance[v, w])


@jit
def _best_send(
    e: int, first_route: int, last_route: int, k: int, chunks: Chunks, links: EpochLinks, routes: EpochRoutes,
    reserved: EpochReservations, progress: Progress, jitter: FloatArray,
) -> tuple[int, int]:  # fmt: skip
    """The route among ``first_route:last_route``, which end with link e, and the chunk whose arrival brings most if it
    starts in epoch k; -1 if none brings anything."""
    epochs = reserved.used.shape[1]
    arrive, carried = progress.arrive, progress.carried
    best, best_route, best_chunk = 0.0, -1, -1
    for r in range(first_route, last_route):
        u, v = routes.source[r], routes.target[r]
        done = k + routes.lag[r]
        if done > epochs:
            continue
        first, last = routes.row[r], routes.row[r + 1]
        if not fits_route(links, reserved, routes, last - 1, last, k):
            continue
        whole = fits_route(links, reserved, routes, first, last, k)
        for c in range(len(chunks.origin)):
            if arrive[c, u] > k or arrive[c, v] <= done or carried[c, e] == k + routes.offset[last - 1]:
                continue
            shared = _shared(c, first, last - 1, k, routes, carried) if chunks.copies else 0
            if not whole and shared < last - first - 1:
                continue
            gain = _gain(c, v, done, chunks, progress)
            if gain <= 0:
                continue
            score = gain + jitter[e, c] + 0.4 * shared + 0.01 * np.random.random()
            if score > best:
                best, best_route, best_chunk = score, r, c
    return best_route, best_chunk


@jit
def _send(
    r: int, c: int, k: int, chunks: Chunks, links: EpochLinks, routes: EpochRoutes, late: Offsets,
    reserved: EpochReservations, progress: Progress, rows: IntArray, count: int,
) -> int:  # fmt: skip
    """Reserve route r for chunk c from epoch k on, as far as its links do not carry it yet, and write the sends into
    ``rows`` behind the first ``count``; how many there are now."""
    epochs = reserved.used.shape[1]
    carried, busy = progress.carried, progress.busy
    alone = False
    for i in range(routes.row[r], routes.row[r + 1]):
        link, t = routes.link[i], k + routes.offset[i]
        final = i == routes.row[r + 1] - 1
        if chunks.copies and not final and not alone and carried[c, link] == t:
            continue
        alone = True
        reserve_epoch(links, reserved, link, t, 1)
        carried[c, link] = t
        if links.group[link] >= 0:
            busy[min(epochs, t + links.group_window[links.group[link]])] = True
        for j in range(late.row[link], late.row[link + 1]):
            again = t + links.window[link] - late.offset[j]
            if again > k:
                busy[min(epochs, again)] = True
        rows[count, 0], rows[count, 1], rows[count, 2] = c, link, t
        count += 1
    v, done = routes.target[r], k + routes.lag[r]
    progress.arrive[c, v] = done
    busy[min(epochs, done)] = True
    for w in range(len(chunks.distance)):
        progress.soonest[c, w] = min(progress.soonest[c, w], done + chunks.distance[v, w])
    return count


@jit
def _start(chunks: Chunks, links: int, epochs: int) -> tuple[Progress, int]:
    """When chunks are at their origins only, and how many arrivals are missing."""
    count, nodes = chunks.wanted.shape
    progress = Progress(
        np.full((count, nodes), UNREACHABLE_EPOCHS, dtype=np.int64),
        np.full((count, nodes), UNREACHABLE_EPOCHS, dtype=np.int64),
        np.full((count, links), -1, dtype=np.int64),
        np.zeros(epochs + 2, dtype=np.bool_),
    )
    progress.busy[0] = True
    missing = 0
    for c in range(count):
        progress.arrive[c, chunks.origin[c]] = 0
        for v in range(nodes):
            if chunks.wanted[c, v] and v != chunks.origin[c]:
                missing += 1
    return progress, missing


@jit
def _run(
    chunks: Chunks, links: EpochLinks, routes: EpochRoutes, by_last: IntArray, late: Offsets, order: IntArray,
    jitter: FloatArray, seed: int, epochs: int, seconds: float,
) -> tuple[int, IntArray]:  # fmt: skip
    """Number of sends and their rows (chunk, link, epoch); -1 where so many epochs are not enough, or once ``seconds``
    have passed."""
    end = now() + seconds
    np.random.seed(seed)
    progress, missing = _start(chunks, len(links.quota), epochs)
    reserved = new_epochs(links, epochs, False)
    rows = np.empty((1024, 3), dtype=np.int64)
    count = 0
    for k in range(epochs):
        if not progress.busy[k]:
            continue
        if missing == 0:
            break
        _look(k, progress, chunks.distance)
        for e in order:
            if by_last[e] == by_last[e + 1]:
                continue
            while True:
                if now() > end:
                    return -1, rows[:0]
                r, c = _best_send(e, by_last[e], by_last[e + 1], k, chunks, links, routes, reserved, progress, jitter)
                if r < 0:
                    break
                while count + routes.row[r + 1] - routes.row[r] > len(rows):
                    more = np.empty((2 * len(rows), 3), dtype=np.int64)
                    more[:count] = rows[:count]
                    rows = more
                v = routes.target[r]
                if chunks.wanted[c, v] and progress.arrive[c, v] == UNREACHABLE_EPOCHS:
                    missing -= 1
                count = _send(r, c, k, chunks, links, routes, late, reserved, progress, rows, count)
    if missing:
        return -1, rows[:0]
    return count, rows[:count]
