"""Loops over arcs: the sum of hops, and paths that avoid what is loaded."""

from __future__ import annotations

import math

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit

UNREACHED = 1 << 60
STEEP = 100.0  # how fast an arc's price falls with its load
PULL = 4.0  # the price of the fullest arc beside that of a hop, where paths may be longer than the shortest
FAR = 1e18


@jit
def hop_sum(start: IntArray, head: IntArray, sources: IntArray) -> int:
    """The hops from the sources to all nodes, :data:`UNREACHED` where some node is out of reach. O(sources * arcs).

    The arcs of node v lead to ``head[start[v]:start[v + 1]]``."""
    nodes = len(start) - 1
    away, order, total = np.empty(nodes, np.int64), np.empty(nodes, np.int64), 0
    for source in sources:
        away[:] = -1
        away[source], order[0], first, last = 0, source, 0, 1
        while first < last:
            at = order[first]
            first += 1
            for arc in range(start[at], start[at + 1]):
                to = head[arc]
                if away[to] < 0:
                    away[to] = away[at] + 1
                    total += away[to]
                    order[last] = to
                    last += 1
        if last < nodes:
            return UNREACHED
    return total


@jit
def _prices(load: FloatArray, price: FloatArray) -> None:
    """e to the power of :data:`STEEP` times how far each load is below the largest, as a share of that."""
    largest = 1e-9
    for o in range(len(load)):
        largest = max(largest, load[o])
    for o in range(len(load)):
        price[o] = math.exp(STEEP * (load[o] / largest - 1.0))


@jit
def avoid_loads(
    start: IntArray,
    head: IntArray,
    tail: IntArray,
    of: IntArray,
    room: FloatArray,
    sources: IntArray,
    weight: FloatArray,
    flow: IntArray,
    load: FloatArray,
    rounds: int,
) -> None:
    """Send a unit from every source to all nodes, ``rounds`` times, along the tree of shortest paths that now carries
    least; add what it puts on the arcs to ``flow``, shape (sources, arcs), and to ``load``, shape (orbits of arcs,).

    Arc a is of the orbit ``of[a]``, which has ``room`` arcs; what source s sends counts ``weight[s]`` times. An arc
    costs what :func:`_prices` says. O(rounds * sources * arcs).
    """
    nodes = len(start) - 1
    away, order, by = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    cost, behind, price = np.empty(nodes, np.float64), np.empty(nodes, np.int64), np.empty(len(load), np.float64)
    for _ in range(rounds):
        for s in range(len(sources)):
            _prices(load, price)
            away[:] = -1
            away[sources[s]], order[0], cost[sources[s]], first, last = 0, sources[s], 0.0, 0, 1
            while first < last:
                at = order[first]
                first += 1
                for arc in range(start[at], start[at + 1]):
                    to = head[arc]
                    dearer = cost[at] + price[of[arc]]
                    if away[to] < 0:
                        away[to], order[last], cost[to], by[to] = away[at] + 1, to, dearer, arc
                        last += 1
                    elif away[to] == away[at] + 1 and dearer < cost[to]:
                        cost[to], by[to] = dearer, arc
            behind[:] = 1
            for place in range(last - 1, 0, -1):
                node = order[place]
                arc = by[node]
                behind[tail[arc]] += behind[node]
                flow[s, arc] += behind[node]
                load[of[arc]] += weight[s] * behind[node] / room[of[arc]]


@jit
def detour_loads(
    start: IntArray,
    head: IntArray,
    tail: IntArray,
    of: IntArray,
    room: FloatArray,
    sources: IntArray,
    weight: FloatArray,
    flow: IntArray,
    load: FloatArray,
    rounds: int,
) -> None:
    """As :func:`avoid_loads`, over paths of any number of hops: an arc costs 1 and :data:`PULL` times that.

    Paths are found by relaxing arcs from a queue of nodes. About O(rounds * sources * arcs)."""
    nodes = len(start) - 1
    cost, by, price = np.empty(nodes, np.float64), np.empty(nodes, np.int64), np.empty(len(load), np.float64)
    queue, queued = np.empty(nodes + 1, np.int64), np.zeros(nodes, np.bool_)
    for _ in range(rounds):
        for s in range(len(sources)):
            _prices(load, price)
            cost[:] = FAR
            cost[sources[s]], queue[0], first, last = 0.0, sources[s], 0, 1
            while first != last:
                at = queue[first]
                first = (first + 1) % (nodes + 1)
                queued[at] = False
                for arc in range(start[at], start[at + 1]):
                    to = head[arc]
                    through = cost[at] + 1.0 + PULL * price[of[arc]]
                    if through < cost[to] - 1e-9:
                        cost[to], by[to] = through, arc
                        if not queued[to]:
                            queued[to], queue[last] = True, to
                            last = (last + 1) % (nodes + 1)
            for node in range(nodes):
                at = node
                while at != sources[s]:
                    arc = by[at]
                    flow[s, arc] += 1
                    load[of[arc]] += weight[s] / room[of[arc]]
                    at = tail[arc]
