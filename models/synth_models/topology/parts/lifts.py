"""Lifts: topologies in which copies of a few positions are joined alike, but for how many copies further a link leads.

Node ``copy * positions + position``. A port of a position leads to ``to`` in the copy ``shift`` further, copies counted
modulo their number; so moving every node to the next copy is a symmetry. Of cubes a copy is a cube.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from synth.arrays import IntArray
from synth_models.topology.instance import Cubes, lines


@dataclass
class Lift:
    """``to``, ``shift``, ``mate``: shape (positions, ports); port (u, k) is number ``u * ports + k``, its mate is the
    other end of its link, -1 where it has none. ``movable``: ports whose shift may be chosen, one a link."""

    copies: int
    to: IntArray
    shift: IntArray
    mate: IntArray
    movable: IntArray

    def turn(self, port: int, shift: int) -> None:
        """Have the port lead ``shift`` copies further, and its mate as many back."""
        ports = self.to.shape[1]
        self.shift[divmod(port, ports)] = shift % self.copies
        self.shift[divmod(int(self.mate.flat[port]), ports)] = -shift % self.copies

    def join(self, port: int, other: int, shift: int) -> None:
        """Make the ports each other's mates."""
        ports = self.to.shape[1]
        self.mate.flat[port], self.mate.flat[other] = other, port
        self.to.flat[port], self.to.flat[other] = other // ports, port // ports
        self.turn(port, shift)


def lift_of_cubes(plant: Cubes) -> Lift:
    """The lift of a cube whose circuits all lead back to it; ``movable`` are the ports at the last nodes of the lines
    of the switches that work, in their order."""
    each = prod(plant.sides)
    ports = 2 * len(plant.sides)
    lift = _unjoined(plant.cubes, each, ports)
    ids = np.arange(each).reshape(plant.sides)
    for axis, side in enumerate(plant.sides):
        for low, high in zip(
            ids.take(range(side - 1), axis).ravel(), ids.take(range(1, side), axis).ravel(), strict=True
        ):
            lift.join(int(low) * ports + 2 * axis, int(high) * ports + 2 * axis + 1, 0)
    chosen = []
    for number, (axis, last, first) in enumerate(lines(plant.sides)):
        if number not in plant.failed:
            lift.join(last * ports + 2 * axis, first * ports + 2 * axis + 1, 0)
            chosen.append(last * ports + 2 * axis)
    lift.movable = np.array(chosen, dtype=np.int64)
    return lift


def circuits_of_cubes(plant: Cubes, shifts: list[int]) -> IntArray:
    """The circuits where each switch that works joins cube c to cube c + shift, shape (circuits, 3)."""
    working = [number for number, _ in enumerate(lines(plant.sides)) if number not in plant.failed]
    cube = np.arange(plant.cubes)
    each = [
        np.stack([np.full_like(cube, number), cube, (cube + shift) % plant.cubes], axis=1)
        for number, shift in zip(working, shifts, strict=True)
    ]
    return np.concatenate([np.zeros((0, 3), dtype=np.int64), *each]).astype(np.int64)


def random_lift(nodes: int, positions: int, degree: int, random: np.random.Generator) -> Lift:
    """A lift of ``positions * degree`` ports, an even number, joined at random."""
    lift = _unjoined(nodes // positions, positions, degree)
    order = random.permutation(positions * degree)
    for port, other in order.reshape(-1, 2).tolist():
        lift.join(port, other, int(random.integers(lift.copies)))
    lift.movable = np.arange(positions * degree)
    return lift


def circuits_of(lift: Lift) -> IntArray:
    """The links of a lift as circuits of a plant of the kind ``degree``, shape (circuits, 3); loops are left out, and a
    node joined to the one half way round is joined once."""
    positions, ports = lift.to.shape
    copy = np.arange(lift.copies)
    found = [np.zeros((0, 3), dtype=np.int64)]
    for port in range(positions * ports):
        if port < lift.mate.flat[port]:
            u, v = port // ports, int(lift.to.flat[port])
            there = (copy + int(lift.shift.flat[port])) % lift.copies * positions + v
            ends = np.stack([np.zeros_like(copy), copy * positions + u, there], axis=1)
            found.append(ends[ends[:, 1] != ends[:, 2]])
    return np.concatenate(found).astype(np.int64)


def _unjoined(copies: int, positions: int, ports: int) -> Lift:
    none = np.full((positions, ports), -1, dtype=np.int64)
    return Lift(copies, none.copy(), np.zeros_like(none), none.copy(), np.zeros(0, dtype=np.int64))
