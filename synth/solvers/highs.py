"""HiGHS, through Pyomo's interface and through its own, highspy."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from synth.options import RunOptions
from synth.solvers import pyomo_interface
from synth.solvers.logs import LogRow, number
from synth.solvers.pyomo_interface import ModelError, demand_range
from synth.solvers.solver import Call, Solver
from synth.solvers.status import SolverResult

SMALLEST = 1e-9  # of a coefficient

SOLVER = Solver(
    "highs",
    "HiGHS",
    module="highspy",
    package="highspy",
    takes=frozenset({"milp", "highspy"}),
    target="synth.solvers.highs:solve",
    licence="free (MIT)",
    install="pip install 'highspy>=1.12,<1.14'",
    imports=(*pyomo_interface.IMPORTS, "pyomo.contrib.solver.solvers.highs"),
)


def solve(model: Any, options: RunOptions, call: Call) -> SolverResult:
    """Solve a Pyomo model; see :func:`synth.solvers.mathprog.solve`."""
    native: dict[str, Any] = {"random_seed": options.seed % 2**31}
    if call.interior:
        native["mip_lp_solver"] = "ipm"
    return pyomo_interface.solve(interface, model, options, call, native, log_row)


def log_row(line: str) -> LogRow | None:
    """A row of its log: ``Src Proc. InQueue Leaves Expl. BestBound BestSol Gap Cuts InLp Confl. LpIters Time``."""
    start, numbers = r"^\s?[A-Za-z]?\s+\d+[km]?\s+\d+[km]?\s+\d+[km]?\s+[\d.]+%\s+", r"(\S+)\s+(\S+)\s+\S+\s.*\s"
    found = re.match(start + numbers + r"([\d.]+)s\s*$", line)
    if found is None:
        return None
    bound, value, seconds = found.groups()
    return float(seconds), number(value), number(bound)


@cache
def interface() -> Any:
    """Pyomo's interface, whose rows and costs are looked at on their way; a model without variables has its constant as
    optimum."""
    from pyomo.common.collections import ComponentMap
    from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition
    from pyomo.contrib.solver.solvers.highs import Highs, highspy

    class GuardedHighs(Highs):  # type: ignore[misc]
        def add_block(self, block: Any) -> None:
            own = self._solver_model
            rows, costs = own.addRows, own.changeColsCost

            def add_rows(
                count: int, lower: Any, upper: Any, nonzeros: int, starts: Any, index: Any, values: Any
            ) -> None:
                demand_range("HiGHS", values, SMALLEST)
                if rows(count, lower, upper, nonzeros, starts, index, values) == highspy.HighsStatus.kError:
                    raise ModelError("HiGHS refuses the model's constraints")

            def change_costs(count: int, index: Any, values: Any) -> None:
                demand_range("HiGHS", values, 0.0)
                costs(count, index, values)

            own.addRows, own.changeColsCost = add_rows, change_costs
            super().add_block(block)

        def _postsolve(self, stream: Any) -> Any:
            results = super()._postsolve(stream)
            if self._solver_model.getModelStatus() == highspy.HighsModelStatus.kModelEmpty:
                results.termination_condition = TerminationCondition.convergenceCriteriaSatisfied
                results.solution_status = SolutionStatus.optimal
                results.incumbent_objective = results.objective_bound = self._solver_model.getObjectiveOffset()[1]
            return results

        def _get_primals(self, vars_to_load: Any = None) -> Any:
            return super()._get_primals(vars_to_load) if self._vars else ComponentMap()

    return GuardedHighs
