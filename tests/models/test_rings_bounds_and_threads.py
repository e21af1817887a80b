"""xtree and optree: every bound that is stated has a certificate or a solver's name; solvers use the threads asked.

What counts as certified is what ``check_bound`` derives again, not what a method says of itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import UnsupportedError
from synth.family import get_family
from synth.method import load
from synth.options import RunOptions
from synth.solvers.catalogue import known_solvers, solvers_for
from synth.solvers.cpsat import UNREPEATABLE

PROGRAMS = "bound pull chunk_count ilp cpsat"
INSTANCES = [
    ("xtree", dict(network="torus", rows=2, cols=3, chunks=2), PROGRAMS + " symmetric cycle relaxation"),
    ("xtree", dict(network="kautz", nodes=6, degree=2), PROGRAMS + " relaxation"),
    (
        "xtree",
        dict(network="mesh", rows=2, cols=2, collective="reduce_scatter"),
        PROGRAMS + " symmetric cycle relaxation",
    ),
    ("xtree", dict(network="ring", nodes=4, collective="allreduce"), PROGRAMS + " symmetric cycle forest"),
    ("xtree", dict(network="equimesh", rows=2, cols=2, collective="allreduce"), PROGRAMS + " symmetric cycle forest"),
    ("optree", dict(nodes=6, wavelengths=2), "bound one_path time_expanded"),
    ("optree", dict(nodes=10, wavelengths=2), "bound one_path time_expanded"),
    ("optree", dict(nodes=8, wavelengths=2, laser_dbm=4, pass_loss_db=1), "bound one_path time_expanded"),
]


def made(family: str, parameters: dict[str, object]) -> Any:
    return synth.make(family, **parameters)


def run(family: str, instance: Any, name: str, **changed: Any) -> Any:
    method = get_family(family).method(name)
    parameters = {parameter.name: parameter.default for parameter in method.parameters}
    solver = next(iter(solvers_for(method.needs)), None)
    return method.load()(instance, RunOptions(60.0, solver=solver, method=parameters, **changed))


@pytest.mark.long(after=3)
@pytest.mark.parametrize(("family", "parameters", "bounding"), INSTANCES, ids=str)
def test_a_stated_bound_is_certified_or_a_solvers_word(
    family: str, parameters: dict[str, object], bounding: str
) -> None:
    """All methods that take the instance; ``bounding`` are those that must state a bound there, and no others do."""
    instance = made(family, parameters)
    stating, check_bound = set(), load(get_family(family).check_bound)
    for method in get_family(family).methods.values():
        try:
            outcome = run(family, instance, method.name)
        except UnsupportedError:
            continue
        if outcome.bound is None:
            assert outcome.certificate is None
            assert outcome.bound_proof is None
            continue
        stating.add(method.name)
        if outcome.certificate is None:
            assert method.kind == "program"
            titles = [known_solvers()[name].title for name in solvers_for(method.needs)]
            assert any(outcome.bound_proof.startswith(f"{title} proves") for title in titles)
        else:
            assert outcome.bound_proof
            assert check_bound(instance, outcome.bound, outcome.certificate) == []
            assert check_bound(instance, outcome.bound + 1, outcome.certificate) != []
    assert stating == set(bounding.split())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("family", "parameters", "method"),
    [
        ("optree", dict(nodes=10, wavelengths=2), "time_expanded"),
        ("optree", dict(nodes=6, wavelengths=2), "rwa"),
        ("xtree", dict(network="ring", nodes=4, chunks=3), "cpsat"),
        ("xtree", dict(network="line", nodes=3, collective="allreduce"), "cpsat"),
    ],
    ids=str,
)
def test_workers_follow_threads(
    family: str, parameters: dict[str, object], method: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every search of CP-SAT has as many workers as threads were asked; several are said not to repeat by seed."""
    from ortools.sat.python import cp_model

    seen = []

    class Watched(cp_model.CpSolver):  # type: ignore[misc]
        def solve(self, *arguments: Any) -> Any:
            seen.append(self.parameters.num_workers)
            return super().solve(*arguments)

    monkeypatch.setattr(cp_model, "CpSolver", Watched)
    instance = made(family, parameters)
    options = {} if method == "rwa" else {"warm_start": "off"}
    record = synth.solve(instance, method, solver="cpsat", threads=threads, options=options)
    assert record.ok
    assert record.value is not None
    assert set(seen) == {threads}
    assert (UNREPEATABLE in record["message"]) == (threads > 1)
    assert "one thread repeats by seed" in get_family(family).method(method).summary


@pytest.mark.parametrize("method", ["time_expanded", "rwa"])
def test_one_thread_repeats_by_seed(method: str) -> None:
    """The same seed, the same circuits; the strategies that one thread takes in turns are no source of chance."""
    instance = made("optree", dict(nodes=9, wavelengths=2))
    packed = []
    for _ in range(2):
        found = run("optree", instance, method, seed=3)
        packed.append({key: value.tolist() for key, value in load(get_family("optree").pack)(found.solution).items()})
    assert packed[0] == packed[1]


@pytest.mark.parametrize(
    ("parameters", "method", "horizon"),
    [
        (dict(family="xtree", network="ring", nodes=6), "ilp", 2),
        (dict(family="xtree", network="ring", nodes=6), "cpsat", 2),
        (dict(family="xtree", network="ring", nodes=4, collective="allreduce"), "ilp", 2),
        (dict(family="xtree", network="ring", nodes=4, collective="allreduce"), "cpsat", 2),
        (dict(family="optree", nodes=16, wavelengths=2), "time_expanded", 4),
    ],
    ids=str,
)
def test_the_command_exits_with_3_below_a_bound(
    parameters: dict[str, Any], method: str, horizon: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six nodes on a ring: 5 / 2 -> 3. Four, allreduce: 2 * 3 * 4 / 8 = 3. 16 nodes, 2 wavelengths: 5, by prices."""
    given = dict(parameters)
    instance = made(given.pop("family"), given)
    monkeypatch.chdir(tmp_path)
    Path("asked.json").write_text(json.dumps(instance.model_dump(mode="json")))
    words = ["solve", "asked.json", "-m", method, "-O", f"horizon={horizon}", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 3
    record = json.loads(result.stdout.splitlines()[0])
    assert record["termination"] == "infeasible"
    assert record["bound"] == horizon + 1
    assert record["verified"]["facts"]["certificate"] == "verified"
