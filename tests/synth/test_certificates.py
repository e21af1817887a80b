"""Certificates beside solutions, the grade of a bound, and what `solve`, `show` and `check` say of each grade."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import synth
from synth import api
from synth.cli.main import app
from synth.execution import child
from synth.execution.messages import Task
from synth.family import get_family
from synth.instance import Instance
from synth.method import Method, Outcome, Verdict
from synth.options import RunOptions
from synth.records import record as records
from synth.records.contradictions import standing
from synth.records.optimality import exceeds
from synth.records.record import Record
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.references.pull import once

RING = {"format": "synth-instance/1", "family": "xtree", "name": "r", "source": "test",
        "network": {"kind": "ring", "nodes": 4}, "chunks": 1}  # fmt: skip
METHODS = {  # what the outcome of a made-up method holds beside the schedule of 2 timesteps
    "none": {},
    "nobody": {"bound": 2.0},
    "certified": {"bound": 2.0, "certificate": True},
    "too high": {"bound": 3.0, "certificate": True},
    "above the value": {"bound": 3.0},
}


@pytest.fixture
def ring(tmp_path: Path) -> Instance:
    (tmp_path / "r.json").write_text(json.dumps(RING))
    return synth.read(tmp_path / "r.json")


def made_up(what: str, kind: Any = "reference", count: int = 0) -> Method:
    """A method whose function hands back what ``METHODS`` says, with ``count`` numbers more in the certificate."""

    def solve(instance: Any, options: RunOptions) -> Outcome:
        held = dict(METHODS[what])
        if held.get("certificate"):
            held["certificate"] = dict(lower_bound(instance)[2]) | ({"more": np.arange(count)} if count else {})
        return Outcome("finished", once(instance, 0, 0), bound_proof="words" if "bound" in held else None, **held)

    class Made(Method):
        def load(self) -> Callable[[Any, RunOptions], Outcome]:
            return solve

    return Made("pull", kind, "made up", "nowhere:nothing")


def run(ring: Instance, what: str, solver: str | None = None, **other: Any) -> Record:
    return api.execute(ring, made_up(what, **other), RunOptions(solver=solver))


@pytest.mark.parametrize(
    ("what", "solver", "grade", "value", "bound", "ok"),
    [
        ("none", None, None, 2.0, None, True),
        ("none", "highs", None, 2.0, None, True),
        ("nobody", None, None, 2.0, None, True),
        ("nobody", "highs", "solver", 2.0, 2.0, True),
        ("certified", None, "certified", 2.0, 2.0, True),
        ("certified", "highs", "certified", 2.0, 2.0, True),
        ("too high", None, "certified", 2.0, 3.0, False),
        ("above the value", "highs", "solver", 2.0, None, False),
        ("above the value", None, None, 2.0, None, False),
    ],
)
def test_grades(ring: Instance, what: str, solver: str | None, grade: str | None, value: float, bound: float | None,
                ok: bool) -> None:  # fmt: skip
    """The replayed value stands whatever the bound beside it; a bound counts only if somebody proves it."""
    record = run(ring, what, solver)
    assert (record.grade, record["bound_grade"]) == (grade, grade)
    assert (record.value, record.bound, record.ok) == (value, bound, ok)
    assert (record.certificate is not None) == (grade == "certified")
    assert record.bound_disproved == (what == "above the value" and solver is not None)
    assert ("certificate" in record["verified"]["facts"]) == (what == "certified")


def test_a_count_below_a_bound_is_no_value(ring: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = lambda *_: Verdict(1.0, {"replayed": False})  # noqa: E731
    monkeypatch.setattr("synth_models.xtree.check.replay.check_schedule", counted)
    record = run(ring, "certified")
    assert (record.value, record.bound, record.ok) == (None, 2.0, False)


def test_a_bound_method_hands_over_a_certificate(ring: Instance) -> None:
    record = run(ring, "nobody", kind="bound")
    assert record["verified"]["faults"] == ["the method states the bound 2 without a certificate"]


@pytest.mark.parametrize("count", [0, 10, records.INLINE_LIMIT + 1])
def test_round_trip_beside_a_solution(ring: Instance, tmp_path: Path, count: int) -> None:
    """Small arrays stand in the JSON, large ones in the file beside, under names of their own."""
    written = records.write(run(ring, "certified", count=count), tmp_path / "pull.json")
    back = records.read(tmp_path / "pull.json")
    for record in (written, back):
        assert record.certificate is not None
        assert record.packed is not None
        assert record.grade == "certified"
        assert not any(key.startswith("certificate") or key == "more" for key in record.packed)
        assert ("more" in record.certificate) == bool(count)
        assert np.array_equal(record.certificate.get("more", np.arange(0)), np.arange(count))
    stored = json.loads((tmp_path / "pull.json").read_text())
    assert stored["bound_grade"] == "certified"
    if count > records.INLINE_LIMIT:
        assert "more" not in stored["certificate"]
        with np.load(tmp_path / stored["solution_file"]) as arrays:
            assert "certificate/more" in arrays.files
    records.write(back, tmp_path / "again" / "pull.json") if (tmp_path / "again").mkdir() is None else None
    assert json.loads((tmp_path / "again" / "pull.json").read_text()) == stored


@pytest.mark.parametrize("count", [0, records.INLINE_LIMIT + 1])
def test_the_child_keeps_the_certificate(
    ring: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """What a run in a process of its own writes: the child adds keys of its own to the record and loses none."""
    family = get_family("xtree")
    patched = replace(family, methods={**family.methods, "pull": made_up("certified", count=count)})
    monkeypatch.setattr("synth.family.get_family", lambda name: patched)
    task = Task(
        str(ring.file), ring.sha256, "pull", RunOptions(), str(tmp_path / "out" / "pull.json"),
        memory_mb=None, grace_s=60.0, share=1.0,
    )  # fmt: skip
    assert child.execute(task) == 0
    record = records.read(tmp_path / "out" / "pull.json")
    assert record.grade == "certified"
    assert api.check(record, ring).faults == []
    assert "peak_memory_mb" in record.data


def record_of(value: float | None, bound: float | None, solver: str | None = None, **other: Any) -> Record:
    verified = {"ok": True, "facts": {"replayed": True}, "faults": []}
    data = {"family": "f", "instance_sha256": "0", "method": "m", "kind": "program", "solver": solver, "options": {},
            "termination": "finished", "objective": {"value": value}, "bound": bound, "verified": verified}  # fmt: skip
    return Record(data | other)


def test_standing_by_hand() -> None:
    """Certified 5 and solver 5: the certified one. Solver 7 with a schedule of 6: dropped. Certified 5 with a schedule
    of 4: an alarm, the schedule of 4 disproves nobody. A bound by nobody: none."""
    certified, solver, high = record_of(9, 5, certificate={}), record_of(6, 5, "highs"), record_of(8, 7, "highs")
    nobody = record_of(8, 8)
    found = standing([high, solver, certified, nobody])
    assert (found.best, found.bound, found.proof) == (certified, 5, "certified")
    assert found.disproved == ((high, solver),)
    assert found.alarms == ()
    assert standing([solver]).proof == "HiGHS"
    assert (standing([nobody]).best, standing([]).proof) == (None, "–")
    low = record_of(4, None)
    found = standing([high, certified, low])
    assert found.alarms == ((low, certified),)
    assert found.disproved == ()
    assert found.bound == 7


@pytest.mark.parametrize(
    ("bound", "value", "expected"),
    [(1.0, 1.0, False), (1.0 + 1e-7, 1.0, False), (1.0 + 1e-5, 1.0, True), (2.0, 1.0, True), (None, 1.0, False),
     (1.0, None, False), (-1.0, -2.0, True), (1e-12, 0.0, True), (0.0, 0.0, False), (1e-5, 1e-6, True)],
)  # fmt: skip
def test_exceeds(bound: float | None, value: float | None, expected: bool) -> None:
    assert exceeds(bound, value) == expected


@pytest.fixture
def solved(ring: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for method in ("bound", "pull"):
        api.solve(ring, method, results="results")
    return tmp_path / "results" / "xtree" / "r"


def tamper(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def cells(output: str, method: str) -> list[str]:
    row = next(line for line in output.splitlines() if f" {method} " in line)
    return [cell.strip() for cell in row.strip("│").split("│")]


RESUME = ["solve", "r.json", "-m", "bound", "-m", "pull", "--resume"]


def test_solve_names_the_grade(solved: Path) -> None:
    done = CliRunner().invoke(app, RESUME)
    assert done.exit_code == 0, done.output
    assert cells(done.output, "pull")[2:6] == ["2", "2", "0", "certified"]
    (solved / "bound.json").unlink()
    tamper(solved / "pull.json", solver="highs", certificate=None)  # what a program's record looks like
    shutil.copy(solved / "pull.json", solved / "ilp-highs.json")
    tamper(solved / "pull.json", solver=None, bound=None)
    done = CliRunner().invoke(app, ["solve", "r.json", "-m", "pull", "--resume"])
    assert cells(done.output, "pull")[2:6] == ["2", "2", "0", "HiGHS"]
    tamper(solved / "ilp-highs.json", solver=None)
    done = CliRunner().invoke(app, ["solve", "r.json", "-m", "pull", "--resume"])
    assert cells(done.output, "pull")[2:6] == ["2", "–", "–", "–"]


def test_solve_tells_contradictions(solved: Path) -> None:
    """Another run's solver bound above the schedule is dropped, a certified one an alarm; both end with 1."""
    shutil.copy(solved / "pull.json", solved / "ilp-highs.json")
    tamper(solved / "ilp-highs.json", solver="highs", method="ilp", bound=3.0, certificate=None, kind="program")
    done = CliRunner().invoke(app, RESUME)
    assert done.exit_code == 1
    assert "results/xtree/r/ilp-highs.json" in done.output
    assert "is disproved by the replayed value 2" in " ".join(done.output.split())
    assert cells(done.output, "pull")[2:6] == ["2", "2", "0", "certified"]
    (solved / "ilp-highs.json").unlink()
    tamper(solved / "bound.json", bound=3.0)
    done = CliRunner().invoke(app, RESUME)
    assert done.exit_code == 1
    assert "ALARM: the replayed value 2 of results/xtree/r/pull.json lies below the certified bound 3" in done.output


def test_a_bound_of_another_version_of_the_file_is_not_used(solved: Path) -> None:
    tamper(solved / "bound.json", instance_sha256="0" * 64, bound=9.0)
    tamper(solved / "pull.json", bound=None, certificate=None)
    done = CliRunner().invoke(app, ["solve", "r.json", "-m", "pull", "--resume"])
    assert done.exit_code == 0, done.output
    assert cells(done.output, "pull")[2:6] == ["2", "–", "–", "–"]


def test_show_and_check_name_the_grade(solved: Path) -> None:
    path = solved / "pull.json"
    certificate = json.loads((solved / "bound.json").read_text())["solution"]
    for changes, shown, checked in (
        ({"bound_grade": "certified", "certificate": certificate}, "gap 0 (certified)", "follows from its certificate"),
        ({"bound_grade": None, "certificate": None}, "stated bound 2: proven by nobody", "bound 2, proven by nobody"),
    ):
        verified = json.loads(path.read_text())["verified"]
        verified["facts"].pop("certificate", None)  # a fact that is missing is no fault
        tamper(path, bound=2.0, bound_proof="words", verified=verified, **changes)
        assert shown in CliRunner().invoke(app, ["show", str(path)]).output
        done = CliRunner().invoke(app, ["check", str(path)])
        assert done.exit_code == 0, done.output
        assert checked in " ".join(done.output.split())
