"""How long an interval's steps take on a topology, to a few per cent and in microseconds: what the search compares.

A topology is given by what leaves one GPU of every orbit (:mod:`.lifts`), a pattern by the pairs of these GPUs; loads
are those of orbits of links. Routes of at most L hops are balanced by Frank-Wolfe steps on the sum of the loads' eighth
powers, from an even split over shortest routes. So loads are those of a routing that exists: never below those of the
concurrent flow (:mod:`synth_models.harvest.parts.flows`), by which every topology that is kept is rated at the end.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.graph.hops import breadth_first
from synth.kernels import jit

ROUNDS = 10  # of Frank-Wolfe for a hop limit
IDLE = 3e-3  # relative: two rounds that gain less end them
LONGER = 3  # hop limits above the smallest one
NEVER = 1e300


@jit
def _split_evenly(
    out: IntArray,
    orbit: IntArray,
    sources: IntArray,
    start: IntArray,
    ends: IntArray,
    volume: FloatArray,
    load: FloatArray,
) -> None:
    """Add to ``load`` (orbits, ports) what an even split over the shortest routes of the pairs puts on links."""
    gpus, ports = out.shape
    first_port, heads = np.arange(0, gpus * ports + 1, ports), out.ravel()
    distance, queue = np.empty(gpus, np.int64), np.empty(gpus, np.int64)
    ways, passing = np.empty(gpus), np.empty(gpus)
    for number in range(len(sources)):
        if start[number] == start[number + 1]:
            continue
        breadth_first(first_port, heads, sources[number], distance, queue)
        ways[:] = 0.0
        passing[:] = 0.0
        ways[sources[number]] = 1.0
        deepest = 0
        for index in range(start[number], start[number + 1]):
            passing[ends[index]] += volume[index]
            deepest = max(deepest, distance[ends[index]])
        last = 0
        for place in range(gpus):
            at = queue[place]
            if at < 0 or distance[at] >= deepest:
                break
            last = place
            for port in range(out.shape[1]):
                if distance[out[at, port]] == distance[at] + 1:
                    ways[out[at, port]] += ways[at]
        for place in range(last, -1, -1):  # what passes a GPU comes from those before it as their numbers of routes
            at = queue[place]
            for port in range(out.shape[1]):
                to = out[at, port]
                if distance[to] == distance[at] + 1 and passing[to] > 0.0:
                    share = passing[to] * ways[at] / ways[to]
                    load[orbit[at], port] += share
                    passing[at] += share


@jit
def _cheapest_routes(
    out: IntArray,
    orbit: IntArray,
    sources: IntArray,
    start: IntArray,
    ends: IntArray,
    volume: FloatArray,
    price: FloatArray,
    hops: int,
    load: FloatArray,
) -> None:
    """Add to ``load`` all pairs on cheapest routes of at most ``hops`` hops under ``price`` (orbits, ports)."""
    gpus = len(out)
    cost = np.empty((hops + 1, gpus))
    by_gpu, by_port = np.empty((hops + 1, gpus), np.int64), np.empty((hops + 1, gpus), np.int64)
    reached = np.empty((hops + 1, gpus), np.int64)
    for number in range(len(sources)):
        if start[number] == start[number + 1]:
            continue
        cost[:] = NEVER
        cost[0, sources[number]] = 0.0
        reached[0, 0], count = sources[number], 1
        for hop in range(hops):
            following = 0
            for place in range(count):
                at = reached[hop, place]
                for port in range(out.shape[1]):
                    to, along = out[at, port], cost[hop, at] + price[orbit[at], port]
                    if along < cost[hop + 1, to]:
                        if cost[hop + 1, to] >= NEVER:
                            reached[hop + 1, following] = to
                            following += 1
                        cost[hop + 1, to] = along
                        by_gpu[hop + 1, to], by_port[hop + 1, to] = at, port
            count = following
        for index in range(start[number], start[number + 1]):
            at, best = ends[index], 1
            for hop in range(2, hops + 1):
                if cost[hop, at] < cost[best, at]:
                    best = hop
            for hop in range(best, 0, -1):
                before = by_gpu[hop, at]
                load[orbit[before], by_port[hop, at]] += volume[index]
                at = before


@jit
def _power_sum(load: FloatArray, towards: FloatArray, step: float, unit: float) -> float:
    total = 0.0
    for i in range(load.shape[0]):
        for port in range(load.shape[1]):
            share = (load[i, port] + step * (towards[i, port] - load[i, port])) / unit
            square = share * share  # products, as a power may be rounded in other ways
            fourth = square * square
            total += fourth * fourth
    return total


@jit
def balance(
    out: IntArray,
    orbit: IntArray,
    sources: IntArray,
    start: IntArray,
    ends: IntArray,
    volume: FloatArray,
    hops: int,
    load: FloatArray,
    floor: float,
) -> float:
    """Lower the largest of ``load`` (orbits, ports; that of a routing within ``hops``) in place by Frank-Wolfe steps;
    returns the largest load met. Stops at ``floor``."""
    best, idle = float(load.max()), 0
    price, towards = np.empty_like(load), np.empty_like(load)
    for _ in range(ROUNDS):
        if best <= floor * (1 + 1e-6):
            break
        unit = load.max()
        for i in range(load.shape[0]):
            for port in range(load.shape[1]):
                share = load[i, port] / unit
                square = share * share
                price[i, port] = square * square * square * share + 1e-6
        towards[:] = 0.0
        _cheapest_routes(out, orbit, sources, start, ends, volume, price, hops, towards)
        low, high = 0.0, 1.0
        for _ in range(8):  # the sum of powers is convex along the way
            third = (high - low) / 3
            if _power_sum(load, towards, low + third, unit) <= _power_sum(load, towards, high - third, unit):
                high -= third
            else:
                low += third
        step = (low + high) / 2
        if step < 1e-4:
            break
        for i in range(load.shape[0]):
            for port in range(load.shape[1]):
                load[i, port] += step * (towards[i, port] - load[i, port])
        largest = float(load.max())
        idle = 0 if largest < best * (1 - IDLE) else idle + 1
        best = min(best, largest)
        if idle == 2:
            break
    return best


@jit
def interval_seconds(
    out: IntArray,
    orbit: IntArray,
    sources: IntArray,
    starts: IntArray,
    ends: IntArray,
    volume: FloatArray,
    least_load: FloatArray,
    steps: FloatArray,
    hop_delay: float,
    enough: float,
) -> float:
    """Seconds of the steps on a topology, without their alpha; once it is clear that they are above ``enough``, that.

    ``out`` (gpus, ports); ``orbit`` (gpus,); ``sources`` (orbits,), the first GPU of each; ``starts``
    (patterns, orbits + 1) cuts ``ends`` and ``volume`` (pairs,) by pattern and source; ``least_load`` (patterns,) is
    below every load; ``steps`` rows (pattern, seconds a unit of load, how many), sorted by pattern.
    """
    gpus, ports = out.shape
    patterns, orbits = starts.shape[0], len(sources)
    first_port, heads = np.arange(0, gpus * ports + 1, ports), out.ravel()
    distance, queue = np.empty(gpus, np.int64), np.empty(gpus, np.int64)
    farthest, floor = np.zeros(patterns, np.int64), np.zeros(patterns)
    for number in range(orbits):
        wanted = False
        for pattern in range(patterns):
            wanted = wanted or starts[pattern, number] < starts[pattern, number + 1]
        if not wanted:
            continue
        breadth_first(first_port, heads, sources[number], distance, queue)
        for pattern in range(patterns):
            for index in range(starts[pattern, number], starts[pattern, number + 1]):
                apart = distance[ends[index]]
                if apart < 0:
                    return NEVER
                farthest[pattern] = max(farthest[pattern], apart)
                floor[pattern] += apart * volume[index]
    least = np.zeros(patterns)
    total = 0.0
    for pattern in range(patterns):
        floor[pattern] = max(floor[pattern] / (orbits * ports), least_load[pattern])
    for row in range(len(steps)):
        pattern = int(steps[row, 0])
        seconds = steps[row, 2] * (hop_delay * farthest[pattern] + steps[row, 1] * floor[pattern])
        least[pattern] += seconds
        total += seconds
    if total > enough:
        return float(total)
    load, point = np.empty((orbits, ports)), np.empty(LONGER + 1)
    for pattern in range(patterns):
        load[:] = 0.0
        mine = starts[pattern]
        _split_evenly(out, orbit, sources, mine, ends, volume, load)
        largest, tried = float(load.max()), 0
        for more in range(LONGER + 1 if ports > 1 else 1):
            if ports > 1:
                hops = farthest[pattern] + more
                found = balance(out, orbit, sources, mine, ends, volume, hops, load, floor[pattern])
                largest = min(largest, found)
            point[more] = largest
            tried = more + 1
            if largest <= floor[pattern] * (1 + 1e-6):
                break
            worth = 0.0  # the most that more hops could gain for a step
            for row in range(len(steps)):
                if int(steps[row, 0]) == pattern:
                    worth = max(worth, steps[row, 1] * (largest - floor[pattern]) - hop_delay)
            if worth <= 0.0:
                break
        total -= least[pattern]
        for row in range(len(steps)):
            if int(steps[row, 0]) != pattern:
                continue
            best = NEVER
            for more in range(tried):
                best = min(best, hop_delay * (farthest[pattern] + more) + steps[row, 1] * point[more])
            total += steps[row, 2] * best
        if total > enough:
            return float(total)
    return float(total)
