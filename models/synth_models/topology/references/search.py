"""Method ``search`` (ours): local search over lifts by the sum of lengths, then a routing of the best.

Copies of a cube, or of a few nodes where the plant is of the kind ``degree``, are joined alike but for how many copies
further a link leads (:mod:`synth_models.topology.parts.lifts`). So the ways to the nodes of one copy tell all, and the
copies are a symmetry of the routing. Simulated annealing turns one link, or two, at random; where the plant is of the
kind ``degree`` it also exchanges the ends of two links (:mod:`synth_models.topology.parts.lift_kernels`).

Links have the lengths by which the bound on the load is largest: where cubes are many, paths through circuits are
short, and so more units want a circuit than a link inside a cube. As many circuits must lead out of a cube as its cut
needs for the load of the bound, times :data:`MORE`. Starts differ in these lengths, or in how many copies there are. Of
several the one of least hops is kept; for the load all are routed in a hurry, and the best of these again with all
that time allows.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.topology.bounds.anywhere import by_levels
from synth_models.topology.instance import Budget, Cubes, TopologyInstance
from synth_models.topology.parts.arcs import arcs_of
from synth_models.topology.parts.completion import completed
from synth_models.topology.parts.kernels import hop_sum
from synth_models.topology.parts.lift_kernels import BITS, JOINED, LED, TURNED, UNREACHED, anneal, length_sum
from synth_models.topology.parts.lifts import Lift, circuits_of, circuits_of_cubes, lift_of_cubes, random_lift
from synth_models.topology.parts.routing import routed
from synth_models.topology.solution import Topology

HOT, COLD = 0.003, 0.0001  # temperatures at begin and end, as shares of the cost
SHORT = 0.02  # cost of a circuit too few out of a cube, as a share of that of the start
MORE = 1.03  # by how much the cut around a cube is to be wider than the least load needs
SHARE = 0.5  # of the time, for the moves
WORK = 8_000_000_000  # ports looked at in the moves of a start, at most: large lifts take fewer moves
BATCH = 50_000_000  # ports looked at before the clock is
STEPS = 10  # a guess of the longest way
PORTS = 48  # of the positions of a lift of nodes of a degree, about, at the first start


class _Start(NamedTuple):
    """Where a start ended: its circuits, and its sum of lengths or hops, infinite where nodes are apart."""

    cost: float
    circuits: IntArray


def solve(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """Method ``search``; parameters ``moves`` a start, at most, and ``starts``."""
    found: list[_Start] = []
    moving, starts = options.part(SHARE), options.method["starts"]
    for number in range(starts):
        if found and moving.out_of_time():
            break
        start = _anneal(instance, moving.part(1 / (starts - number)), options.method["moves"], number)
        if start.cost == math.inf:
            continue
        found.append(start)
        if instance.objective == "hops":
            arcs = arcs_of(instance, start.circuits)  # the lift has links that failed, and not those of a last port
            start = found[-1] = start._replace(cost=hop_sum(arcs.start, arcs.head, np.arange(instance.nodes)))
            options.held.offer(partial(Topology, start.circuits), start.cost, "the best start so far stands in")
    if found and instance.objective == "hops":
        return Outcome("finished", Topology(min(found, key=lambda start: start.cost).circuits))
    tried = [routed(instance, start.circuits, options, exact=False) for start in found]
    if not (quick := [one for one in tried if one is not None]):
        return Outcome("finished", message="no start joined all nodes")
    quick.sort(key=lambda one: one[0])
    if instance.objective == "load":
        return Outcome("finished", _best_routed(instance, quick, options))
    done = completed(instance, quick[0][1].circuits, options)
    return Outcome("finished", quick[0][1] if done is None else done)


def _best_routed(instance: TopologyInstance, quick: list[tuple[Fraction, Topology]], options: RunOptions) -> Topology:
    """The best of the starts once each has been routed with care, as long as another is likely to end in time."""
    best, took = quick[0], 0.0
    for _, topology in quick:
        left = options.remaining()
        if not options.fits(took):
            break
        done = routed(instance, topology.circuits, options)
        best = best if done is None else min(best, done, key=lambda one: one[0])
        took = 0.0 if left is None else left - (options.remaining() or 0.0)
    return best[1]


def _anneal(instance: TopologyInstance, options: RunOptions, moves: int, number: int) -> _Start:
    """Random moves at falling temperatures; the best that was met. Where time is too short for all, fewer are made."""
    random = np.random.default_rng([options.seed, number])
    lift, needed = _lift(instance, number, random)
    kind = TURNED if isinstance(instance.plant, Cubes) else LED if instance.one_way else JOINED
    first = length_sum(lift.to, lift.shift, lift.ports[3], lift.copies, UNREACHED)
    costs, best = np.array([first, first]), lift.ports.copy()
    cut = np.array([needed, int(SHORT * first) if first < UNREACHED else 1])
    if needed:
        costs += max(0, int(needed - np.count_nonzero(lift.shift.flat[lift.movable]))) * cut[1]
    words = -(-len(lift.to) // BITS)
    work = words * lift.to[0].size * instance.nodes * STEPS * int(lift.ports[3].max())
    moves, batch = min(moves, 1 + WORK // work), 1 + BATCH // work
    done = 0
    while done < moves and not (done and options.out_of_time()):
        draws = random.random((min(batch, moves - done), 6))
        heat = HOT * (COLD / HOT) ** ((done + np.arange(len(draws))) / moves)
        slack = -np.log(np.maximum(draws[:, 5], 1e-300)) * heat
        left = options.remaining()
        anneal(lift.ports, lift.copies, lift.movable, kind, draws, slack, cut, best, costs)
        done += len(draws)
        now = options.remaining()
        if left is not None and now is not None and left > now:
            moves = min(moves, done + math.ceil(now / (left - now) * len(draws)))
    lift.ports[:] = best
    cost = math.inf if costs[1] >= UNREACHED else float(costs[1])
    if isinstance(instance.plant, Cubes):
        return _Start(cost, circuits_of_cubes(instance.plant, lift.shift.flat[lift.movable].tolist()))
    return _Start(cost, circuits_of(lift, instance.one_way))


def _lift(instance: TopologyInstance, number: int, random: np.random.Generator) -> tuple[Lift, int]:
    """Where a start begins, and how many circuits should lead out of a cube."""
    plant = instance.plant
    if isinstance(plant, Cubes):
        length, needed = 1, 0
        if instance.objective != "hops":
            bound, lengths = by_levels(instance)
            length = max(1, lengths[1] - number % 2)
            each = instance.nodes // plant.cubes
            needed = math.ceil(MORE * each * (instance.nodes - each) / 2 / bound)
        lift = lift_of_cubes(plant, length)
        for port in lift.movable.tolist():
            lift.turn(port, int(random.integers(lift.copies)))
        return lift, min(needed, len(lift.movable)) if plant.cubes > 1 else 0
    if not isinstance(plant, Budget) or plant.links:
        raise UnsupportedError("search takes cubes, or nodes of a degree without fixed links")
    return random_lift(plant, _positions(plant, number), random), 0


def _positions(plant: Budget, number: int) -> int:
    """How many positions a lift has at this start: each start the divisor of the nodes that is next to give about
    :data:`PORTS` ports."""
    sizes = [p for p in range(1, plant.nodes + 1) if plant.nodes % p == 0]
    sizes.sort(key=lambda p: abs(math.log(p * plant.degree / PORTS)))
    return sizes[number % len(sizes)]
