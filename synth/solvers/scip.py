"""SCIP, through Pyomo's interface."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from synth.options import RunOptions
from synth.solvers import pyomo_interface
from synth.solvers.logs import LogRow, number
from synth.solvers.pyomo_interface import LARGEST, ModelError, demand_range
from synth.solvers.solver import Call, Solver
from synth.solvers.status import SolverResult

SMALLEST = 1e-9  # of a coefficient

SOLVER = Solver(
    "scip",
    "SCIP",
    module="pyscipopt",
    package="pyscipopt",
    takes=frozenset({"milp", "miqcp"}),
    target="synth.solvers.scip:solve",
    licence="free (Apache 2)",
    install="pip install 'collective-synth[scip]'",
    imports=(*pyomo_interface.IMPORTS, "pyomo.contrib.solver.solvers.scip.scip_direct"),
)


def solve(model: Any, options: RunOptions, call: Call) -> SolverResult:
    """Solve a Pyomo model; see :func:`synth.solvers.mathprog.solve`."""
    native = {"randomization/randomseedshift": options.seed % 2**31}
    return pyomo_interface.solve(interface, model, options, call, native, log_row)


def log_row(line: str) -> LogRow | None:
    """A row of its log: columns with ``|``; the dual and primal bounds stand before the gap and the completion."""
    found = re.match(r"^\s*\S?\s*([\d.]+)s\|", line)
    columns = [column.strip() for column in line.split("|")]
    if not found or len(columns) < 6:
        return None
    return float(found[1]), number(columns[-3]), number(columns[-4])


@cache
def interface() -> Any:
    """Pyomo's interface, whose constraints and objective are looked at on their way."""
    from pyomo.contrib.solver.solvers.scip.base import _PyomoToScipVisitor
    from pyomo.contrib.solver.solvers.scip.scip_direct import ScipDirect

    class Visitor(_PyomoToScipVisitor):  # type: ignore[misc]
        def walk_expression(self, expr: Any) -> Any:
            made = super().walk_expression(expr)
            body = getattr(made, "expr", made)  # of a constraint
            terms: Mapping[Any, float] = getattr(body, "terms", {})
            if not all(SMALLEST < abs(factor) < LARGEST for factor in terms.values()):
                demand_range("SCIP", [factor for term, factor in terms.items() if len(term)], SMALLEST)
                demand_range("SCIP", [factor for term, factor in terms.items() if not len(term)], 0.0)  # the constant
            if any(math.isnan(getattr(made, side, None) or 0.0) for side in ("_lhs", "_rhs")):
                raise ModelError("a constraint's bound is not a number")
            return made

    class GuardedScip(ScipDirect):  # type: ignore[misc]
        def __init__(self, **words: Any) -> None:
            super().__init__(**words)
            self._expr_visitor = Visitor(self)

    return GuardedScip
