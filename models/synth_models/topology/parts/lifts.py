"""Lifts: topologies in which copies of a few positions are joined alike, but for how many copies further a link leads.

Node ``copy * positions + position``. A port of a position leads to ``to`` in the copy ``shift`` further, copies counted
modulo their number; so moving every node to the next copy is a symmetry. Of cubes a copy is a cube.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from synth.arrays import IntArray
from synth_models.topology.instance import Budget, Cubes, lines


@dataclass
class Lift:
    """``ports``: shape (4, positions, ports): ``to``, ``shift``, ``mate`` and ``length`` of every port. Port (u, k) is
    number ``u * ports + k``, its mate is the other end of its link, -1 where it has none: where it leads to none, or
    one way. ``movable``: ports that may be changed, of cubes one a link."""

    copies: int
    ports: IntArray
    movable: IntArray

    @property
    def to(self) -> IntArray:
        """The position that each port leads to, shape (positions, ports)."""
        return np.asarray(self.ports[0], dtype=np.int64)

    @property
    def shift(self) -> IntArray:
        """How many copies further, shape (positions, ports)."""
        return np.asarray(self.ports[1], dtype=np.int64)

    @property
    def mate(self) -> IntArray:
        """The port at the other end, shape (positions, ports)."""
        return np.asarray(self.ports[2], dtype=np.int64)

    def turn(self, port: int, shift: int) -> None:
        """Have the port lead ``shift`` copies further, and its mate as many back."""
        self.shift.flat[port] = shift % self.copies
        mate = int(self.mate.flat[port])
        if mate not in (-1, port):
            self.shift.flat[mate] = -shift % self.copies

    def join(self, port: int, other: int, shift: int) -> None:
        """Make the ports each other's mates."""
        ports = self.to.shape[1]
        self.mate.flat[port], self.mate.flat[other] = other, port
        self.to.flat[port], self.to.flat[other] = other // ports, port // ports
        self.turn(port, shift)


def lift_of_cubes(plant: Cubes, length: int = 1) -> Lift:
    """The lift of a cube whose circuits, of that length, all lead back to it; ``movable`` are the ports at the last
    nodes of the lines of the switches that work, in their order."""
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
            ends = last * ports + 2 * axis, first * ports + 2 * axis + 1
            lift.join(*ends, 0)
            lift.ports[3].flat[list(ends)] = length
            chosen.append(ends[0])
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


def random_lift(plant: Budget, positions: int, random: np.random.Generator) -> Lift:
    """A lift of so many positions, a divisor of the nodes, joined at random. One-way ports lead to every position as
    often as it has ports. Of two-way ports that are odd in number one leads half way round the copies, to no other
    where these are odd too."""
    degree, copies = plant.degree, plant.nodes // positions
    lift = _unjoined(copies, positions, degree)
    order = random.permutation(positions * degree)
    lift.movable = order.copy()
    if plant.one_way:
        lift.to.flat[order] = np.arange(positions * degree) // degree
        lift.shift.flat[order] = random.integers(copies, size=len(order))
        return lift
    if len(order) % 2:
        *order, odd = order.tolist()
        lift.movable = np.array(order, dtype=np.int64)
        if copies % 2 == 0:
            lift.join(odd, odd, copies // 2)
    for port, other in np.array(order, dtype=np.int64).reshape(-1, 2).tolist():
        lift.join(port, other, int(random.integers(copies)))
    return lift


def circuits_of(lift: Lift, one_way: bool) -> IntArray:
    """The links of a lift as circuits of a plant of the kind ``degree``, shape (circuits, 3). Loops are left out, and a
    node joined to the one half way round is joined once. Nodes at a port that leads to none are joined in pairs, but
    for one."""
    positions, ports = lift.to.shape
    copy = np.arange(lift.copies)
    found = [np.zeros((0, 3), dtype=np.int64)]
    for port, (v, shift, mate) in enumerate(lift.ports[:3].reshape(3, -1).T.tolist()):
        u = port // ports
        here, there = copy * positions + u, (copy + shift) % lift.copies * positions + v
        if v < 0:
            around = copy * (lift.copies // 2) % lift.copies * positions + u
            here, there = around[:-1:2], around[1::2]
        elif mate == port:
            here, there = here[: lift.copies // 2], there[: lift.copies // 2]
        elif not one_way and port > mate:
            continue
        ends = np.stack([np.zeros_like(here), here, there], axis=1)
        found.append(ends[ends[:, 1] != ends[:, 2]])
    return np.concatenate(found).astype(np.int64)


def _unjoined(copies: int, positions: int, ports: int) -> Lift:
    ends = np.zeros((4, positions, ports), dtype=np.int64)
    ends[[0, 2]], ends[3] = -1, 1
    return Lift(copies, ends, np.zeros(0, dtype=np.int64))
