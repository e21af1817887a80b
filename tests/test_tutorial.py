"""What CONTRIBUTING.md tells others to write, taken from there and the file that it links to, and used as theirs."""

from __future__ import annotations

import json
import re
from types import ModuleType

import pytest
import scipy
from solver_programs import CASES, COVER, keeps_its_word, pyomo_model, solve
from third_party import ROOT, TOY, Place

from synth.errors import UnsupportedError
from synth.options import RunOptions
from synth.solvers import catalogue, mathprog

TEXT = (ROOT / "CONTRIBUTING.md").read_text().split("## Add a method, a family, a solver")[1]
FILES = {code.split("\n")[0].removeprefix("# "): code for code in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)}
SCIPY_SOLVER = ROOT / "tests/toy_solver/scipy_solver.py"
FILES["scipy_solver.py"] = SCIPY_SOLVER.read_text()
ENTRIES = dict(re.findall(r"```toml\n\[project.entry-points.\"(.*?)\"\](.*?)```", TEXT, re.DOTALL))
QUADRATIC = """
from synth.family import Method, Outcome

METHOD = Method("cone", "program", "needs quadratic rows", "cones:solve", needs=("miqcp",))


def solve(instance, options):
    return Outcome("finished", [])
"""


def of_group(name: str, version: str, group: str) -> str:
    return f'[project]\nname = "{name}"\nversion = "{version}"\n[project.entry-points."{group}"]{ENTRIES[group]}'


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The toy family, and the tutorial's method and solver, installed; a study of all of them."""
    made = Place(tmp_path_factory.mktemp("tutorial"))
    made.install_toy()
    made.install(of_group("star-methods", "1.0", "synth.methods"), {"star_methods.py": FILES["star_methods.py"]})
    made.install(of_group("scipy-solver", "2.0", "synth.solvers"), {"scipy_solver.py": FILES["scipy_solver.py"]})
    (made.work / "study.toml").write_text(
        'name = "toy"\ninstances = ["instances"]\n'
        '[[run]]\nmethods = ["star", "ilp"]\nsolvers = ["highs", "scipy", "cpsat"]\n'
    )
    return made


def record(place: Place, name: str) -> dict:
    return json.loads((place.work / "results/toy_broadcast/toy-13" / f"{name}.json").read_text())


def test_the_page_shows_two_methods_and_links_to_program_and_solver():
    assert len(TEXT.split("```python")) == 3
    for file in (TOY / "toy_broadcast/programs.py", SCIPY_SOLVER):
        assert f"({file.relative_to(ROOT)})" in TEXT


def test_whence_they_come_is_shown(place):
    [line] = [line for line in place.done("families", "toy_broadcast").splitlines() if "│ star " in line]
    assert "star-methods 1.0" in line
    [line] = [line for line in place.done("families", "toy_broadcast").splitlines() if "│ ilp " in line]
    assert "highs, scip, gurobi, scipy" in line
    [line] = [line for line in place.done("solvers").splitlines() if "│ scipy " in line]
    assert [cell.strip() for cell in line.strip("│").split("│")] == [
        "scipy", "HiGHS in scipy", scipy.__version__, "milp", "bound", "", "", "scipy-solver 2.0",
    ]  # fmt: skip


def test_solve_check_and_study(place):
    """13 nodes: the star takes 12 rounds; doubling takes 4, and 2^3 < 13, so 4 are the fewest."""
    place.done("solve", "instances", "-m", "star", "-m", "ilp", "--solver", "scipy")
    star, ilp = record(place, "star"), record(place, "ilp-scipy")
    assert (star["objective"]["value"], star["method_origin"]) == (12, "star-methods 1.0")
    assert (ilp["objective"]["value"], ilp["bound"], ilp["termination"]) == (4, 4, "optimal")
    assert (ilp["solver"], ilp["solver_version"]) == ("scipy", scipy.__version__)
    assert ilp["solver_origin"] == "scipy-solver 2.0"
    checked = place.done("check", "results")
    assert "method star run again: the same solution" in checked
    assert f"bound 4 by scipy {scipy.__version__}, seed 0" in checked
    place.done("study", "study.toml")
    table = (place.work / "results/studies/toy/table.csv").read_text()
    assert all(word in table for word in ("star", "ilp-highs", "ilp-scipy"))


def test_the_method_in_a_file(place):
    (place.work / "instances/star_methods.py").write_text(FILES["star_methods.py"])
    place.done("solve", "instances", "-m", "star_methods:star", "-m", "star_methods:METHOD", "--results", "tried")
    for name in ("star_methods@star", "star_methods@METHOD"):
        found = json.loads((place.work / "tried/toy_broadcast/toy-13" / f"{name}.json").read_text())
        assert found["objective"]["value"] == 12
        assert found["method_origin"].startswith("star_methods.py ")
    place.done("check", "tried")


def test_a_method_of_fabric_in_a_file(place):
    """Four ranks in a row, 1 us and 1 ms a hop: in chunks a broadcast ends long before three hops one by one."""
    (place.work / "chain_methods.py").write_text(FILES["chain_methods.py"])
    ask = ("make", "fabric", "network=mesh", "rows=1", "cols=4", "bandwidth=1GB/s", "latency=1us", "bytes=1MB")
    for collective in ("broadcast", "allreduce"):
        place.done(*ask, f"collective={collective}", "-o", f"{collective}.json")
        place.done("solve", f"{collective}.json", "-m", "chain_methods.py:solve", "--results", "chains")
    place.done("check", "chains")
    [found] = (place.work / "chains").glob("fabric/*broadcast*/*.json")
    assert 1.003e-3 < json.loads(found.read_text())["objective"]["value"] < 1.5e-3


def test_a_solver_that_cannot_says_why(place):
    entry = '[project]\nname = "cones"\nversion = "1"\n[project.entry-points."synth.methods"]\n'
    place.install(entry + '"toy_broadcast.cone" = "cones:METHOD"', {"cones.py": QUADRATIC})
    result = place.synth("solve", "instances", "-m", "cone", "--solver", "scipy")
    assert result.returncode == 2
    assert result.stderr == (
        "synth: method cone of family toy_broadcast runs with scip, gurobi, not scipy: "
        "HiGHS in scipy does not take quadratic rows (miqcp)\n"
    )


CONSTRAINTS = """
from ortools.sat.python import cp_model

from synth.solvers.solver import Solver
from synth.solvers.status import SolverResult

SOLVER = Solver("patient", "One worker of CP-SAT", "ortools", "ortools", frozenset({"cp"}), "patient:solve")
ENDS = {cp_model.OPTIMAL: "optimal", cp_model.INFEASIBLE: "infeasible"}


def solve(model, options, track=None):
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = options.seed
    status = solver.solve(model)
    has_point = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    value = bound = None
    if has_point and model.has_objective():
        value, bound = solver.objective_value, solver.best_objective_bound
    return SolverResult(ENDS.get(status, "limit"), has_point, value, bound, solver.wall_time), solver
"""


def test_a_solver_of_constraint_models(tmp_path):
    """It takes the place of CP-SAT in every program that needs `cp`, and of no other."""
    place = Place(tmp_path)
    entry = '[project]\nname = "patient"\nversion = "3"\n[project.entry-points."synth.solvers"]\n'
    place.install(f'{entry}patient = "patient:SOLVER"', {"patient.py": CONSTRAINTS})
    ring = place.work / "ring-8-c1.json"
    ring.write_text((ROOT / "instances/xtree/ring-8-c1.json").read_text())
    [line] = [line for line in place.done("solvers").splitlines() if "│ patient " in line]
    assert "cp" in [cell.strip() for cell in line.split("│")]
    place.done("solve", ring.name, "-m", "cpsat", "--solver", "patient")
    place.done("solve", ring.name, "-m", "cpsat", "--results", "ours")
    theirs, ours = (
        json.loads((place.work / folder / f"xtree/ring-8-c1/{name}.json").read_text())
        for folder, name in (("results", "cpsat-patient"), ("ours", "cpsat-cpsat"))
    )
    assert (theirs["solver"], theirs["solver_origin"], theirs["termination"]) == ("patient", "patient 3", "optimal")
    assert theirs["objective"]["value"] == ours["objective"]["value"] == theirs["bound"]
    assert "1 records hold" in place.done("check", "results")
    result = place.synth("solve", ring.name, "-m", "ilp", "--solver", "patient")
    assert result.returncode == 2
    assert "One worker of CP-SAT does not take linear rows (milp)" in result.stderr
    place.uninstall("patient")
    assert "solver patient: not installed here" in place.done("check", "results")


def test_without_the_solver_its_records_are_still_checked(place):
    place.done("solve", "instances", "-m", "ilp", "--solver", "scipy", "--results", "kept")
    place.uninstall("scipy-solver")
    try:
        assert "solver scipy: not installed here" in place.done("check", "kept")
        result = place.synth("solve", "instances", "-m", "ilp", "--solver", "scipy")
        assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
        assert "unknown solver 'scipy'" in result.stderr
    finally:
        place.install(of_group("scipy-solver", "2.0", "synth.solvers"), {})


BROKEN = {  # a solver's name, its text, and the words for it
    "boom": ("1 / 0", "cannot be loaded: ZeroDivisionError"),
    "highs": ("SOLVER = Solver('highs', '', 'x', 'x', frozenset({'milp'}), 'x:y')", "synth has a solver of that name"),
    "other": ("SOLVER = Solver('name', '', 'x', 'x', frozenset({'milp'}), 'x:y')", "names the solver 'name'"),
    "sdp": ("SOLVER = Solver('sdp', '', 'x', 'x', frozenset({'sdp'}), 'x:y')", "some of milp, miqcp, cp, highspy"),
}


def test_a_broken_solver_costs_one_line(tmp_path):
    place = Place(tmp_path)
    for name, (text, _) in BROKEN.items():
        entry = f'[project]\nname = "of-{name}"\nversion = "1"\n[project.entry-points."synth.solvers"]\n'
        text = f"from synth.solvers.solver import Solver\n{text}\n"
        place.install(f'{entry}{name} = "bad_{name}:SOLVER"', {f"bad_{name}.py": text})
    result = place.synth("solvers")
    assert result.returncode == 0
    lines = result.stderr.splitlines()
    assert len(lines) == len(BROKEN)
    for name, (_, words) in BROKEN.items():
        [line] = [
            line for line in lines if line.startswith(f"synth: entry point {name} (synth.solvers) of of-{name} 1 ")
        ]
        assert words in line


@pytest.fixture
def scipy_solver(monkeypatch):
    """The tutorial's solver in this process."""
    module = ModuleType("scipy_solver")
    exec(FILES["scipy_solver.py"], module.__dict__)
    monkeypatch.setitem(__import__("sys").modules, "scipy_solver", module)
    known = {**catalogue.known_solvers(), "scipy": module.SOLVER}
    monkeypatch.setattr(catalogue, "known_solvers", lambda: known)
    return module


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.program.bounds])
def test_the_solver_ends_every_program_as_ours_do(name, scipy_solver):
    """Those of the conformance suite that have variables."""
    case = CASES[name]
    result, point = solve(case.program, "scipy", bounded=case.bounded)
    keeps_its_word(result)
    assert result.termination == case.ends
    assert result.has_point == (case.ends == "optimal")
    if result.has_point:
        assert case.program.holds(point)
    if case.value is not None:
        assert result.objective == pytest.approx(case.value)
        assert result.bound == pytest.approx(case.value, rel=2e-4)


def test_what_a_solver_without_proofs_says_counts_for_nothing(scipy_solver, monkeypatch):
    """Its point stands; its bound, its optimality and its "infeasible" do not."""
    from dataclasses import replace

    known = {"scipy": replace(scipy_solver.SOLVER, bound=False)}
    monkeypatch.setattr(catalogue, "known_solvers", lambda: known)
    for program, has_point in ((CASES["optimal"].program, True), (CASES["infeasible"].program, False)):
        options = RunOptions(30, solver="scipy")
        result = mathprog.solve(pyomo_model(program), options, bounded=True)
        assert (result.termination, result.has_point, result.bound) == ("limit", has_point, None)
        assert not options.clock.cut


def test_a_program_with_quadratic_rows(scipy_solver):
    """One line says what is wanted and who has it."""
    words = r"HiGHS in scipy does not take quadratic rows \(miqcp\); SCIP, Gurobi can"
    model = pyomo_model(COVER)
    with pytest.raises(UnsupportedError, match=words):
        mathprog.solve(model, RunOptions(1, solver="scipy"), bounded=True, quadratic=True)
