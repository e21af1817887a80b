"""A solver in one file: HiGHS in scipy, as a distribution of its own would hold it."""

from synth.solvers.matrix_form import matrix_form
from synth.solvers.solver import Solver
from synth.solvers.status import SolverResult

SOLVER = Solver("scipy", "HiGHS in scipy", "scipy", "scipy", frozenset({"milp"}), "scipy_solver:solve", seed=False)
ENDS = {0: "optimal", 1: "limit", 2: "infeasible", 3: "unbounded"}


def solve(model, options, call):
    """Hand a Pyomo model to scipy as a matrix, and put the point that it finds into the variables."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    form = matrix_form(model)
    bounds, rows = Bounds(form.lower, form.upper), LinearConstraint(form.rows, form.row_lower, form.row_upper)
    limits = {"time_limit": options.remaining(), "mip_rel_gap": options.relative_gap}
    found = milp(form.cost, integrality=form.whole, bounds=bounds, constraints=rows, options=limits)
    ended = ENDS.get(found.status, "infeasible_or_unbounded" if "unbounded" in found.message else "error")
    value = bound = None
    if found.x is not None:
        form.put(found.x)
        value, bound = found.fun + form.offset, (found.mip_dual_bound if form.whole.any() else found.fun) + form.offset
    return SolverResult(ended, found.x is not None, value, bound, 0.0, message=found.message)
