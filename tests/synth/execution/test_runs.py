"""The one expander: which runs a request makes, written out by hand, and that every command asks it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import synth
from synth import api
from synth.errors import InputError
from synth.execution import runs
from synth.execution.runs import Request, Run, expand, plan
from synth.family import defaults_for, get_family
from synth.instance import Instance, read
from synth.records import record as records
from synth.records.folder import pack
from synth.records.record import Record
from synth.reproduction.collect import Reproduction
from synth.solvers.catalogue import solvers_for

INSTANCES = Path(__file__).resolve().parents[3] / "instances"
OPTREE, XTREE = INSTANCES / "optree" / "ring-10-w2.json", INSTANCES / "xtree" / "mesh-4x4-c1.json"


@pytest.fixture
def ring() -> Instance:
    return read(OPTREE)


@pytest.fixture
def mesh() -> Instance:
    return read(XTREE)


def brief(made: Sequence[Run]) -> list[tuple[Any, ...]]:
    return [(run.method.name, run.options.solver, run.options.seed, run.options.time_limit_s) for run in made]


def test_every_combination_in_order(mesh: Instance, tmp_path: Path) -> None:
    request = Request(["ilp", "pull", "ilp"], ["scip", "highs", "cpsat"], [0, 7], ["30s", "none"], grid=True)
    made = expand([mesh], request, tmp_path)
    seeds_and_limits = [(0, 30.0), (0, None), (7, 30.0), (7, None)]
    expected = [("ilp", solver, *rest) for solver in ("scip", "highs") for rest in seeds_and_limits]
    assert brief(made.runs()) == expected + [("pull", None, *rest) for rest in seeds_and_limits]
    assert made.left_out == ["xtree ilp does not run with cpsat"]
    assert [run.results.name for run in made.runs()[:4]] == ["seed0-30s", "seed0-none", "seed7-30s", "seed7-none"]
    assert len({run.path for run in made.runs()}) == len(made.runs())


def test_one_solver_asked_of_several_methods_goes_to_those_that_can_use_it(mesh: Instance, tmp_path: Path) -> None:
    made = expand([mesh], Request(["bound", "ilp", "cpsat"], ["scip"]), tmp_path).runs()
    assert [(run.method.name, run.options.solver) for run in made] == [
        ("bound", None),
        ("ilp", "scip"),
        ("cpsat", "cpsat"),
    ]
    assert {run.results for run in made} == {tmp_path}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(["pull"], ["scip"]), "none of the methods can use solver scip"),
        (Request(["cpsat"], ["scip"]), "method cpsat of family xtree runs with cpsat, not scip"),
        (Request(["pull"], ["cplex"]), "unknown solver 'cplex'"),
        (Request(["pall"]), "unknown method 'pall' of family xtree"),
        (Request(["pull"], parameters={"colour": "red"}), "unknown parameter 'colour'"),
        (Request(["pull", "bound"], parameters={"restarts": "x"}), "must be a whole number"),
    ],
)
def test_what_is_asked_in_vain_is_a_fault(request_: Request, words: str, mesh: Instance, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        expand([mesh], request_, tmp_path).runs()


def test_a_parameter_goes_to_the_methods_that_know_it(mesh: Instance, tmp_path: Path) -> None:
    for grid in (False, True):
        request = Request(["pull", "bound"], parameters={"restarts": "3"}, grid=grid)
        pull, bound = expand([mesh], request, tmp_path).runs()
        assert pull.options.method["restarts"] == 3
        assert "restarts" not in bound.options.method
        if grid:
            assert (pull.results.name, bound.results.name) == ("seed0-60s-restarts=3", "seed0-60s")


def test_a_grid_over_families_takes_from_each_what_it_has(mesh: Instance, ring: Instance, tmp_path: Path) -> None:
    made = expand([mesh, ring], Request(["pull", "relay"], grid=True), tmp_path).runs()
    assert [(run.instance.family, run.method.name) for run in made] == [("xtree", "pull"), ("optree", "relay")]


def test_a_solver_that_is_not_installed(mesh: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is left out of a grid with the remedy, and is a fault otherwise."""
    monkeypatch.setattr("synth.solvers.solver.find_spec", lambda name: None if name == "pyscipopt" else name)
    made = expand([mesh], Request(["ilp"], ["highs", "scip"], grid=True), tmp_path)
    assert [run.options.solver for run in made.runs()] == ["highs"]
    assert "pip install" in made.left_out[0]
    with pytest.raises(InputError, match="SCIP is not installed"):
        expand([mesh], Request(["ilp"], ["scip"]), tmp_path).runs()


def test_defaults_and_the_program_a_solver_asks_for(mesh: Instance, tmp_path: Path) -> None:
    """Without methods the family's own; a solver that none of them takes brings in the first program that does."""
    names = [run.method.name for run in expand([mesh], Request(), tmp_path).runs()]
    assert names == list(defaults_for(get_family("xtree"), mesh))
    methods = get_family("xtree").methods
    for solver in ("scip", "cpsat"):
        made = expand([mesh], Request(solvers=[solver]), tmp_path).runs()
        assert solver in [run.options.solver for run in made]
        others = [run.method.name for run in made if run.options.solver != solver]
        assert all(
            methods[name].kind != "program" or solver in solvers_for(methods[name].needs) or name in names
            for name in others
        )


def test_all_faults_of_a_plan_at_once(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "twin.json").write_text(OPTREE.read_text())
    with pytest.raises(InputError) as caught:
        plan([tmp_path, OPTREE], Request(["pull"], limits=["soon"]), tmp_path)
    text = str(caught.value)
    for words in ("--time-limit", "broken.json", "two instances are both named ring-10-w2", "unknown method 'pull'"):
        assert words in text
    assert text.count("unknown method 'pull'") == 1
    assert "none of the methods" not in text


def test_every_command_asks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """solve, batch, study and reproduction: one request each, and nobody makes runs by himself."""
    from synth.study.definition import load

    seen: list[Request] = []
    real = runs.expand

    def noted(instances: Any, request: Request, results: Path) -> Any:
        seen.append(request)
        return real(instances, request, results)

    for module in ("synth.execution.runs", "synth.study.definition"):
        monkeypatch.setattr(f"{module}.expand", noted)
    study = tmp_path / "s.toml"
    study.write_text(f'name = "s"\ninstances = ["{OPTREE}"]\n[[run]]\nmethods = ["relay"]\nseeds = [1, 2]\n')
    assert [run.options.seed for run in load(study).prepare(tmp_path).runs] == [1, 2]
    page = Reproduction(tmp_path / "page", True, INSTANCES, tmp_path, print, 1)
    assert [record.value for _, record in page.solve([read(OPTREE)], ["relay"])]
    assert brief(plan([OPTREE], Request(["relay"]), tmp_path)) == [("relay", None, 0, 60.0)]
    assert [(request.grid, list(request.seeds)) for request in seen] == [(True, [1, 2]), (False, [0]), (False, [0])]
    makers = [
        str(file)
        for file in sorted((Path(runs.__file__).parents[1]).rglob("*.py"))
        if " Run(" in file.read_text() and file.name != "runs.py"
    ]
    assert [Path(maker).name for maker in makers] == ["plan.py"]  # a batch's entry, read back from batch.json


def test_a_record_stands_for_its_instance(tmp_path: Path) -> None:
    """One that lies in it, in a file or packed, is written beside the new records; an instance of the same name and
    another content keeps its file."""
    made = synth.make("xtree", network="ring", nodes=4, chunks=1, name="ring")
    record = synth.solve(made, "pull")
    held = Record({**record.data, "instance_text": made.to_json()}, record.packed)
    place = tmp_path / "theirs/xtree/ring/pull.json"
    records.write(held, place)
    results = tmp_path / "results"
    [run] = plan([place], Request(["pull"]), results)
    assert run.instance.sha256 == made.sha256
    assert run.instance.file == results / "instances/ring.instance"
    pack(tmp_path / "theirs")
    assert not place.exists()
    (results / "instances/ring.instance").write_text("{}")
    [run] = plan([place], Request(["pull"]), results)
    assert run.instance.file == results / f"instances/ring-{made.sha256[:8]}.instance"
    assert api.execute(run.instance, run.method, run.options).value == record.value
    with pytest.raises(InputError, match="no such file"):
        plan([place.with_name("push.json")], Request(["pull"]), results)


def test_a_record_is_that_of_a_run_whose_method_has_a_parameter_more(mesh: Instance, tmp_path: Path) -> None:
    """It lies where it lay, and counts as one at the default; where the run asks for another value it does not."""
    asked = [Request(["pull"], parameters=given) for given in ({}, {"restarts": "3"})]
    [run], [other] = (expand([mesh], one, tmp_path).runs() for one in asked)
    for one in (run, other):
        record = records.write(api.execute(one.instance, one.method, one.options), one.path)
        assert one.finished_record() is not None
        before = {name: value for name, value in record["options"]["method"].items() if name != "restarts"}
        assert before != record["options"]["method"]
        older = record["options"] | {"method": before}
        records.write(Record({**record.data, "options": older}, record.path), one.path)
    assert run.finished_record() is not None
    assert other.finished_record() is None
