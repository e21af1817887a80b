"""Every topology with two ports for shifts on one topology throughout, up to 8 GPUs: an oracle with no program's
answer and no bound of the family.

GPU u sends to two GPUs (or to itself: an idle port). Adding links never hurts, so at most one GPU has idle ports. The
steps being shifts, a topology may be turned until no GPU's pair of offsets comes before GPU 0's. What is below
``below`` by two counts comes back: routes take at least the distances, and where a pair has one link of its own of
load u < 1, what is left of it makes two hops; and at any prices of links the pairs pay for cheapest routes, however
many hops these take, at most the load times all prices.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit
from synth_models.harvest.programs.column_generation.congestion import _cheapest_routes, _power_sum, _split_evenly


@jit
def _distances(to: IntArray, apart: IntArray) -> None:
    gpus = len(to)
    for u in range(gpus):
        for v in range(gpus):
            apart[u, v] = 0 if u == v else 99
        for port in range(2):
            if to[u, port] != u:
                apart[u, to[u, port]] = 1
    for middle in range(gpus):
        for u in range(gpus):
            for v in range(gpus):
                apart[u, v] = min(apart[u, v], apart[u, middle] + apart[middle, v])


@jit
def _least_load(to: IntArray, shift: int, rounds: int) -> float:
    """Below the load of every routing of a shift, by the prices of a routing that is balanced step by step (with the
    kernels of `column_generation`; that cheapest routes pay no more than the load is true at any prices)."""
    gpus = len(to)
    everyone, starts, volume = np.arange(gpus), np.arange(gpus + 1), np.ones(gpus)
    ends = (everyone + shift) % gpus
    load, price, towards = np.zeros((gpus, 2)), np.empty((gpus, 2)), np.empty((gpus, 2))
    best = 0.0
    _split_evenly(to, everyone, everyone, starts, ends, volume, load)
    for _ in range(rounds):
        unit = load.max()
        for u in range(gpus):
            for port in range(2):
                price[u, port] = 0.0 if to[u, port] == u else (load[u, port] / unit) ** 7 + 1e-6
        towards[:] = 0.0
        _cheapest_routes(to, everyone, everyone, starts, ends, volume, price, gpus - 1, towards)
        best = max(best, (towards * price).sum() / price.sum())
        low, high = 0.0, 1.0
        for _ in range(8):
            third = (high - low) / 3
            if _power_sum(load, towards, low + third, unit) <= _power_sum(load, towards, high - third, unit):
                high -= third
            else:
                low += third
        if low + high < 2e-4:
            break
        load += (low + high) / 2 * (towards - load)
    return best


@jit
def _seconds(
    to: IntArray, shifts: IntArray, unit: FloatArray, hop_delay: float, below: float, apart: IntArray
) -> float:
    """Never above the seconds of the steps on the topology."""
    gpus = len(to)
    _distances(to, apart)
    total, least = 0.0, np.empty(len(shifts))
    for k in range(len(shifts)):
        hops, farthest, single = 0, 0, 0
        for u in range(gpus):
            away = apart[u, (u + shifts[k]) % gpus]
            hops += away
            farthest = max(farthest, away)
            single += away == 1 and to[u, 0] != to[u, 1]
        links = 2.0 * gpus
        least[k] = max(0.5, hops / links, min(1.0, (hops + single) / (links + single)))
        total += unit[k] * least[k] + hop_delay * farthest
    for rounds in (3, 60):
        for k in range(len(shifts)):
            if total >= below:
                return total
            more = _least_load(to, shifts[k], rounds)
            total += unit[k] * max(0.0, more - least[k])
            least[k] = max(least[k], more)
    return total


@jit
def _search(
    gpus: int, shifts: IntArray, unit: FloatArray, hop_delay: float, below: float, found: IntArray
) -> tuple[int, int]:
    """How many topologies there are, and how many may take less than ``below``; these are written to ``found``."""
    first, second = np.empty(gpus * gpus, np.int64), np.empty(gpus * gpus, np.int64)
    options = 0
    for a in range(gpus):
        for b in range(a, gpus):
            first[options], second[options] = a, b
            options += 1
    to, apart, into = np.zeros((gpus, 2), np.int64), np.empty((gpus, gpus), np.int64), np.zeros(gpus, np.int64)
    chosen = np.full(gpus, -1)
    depth, idle, count, left = 0, 0, 0, 0
    while depth >= 0:
        if chosen[depth] >= 0:
            into[to[depth, 0]] -= 1
            into[to[depth, 1]] -= 1
            idle -= to[depth, 0] == depth or to[depth, 1] == depth
        chosen[depth] += 1
        while chosen[depth] < options:
            a, b = (depth + first[chosen[depth]]) % gpus, (depth + second[chosen[depth]]) % gpus
            loops = a == depth or b == depth
            full = into[a] > 0 if a == b else into[a] > 1 or into[b] > 1
            if not full and not (loops and idle > 0) and (depth == 0 or chosen[depth] >= chosen[0]):
                break
            chosen[depth] += 1
        if chosen[depth] == options:
            chosen[depth] = -1
            depth -= 1
            continue
        to[depth, 0], to[depth, 1] = a, b
        into[a] += 1
        into[b] += 1
        idle += loops
        if depth + 1 < gpus:
            depth += 1
            continue
        count += 1
        if _seconds(to, shifts, unit, hop_delay, below, apart) < below:
            found[left] = to
            left += 1
    return count, left


def below(
    gpus: int, shifts: list[int], unit: list[float], hop_delay: float, seconds: float
) -> tuple[int, list[list[tuple[int, int, int]]]]:
    """How many topologies were looked at, and the links of those on which the shifts, ``unit[k]`` seconds each on one
    link, may take less than ``seconds``, without what a step takes to begin."""
    found = np.empty((100_000, gpus, 2), dtype=np.int64)
    count, left = _search(gpus, np.array(shifts), np.array(unit), hop_delay, seconds, found)
    matrices = []
    for to in found[:left]:
        links = np.zeros((gpus, gpus), dtype=int)
        np.add.at(links, (np.repeat(np.arange(gpus), 2), to.ravel()), 1)
        np.fill_diagonal(links, 0)
        matrices.append([(int(u), int(v), int(links[u, v])) for u, v in np.argwhere(links)])
    return count, matrices
