"""Any schedule of a given number of steps, as a CP-SAT model (a program file: it builds and solves nothing).

The step model of Dai, Chen, Huang, Zhang (one item per wavelength, link, direction and step; a circuit keeps its
wavelength) without their restriction to all-to-all inside groups: store-and-forward at every node.

==================  =====================  ===========================================================  ==========
symbol              code                   index set                                                    unit
==================  =====================  ===========================================================  ==========
``N``, ``W``        nodes, wavelengths     nodes of the ring or grid, wavelengths per direction         --
``T``               ``horizon``            one number                                                   steps
``L``               ``reach``              one number: hops of the longest circuit allowed              hops
``x[t,d,u,h,o]``    ``send[t,d,u,h,o]``    step, direction, source, hops, item: o goes from u, h hops   0/1
``c[t,d,u,h,l]``    ``lit[t,d,u,h,l]``     step, direction, source, hops, wavelength: l carries a       0/1
                                           circuit from u over h hops
``y[t]``            ``prices[t - 1]``      step: price of a wavelength-hop, any whole numbers           per hop
``V(y)``            ``least_cost``         prices: what one item pays at least (``bounds/steps.py``)    --
==================  =====================  ===========================================================  ==========

    (1) received once    sum over circuits of item o that end at v of x = 1       for every node v and item o != v
    (2) held before      x[t,d,u,h,o] <= sum over circuits of o that end at u before step t of x        for o != u
    (3) circuits lit     sum_o x[t,d,u,h,o] = sum_l c[t,d,u,h,l]
    (4) link capacity    sum over circuits through link e of c[t,d,.,.,l] <= 1        for every t, d, e, wavelength l

(1) loses no schedule: a second copy is never needed. No big-M anywhere.

Strengthening, which (1) and (2) imply: (5) at prices y item o pays at least V(y),

    (5) price paid       sum_{t,d,u,h} y[t] h x[t,d,u,h,o] >= V(y)        for two lists of prices y (``dear_prices``)

On a grid directions are ``2 k`` and ``2 k + 1``, up and down in dimension ``k``, a circuit ends where its line ends at
the latest, and (5), which is a ring's, is left out.

Restriction: with a ``period`` g below N only schedules that a rotation of the ring by g nodes maps onto itself; then
``send`` holds one variable per orbit (:meth:`TimeExpanded.sent`). On a grid the period is N or 1, which stands for all
rotations of the grid's rings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from synth.solvers.names import name_variables
from synth.time_expanded.orbits import PairOrbits, generated_orbits, unfolded
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.carrying_cost import Prices, price
from synth_models.optree.solution import CLOCKWISE, Circuits

Key = tuple[int, int, int, int, int]


@dataclass
class TimeExpanded:
    """The model with its variables and index sets."""

    instance: OpTreeInstance
    horizon: int
    period: int
    model: Any
    send: dict[Key, Any] = field(default_factory=dict)
    lit: dict[Key, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes, self.reach = self.instance.nodes, self.instance.max_hops
        self.steps, self.items = range(1, self.horizon + 1), range(self.nodes)
        self.waves, self.directions = range(self.instance.wavelengths), range(2 * len(self.instance.dimensions))
        self.reaches = [  # direction, hops
            (d, h)
            for d in self.directions
            for h in range(1, min(self.reach, self.instance.dimensions[d // 2].side - 1) + 1)
        ]
        self.orbits = self._orbits()
        self.sources = [u for u in self.items if self.orbits.stands_for(u, u)[0] == u]  # one of every orbit
        self.ends = {(d, h): [self._end(u, d, h) for u in self.items] for d, h in self.reaches}
        for t, (d, h), u, o in product(self.steps, self.reaches, self.sources, self.items):
            if self.ends[d, h][u] not in (o, None) and (t > 1 or o == u):
                self.send[t, d, u, h, o] = self.model.new_bool_var("")
        for t, (d, h), u, wave in product(self.steps, self.reaches, self.items, self.waves):
            if self.ends[d, h][u] is not None:
                self.lit[t, d, u, h, wave] = self.model.new_bool_var("")
        name_variables(self.model, "send", "t d u h o", self.send)
        name_variables(self.model, "lit", "t d u h l", self.lit)

    def _orbits(self) -> PairOrbits:
        """The nodes and items that rotations map onto each other: by ``period`` nodes, or on a grid along every
        ring."""
        if self.period == self.nodes:
            return unfolded(self.nodes, self.nodes)
        around = [dimension for dimension in self.instance.dimensions if dimension.ring]
        by = self.period if self.instance.grid is None else 1
        turns = [np.array([dimension.moved(v, by) for v in self.items], dtype=np.int64) for dimension in around]
        return generated_orbits(turns, turns)

    def _end(self, node: int, direction: int, hops: int) -> int | None:
        """The node so many hops further in this direction; None beyond the end of a line."""
        return self.instance.dimensions[direction // 2].moved(node, hops if direction % 2 == CLOCKWISE else -hops)

    def sent(self, t: int, d: int, u: int, h: int, o: int) -> Any:
        """``x[t,d,u,h,o]``, the variable of the first source of its orbit; None if it is fixed to 0."""
        source, item = self.orbits.stands_for(u, o)
        return self.send.get((t, d, source, h, item))

    def arrivals(self, t: int, v: int, o: int) -> list[Any]:
        """All variables that bring item ``o`` to node ``v`` in step ``t``."""
        sources = ((d, h, self.ends[d ^ 1, h][v]) for d, h in self.reaches)
        found = (self.sent(t, d, u, h, o) for d, h, u in sources if u is not None)
        return [variable for variable in found if variable is not None]

    def circuits_of(self, t: int, d: int, u: int, h: int) -> Iterator[tuple[int, Any]]:
        """The items that may go from u over h hops in direction d, with their variables."""
        return ((o, x) for o in self.items if (x := self.sent(t, d, u, h, o)) is not None)

    def circuits(self, value: Any) -> Circuits:
        """The schedule of a point; ``value`` gives the truth value of a variable."""
        rows = []
        for t, (d, h), u in product(self.steps, self.reaches, self.items):
            if (v := self.ends[d, h][u]) is not None:
                waves = [wave for wave in self.waves if value(self.lit[t, d, u, h, wave])]
                items = [o for o, variable in self.circuits_of(t, d, u, h) if value(variable)]
                rows += [(t, u, v, d, wave, o) for wave, o in zip(waves, items, strict=True)]
        return Circuits.of(*zip(*rows, strict=True))


def binaries(instance: OpTreeInstance, horizon: int) -> int:
    """Variables in ``send`` without a period, about."""
    reach = sum(min(instance.max_hops, dimension.side - 1) for dimension in instance.dimensions)
    return 2 * horizon * instance.nodes**2 * reach


def build(instance: OpTreeInstance, horizon: int, period: int) -> TimeExpanded:
    """The model of all schedules of ``horizon`` steps that repeat every ``period`` nodes."""
    from ortools.sat.python import cp_model

    program = TimeExpanded(instance, horizon, period, cp_model.CpModel())
    received_once(program)
    held_before(program)
    circuits_lit(program)
    link_capacity(program)
    if instance.grid is None:
        price_paid(program)
    return program


def received_once(program: TimeExpanded) -> None:
    """(1): every node receives every other item exactly once."""
    for v, o in product(program.sources, program.items):
        if o != v:
            program.model.add_exactly_one(x for t in program.steps for x in program.arrivals(t, v, o))


def held_before(program: TimeExpanded) -> None:
    """(2): a node sends what it received in an earlier step, or its own item."""
    for u, o in product(program.sources, program.items):
        if o == u:
            continue
        earlier: list[Any] = []
        for t in program.steps:
            for d, h in program.reaches:
                if (variable := program.sent(t, d, u, h, o)) is not None:
                    program.model.add_bool_or([*earlier, variable.negated()])
            earlier += program.arrivals(t, u, o)


def circuits_lit(program: TimeExpanded) -> None:
    """(3): as many wavelengths carry a circuit from u over h hops as items are sent so."""
    for t, (d, h), u in product(program.steps, program.reaches, program.items):
        if program.ends[d, h][u] is not None:
            items = sum(variable for _, variable in program.circuits_of(t, d, u, h))
            program.model.add(items == sum(program.lit[t, d, u, h, wave] for wave in program.waves))


def link_capacity(program: TimeExpanded) -> None:
    """(4): on every link, direction and wavelength at most one circuit. A link is named by the node at which circuits
    come in."""
    circuits: dict[tuple[int, int], list[tuple[int, int]]] = {}  # by direction and entry: source and hops
    for d, h in program.reaches:
        for before in range(h):
            for entry in program.items:
                u = entry if before == 0 else program.ends[d ^ 1, before][entry]
                if u is not None and program.ends[d, h][u] is not None:
                    circuits.setdefault((d, entry), []).append((u, h))
    for t, d, wave, entry in product(program.steps, program.directions, program.waves, program.items):
        through = circuits.get((d, entry), ())
        program.model.add_at_most_one(program.lit[t, d, u, h, wave] for u, h in through)


def price_paid(program: TimeExpanded) -> None:
    """(5), strengthening: at any prices an item pays at least its least cost."""
    from ortools.sat.python.cp_model import LinearExpr

    for prices in dear_prices(program.instance, program.horizon):
        least = least_cost(program.instance, prices)
        for o in range(program.period):
            hops: list[Any] = []
            weights: list[int] = []
            for t, (d, h), u in product(program.steps, program.reaches, range(program.nodes)):
                if (variable := program.sent(t, d, u, h, o)) is not None:
                    hops.append(variable)
                    weights.append(prices[t - 1] * h)
            program.model.add(LinearExpr.weighted_sum(hops, weights) >= least)


def dear_prices(instance: OpTreeInstance, horizon: int) -> list[list[int]]:
    """Whole-number prices of the steps for (5): equal ones, and the dearest found."""
    search = Prices({instance.nodes: 1}, horizon, instance.max_hops)
    search.settle(30, 1e-6)
    dear = [round(1000 * float(price)) for price in search.best]
    return [[1] * horizon, dear]


def least_cost(instance: OpTreeInstance, prices: list[int]) -> int:
    """V(y), what one item pays at least (``bounds/steps.py``); whole numbers far below 2^53, so exact."""
    rest, _, _ = price(instance.nodes, np.array(prices, dtype=float), instance.max_hops)
    return min(10**9, round(float(rest[0, instance.nodes])))
