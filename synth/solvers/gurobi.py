"""Gurobi, through Pyomo's interfaces: one for linear programs, one for those with quadratic rows."""

from __future__ import annotations

import re
from functools import cache, partial
from typing import Any

from synth.options import RunOptions
from synth.solvers import pyomo_interface
from synth.solvers.logs import LogRow, number
from synth.solvers.pyomo_interface import demand_range
from synth.solvers.solver import Call, Solver
from synth.solvers.status import SolverResult

SMALLEST = 1e-13  # of a coefficient
_INTERFACES = "pyomo.contrib.solver.solvers.gurobi"

SOLVER = Solver(
    "gurobi",
    "Gurobi",
    module="gurobipy",
    package="gurobipy",
    takes=frozenset({"milp", "miqcp"}),
    target="synth.solvers.gurobi:solve",
    licence="commercial; the pip licence takes 2000 variables",
    install="pip install 'collective-synth[gurobi]'",
    imports=(*pyomo_interface.IMPORTS, f"{_INTERFACES}.gurobi_direct", f"{_INTERFACES}.gurobi_direct_minlp"),
)


def solve(model: Any, options: RunOptions, call: Call) -> SolverResult:
    """Solve a Pyomo model; see :func:`synth.solvers.mathprog.solve`."""
    native = {"Seed": options.seed % 2_000_000_000, "OutputFlag": int(call.factor is not None)}
    return pyomo_interface.solve(partial(interface, call.quadratic), model, options, call, native, log_row)


def log_row(line: str) -> LogRow | None:
    """A row of its log: ``… Incumbent BestBd Gap It/Node Time``."""
    found = re.match(r"^[H*]?\s*\d+\s+\d+\s.*?(\S+)\s+(\S+)\s+(?:[\d.]+%|-)\s+\S+\s+(\d+)s\s*$", line)
    if found is None:
        return None
    value, bound, seconds = found.groups()
    return float(seconds), number(value), number(bound)


@cache
def interface(quadratic: bool) -> Any:
    """Pyomo's interface, whose model is looked at once it is made. Right-hand sides Gurobi itself looks at."""
    from pyomo.contrib.solver.solvers.gurobi.gurobi_direct import GurobiDirect
    from pyomo.contrib.solver.solvers.gurobi.gurobi_direct_minlp import GurobiDirectMINLP

    kind: Any = GurobiDirectMINLP if quadratic else GurobiDirect

    class GuardedGurobi(kind):  # type: ignore[misc]
        def _create_solver_model(self, pyomo_model: Any, config: Any) -> Any:
            made = super()._create_solver_model(pyomo_model, config)
            made[0].update()
            demand_range("Gurobi", made[0].getA().data, SMALLEST)
            demand_range("Gurobi", made[0].getAttr("Obj"), 0.0)
            return made

    return GuardedGurobi
