"""Pyomo's interfaces with what they let pass stopped: numbers at which the solver would solve some other program.

HiGHS refuses a whole batch of rows for one coefficient that is infinite or at least 1e15, and leaves out those up to
1e-9; Pyomo does not look at its answer. SCIP takes NaN for anything and coefficients up to 1e-9 for zero; Gurobi takes
infinite costs and those up to 1e-13 for zero. Imported only when a model is solved: Pyomo's interfaces take long.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from pyomo.common.collections import ComponentMap
from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition
from pyomo.contrib.solver.solvers.gurobi.gurobi_direct import GurobiDirect
from pyomo.contrib.solver.solvers.gurobi.gurobi_direct_minlp import GurobiDirectMINLP
from pyomo.contrib.solver.solvers.highs import Highs, highspy
from pyomo.contrib.solver.solvers.scip.base import _PyomoToScipVisitor
from pyomo.contrib.solver.solvers.scip.scip_direct import ScipDirect

LARGEST = 1e15
SMALLEST, SMALLEST_OF_GUROBI = 1e-9, 1e-13


class ModelError(Exception):
    """The model cannot be handed to the solver as it is."""


def _demand_range(name: str, numbers: Any, smallest: float) -> None:
    """Coefficients of a constraint or the objective must be zero or of a size the solver takes."""
    numbers = np.asarray(numbers, float)
    size = np.abs(numbers)
    bad = ~(size < LARGEST) | ((size <= smallest) & (size > 0))
    if bad.any():
        raise ModelError(f"{name} takes no coefficient such as {numbers[bad][0]:g}: 0, or {smallest:g} to {LARGEST:g}")


class GuardedHighs(Highs):  # type: ignore[misc]
    """HiGHS, whose rows and costs are looked at on their way; a model without variables has its constant as optimum."""

    def add_block(self, block: Any) -> None:
        own = self._solver_model
        rows, costs = own.addRows, own.changeColsCost

        def add_rows(number: int, lower: Any, upper: Any, nonzeros: int, starts: Any, index: Any, values: Any) -> None:
            _demand_range("HiGHS", values, SMALLEST)
            if rows(number, lower, upper, nonzeros, starts, index, values) == highspy.HighsStatus.kError:
                raise ModelError("HiGHS refuses the model's constraints")

        def change_costs(number: int, index: Any, values: Any) -> None:
            _demand_range("HiGHS", values, 0.0)
            costs(number, index, values)

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


class _Visitor(_PyomoToScipVisitor):  # type: ignore[misc]
    def walk_expression(self, expr: Any) -> Any:
        made = super().walk_expression(expr)
        body = getattr(made, "expr", made)  # of a constraint
        terms: Mapping[Any, float] = getattr(body, "terms", {})
        if not all(SMALLEST < abs(number) < LARGEST for number in terms.values()):
            _demand_range("SCIP", [number for term, number in terms.items() if len(term)], SMALLEST)
            _demand_range("SCIP", [number for term, number in terms.items() if not len(term)], 0.0)  # the constant
        if any(math.isnan(getattr(made, side, None) or 0.0) for side in ("_lhs", "_rhs")):
            raise ModelError("a constraint's bound is not a number")
        return made


class GuardedScip(ScipDirect):  # type: ignore[misc]
    """SCIP, whose constraints and objective are looked at on their way."""

    def __init__(self, **words: Any) -> None:
        super().__init__(**words)
        self._expr_visitor = _Visitor(self)


class _LookedAt:
    """Gurobi's model is looked at once it is made. Its right-hand sides Gurobi itself looks at."""

    def _create_solver_model(self, pyomo_model: Any, config: Any) -> Any:
        made = super()._create_solver_model(pyomo_model, config)  # type: ignore[misc]
        made[0].update()
        _demand_range("Gurobi", made[0].getA().data, SMALLEST_OF_GUROBI)
        _demand_range("Gurobi", made[0].getAttr("Obj"), 0.0)
        return made


class GuardedGurobi(_LookedAt, GurobiDirect):  # type: ignore[misc]
    """Gurobi for linear programs."""


class GuardedGurobiMinlp(_LookedAt, GurobiDirectMINLP):  # type: ignore[misc]
    """Gurobi for programs with quadratic rows."""


INTERFACES = {
    "highs": GuardedHighs, "scip_direct": GuardedScip, "gurobi_direct": GuardedGurobi,
    "gurobi_direct_minlp": GuardedGurobiMinlp,
}  # fmt: skip
