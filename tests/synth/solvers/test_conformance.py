"""Every installed solver ends every kind of program as :class:`SolverResult` promises.

What a solver is not asked, and why, stands in ``EXCLUDED``: a solver that is not installed is skipped for itself alone.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from solver_programs import (
    CASES,
    COVER,
    FULL,
    SINK,
    TORN,
    Program,
    dense,
    keeps_its_word,
    market_split,
    pyomo_model,
    solve,
)

from synth.errors import SizeLimitError, SolverMissingError, UnsupportedError
from synth.options import RunOptions
from synth.solvers import cpsat, mathprog
from synth.solvers.catalogue import known_solvers, require

NAN, INF = float("nan"), float("inf")


FINITE = "its variables are integers between finite bounds"
EXCLUDED = {
    ("cpsat", name): FINITE
    for name, case in CASES.items()
    if not case.program.integer or any(None in bounds for bounds in case.program.bounds)
} | {
    ("cpsat", "linear limit"): FINITE,
    ("cpsat", "not finite"): "no such number can be handed over: OR-Tools raises while the model is built",
    ("highs", "licence"): "no licence limit",
    ("scip", "licence"): "no licence limit",
    ("cpsat", "licence"): "no licence limit",
}


def given(solver: str, case: str) -> None:
    """Skip what is not installed (this solver alone) or excluded by the table."""
    if not known_solvers()[solver].installed:
        pytest.skip(f"{solver} is not installed")
    if (solver, case) in EXCLUDED:
        pytest.skip(f"{solver}: {EXCLUDED[solver, case]}")


@pytest.mark.parametrize("solver", known_solvers())
@pytest.mark.parametrize("name", CASES)
def test_ends_as_it_must(solver: str, name: str) -> None:
    given(solver, name)
    case = CASES[name]
    result, point = solve(case.program, solver, bounded=case.bounded)
    keeps_its_word(result)
    assert result.termination == case.ends
    assert result.has_point == (case.ends == "optimal")
    if result.has_point:
        assert case.program.holds(point)
    if case.value is not None:
        assert case.program.value(point) == pytest.approx(case.value)
        assert result.objective == pytest.approx(case.value)
        assert result.bound == pytest.approx(case.value, rel=2e-4)
    elif case.ends == "optimal":
        assert (result.objective, result.bound) == (None, None)


@pytest.mark.long(after=3)
@pytest.mark.parametrize("solver", known_solvers())
@pytest.mark.parametrize("slack", [True, False], ids=["with a point", "without a point"])
def test_limit(solver: str, slack: bool) -> None:
    """80 items in 10 rows are not split within a moment; what is known of the planted split bounds what may be said."""
    given(solver, "limit")
    program, planted = market_split(80, 10, slack)
    solve(COVER, solver)  # imports and licences take their time once
    for seconds in (0.4, 6.0):  # on a busy machine a solver has found no point within 0.4 s
        options = RunOptions(seconds)
        result, point = solve(program, solver, options, track=3.0)
        keeps_its_word(result)
        assert result.termination == "limit"
        if result.has_point == slack:
            break
    assert result.has_point == slack
    assert result.bound is None or result.bound <= planted + 1e-6
    if slack:
        assert program.holds(point)
        assert result.objective == pytest.approx(program.value(point), abs=1e-3)
        assert result.objective >= planted
    rows = options.progress.rows
    for (at, value, bound), (later, better, higher) in pairwise(rows):
        assert at <= later
        assert value is None or (better is not None and better <= value)
        assert bound is None or (higher is not None and higher >= bound)
    for _, value, bound in rows:  # in the instance's unit, three times the model's
        assert bound is None or bound <= 3 * planted + 1e-5
        assert value is None or (slack and value >= 3 * result.objective - 1e-5)
    if slack:
        assert rows[-1][1] == pytest.approx(3 * result.objective)
    if len(rows) < 2 and solver != "cpsat":  # on a busy machine a solver says less within 0.4 s
        longer = RunOptions(6.0)
        solve(program, solver, longer, track=3.0)
        assert len(longer.progress.rows) >= 2


@pytest.mark.parametrize("solver", known_solvers())
def test_limit_of_a_linear_program(solver: str) -> None:
    given(solver, "linear limit")
    solve(COVER, solver)
    result, _ = solve(dense(300), solver, RunOptions(0.005))
    keeps_its_word(result)
    assert (result.termination, result.has_point, result.bound) == ("limit", False, None)


@pytest.mark.parametrize("solver", known_solvers())
def test_no_time_left(solver: str) -> None:
    """Nothing is started, so nothing is known: not even of a program without a point."""
    given(solver, "no time")
    result, _ = solve(FULL, solver, RunOptions(1.0, started=-1e9))
    assert (result.termination, result.has_point, result.bound) == ("limit", False, None)
    assert result.message == "no time left"


@pytest.mark.parametrize("solver", known_solvers())
def test_the_curve_ends_with_the_result(solver: str) -> None:
    given(solver, "curve")
    options = RunOptions(30)
    result, _ = solve(COVER, solver, options, track=2.0)
    assert result.objective == pytest.approx(10)
    _, value, bound = options.progress.rows[-1]
    assert (value, bound) == (pytest.approx(20), pytest.approx(20))


@pytest.mark.parametrize("solver", known_solvers())
def test_a_seed_and_one_thread_give_the_same_point_again(solver: str) -> None:
    given(solver, "seed")
    program = Program(((0, 9),) * 6, (((1,) * 6, "==", 27), ((1, 2, 3, 4, 5, 6), ">=", 100)), (1,) * 6)
    points = [solve(program, solver, RunOptions(30, seed=2**40 + 7))[1] for _ in range(2)]
    assert points[0] == points[1]


@pytest.mark.parametrize("solver", known_solvers())
def test_licence(solver: str) -> None:
    """Gurobi from pip: 2000 variables, 2000 constraints, 200 variables once anything is quadratic."""
    given(solver, "licence")
    gurobipy = pytest.importorskip("gurobipy")
    with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.Model(env=env) as model:
        model.addVars(2001)
        try:
            model.optimize()
            pytest.skip("this machine has a full licence")
        except gurobipy.GurobiError:
            pass
    wide = Program(((0, 1),) * 2001, (((1,) * 2001, ">=", 1),), (1,) * 2001)
    long = Program(((0, 1),) * 2, (((1, 1), ">=", 1),) * 2001, (1, 1))
    for program in (wide, long):
        with pytest.raises(SizeLimitError, match="use --solver highs"):
            solve(program, solver)
    import pyomo.environ as pyo

    squares = pyomo_model(Program(((0, 1),) * 201, (), (1,) * 201))
    squares.disc = pyo.Constraint(expr=sum(x * x for x in squares.x.values()) >= 1)
    with pytest.raises(SizeLimitError, match="quadratic"):
        mathprog.solve(squares, RunOptions(30, solver=solver), bounded=True, quadratic=True)


@pytest.mark.parametrize("solver", known_solvers())
@pytest.mark.parametrize("number", [NAN, INF, -INF])
@pytest.mark.parametrize("place", ["coefficient", "objective", "side"])
@pytest.mark.parametrize("integer", [True, False])
def test_a_number_that_is_not_finite_is_an_error(solver: str, number: float, place: str, integer: bool) -> None:
    """Never an answer to some other program, as where the row is left out: HiGHS called (0, 0) optimal here."""
    given(solver, "not finite")
    if place == "side" and number == number:
        pytest.skip("an infinite side is a plain statement: no limit, or none that can be met")
    row = (number if place == "coefficient" else 1, 1)
    program = Program(
        ((0, 5), (0, 5)),
        ((row, ">=", number if place == "side" else 3),),
        (number if place == "objective" else 1, 1),
        integer=integer,
    )
    result, _ = solve(program, solver)
    keeps_its_word(result)
    assert result.termination == "error"
    assert result.message


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
@pytest.mark.parametrize(
    ("program", "optimum"),
    [
        (Program(((0, 1), (0, 5)), (((1e16, 1), ">=", 1), ((1e16, 0), "<=", 0)), (0, 1), integer=False), 1),
        (Program(((0, 1), (0, 5), (1, 5)), (((1, 1, 0), ">=", 3), ((0, 1e15, 1e15), ">=", 4e15)), (1, 1, 1)), 4),
        (Program(((0, 1e11), (0, 5)), (((1e-10, 1), ">=", 1),), (0, 1), integer=False), 0),
        (Program(((0, 1e11), (0, 5)), (((1e-9, 1), ">=", 1),), (0, 1), integer=False), 0),
    ],
)
def test_numbers_beyond_a_solvers_range(solver: str, program: Program, optimum: float) -> None:
    """The right optimum or an error: HiGHS drops coefficients up to 1e-9, and every row when one is from 1e15 on."""
    given(solver, "range")
    result, _ = solve(program, solver)
    keeps_its_word(result)
    assert result.termination == "error" or result.objective == pytest.approx(optimum, abs=1e-6)


def test_cpsat_overflow_is_an_error() -> None:
    given("cpsat", "overflow")
    result, _ = solve(Program(((0, 2**40),), (((2**40,), "<=", 7),), (1,)), "cpsat")
    keeps_its_word(result)
    assert result.termination == "error"
    assert "overflow" in (result.message or "")


def test_cpsat_takes_as_many_workers_as_threads() -> None:
    given("cpsat", "threads")
    from ortools.sat.python import cp_model

    for threads in (1, 3):
        _, solver = cpsat.solve(cp_model.CpModel(), RunOptions(30, threads=threads))
        assert solver.parameters.num_workers == threads


@pytest.mark.parametrize("error", ["SCIP: error in LP solver!", "GurobiError", "ApplicationError", "own"])
def test_a_solver_that_fails(monkeypatch: pytest.MonkeyPatch, error: str) -> None:
    """The solver's own failures are its result; a fault of ours, or of the model's kind, is raised."""
    from pyomo.common.errors import ApplicationError

    from synth.solvers import highs

    raised: Any = {
        "GurobiError": type("GurobiError", (Exception,), {})("no"),
        "ApplicationError": ApplicationError("not there"),
        "own": KeyError("a bug"),
    }.get(error, Exception(error))

    def fail(*_: Any, **__: Any) -> None:
        raise raised

    monkeypatch.setattr(highs.interface(), "solve", fail)
    if error == "own":
        with pytest.raises(KeyError):
            solve(COVER, "highs")
        return
    result, _ = solve(COVER, "highs")
    keeps_its_word(result)
    assert (result.termination, result.message) == ("error", str(raised))


def test_what_cannot_be_asked() -> None:
    with pytest.raises(UnsupportedError, match="CP-SAT does not take linear rows \\(milp\\); HiGHS, SCIP, Gurobi can"):
        mathprog.solve(pyomo_model(COVER), RunOptions(1, solver="cpsat"), bounded=True)
    with pytest.raises(SolverMissingError, match="unknown solver 'cplex'"):
        require("cplex")


def test_a_missing_solver_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synth.solvers.solver.find_spec", lambda _: None)
    with pytest.raises(SolverMissingError, match=r"SCIP is not installed; pip install 'collective-synth\[scip\]'"):
        mathprog.solve(pyomo_model(COVER), RunOptions(1, solver="scip"), bounded=True)
    with pytest.raises(SolverMissingError, match="OR-Tools"):
        cpsat.solve(None, RunOptions(1))


@pytest.mark.parametrize("interior", [False, True])
def test_duals_of_a_linear_program(interior: bool) -> None:
    """Minimise -3x - 5y; x <= 4, 2y <= 12, 3x + 2y <= 18, x + y >= 1 (Hillier and Lieberman's Wyndor): (2, 6), -36.
    The first and last rows are slack; raising 12 by one wins 3/2, raising 18 wins 1: duals 0, -3/2, -1 and 0."""
    program = Program(
        ((0, None), (0, None)),
        (((1, 0), "<=", 4), ((0, 2), "<=", 12), ((3, 2), "<=", 18), ((1, 1), ">=", 1)),
        (-3, -5),
        integer=False,
    )
    model = pyomo_model(program)
    result, [duals] = mathprog.solve_lp(model, RunOptions(30), [model.rows], interior=interior)
    assert (result.termination, result.objective) == ("optimal", pytest.approx(-36))
    assert duals == pytest.approx([0, -1.5, -1, 0], abs=1e-6)
    assert sum(d * side for d, (_, _, side) in zip(duals, program.rows, strict=True)) == pytest.approx(-36)


def test_dual_of_a_row_from_below() -> None:
    """Minimise 2x with x >= 3: one more costs 2."""
    model = pyomo_model(Program(((0, None),), (((1,), ">=", 3),), (2,), integer=False))
    result, [duals] = mathprog.solve_lp(model, RunOptions(30), [model.rows])
    assert (result.objective, duals) == (pytest.approx(6), pytest.approx([2]))


@pytest.mark.parametrize(
    ("program", "ends"),
    [(FULL.relaxed(), "infeasible"), (SINK.relaxed(), "unbounded"), (TORN.relaxed(), "infeasible")],
)
def test_no_duals_without_an_optimum(program: Program, ends: str) -> None:
    model = pyomo_model(program)
    result, duals = mathprog.solve_lp(model, RunOptions(30), [model.rows])
    keeps_its_word(result)
    assert (result.termination, duals) == (ends, [])
    assert model.cost.active
    assert mathprog.solve_lp(model, RunOptions(1, started=-1e9), [model.rows])[0].termination == "limit"


ALL_IN_ONE_PROCESS = """
import importlib
from synth.solvers.catalogue import known_solvers
there = [name for name in {order} if known_solvers()[name].installed]
for name in there:
    importlib.import_module(known_solvers()[name].module)
from ortools.sat.python import cp_model
from solver_programs import COVER, solve
assert "highs" in there and "cpsat" in there
for name in there:
    assert abs(solve(COVER, name)[0].objective - 10) < 1e-6, name
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "order", [("highs", "scip", "gurobi", "cpsat"), ("cpsat", "gurobi", "scip", "highs")], ids=lambda o: o[0]
)
def test_any_order_of_imports(order: tuple[str, ...]) -> None:
    """highspy 1.15 and ortools 9.15 could not be loaded into one process, whichever came second."""
    done = subprocess.run(
        [sys.executable, "-c", ALL_IN_ONE_PROCESS.format(order=order)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
