"""Every statement of a record, made false: the check finds it, or lists that it could not verify it. Nothing passes.

The records are those of real runs, two of every family (a value and a certified bound) and one with a solver's bound.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import synth
from synth import api
from synth.cli.main import app
from synth.errors import InputError
from synth.method import Verdict
from synth.records import record as records
from synth.records.record import Record
from synth.records.verify import RUNS_WORD

SHIPPED = Path(__file__).resolve().parents[3] / "instances"
CASES = {
    "xtree": ("ring-8-c1", "pull", None),
    "mlfm": ("d3-n2l4m3", "shift", None),
    "optree": ("ring-16-w2", "relay", None),
    "bine": ("groups-5-3-5-allreduce-small", "recursive", None),
    "harvest": ("recursive-doubling-8-p1", "static_ring", None),
    "counted": ("ring-16-w2", "formula", None),
    "solver": ("groups-5-3-8-reduce", "tree_ilp", "highs"),
}
HOMES = {"counted": "optree", "solver": "bine"}
NAMES = [*CASES, *(f"{family} bound" for family in CASES if family not in HOMES)]
Data = dict[str, Any]
Change = Callable[[Data], None]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    folder = tmp_path_factory.mktemp("forged")
    made = {}
    for name, (stem, method, solver) in CASES.items():
        family = HOMES.get(name, name)
        instance = synth.read(SHIPPED / family / f"{stem}.json")
        made[name] = api.solve(instance, method, solver=solver, results=folder)
        if name not in HOMES:
            made[f"{name} bound"] = api.solve(instance, "bound", results=folder)
    return made


def forge(record: Record, folder: Path, change: Change) -> Path:
    assert record.path is not None
    data = json.loads(record.path.read_text())
    data["instance_file"] = str(SHIPPED / data["family"] / f"{data['instance']}.json")
    change(data)
    if record["solution_file"]:
        (folder / record["solution_file"]).write_bytes(record.path.with_name(record["solution_file"]).read_bytes())
    path = folder / record.path.name
    path.write_text(json.dumps(data))
    return path


def check(path: Path) -> Verdict:
    """The verdict; a record that cannot be read is one with a fault. Any other exception fails the test."""
    try:
        return synth.check(path)
    except InputError as error:
        return Verdict(None, faults=[str(error)])


def put(*keys: str, value: Any) -> Change:
    def change(data: Data) -> None:
        at: Any = data
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = value

    return change


@pytest.mark.parametrize("name", NAMES)
def test_the_records_themselves_hold(stored: dict[str, Record], tmp_path: Path, name: str) -> None:
    """Only a solver's bound, and the end of the run that rests on it, are left unverified beside the run's own word."""
    verdict = check(forge(stored[name], tmp_path, lambda data: None))
    assert verdict.faults == []
    rest = [text for text in verdict.unverified if text != RUNS_WORD]
    if name == "solver":
        version = stored[name]["solver_version"]
        bound = stored[name].bound
        assert rest == [
            "method tree_ilp: a program is not run again",
            f"bound_proof {stored[name]['bound_proof']!r}",
            f"bound {bound:.12g} by HiGHS {version}, seed 0", f"termination optimal: by HiGHS {version}, seed 0",
        ]  # fmt: skip
    elif name.endswith("bound"):
        named = [text for text in rest if not text.startswith(("certificate ", "bound_proof "))]
        assert named == ["method bound: a bound is not run again"]


WRONG: dict[str, Any] = {
    "another objective": put("objective", "name", value="completion time of something"),
    "another unit": put("objective", "unit", value="furlongs"),
    "another sense": put("objective", "sense", value="maximise"),
    "another family": put("family", value="faulty"),
    "another instance": put("instance", value="some-other-instance"),
    "a solver nobody has": put("solver", value="oracle"),
    "a version without solver, of a method nobody knows": lambda data: data.update(
        method="mine", solver=None, solver_version="1.2.3"
    ),
    "a solver without version, of a method nobody knows": lambda data: data.update(
        method="mine", solver="highs", solver_version=None
    ),
    "a gap that no double holds": put("options", "relative_gap", value=10**400),
    "seconds that no double holds": put("seconds", "solve", value=10**400),
    "threads that no machine has": put("options", "threads", value=10**400),
    "a version without solver": lambda data: data.update(solver=None, solver_version="1.2.3"),
    "an unknown end": put("termination", value="triumphant"),
    "infeasible": put("termination", value="infeasible"),
    "killed": put("termination", value="killed"),
    "unsupported": put("termination", value="unsupported"),
    "a fault, but ok": put("verified", "faults", value=["a fault"]),
    "no fault, but not ok": put("verified", "ok", value=False),
    "a bound without end": put("bound", value=1e308 * 10),
    "negative seconds": put("seconds", "solve", value=-1.0),
    "no threads": put("options", "threads", value=0),
    "a negative gap": put("options", "relative_gap", value=-0.5),
    "a negative seed": put("options", "seed", value=-3),
    "no time at all": put("options", "time_limit_s", value=0.0),
    "progress from elsewhere": put("progress", value=[[0.0, 1e9, -1e9], [1.0, 123456.0, 0.123]]),
    "progress that is none": put("progress", value=[["soon", None]]),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("what", WRONG)
def test_a_false_statement_is_found(stored: dict[str, Record], tmp_path: Path, name: str, what: str) -> None:
    assert check(forge(stored[name], tmp_path, WRONG[what])).faults


def statements(data: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value below, by its keys; lists whole."""
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from statements(value, (*keys, key))
    else:
        yield keys, data


def others(value: Any) -> list[Any]:
    """Values that are not this one, of its own kind and of others."""
    if isinstance(value, bool):
        return [not value, None, 2]
    if isinstance(value, int | float):
        return [value * 1.001 + 1, value * 2 + 1e-3, -value - 1, None, "many", [value]]
    if isinstance(value, str):
        return [value + "x", "", None, 5]
    if isinstance(value, list):
        return [[*value, 1], None, "list", {}] + ([value[:-1]] if value else [])
    return [1, "something", [1], {"key": 1}]


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", NAMES)
def test_every_statement_made_false_is_found_or_listed(stored: dict[str, Record], tmp_path: Path, name: str) -> None:
    """Each value of the record in turn, replaced by several others: a fault, or other things left unverified than
    before. Left out are the keys that are the run's own word (which every verdict lists)."""
    whole: Data = json.loads(Path(str(stored[name].path)).read_text())
    free = {
        "host",
        "created",
        "kernels",
        "toolkit_version",
        "message",
        "bound_proof",
        "solver_version",
        "progress",
        "instance_file",
    }
    before = check(forge(stored[name], tmp_path, lambda data: None)).unverified
    for keys, value in statements({key: part for key, part in whole.items() if key not in ("solution", "certificate")}):
        for other in others(value):
            if keys[0] in free or keys[0] == "seconds" or keys[0] == "options" or other == value:
                continue
            if keys == ("made_by",) and other is None and value == [whole["method"]]:
                continue  # left out it says the same
            verdict = check(forge(stored[name], tmp_path, put(*keys, value=other)))
            assert verdict.faults or verdict.unverified != before, (keys, value, other)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", list(CASES))
def test_facts_are_compared_however_deep(stored: dict[str, Record], tmp_path: Path, name: str) -> None:
    """One number anywhere in the facts, one in a billion off is rounding, one in ten thousand is not; a fact that the
    check does not know is listed; a fact that is missing is none."""
    facts = stored[name]["verified"]["facts"]
    numbers = [
        keys for keys, value in statements(facts) if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    assert numbers
    for keys in numbers:
        value = dict(statements(facts))[keys]
        off = value + 1 if isinstance(value, int) or value == 0 else value * 1.0001
        verdict = check(forge(stored[name], tmp_path, put("verified", "facts", *keys, value=off)))
        assert any(keys[-1] in fault for fault in verdict.faults), keys
        if isinstance(value, float):
            path = forge(stored[name], tmp_path, put("verified", "facts", *keys, value=value * (1 + 1e-13)))
            assert check(path).faults == []
    path = forge(stored[name], tmp_path, put("verified", "facts", "elegance", value=11))
    assert "fact elegance: the check does not compute it" in check(path).unverified
    path = forge(stored[name], tmp_path, lambda data: data["verified"]["facts"].pop(numbers[0][0]))
    assert check(path).faults == []


@pytest.mark.parametrize("method", ["magic", ""])
@pytest.mark.parametrize("name", NAMES)
def test_a_method_that_is_not_installed_is_listed(
    stored: dict[str, Record], tmp_path: Path, name: str, method: str
) -> None:
    """What such a record holds is replayed and verified all the same; nobody can say whose it is."""
    path = forge(stored[name], tmp_path, put("method", value=method))
    verdict = check(path)
    assert verdict.faults == []
    assert verdict.value == stored[name].value
    assert f"method {method}: not installed here" in verdict.unverified


def test_a_count_is_not_turned_into_a_replay(stored: dict[str, Record], tmp_path: Path) -> None:
    for change in (put("verified", "facts", "replayed", value=True), put("verified", "facts", value={})):
        assert any("counted" in fault for fault in check(forge(stored["counted"], tmp_path, change)).faults)


@pytest.mark.parametrize("kind", ["reference", "program"])
def test_a_bound_without_certificate_does_not_pass_as_something_else(
    stored: dict[str, Record], tmp_path: Path, kind: str
) -> None:
    """The forgery of the review: a `bound` record relabelled, its bound 99, its certificate gone; then also with the
    method renamed to one of that kind."""
    relabelled = {"kind": kind, "bound": 99.0, "solution": None}
    methods = {"reference": ("bound", "pull"), "program": ("bound", "ilp")}[kind]
    for method in methods:
        forged = relabelled | {"method": method}
        path = forge(stored["xtree bound"], tmp_path, lambda data, forged=forged: data.update(forged))  # type: ignore[misc]
        assert check(path).faults


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("bound")])
def test_certificates_of_other_families_are_faults(stored: dict[str, Record], tmp_path: Path, name: str) -> None:
    """Every family's certificate (and its solution, and odd data) in every family's bound: refused in words."""
    for other in NAMES:
        if other == name:
            continue
        theirs = json.loads(Path(str(stored[other].path)).read_text())["solution"]
        path = forge(stored[name], tmp_path, put("solution", value=theirs))
        verdict = check(path)
        if theirs.keys() == {"binding"} == json.loads(Path(str(stored[name].path)).read_text())["solution"].keys():
            continue
        assert verdict.faults, other
    for odd in ({}, {"binding": None}, {"binding": ["cut"]}, {"intervals": 5, "unit_exponent": 3}, {"horizon": "x"}):
        assert check(forge(stored[name], tmp_path, put("solution", value=odd))).faults


@pytest.mark.parametrize("name", list(CASES))
def test_solutions_of_other_families_are_faults(stored: dict[str, Record], tmp_path: Path, name: str) -> None:
    for other in CASES:
        if HOMES.get(other, other) != HOMES.get(name, name):
            theirs = json.loads(Path(str(stored[other].path)).read_text())["solution"]
            assert check(forge(stored[name], tmp_path, put("solution", value=theirs))).faults, other


@pytest.mark.parametrize("name", list(CASES))
def test_a_value_and_its_solution_go_together(stored: dict[str, Record], tmp_path: Path, name: str) -> None:
    no_value = check(forge(stored[name], tmp_path, put("objective", "value", value=None)))
    assert any("no value" in fault for fault in no_value.faults)
    no_solution = check(forge(stored[name], tmp_path, lambda data: data.update(solution=None, solution_file=None)))
    assert any("holds no solution" in fault for fault in no_solution.faults)


def test_a_raised_bound_is_not_called_certified(stored: dict[str, Record], tmp_path: Path) -> None:
    """Its certificate does not prove it, so the schedule disproves it: no alarm of two proofs against each other."""
    assert stored["xtree"].grade == "certified"
    faults = check(forge(stored["xtree"], tmp_path, lambda data: data.update(bound=2 * data["bound"]))).faults
    assert any("the schedule disproves it" in fault for fault in faults)
    assert not any("ALARM" in fault for fault in faults)


def test_optimal_needs_value_and_bound_that_meet(stored: dict[str, Record], tmp_path: Path) -> None:
    record = stored["solver"]
    assert record["termination"] == "optimal"
    for change in (
        put("bound", value=0.0), put("bound", value=None), put("objective", "value", value=None),
        lambda data: data.update(bound=data["bound"] * (1 - 2e-4), progress=[]),
        lambda data: data.update(bound=data["bound"] * 1.1, progress=[]),
    ):  # fmt: skip
        assert check(forge(record, tmp_path, change)).faults
    within = lambda data: data.update(bound=data["bound"] * (1 - 0.9e-4), progress=[])  # noqa: E731
    assert check(forge(record, tmp_path, within)).faults == []
    claimed = check(forge(stored["xtree"], tmp_path, lambda data: data.update(
        termination="optimal", bound=None, bound_grade=None, bound_proof=None, certificate=None, progress=[],
    )))  # fmt: skip
    assert any("states optimal" in fault for fault in claimed.faults)


def test_grades_that_are_not_so(stored: dict[str, Record], tmp_path: Path) -> None:
    for name, wrong in (("solver", "certified"), ("solver", None), ("xtree bound", "solver"), ("xtree bound", None)):
        faults = check(forge(stored[name], tmp_path, put("bound_grade", value=wrong))).faults
        assert any("grade" in fault for fault in faults), (name, wrong)
    whole = json.loads(Path(str(stored["xtree bound"].path)).read_text())

    def beside(bound: float, certificate: Any) -> Change:
        stated = {"bound": bound, "bound_grade": "certified", "bound_proof": "words", "certificate": certificate}
        return lambda data: data.update(stated, progress=[])

    right = forge(stored["xtree"], tmp_path, beside(whole["bound"], whole["solution"]))
    assert check(right).faults == []
    assert records.read(right).grade == "certified"
    assert check(forge(stored["xtree"], tmp_path, beside(whole["bound"] + 1, whole["solution"]))).faults
    assert check(forge(stored["xtree"], tmp_path, beside(whole["bound"], {"binding": "faith"}))).faults
    assert check(forge(stored["optree"], tmp_path, beside(1.0, whole["solution"]))).faults
    no_bound = forge(stored["xtree"], tmp_path, lambda data: data.update(
        bound=None, bound_grade=None, bound_proof=None, certificate=whole["solution"], progress=[]))  # fmt: skip
    assert "the record holds a certificate but states no bound" in check(no_bound).faults


def test_infeasible_says_by_what(stored: dict[str, Record], tmp_path: Path) -> None:
    nothing = {"solution": None, "solution_file": None, "termination": "infeasible", "progress": [], "bound": None,
               "bound_grade": None, "bound_proof": None, "certificate": None}  # fmt: skip

    def change(message: str | None) -> Change:
        def apply(data: Data) -> None:
            data.update(nothing, message=message)
            data["objective"]["value"] = None
            data["verified"] = {"ok": True, "facts": {"replayed": False}, "faults": []}

        return apply

    assert check(forge(stored["solver"], tmp_path, change(None))).faults
    told = check(forge(stored["solver"], tmp_path, change("HiGHS proves it")))
    assert told.faults == []
    assert "termination infeasible: HiGHS proves it" in told.unverified


def test_one_bad_record_never_ends_the_check_of_a_folder(
    stored: dict[str, Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate of another family, a family whose check raises, a text that is no JSON: each is told, the records
    behind them are still checked, and the command ends with 1."""
    for place, name in enumerate(("xtree bound", "optree", "mlfm bound")):
        (tmp_path / f"{place}").mkdir()
        forge(stored[name], tmp_path / f"{place}", lambda data: None)
    (tmp_path / "0" / "bound.json").write_text(
        json.dumps(json.loads((tmp_path / "0" / "bound.json").read_text()) | {"solution": {"unit_exponent": 3}})
    )

    def raises(*_: Any) -> Any:
        raise ZeroDivisionError("deep inside")

    monkeypatch.setattr("synth_models.optree.check.replay.check_solution", raises)
    done = CliRunner().invoke(app, ["check", str(tmp_path)])
    assert done.exit_code == 1, done.output
    assert done.output.count("FAILED") == 3  # two records and the line that counts them
    assert "ZeroDivisionError" in done.output
    assert "1 records hold: 0 values replayed, 0 counted; bounds: 1 certified, 0 by a solver alone" in done.output


def test_records_of_before_hold(stored: dict[str, Record], tmp_path: Path) -> None:
    """A record without the keys that were added since is read, graded by what it holds, and checked."""

    def age(data: Data) -> None:
        for key in ("bound_grade", "certificate"):
            data.pop(key)
        if data["kind"] != "bound":
            data["verified"]["facts"].pop("certificate", None)

    for name in NAMES:
        path = forge(stored[name], tmp_path, age)
        assert check(path).faults == []
        whole = copy.deepcopy(dict(records.read(path).data))
        assert "bound_grade" not in whole
        expected = {"solver": "solver"}.get(name, "certified" if name.endswith("bound") else None)
        assert records.read(path).grade == expected
