"""A program in whole variables, before any solver: variables are numbers, rows are of :mod:`synth.solvers.rows`.

A model states its equations once, and CP-SAT and the linear solvers (HiGHS, SCIP, Gurobi) take the same rows.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from synth.errors import SizeLimitError
from synth.options import RunOptions
from synth.solvers import cpsat, mathprog
from synth.solvers.catalogue import takes
from synth.solvers.names import all_named, give_names, named
from synth.solvers.rows import Row, add_rows

Answer = Literal["feasible", "infeasible", "limit"]
MOST_TERMS = 20_000_000  # coefficients; beyond, building alone takes minutes and gigabytes


class Equation(NamedTuple):
    """Rows that were added together: name, letters, number of the first row, and indices."""

    name: str
    letters: str
    first: int
    indices: list[Any]


@dataclass
class Program:
    """Variables by number with least and greatest value, and rows over these numbers.

    ``names``: name, letters (:mod:`synth.solvers.names`) and variables by index of every family of variables.
    """

    least: list[int] = field(default_factory=list)
    most: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    terms: int = 0
    names: list[tuple[str, str, Mapping[Any, int]]] = field(default_factory=list)
    equations: list[Equation] = field(default_factory=list)

    def variable(self, most: int = 1, least: int = 0) -> int:
        """A new variable's number."""
        self.least.append(least)
        self.most.append(most)
        return len(self.most) - 1

    def variables(self, number: int) -> range:
        """The numbers of so many new ones that are 0 or 1."""
        first = len(self.most)
        self.least += [0] * number
        self.most += [1] * number
        return range(first, first + number)

    def add(self, name: str, letters: str, rows: Iterable[tuple[Any, Row]]) -> None:
        """Rows of one equation by index. Raises :class:`SizeLimitError` beyond memory."""
        indices: list[Any] = []
        self.equations.append(Equation(name, letters, len(self.rows), indices))
        add_row, note, count = self.rows.append, indices.append, 0
        for index, (terms, sense, right) in rows:
            kept = terms if isinstance(terms, list) else list(terms)
            count += len(kept)
            if not kept:
                if (sense == "<=" or right <= 0) and (sense == ">=" or right >= 0):
                    continue  # true
                kept = [(1, self.variable(0))]  # false: nothing can pay the right side
            add_row((kept, sense, right))
            note(index)
        self.terms += count
        if self.terms > MOST_TERMS:
            raise SizeLimitError(f"the model has more than {MOST_TERMS} coefficients: ask for fewer chunks or steps")

    @cached_property
    def variable_names(self) -> list[str]:
        """The name of every variable, to be asked when all are there."""
        found = [f"nothing_{number}" for number in range(len(self.most))]
        for name, letters, numbers in self.names:
            for number, full in zip(numbers.values(), all_named(name, letters, numbers), strict=True):
                found[number] = full
        return found

    def row_name(self, row: int) -> str:
        """The name of a row."""
        of = self.equations[bisect_right(self.equations, row, key=lambda equation: equation.first) - 1]
        return named(of.name, of.letters.split(), of.indices[row - of.first])

    def all_names(self) -> tuple[list[str], list[str]]:
        """The names of all variables and rows."""
        return self.variable_names, [self.row_name(row) for row in range(len(self.rows))]

    def pyomo(self) -> tuple[Any, list[Any]]:
        """The Pyomo model, a pure feasibility problem, and its variables."""
        from synth.solvers.algebra import pyo

        model: Any = pyo.ConcreteModel()
        bounds = list(zip(self.least, self.most, strict=True))
        model.x = pyo.Var(range(len(bounds)), domain=pyo.Integers, bounds=lambda _, i: bounds[i])
        x = list(model.x.values())
        add_rows(model, "rows", [([(f, x[i]) for f, i in terms], sense, right) for terms, sense, right in self.rows])
        give_names(model.x, lambda i: self.variable_names[i])
        give_names(model.rows, self.row_name)
        model.objective = pyo.Objective(expr=0.0)
        return model, x


@dataclass(frozen=True)
class Solved:
    """What a solver said; ``value`` of every variable if feasible. Times in seconds."""

    answer: Answer
    value: Sequence[int] = ()
    build_s: float = 0.0
    solve_s: float = 0.0


def solve(program: Program, options: RunOptions, hint: Mapping[int, int] | None = None) -> Solved:
    """Is there a point? ``hint`` are values to try first (CP-SAT). Raises ``RuntimeError`` when the solver fails."""
    constraints = takes(options.solver or "highs", "cp")
    return _by_cpsat(program, options, hint or {}) if constraints else _by_rows(program, options)


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
    result, solver = cpsat.solve(model, options, alone=cpsat.IN_TURNS, names=program.all_names)
    seconds = built - started, time.monotonic() - built
    if result.termination == "error":
        raise RuntimeError(result.message)
    if result.has_point:
        return Solved("feasible", [solver.value(variable) for variable in variables], *seconds)
    return Solved("infeasible" if result.termination == "infeasible" else "limit", (), *seconds)


def _by_rows(program: Program, options: RunOptions) -> Solved:
    started = time.monotonic()
    with mathprog.building():
        model, x = program.pyomo()
    built = time.monotonic()
    result = mathprog.solve(model, options, bounded=True)
    seconds = built - started, time.monotonic() - built
    if result.termination == "error":
        raise RuntimeError(result.message)
    if result.has_point:
        return Solved("feasible", [round(variable.value) for variable in x], *seconds)
    return Solved("infeasible" if result.termination == "infeasible" else "limit", (), *seconds)
