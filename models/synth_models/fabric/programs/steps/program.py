"""A program in whole variables, before any solver: variables are numbers, rows are of :mod:`synth.solvers.rows`.

The models of this folder state their equations once, and CP-SAT and the linear solvers (HiGHS, SCIP, Gurobi) take the
same rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from synth.errors import SizeLimitError
from synth.options import RunOptions
from synth.solvers import cpsat, mathprog
from synth.solvers.catalogue import takes
from synth.solvers.rows import Row, add_rows

Answer = Literal["feasible", "infeasible", "limit"]
MOST_TERMS = 20_000_000  # coefficients; beyond, building alone takes minutes and gigabytes


@dataclass
class Program:
    """Variables by number with least and greatest value, and rows over these numbers."""

    least: list[int] = field(default_factory=list)
    most: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    terms: int = 0

    def variable(self, most: int = 1, least: int = 0) -> int:
        """A new variable's number."""
        self.least.append(least)
        self.most.append(most)
        return len(self.most) - 1

    def add(self, rows: Iterable[Row]) -> None:
        """Rows of one equation. Raises :class:`SizeLimitError` beyond memory."""
        for terms, sense, right in rows:
            kept = list(terms)
            self.terms += len(kept)
            if kept:
                self.rows.append((kept, sense, right))
            elif (sense != "<=" and right > 0) or (sense != ">=" and right < 0):
                self.rows.append(([(1, self.variable(0))], sense, right))  # false: nothing can pay the right side
        if self.terms > MOST_TERMS:
            raise SizeLimitError(f"the model has more than {MOST_TERMS} coefficients: ask for fewer chunks or steps")


@dataclass(frozen=True)
class Solved:
    """What a solver said; ``value`` of every variable if feasible. Times in seconds."""

    answer: Answer
    value: Sequence[int] = ()
    build_s: float = 0.0
    solve_s: float = 0.0


def solve(program: Program, options: RunOptions, hint: Mapping[int, int] | None = None) -> Solved:
    """Is there a point? ``hint`` are values to try first (CP-SAT). Raises ``RuntimeError`` when the solver fails."""
    return (
        _by_cpsat(program, options, hint or {})
        if takes(options.solver or "highs", "cp")
        else _by_rows(program, options)
    )


def _by_cpsat(program: Program, options: RunOptions, hint: Mapping[int, int]) -> Solved:
    from ortools.sat.python import cp_model

    started = time.monotonic()
    model = cp_model.CpModel()
    variables = [model.new_int_var(a, b, "") for a, b in zip(program.least, program.most, strict=True)]
    rows: list[Row] = [
        ([(factor, variables[i]) for factor, i in terms], sense, right) for terms, sense, right in program.rows
    ]
    cpsat.add_rows(model, rows)
    for number, value in hint.items():
        model.add_hint(variables[number], value)
    built = time.monotonic()
    result, solver = cpsat.solve(model, options, alone=cpsat.IN_TURNS)
    seconds = built - started, time.monotonic() - built
    if result.termination == "error":
        raise RuntimeError(result.message)
    if result.has_point:
        return Solved("feasible", [solver.value(variable) for variable in variables], *seconds)
    return Solved("infeasible" if result.termination == "infeasible" else "limit", (), *seconds)


def _by_rows(program: Program, options: RunOptions) -> Solved:
    from synth.solvers.algebra import pyo

    started = time.monotonic()
    with mathprog.building():
        model: Any = pyo.ConcreteModel()
        bounds = list(zip(program.least, program.most, strict=True))
        model.x = pyo.Var(range(len(bounds)), domain=pyo.Integers, bounds=lambda _, i: bounds[i])
        x = [model.x[i] for i in range(len(bounds))]
        add_rows(model, "row", [([(f, x[i]) for f, i in terms], sense, right) for terms, sense, right in program.rows])
        model.goal = pyo.Objective(expr=0.0)
    built = time.monotonic()
    result = mathprog.solve(model, options, bounded=True)
    seconds = built - started, time.monotonic() - built
    if result.termination == "error":
        raise RuntimeError(result.message)
    if result.has_point:
        return Solved("feasible", [round(pyo.value(variable)) for variable in x], *seconds)
    return Solved("infeasible" if result.termination == "infeasible" else "limit", (), *seconds)
