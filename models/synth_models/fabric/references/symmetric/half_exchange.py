"""Allreduce of short messages on tori: pairs of ranks exchange, two halves sum up at two far ranks, which spread it.

A rank holds one partial sum of a piece, and what it has added it cannot pass on without. So one root sums up in a
diameter and takes another to spread the sum. Once pairs of neighbours have exchanged what they have, either rank of a
pair has both, and the halves of :mod:`synth.graph.torus_halves` sum up all there is side by side, each at its own root;
from two roots half a torus apart it is half a diameter to every rank. That is 1.5 diameters in place of 2.

Every rank's share of the buffer is summed up so at the same time: one rank's transfers, moved by the steps of the
torus. All of them load the links of one direction alike, so the timetable of one share on as many links as there are
directions is everybody's. On n ranks a share takes ``3 n - 4`` sends, against ``2 n - 2`` over one root.

Complexity: the square of the sends of a share (:func:`_placed`); 3 n^2 transfers, made as arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.graph.torus_halves import Halves, halves
from synth.network import Network
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.references.symmetric.one_origin import NOBODY
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.solution import Schedule


class _Sends:
    """What is sent of one share: whence, in which direction, whether it adds. ``job``: its number among what starts
    together, which is one send or the two of an exchange; ``after``, ``arrived``: the jobs that a job waits for, and
    whether until they have arrived or until they have started; ``late``: steps that a job may be behind."""

    def __init__(self, target: IntArray) -> None:
        self._target = target
        self.source: list[int] = []
        self.direction: list[int] = []
        self.adds: list[bool] = []
        self.job: list[int] = []
        self.after: list[list[int]] = []
        self.arrived: list[list[int]] = []
        self.late: list[int] = []
        self._used: dict[tuple[bool, int], IntArray] = {}

    def add(self, ends: Sequence[tuple[int, int]], adds: bool, late: int) -> int:
        """A job that sends from the first of every pair of neighbours to the second; its number."""
        for u, v in ends:
            direction = int(np.flatnonzero(self._target[u] == v)[0])
            self.source.append(u)
            self.direction.append(direction)
            self.adds.append(adds)
            self.job.append(len(self.after))
        self.after.append([])
        self.arrived.append([])
        self.late.append(late)
        return len(self.after) - 1

    def in_turn(self, u: int, wanted: BoolArray, up: bool, level: int) -> int:
        """Of the neighbours of u that are wanted, shape (directions,), one in the direction that was taken least often
        so far in this level, on the way up or down."""
        used = self._used.setdefault((up, level), np.zeros(len(wanted), dtype=np.int64))
        ways = np.flatnonzero(wanted)
        way = ways[int(np.argmin(used[ways]))]
        used[way] += 1
        return int(self._target[u, way])


def halves_of(instance: FabricInstance) -> Halves | None:
    """The halves of an instance's torus; None where it is none of three sides."""
    sides = instance.machine.network.grid
    long = tuple(side for side in sides or () if side > 1)
    return halves(long) if instance.collective == "allreduce" else None


def half_exchange(instance: FabricInstance, image: IntArray, link: IntArray, target: IntArray, count: int) -> Schedule:
    """The schedule in ``count`` chunks a share. ``image``: the symmetry that carries node 0 to every node, shape
    (nodes, nodes); ``link``, ``target``: of every node by direction, shape (nodes, directions)."""
    made = halves_of(instance)
    assert made is not None
    net, n = instance.machine.network, instance.machine.nodes
    sends = _one_share(made, target)
    size = np.array(chunks.equal(int(instance.blocks.bytes[0]), n * count), dtype=np.int64)
    jobs, largest = len(sends.after), int(size.max())
    ticks = clock.ticks_per_second(instance.machine, _most_seconds(net, largest, jobs * count))
    takes = clock.durations(instance.machine, ticks, largest)[link[0]]
    lags = takes + clock.latencies(instance.machine, ticks)[link[0]]
    start = _placed(sends, takes, lags, count)[np.array(sends.job)[:, None] + jobs * np.arange(count)]
    piece = np.arange(n)[:, None] + n * np.arange(count)  # of rank and chunk
    piece = np.where(piece < len(size), piece, NOBODY)
    shape = (len(sends.source), count, n)  # send, chunk, rank whose share it is
    links = link[image[:, sends.source].T, np.array(sends.direction)[:, None]]
    table = [
        np.broadcast_to(column, shape).ravel()
        for column in (piece.T[None], links[:, None], start[:, :, None], np.array(sends.adds)[:, None, None])
    ]
    there = table[0] != NOBODY
    pieces, over, begins, adds = (column[there] for column in table)
    block = np.zeros(len(size), dtype=np.int64)
    routes = np.arange(len(pieces) + 1, dtype=np.int64)
    return Schedule(ticks, block, size, begins.astype(np.int64), pieces, adds, routes, over.astype(np.int64))


def sends_of_share(made: Halves) -> int:
    """How many transfers bring one share to all."""
    return 3 * len(made.half) - 4


def _most_seconds(net: Network, size: int, jobs: int) -> float:
    return jobs * (size / float(net.bandwidth.min()) + float(net.latency.max())) + 1e-6


def _one_share(made: Halves, target: IntArray) -> _Sends:
    """All pairs exchange, every half sums up at its root, and from either root the sum goes to all."""
    sends, n = _Sends(target), len(made.half)
    order = np.argsort(-made.away, kind="stable").tolist()
    deepest, roots = int(made.away.max()), set(made.root.tolist())
    parent = np.full(n, NOBODY, dtype=np.int64)
    exchange, up = np.full((2, n), NOBODY, dtype=np.int64)
    for u in order:
        v = int(made.partner[u])
        if exchange[u] == NOBODY:
            exchange[u] = exchange[v] = sends.add([(u, v), (v, u)], True, deepest - int(made.away[[u, v]].max()))
    for u in order:
        if u not in roots:
            next_to = target[u]
            nearer = (made.half[next_to] == made.half[u]) & (made.away[next_to] == made.away[u] - 1)
            parent[u] = sends.in_turn(u, nearer, True, int(made.away[u]))
            up[u] = sends.add([(u, int(parent[u]))], True, 1 + deepest - int(made.away[u]))
    for u in order:
        if u not in roots:
            sends.arrived[up[u]].append(int(exchange[u]))
            sends.after[up[u]].append(int(exchange[parent[u]]))  # which sends what it had before
            if up[parent[u]] != NOBODY:
                sends.arrived[up[parent[u]]].append(int(up[u]))
    complete = [int(up[u]) for u in order if parent[u] in roots] + [int(exchange[u]) for u in made.root.tolist()]
    came = np.full(n, NOBODY, dtype=np.int64)
    spread = np.argsort(made.near, kind="stable").tolist()
    height = np.zeros(n, dtype=np.int64)
    for u in spread:
        if u not in roots:
            nearer = made.near[target[u]] == made.near[u] - 1
            holder = sends.in_turn(u, nearer, False, int(made.near[u]))
            came[u] = sends.add([(holder, u)], False, 0)
            sends.arrived[came[u]] += complete if holder in roots else [int(came[holder])]
            parent[u] = holder
    for u in reversed(spread):
        if u not in roots:
            height[parent[u]] = max(height[parent[u]], height[u] + 1)
            sends.late[came[u]] = 2 * deepest + int(made.near.max() - height[u])
    return sends


def _placed(sends: _Sends, takes: IntArray, lags: IntArray, count: int) -> IntArray:
    """When every job of every chunk starts, shape (jobs * chunks,): always the one that can soonest, of those the one
    that may least be late. ``takes``, ``lags``: ticks on a link, and until it has arrived, by direction."""
    jobs = len(sends.after)
    first, last = np.full((2, jobs), NOBODY, dtype=np.int64)
    for direction, job in zip(sends.direction, sends.job, strict=True):
        first[job] = direction if first[job] == NOBODY else first[job]
        last[job] = direction
    lag = np.maximum(lags[first], lags[last])
    ready = np.zeros(jobs * count)
    waits = np.array([len(begun) + len(there) for begun, there in zip(sends.after, sends.arrived, strict=True)])
    followers: list[list[tuple[int, int]]] = [[] for _ in range(jobs)]
    for job in range(jobs):
        for before in sends.after[job]:
            followers[before].append((job, 0))
        for before in sends.arrived[job]:
            followers[before].append((job, int(lag[before])))
    waits, first, last, lag = (np.tile(column, count) for column in (waits, first, last, lag))
    hurry = np.tile(np.array(sends.late), count) * count + np.repeat(np.arange(count), jobs)
    start: FloatArray = np.full(jobs * count, -1.0)
    ready[waits > 0] = np.inf
    known, free = np.zeros(jobs * count), np.zeros(len(takes))
    for _ in range(jobs * count):
        soonest = np.maximum(ready, np.maximum(free[first], free[last]))
        able = np.flatnonzero(soonest == soonest.min())
        job = int(able[np.argmin(hurry[able])])
        start[job] = soonest[job]
        ready[job] = np.inf
        for direction in {int(first[job]), int(last[job])}:
            free[direction] = start[job] + takes[direction]
        chunk = job // jobs * jobs
        for after, behind in followers[job - chunk]:
            at = chunk + after
            known[at] = max(known[at], start[job] + behind)
            waits[at] -= 1
            if not waits[at]:
                ready[at] = known[at]
    return start.astype(np.int64)
