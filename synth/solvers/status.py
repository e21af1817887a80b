"""What a solver call ended with, in one vocabulary for all solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SolverTermination = Literal["optimal", "infeasible", "unbounded", "infeasible_or_unbounded", "limit", "error"]


@dataclass(frozen=True)
class SolverResult:
    """``termination`` says why the call ended; ``has_point`` whether a feasible point can be read from the model.
    ``infeasible_or_unbounded`` is what a solver may say, :mod:`synth.solvers.mathprog` never.

    ``bound`` is None unless finite and proven. An infeasible model has no bound: HiGHS reports -inf there, Gurobi +inf.
    ``transfer_s`` is the time the interface took to hand the model over, ``solve_s`` the solver's own time.
    """

    termination: SolverTermination
    has_point: bool
    objective: float | None
    bound: float | None
    solve_s: float
    transfer_s: float = 0.0
    message: str | None = None
