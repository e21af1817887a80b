"""Annealing over the topologies of a lift: links change where they lead, two at a time where degrees ask for it.

A move takes one link of an orbit's first GPU (and so its images) to another GPU of the orbit it leads to, or exchanges
the orbits that two links lead to (a 2-opt move on regular digraphs); a third of the exchanges give a pair of the steps
its link. The same seed gives the same topologies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit
from synth_models.harvest.programs.column_generation.congestion import interval_seconds
from synth_models.harvest.programs.column_generation.lifts import Lift

HOT, COLD = 0.05, 0.0005  # temperatures as shares of the seconds at the beginning
WORK, AT_ONCE = 4_000_000, 50  # between two looks at the clock: links times sources times patterns, and turns
LONG = 1e200  # seconds that no topology takes on which all pairs are reached


class Demand(NamedTuple):
    """An interval's steps for the first GPUs of a lift's orbits, as :func:`interval_seconds` wants them; ``begins``
    (pairs,) is the orbit that each pair begins in."""

    starts: IntArray
    ends: IntArray
    begins: IntArray
    volume: FloatArray
    least_load: FloatArray
    steps: FloatArray


class _Orbits(NamedTuple):
    """Orbits of GPUs under a group: where its elements have ``moved`` every GPU, shape (elements, gpus); the ``orbit``
    of every GPU, shape (gpus,); the first GPU of every orbit, ``sources``, shape (orbits,); and its ``members``, shape
    (orbits, elements)."""

    moved: IntArray
    orbit: IntArray
    sources: IntArray
    members: IntArray


class _Turns(NamedTuple):
    """The turns from ``first`` to before ``behind``, of ``all`` that the temperature falls over."""

    first: int
    behind: int
    all: int


@jit
def _lead(out: IntArray, moved: IntArray, sources: IntArray, number: int, port: int, target: int) -> None:
    """Let a link of an orbit's first GPU, and its images, lead to ``target`` and its images."""
    for g in range(len(moved)):
        out[moved[g, sources[number]], port] = moved[g, target]


@jit
def _anneal(
    targets: IntArray,
    out: IntArray,
    orbits_of: _Orbits,
    demand: Demand,
    hop_delay: float,
    unit: float,
    turns: _Turns,
    seed: int,
) -> tuple[IntArray, float]:
    """Some turns; ``targets`` and ``out`` become the last topology, what is returned is the best one and its
    seconds."""
    moved, orbit, sources, members = orbits_of
    starts, ends, begins, volume, least_load, steps = demand
    np.random.seed(seed)
    orbits, ports = targets.shape
    order = members.shape[1]
    now = interval_seconds(out, orbit, sources, starts, ends, volume, least_load, steps, hop_delay, 1e299)
    best, kept = now, targets.copy()
    for turn in range(turns.first, turns.behind):
        heat = min(unit, now) * HOT * (COLD / HOT) ** (turn / turns.all)
        i, p = np.random.randint(orbits), np.random.randint(ports)
        first, k, q = targets[i, p], -1, -1
        second = first
        wish = np.random.random()
        if order > 1 and wish < 0.4:
            new_first = members[orbit[first], np.random.randint(order)]
            new_second = new_first
        else:
            k, q = np.random.randint(orbits), np.random.randint(ports)
            if wish > 0.8:  # a pair of the steps gets its link
                index = np.random.randint(len(ends))
                i = begins[index]
                first = targets[i, p]
                wanted = orbit[ends[index]]
                for _ in range(orbits * ports):  # some link that leads to the orbit of the pair's end
                    k, q = (k + (q + 1) // ports) % orbits, (q + 1) % ports
                    if orbit[targets[k, q]] == wanted:
                        break
                new_first = ends[index]
            else:
                new_first = targets[k, q]
                if np.random.random() < 0.5:
                    new_first = members[orbit[new_first], np.random.randint(order)]
            second = targets[k, q]
            new_second = first
            if np.random.random() < 0.5:
                new_second = members[orbit[first], np.random.randint(order)]
            if k == i and q == p:
                k = -1
        if new_first == first and (k < 0 or new_second == second):
            continue
        _lead(out, moved, sources, i, p, new_first)
        if k >= 0:
            _lead(out, moved, sources, k, q, new_second)
        enough = now - heat * math.log(1.0 - np.random.random())
        found = interval_seconds(out, orbit, sources, starts, ends, volume, least_load, steps, hop_delay, enough)
        if found <= enough:
            now = found
            targets[i, p] = new_first
            if k >= 0:
                targets[k, q] = new_second
            if now < best * (1 - 1e-9):
                best = now
                kept[:] = targets
        else:
            _lead(out, moved, sources, i, p, first)
            if k >= 0:
                _lead(out, moved, sources, k, q, second)
    return kept, best


def anneal(
    lift: Lift, demand: Demand, begin: IntArray, hop_delay: float, tries: int, seed: int, stop: Callable[[], bool]
) -> tuple[IntArray, float]:
    """The best targets met from ``begin`` on, and their seconds (1e300 where a pair cannot be reached)."""
    targets, out = begin.copy(), lift.unfolded(begin)
    kept, best = begin, seconds(lift, demand, begin, hop_delay)
    sources, ports = begin.shape
    at_once = min(AT_ONCE, 1 + WORK // (sources * lift.gpus * ports * len(demand.starts)))
    for turn in range(0, tries, at_once):
        if stop():
            break
        found, took = _anneal(
            targets,
            out,
            _Orbits(lift.moved, lift.orbit, lift.sources, lift.members),
            demand,
            hop_delay,
            min(best, LONG),
            _Turns(turn, min(turn + at_once, tries), tries),
            (seed + turn) % (1 << 31),
        )
        if took < best:
            kept, best = found, took
    return kept, best


def seconds(lift: Lift, demand: Demand, targets: IntArray, hop_delay: float, enough: float = LONG) -> float:
    """Seconds of the interval's steps on a topology, without their alpha; above ``enough`` only that they are."""
    return float(
        interval_seconds(
            lift.unfolded(targets),
            lift.orbit,
            lift.sources,
            demand.starts,
            demand.ends,
            demand.volume,
            demand.least_load,
            demand.steps,
            hop_delay,
            enough,
        )
    )
