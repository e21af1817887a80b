"""Method ``search`` (ours): local search over lifts by the sum of hops, then a routing of the best.

Copies of a cube, or of a few nodes where the plant is of the kind ``degree``, are joined alike but for how many copies
further a link leads (:mod:`synth_models.topology.parts.lifts`). So the hops from the nodes of one copy tell all, and
the copies are a symmetry of the routing. Simulated annealing turns one link, or two, at random; where the plant is of
the kind ``degree`` it also exchanges the ends of two links. Where the load counts, as many circuits must lead out of a
cube as its cut needs for the mean load, times :data:`MORE`.

Every second start judges by a norm of the loads on shortest paths in place of their mean: in large plants topologies
of the fewest hops load some links more than others. Of several starts the one of least cost is kept; for the load all
are routed by trees, and the best of these again with all that time allows. A move costs O(positions * nodes * ports).
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
from synth_models.topology.instance import Budget, Cubes, TopologyInstance
from synth_models.topology.parts.arcs import arcs_of
from synth_models.topology.parts.completion import completed
from synth_models.topology.parts.kernels import UNREACHED, hop_sum, lift_even_loads, lift_hop_sum
from synth_models.topology.parts.lifts import Lift, circuits_of, circuits_of_cubes, lift_of_cubes, random_lift
from synth_models.topology.parts.routing import routed
from synth_models.topology.solution import Topology

HOT, COLD = 0.01, 0.00003  # temperatures at begin and end, as shares of the cost
TWICE = 0.5  # share of the moves that turn two links
SHORT = 2.0  # cost of a circuit too few out of a cube, in units of load
MORE = 1.03  # by how much the cut around a cube is to be wider than the mean load needs
SHARE = 0.5  # of the time, for the moves
NORM = 8  # of the loads in every second start: how much the fullest arcs count
WORK = 2_000_000_000  # ports looked at in the moves of a start, at most: large lifts take fewer moves
MOST_POSITIONS = 16


class _Start(NamedTuple):
    """Where a start ended."""

    cost: float
    circuits: IntArray


def solve(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """Method ``search``; parameters ``moves`` a start, at most, and ``starts``."""
    found: list[_Start] = []
    moving = options.part(SHARE)
    for number in range(options.method["starts"]):
        if found and moving.out_of_time():
            break
        start = _anneal(
            instance, options.method["moves"], moving, np.random.default_rng([options.seed, number]), number
        )
        if isinstance(instance.plant, Cubes) and instance.plant.failed_links and instance.objective == "hops":
            arcs = arcs_of(instance, start.circuits)  # the lift has all links
            start = start._replace(cost=hop_sum(arcs.start, arcs.head, np.arange(instance.nodes)))
        found.append(start)
        if instance.objective == "hops":
            options.held.offer(partial(Topology, start.circuits), start.cost, "the best start so far stands in")
    if instance.objective == "hops":
        found.sort(key=lambda start: start.cost)
        return Outcome("finished", Topology(found[0].circuits))
    best: tuple[Fraction, Topology] | None = None
    for start in found:
        quick = routed(instance, start.circuits, options, exact=False)
        if quick is not None and (best is None or quick[0] < best[0]):
            best = quick
    if best is None:
        return Outcome("finished", message="no start joined all nodes")
    finished = completed(instance, best[1].circuits, options)
    return Outcome("finished", best[1] if finished is None else finished)


def _anneal(
    instance: TopologyInstance, moves: int, moving: RunOptions, random: np.random.Generator, number: int
) -> _Start:
    """Turn links, and exchange ends of links, at falling temperatures; the best that was met."""
    lift = _lift(instance, number, random)
    judge = _Judge(instance, lift, even=number % 2 == 1)
    cost = judge.cost()
    best = _Start(cost, judge.circuits())
    moves = min(moves, 1 + WORK // (lift.to.size * instance.nodes))
    for move in range(moves):
        if moving.out_of_time():
            break
        before = lift.shift.copy(), lift.to.copy(), lift.mate.copy()
        _change(lift, random)
        found = judge.cost()
        heat = cost * HOT * (COLD / HOT) ** (move / moves)
        if found <= cost or random.random() < math.exp((cost - found) / heat):
            cost = found
            if cost < best.cost:
                best = _Start(cost, judge.circuits())
        else:
            lift.shift[:], lift.to[:], lift.mate[:] = before
    return best


class _Judge:
    """What a lift costs: of the load of cubes the mean over all arcs and what is short around a cube, else the hops.
    ``even``: instead of the mean, the :data:`NORM`-norm of the loads where all shortest paths share alike."""

    def __init__(self, instance: TopologyInstance, lift: Lift, even: bool) -> None:
        self.instance, self.lift, self.plant = instance, lift, instance.plant
        self.load = np.zeros(lift.to.shape) if even else None
        self.links = 1 if instance.objective == "hops" else instance.most_arcs
        each = lift.to.shape[0]
        self.leaving = each * (instance.nodes - each) / 2  # over so many links a load of 1 leaves a cube

    def cost(self) -> float:
        """In units of load, or in hops; :data:`UNREACHED` where nodes are apart."""
        lift = self.lift
        of_cubes = self.instance.objective != "hops" and isinstance(self.plant, Cubes)
        if of_cubes and self.load is not None:
            hops = lift_even_loads(lift.to, lift.shift, lift.copies, self.load)
        else:
            hops = lift_hop_sum(lift.to, lift.shift, lift.copies)
        mean = cost = hops * lift.copies / self.links
        if hops == UNREACHED or not of_cubes:
            return float(mean)
        if self.load is not None:
            used = self.load[self.load > 0]
            cost = float(((used / mean) ** NORM).sum() * lift.copies / self.links) ** (1 / NORM) * mean
        across = int(np.count_nonzero(lift.shift.flat[lift.movable]))
        return float(cost + SHORT * max(0.0, math.ceil(MORE * self.leaving / mean) - across))

    def circuits(self) -> IntArray:
        """The circuits of the lift, shape (circuits, 3)."""
        if isinstance(self.plant, Cubes):
            return circuits_of_cubes(self.plant, self.lift.shift.flat[self.lift.movable].tolist())
        return circuits_of(self.lift)


def _change(lift: Lift, random: np.random.Generator) -> None:
    """One random move."""
    if len(lift.movable) == lift.to.size and random.random() < TWICE:  # every link may be joined in another way
        port, other = (int(lift.movable[i]) for i in random.integers(len(lift.movable), size=2))
        mates = int(lift.mate.flat[port]), int(lift.mate.flat[other])
        if len({port, other, *mates}) == 4:
            lift.join(port, other, int(random.integers(lift.copies)))
            lift.join(*mates, int(random.integers(lift.copies)))
            return
    for port in random.choice(lift.movable, size=1 + int(random.random() < TWICE)).tolist():
        lift.turn(port, int(lift.shift.flat[port]) + int(random.integers(1, max(2, lift.copies))))


def _lift(instance: TopologyInstance, number: int, random: np.random.Generator) -> Lift:
    """Where a start begins."""
    plant = instance.plant
    if isinstance(plant, Cubes):
        lift = lift_of_cubes(plant)
        for port in lift.movable.tolist():
            lift.turn(port, int(random.integers(lift.copies)))
        return lift
    if not isinstance(plant, Budget) or plant.links or plant.one_way:
        raise UnsupportedError("search takes cubes, or nodes of a degree without fixed links")
    sizes = [p for p in range(1, MOST_POSITIONS + 1) if plant.nodes % p == 0 and p * plant.degree % 2 == 0]
    if not sizes:
        raise UnsupportedError(f"search needs an even number of ports of at most {MOST_POSITIONS} positions")
    return random_lift(plant.nodes, sizes[-1 - number % len(sizes)], plant.degree, random)
