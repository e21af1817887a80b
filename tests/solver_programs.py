"""Small programs, stated once and built for either interface: what the conformance suite solves."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from synth.options import RunOptions
from synth.solvers import cpsat, mathprog
from synth.solvers.status import SolverResult, SolverTermination

Row = tuple[Sequence[float], str, float]  # coefficients, one of <= >= ==, right-hand side


@dataclass(frozen=True)
class Program:
    """Minimise ``cost . x + offset`` (no cost: only a point is sought) over ``rows`` and ``bounds``."""

    bounds: tuple[tuple[float | None, float | None], ...]
    rows: tuple[Row, ...]
    cost: tuple[float, ...] | None = None
    offset: float = 0.0
    integer: bool = True

    def relaxed(self) -> Program:
        return replace(self, integer=False)

    def holds(self, point: Sequence[float]) -> bool:
        """Whether a point satisfies everything, computed here from the statement alone."""
        for coefficients, sense, side in self.rows:
            left = sum(a * x for a, x in zip(coefficients, point, strict=True))
            slack = 1e-6 * max(1.0, abs(side))
            if (sense != ">=" and left > side + slack) or (sense != "<=" and left < side - slack):
                return False
        inside = all(
            (low is None or x >= low - 1e-6) and (high is None or x <= high + 1e-6)
            for x, (low, high) in zip(point, self.bounds, strict=True)
        )
        return inside and (not self.integer or all(abs(x - round(x)) < 1e-5 for x in point))

    def value(self, point: Sequence[float]) -> float:
        return self.offset + sum(c * x for c, x in zip(self.cost or (), point, strict=False))


# 2x + 3y >= 7: (0, 3) costs 12, (1, 2) 11, (2, 1) 10, (3, 1) 13, (4, 0) 12; without integrality y = 7/3 costs 28/3
COVER = Program(((0, 10), (0, 10)), (((2, 3), ">=", 7),), (3, 4))


FREE = (None, None)


@dataclass(frozen=True)
class Case:
    """A program and how every solver must end it. ``value`` is the optimum by hand; ``bounded``: see mathprog.solve."""

    program: Program
    ends: SolverTermination
    value: float | None = None
    bounded: bool = True


# x + y <= 4, y <= 3, maximise x + 2y: (1, 3)
PACK = Program(((0, 10), (0, 3)), (((1, 1), "<=", 4),), (-1, -2))
FIX = Program(((0, 5), (0, 5)), (((1, 1), "==", 3),))
FULL = Program(((0, 1), (0, 1)), (((1, 1), ">=", 3),), (1, 0))
PARITY = Program(((0, 50),) * 3, (((6, 10, 14), "==", 101),), (1, 0, 0))
SINK = Program((FREE, FREE), (((1, 1), ">=", 3),), (1, 0))
GROW = Program(((0, None), (0, None)), (((1, -2), "<=", 3), ((-1, 1), "<=", 4)), (0, -1))
TORN = Program((FREE,) * 3, (((1, 1, 0), ">=", 3), ((1, 1, 0), "<=", 2)), (0, 0, 1))  # no point, and no bound below
CIRCLE = Program(((0, None),) * 3, (((1, -1, 0), ">=", 1), ((-1, 1, 0), ">=", 1)), (-1, 0, -1))  # so is this

CASES = {
    "optimal": Case(COVER, "optimal", 10),
    "optimal, linear": Case(COVER.relaxed(), "optimal", 28 / 3),
    "negative": Case(PACK, "optimal", -7),
    "negative, linear": Case(PACK.relaxed(), "optimal", -7),
    "offset": Case(replace(COVER, offset=5), "optimal", 15),
    "offset, linear": Case(replace(COVER.relaxed(), offset=5), "optimal", 28 / 3 + 5),
    "no objective": Case(FIX, "optimal"),
    "no objective, linear": Case(FIX.relaxed(), "optimal"),
    "constant objective": Case(replace(FIX, cost=(0, 0), offset=2), "optimal", 2),
    "nothing to choose": Case(Program((), (), (), 2), "optimal", 2),
    "infeasible": Case(FULL, "infeasible"),
    "infeasible, linear": Case(FULL.relaxed(), "infeasible"),
    "infeasible by parity": Case(PARITY, "infeasible"),
    "infeasible, no objective": Case(replace(PARITY, cost=None), "infeasible"),
    "unbounded": Case(SINK, "unbounded", bounded=False),
    "unbounded, linear": Case(SINK.relaxed(), "unbounded", bounded=False),
    "unbounded above": Case(GROW, "unbounded", bounded=False),
    "unbounded above, linear": Case(GROW.relaxed(), "unbounded", bounded=False),
    "infeasible or unbounded": Case(TORN, "infeasible", bounded=False),
    "infeasible or unbounded, linear": Case(TORN.relaxed(), "infeasible", bounded=False),
    "infeasible or unbounded, circle": Case(CIRCLE, "infeasible", bounded=False),
    "infeasible or unbounded, circle, linear": Case(CIRCLE.relaxed(), "infeasible", bounded=False),
    "known to be bounded": Case(TORN, "infeasible"),
    "known to be bounded, linear": Case(TORN.relaxed(), "infeasible"),
}


def keeps_its_word(result: SolverResult) -> None:
    """What holds of every result, whatever the program."""
    for number in (result.objective, result.bound, result.solve_s, result.transfer_s):
        assert number is None or math.isfinite(number)
    assert result.solve_s >= 0
    assert result.transfer_s >= 0
    if not result.has_point:
        assert result.objective is None
    if result.termination in ("infeasible", "unbounded", "error"):
        assert (result.has_point, result.bound) == (False, None)
    if result.objective is not None and result.bound is not None:
        assert result.bound <= result.objective + 1e-6 * max(1.0, abs(result.objective))
    assert (result.message is None) <= (result.termination in ("optimal", "infeasible", "limit"))


def solve(
    program: Program, solver: str, options: RunOptions | None = None, bounded: bool = True, track: float | None = None
) -> tuple[SolverResult, list[float]]:
    """The result and, if there is one, the point."""
    options = replace(options or RunOptions(30), solver=solver)
    if solver == "cpsat":
        model, x = _cp_model(program)
        result, answer = cpsat.solve(model, options, track=track)
        return result, [answer.value(one) for one in x] if result.has_point else []
    model = pyomo_model(program)
    result = mathprog.solve(model, options, bounded=bounded, track=track)
    return result, [one.value for one in model.x.values()] if result.has_point else []


def pyomo_model(program: Program) -> Any:
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    domain = pyo.Integers if program.integer else pyo.Reals
    model.x = pyo.Var(range(len(program.bounds)), domain=domain, bounds=lambda _, i: program.bounds[i])

    def row(_: Any, i: int) -> Any:
        coefficients, sense, side = program.rows[i]
        left = pyo.quicksum(a * model.x[j] for j, a in enumerate(coefficients) if a != 0)
        return left <= side if sense == "<=" else left >= side if sense == ">=" else left == side

    model.rows = pyo.Constraint(range(len(program.rows)), rule=row)
    if program.cost is not None:
        model.cost = pyo.Objective(expr=program.offset + sum(c * model.x[j] for j, c in enumerate(program.cost) if c))
    return model


def _cp_model(program: Program) -> tuple[Any, list[Any]]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x = [model.new_int_var(low, high, f"x{i}") for i, (low, high) in enumerate(program.bounds)]
    for coefficients, sense, side in program.rows:
        left = sum(a * v for a, v in zip(coefficients, x, strict=True))
        model.add(left <= side if sense == "<=" else left >= side if sense == ">=" else left == side)
    if program.cost is not None:
        model.minimize(sum(c * v for c, v in zip(program.cost, x, strict=True)) + program.offset)
    return model, x


def market_split(items: int, rows: int, slack: bool) -> tuple[Program, float]:
    """Which half of the items? Far beyond any solver within a second at 80 items and 10 rows (Cornuéjols, Dawande
    1998). A solution is planted; its value is returned too. With slack any choice will do, at the price of what is
    left over: points are easy and the planted one costs 0."""
    rng = random.Random(1)
    numbers = [[rng.randrange(100) for _ in range(items)] for _ in range(rows)]
    planted = [rng.randrange(2) for _ in range(items)]
    sides = [sum(a for a, taken in zip(row, planted, strict=True) if taken) for row in numbers]
    more = 2 * rows if slack else 0

    def spare(i: int) -> list[int]:
        return [(j == 2 * i) - (j == 2 * i + 1) for j in range(more)]

    program = Program(
        ((0, 1),) * items + ((0, 10**5),) * more,
        tuple((row + spare(i), "==", side) for i, (row, side) in enumerate(zip(numbers, sides, strict=True))),
        cost=(0,) * items + (1,) * more if slack else (1,) * items,
    )
    return program, 0 if slack else sum(planted)


def dense(size: int) -> Program:
    """A linear program that takes every solver longer than a few milliseconds; all ones is a point."""
    rng = random.Random(2)
    numbers = [[rng.random() for _ in range(size)] for _ in range(size // 2)]
    cost = tuple(1 + rng.random() for _ in range(size))
    return Program(((0, 1000),) * size, tuple((row, "==", sum(row)) for row in numbers), cost, integer=False)
