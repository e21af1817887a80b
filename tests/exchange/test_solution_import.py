"""Models out, solved by somebody else, solutions back: the same value; files that are none, and false points."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import highspy
import pytest
from command import flat, write_ring
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError
from synth.exchange.record_export import write_model
from synth.exchange.solution_import import record_of
from synth.exchange.solver_solutions import read
from synth.library.submission import Sender
from synth.records.record import Record
from synth.text.input_file import InputFile

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
JANE = Sender("Jane Doe")
PROGRAMS: list[tuple[str, str, dict[str, str]]] = [
    ("xtree/equimesh-2x3-c1", "ilp", {"horizon": "3"}),
    ("optree/ring-4-w1", "rwa", {}),
    ("optree/ring-8-w2", "stages", {"by": "program"}),
    ("harvest/recursive-doubling-4-p1", "misocp", {}),
    ("harvest/alltoall-direct-16-p2", "candidates", {}),
    ("bine/groups-13-root5-broadcast", "tree_ilp", {}),
    ("fabric/dgx1-broadcast-16KiB", "steps", {"steps": "2", "rounds": "2", "chunks": "1"}),
    ("mlfm/d3-n2l3m2", "ilp", {}),
]


def asked(instance: str, method: str, own: dict[str, Any]) -> Record:
    """A record as far as its model needs it; nothing has run."""
    problem = synth.read(INSTANCES / f"{instance}.json")
    options = {"time_limit_s": 60.0, "relative_gap": 1e-4, "threads": 1, "seed": 0, "method": own}
    data = {
        "family": problem.family, "method": method, "kind": "program", "solver": "highs", "options": options,
        "instance": problem.name,
    }  # fmt: skip
    return Record(data, None, None, problem)


def by_plain_highs(model: Path, solution: Path, style: int = 0) -> None:
    """What ``highs model.mps --solution_file FILE`` does; nothing of ours."""
    highs: Any = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(model)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    assert highs.writeSolution(str(solution), style) == highspy.HighsStatus.kOk


@pytest.mark.parametrize(("instance", "method", "own"), PROGRAMS)
def test_a_solution_comes_back_with_the_value_of_the_record(
    instance: str, method: str, own: dict[str, str], tmp_path: Path
) -> None:
    one = asked(instance, method, {})
    said = write_model(one, "mps", tmp_path / "model.mps", parameters=own)
    assert f"model 1 of {one.label}" in said[0]
    assert (tmp_path / "model.mps").read_text().startswith(f"* model 1 of {one.label} on {one['instance']}")
    by_plain_highs(tmp_path / "model.mps", tmp_path / "model.sol")
    back, words = record_of(one, InputFile(tmp_path / "model.sol"), JANE, parameters=own)
    assert "values by HiGHS, model 1 of" in words
    solved = synth.solve(one.find_instance(), method, solver="highs", options=own)
    assert back.value == pytest.approx(solved.value, rel=1e-9)
    assert (back["kind"], back["submitted"]["by"], back.bound) == ("submitted", "Jane Doe", None)
    assert synth.check(back, one.find_instance()).faults == []


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> tuple[Record, dict[str, float], str]:
    """A program whose horizon is said: a ring of four in 2 timesteps, its solution by HiGHS as values and as text."""
    folder = tmp_path_factory.mktemp("ring")
    instance = synth.read(write_ring(folder, chunks=1))
    record = synth.solve(instance, "ilp", options={"horizon": 2})
    said = write_model(record, "mps", folder / "model.mps")
    assert said[0].endswith("is there a solution of 2 timesteps?")
    by_plain_highs(folder / "model.mps", folder / "model.sol")
    names = set(re.findall(r"\bsend_k\d+_a\d+_t\d+\b", (folder / "model.mps").read_text()))
    point = read(InputFile(folder / "model.sol")).values
    assert names
    assert names <= set(point)
    return record, point, (folder / "model.sol").read_text()


def as_scip(point: dict[str, float]) -> str:
    rows = "".join(f"{name:<40} {value:20.15g} \t(obj:0)\n" for name, value in point.items() if value)
    return "solution status: optimal solution found\nobjective value:                                    0\n" + rows


def as_gurobi(point: dict[str, float]) -> str:
    rows = "".join(f"{name} {value:.17g}\n" for name, value in point.items())
    return "# Solution for model ring\n# Objective value = 0\n" + rows


def as_miplib(point: dict[str, float]) -> str:
    return "=obj= 0\n" + "".join(f"{name} {value:.15g}\n" for name, value in point.items() if value)


def as_cplex(point: dict[str, float]) -> str:
    rows = "".join(
        f'  <variable name="{name}" index="{i}" value="{value!r}"/>\n' for i, (name, value) in enumerate(point.items())
    )
    head = '<?xml version = "1.0" encoding="UTF-8" standalone="yes"?>\n<CPLEXSolution version="1.2">\n <variables>\n'
    return head + rows + " </variables>\n</CPLEXSolution>\n"


@pytest.mark.parametrize("written", [as_scip, as_gurobi, as_cplex, as_miplib])
def test_every_form_gives_the_same_point(
    written: Any, ring: tuple[Record, dict[str, float], str], tmp_path: Path
) -> None:
    record, point, _ = ring
    file = tmp_path / "other.sol"
    file.write_text(written(point))
    found = read(InputFile(file))
    assert found.form.lower() in written.__name__
    assert {name: value for name, value in found.values.items() if value} == {k: v for k, v in point.items() if v}
    assert record_of(record, InputFile(file), JANE)[0].value == record.value == 2


def changed(point: dict[str, float]) -> Iterator[tuple[dict[str, float], str]]:
    """Points that are none of the model, and what is said of them."""
    used = next(name for name, value in point.items() if name.startswith("send_") and value > 0.5)
    yield {**point, used: 0.0}, "breaks the row"
    yield {**point, used: 7.0}, "is outside 0..1"
    yield {**point, "evil": 1.0}, "the model has no variable 'evil'"
    yield {"evil": 1.0}, "another model, or another --nth?"


def test_a_false_point_is_refused_with_what_it_breaks(
    ring: tuple[Record, dict[str, float], str], tmp_path: Path
) -> None:
    record, point, _ = ring
    for wrong, said in changed(point):
        (tmp_path / "w.sol").write_text(as_gurobi(wrong))
        with pytest.raises(InputError) as refused:
            record_of(record, InputFile(tmp_path / "w.sol"), JANE)
        assert said in flat(str(refused.value))
        assert "w.sol" in str(refused.value)


def test_a_point_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    one = asked("mlfm/d3-n2l3m2", "ilp", {})
    write_model(one, "mps", tmp_path / "model.mps")
    by_plain_highs(tmp_path / "model.mps", tmp_path / "model.sol")
    point = read(InputFile(tmp_path / "model.sol")).values
    used = next(name for name, value in point.items() if value > 0.5 and name != "constant_one")
    (tmp_path / "half.sol").write_text(as_gurobi({**point, used: 0.5}))
    with pytest.raises(InputError, match=rf"{used} = 0\.5 is not whole"):
        record_of(one, InputFile(tmp_path / "half.sol"), JANE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no solution file"),
        ("hello\n", "is no solution file"),
        ("# Objective value = 1\n", "holds no values"),
        ("# Objective value = 1\nx nan\n", "line 2 = 'nan': must be a finite number"),
        ("# Objective value = 1\nx 1e999\n", "must be a finite number"),
        ("# Objective value = 1\nx 1\nx 2\n", "line 3: x stands twice"),
        ("# Objective value = 1\nx 1 2\n", "line 2 = 'x 1 2': must be a name and a value"),
        ("solution status: infeasible\nobjective value: 0\n", "holds no point"),
        ("=infeas=\n", "line 1: holds no point: =infeas="),
        ("=obj= 1\nx 1\n=unkn=\n", "line 3: holds no point"),
        ("=obj= 1\nx inf\n", "line 2 = 'inf': must be a finite number"),
        ("=obj= 1\n", "holds no values"),
        ("Model status\nInfeasible\n\n# Primal solution values\nNone\n", "holds no feasible point"),
        (
            "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 1\n# Columns 3\nx 1\n",
            "must be a name",
        ),
        (
            "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 1\n# Columns 3\nx 1",
            "ends after 1 of 3",
        ),
        ("<CPLEXSolution><variables>", "is no XML"),
        ("<a/>", "has no CPLEXSolution"),
        ('<!DOCTYPE b [<!ENTITY a "aaaa">]><CPLEXSolution>&a;</CPLEXSolution>', "is no XML"),
        ('<CPLEXSolution><variables><variable name="x"/></variables></CPLEXSolution>', "without name or value"),
    ],
)
def test_a_hostile_file_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "h.sol").write_text(text)
    with pytest.raises(InputError) as refused:
        read(InputFile(tmp_path / "h.sol"))
    assert said in flat(str(refused.value))


@pytest.mark.parametrize("style", [1, 2, 3])
@pytest.mark.parametrize("kind", ["lp", "mip"])
def test_other_styles_of_highs_get_the_way_out(kind: str, style: int, tmp_path: Path) -> None:
    """They print six digits or no names; the message says which style it is and which one is read."""
    highs: Any = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    whole = highspy.HighsVarType.kInteger if kind == "mip" else highspy.HighsVarType.kContinuous
    x, y = highs.addVariable(0, 4, name="x", type=whole), highs.addVariable(0, 3, name="y")
    highs.addConstr(x + y <= 5.5)
    highs.maximize(x + 2 * y)
    file = tmp_path / "m.sol"
    highs.writeSolution(str(file), style)
    with pytest.raises(InputError, match=rf"line 1: .*style \(?{style}\b.*raw style \(solution_style 0\)"):
        read(InputFile(file))
    highs.writeSolution(str(file), 0)
    assert read(InputFile(file)).values == {"x": 2.0 if kind == "mip" else 2.5, "y": 3.0}


def test_the_command(
    ring: tuple[Record, dict[str, float], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    instance = synth.read(write_ring(tmp_path, chunks=1))
    path = synth.solve(instance, "ilp", options={"horizon": 2}, results="results").path
    Path("m.sol").write_text(ring[2])
    done = CliRunner().invoke(app, ["import", str(path), "--solution", "m.sol", "--by", "Jane Doe"])
    assert done.exit_code == 0, done.output
    assert "is there a solution of 2 timesteps?" in flat(done.stdout)
    assert "equals the best value known, 2 of ilp (highs), horizon=2" in flat(done.stdout)
    assert CliRunner().invoke(app, ["check", "results"]).exit_code == 0
    with pytest.raises(InputError, match="--option with --solution"):
        CliRunner().invoke(app, ["import", "ring4.json", "--nth", "2"], catch_exceptions=False)


def by_scip(model: Path, solution: Path) -> None:
    scip = pytest.importorskip("pyscipopt").Model()
    scip.hideOutput()
    scip.readProblem(str(model))
    scip.optimize()
    scip.writeBestSol(str(solution))


def by_gurobi(model: Path, solution: Path) -> None:
    gurobi = pytest.importorskip("gurobipy")
    with gurobi.Env(params={"OutputFlag": 0}) as env, gurobi.read(str(model), env=env) as read_model:
        read_model.optimize()
        read_model.write(str(solution))


@pytest.mark.parametrize("by", [by_scip, by_gurobi])
def test_what_other_solvers_write_is_read(by: Any, ring: tuple[Record, dict[str, float], str], tmp_path: Path) -> None:
    record = ring[0]
    write_model(record, "mps", tmp_path / "model.mps")
    by(tmp_path / "model.mps", tmp_path / "model.sol")
    back, words = record_of(record, InputFile(tmp_path / "model.sol"), JANE)
    assert back.value == 2
    assert words.split()[3].lower().rstrip(",") == by.__name__.removeprefix("by_")
