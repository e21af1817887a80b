"""Whose solution a record holds: a method that repeats is run again, every other name is only stated and marked so."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import synth
from synth import api
from synth.family import family_names, get_family
from synth.method import Method, Outcome
from synth.options import RunOptions
from synth.records import record as records
from synth.records import repetition
from synth.records.repetition import repeat
from synth.records.summary import FOOTNOTE, closing_line, rows_by_instance
from synth.study.measures import stated_baselines
from synth.study.table import build

SHIPPED = Path(__file__).resolve().parents[3] / "instances"
TWO = {
    "fabric": ("tour/dgx1-allgather", ("ring", "direct", "bruck")),
    "bine": ("bine/groups-5-3-5-allreduce-small", ("recursive", "bine", "leaders")),
    "xtree": ("xtree/ring-8-c1", ("xtree", "multitree", "tacos")),
    "mlfm": ("mlfm/d3-n2l4m3", ("closed_form", "shift", "greedy")),
    "optree": ("optree/ring-16-w2", ("optree", "first_fit", "formula")),
    "harvest": ("harvest/recursive-doubling-8-p1", ("static_ring", "bvn", "dp_k")),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    folder, made = tmp_path_factory.mktemp("named"), {}
    for family, (place, methods) in TWO.items():
        instance = synth.read(SHIPPED / f"{place}.json")
        for method in methods:
            record = api.solve(instance, method, results=folder)
            assert record.made_here
            assert record.value is not None
            data = {**records.plain_data(record, records.split_arrays(record)), "instance_text": instance_text(place)}
            data["seconds"] = {"build": 0.0, "solve": 0.01, "check": 0.01}  # compiled: what the run took is its word
            made[family, method] = json.loads(json.dumps(data, default=lambda value: value.item()))
    return made


def instance_text(place: str) -> str:
    return (SHIPPED / f"{place}.json").read_text()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is made again is not cut short because other tests run beside it."""
    monkeypatch.setattr(repetition, "LONGEST", 100 * repetition.LONGEST)


def written(data: dict[str, Any], path: Path) -> records.Record:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return records.read(path)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("family", TWO)
def test_a_solution_under_another_methods_name_does_not_pass(
    stored: dict[tuple[str, str], dict[str, Any]], tmp_path: Path, family: str
) -> None:
    """Every pair of methods, the one's solution in the other's record: with another value a fault, with the same value
    listed; of another version of the toolkit listed, and the right name verified."""
    for mine, other in permutations(TWO[family][1], 2):
        right, theirs = stored[family, mine], stored[family, other]
        held = written(right, tmp_path / "record.json")
        verdict = synth.check(held)
        assert verdict.faults == []
        assert verdict.facts["method"] == "run again: the same solution"
        forged = {**theirs, **{key: right[key] for key in ("method", "kind", "solver", "options")}}
        verdict = synth.check(written(forged, tmp_path / "record.json"))
        listed = [text for text in verdict.unverified if text.startswith(f"method {mine}: ")]
        if theirs["objective"]["value"] != right["objective"]["value"]:
            assert any(f"the method {mine!r}: run again it gives" in fault for fault in verdict.faults)
        elif theirs["solution"] != right["solution"]:
            assert listed
        assert "method" not in verdict.facts or theirs["solution"] == right["solution"]
        older = written({**forged, "toolkit_version": "0.0.1"}, tmp_path / "record.json")
        verdict = synth.check(older)
        assert verdict.faults == []
        assert verdict.facts.get("method") or any(text.startswith(f"method {mine}: ") for text in verdict.unverified)


def test_what_takes_long_or_cannot_be_repeated_is_listed(
    stored: dict[tuple[str, str], dict[str, Any]], tmp_path: Path
) -> None:
    slow = {**stored["fabric", "bruck"], "seconds": {"build": 0.0, "solve": 30.0, "check": 0.0}}
    verdict = synth.check(written(slow, tmp_path / "slow.json"))
    assert "method bruck: not run again, it took 30 s" in verdict.unverified
    assert repeat(written(slow, tmp_path / "slow.json"), cheap_s=60.0).answer == "same"
    forever = {**stored["fabric", "bruck"], "method": "tacos"}
    forever["options"] = {**forever["options"], "method": {"restarts": 10**9}}
    verdict = synth.check(written(forever, tmp_path / "forever.json"))
    assert verdict.faults or any(text.startswith("method tacos: ") for text in verdict.unverified)
    pull = {**stored["fabric", "bruck"], "method": "pull", "options": {**slow["options"], "method": {"restarts": 8}}}
    verdict = synth.check(written(pull, tmp_path / "pull.json"))
    assert any(text.startswith("method pull: its solution depends") for text in verdict.unverified)


def test_what_the_clock_stopped_may_be_worse_but_no_better() -> None:
    """Seed, method and clock as stated, direct's solution under ring's name: listed where it is worse than ring's and
    the run took so much of its limit that the clock can have stopped it."""
    instance = synth.read(SHIPPED / "tour" / "dgx1-allgather.json")
    for own, other in (("ring", "direct"), ("direct", "ring")):
        right, theirs = api.solve(instance, own), api.solve(instance, other)
        data = {**theirs.data, "method": own, "seconds": {"build": 0.0, "solve": 0.01, "check": 0.01}}
        assert theirs.value is not None
        assert right.value is not None
        for limit_s, possible in ((0.02, True), (0.9, True), (60.0, False), (None, False), ("a", False)):
            given = {**data["options"], "time_limit_s": limit_s}
            stopped = {**data, "stopped_by": "clock", "options": given}
            forged = records.Record(stopped, theirs.packed, instance=instance)
            listed = possible and theirs.value > right.value
            assert repeat(forged, instance).answer == ("unknown" if listed else "other")
        whole = records.Record({**data, "stopped_by": None}, theirs.packed, instance=instance)
        assert repeat(whole, instance).answer == "other"


def test_no_published_ratio_rests_on_a_name_without_saying_so(
    stored: dict[tuple[str, str], dict[str, Any]], tmp_path: Path
) -> None:
    """`direct`'s schedule under the name `bruck`, of an older version: the table, the closing line and the study mark
    it; the true record and one that was just made are not marked."""
    path = tmp_path / "records" / "seed0-60s" / "fabric" / "dgx1" / "bruck.json"
    best = written(stored["fabric", "direct"], path.with_name("direct.json"))
    forged = {**stored["fabric", "direct"], "method": "bruck", "toolkit_version": "0.0.1"}
    for data, marked in ((forged, True), (stored["fabric", "bruck"], False)):
        record = written(data, path)
        [row] = rows_by_instance([record])
        assert row.stated is marked
        assert row.cells()[-1].endswith("*") is marked
        assert (FOOTNOTE in closing_line([row])) is marked
        table = build("one", tmp_path, [best, record], ["bruck"])
        proofs = dict(zip(table["method"], table["method_proof"], strict=True))
        assert proofs == {"bruck": "stated" if marked else "run again", "direct": "run again"}
        notes = ["ratio_to_bruck: 1 of 1 records name bruck, which was not run again to confirm it"] if marked else []
        assert stated_baselines(table) == notes
        [row] = rows_by_instance([replace(record, made_here=True)])
        assert not row.stated


def test_every_published_method_can_be_run_again() -> None:
    """Ratios to published algorithms can be verified in every family."""
    for name in family_names():
        family = get_family(name)
        for method in family.published:
            assert family.methods[method].repeats or family.methods[method].kind != "reference", (name, method)


def test_the_words_of_a_bound_are_compared(tmp_path: Path) -> None:
    """Words that the family derives from the certificate are verified, all others listed."""
    for place, derives in (("xtree/ring-8-c1", True), ("bine/groups-5-3-5-allreduce-small", True),
                           ("mlfm/d3-n2l4m3", True), ("optree/ring-16-w2", False)):  # fmt: skip
        record = api.solve(synth.read(SHIPPED / f"{place}.json"), "bound", results=tmp_path)
        assert record.path is not None
        whole = json.loads(record.path.read_text())
        whole["instance_text"] = instance_text(place)
        verdict = synth.check(written(whole, tmp_path / "record.json"))
        assert verdict.faults == []
        assert any(text.startswith("bound_proof ") for text in verdict.unverified) is not derives
        whole["bound_proof"] = "a theorem of the year 2031"
        verdict = synth.check(written(whole, tmp_path / "record.json"))
        assert any("a theorem of the year 2031" in text for text in verdict.unverified)


def test_a_repetition_that_leaves_out_what_does_not_fit_proves_nothing(
    stored: dict[tuple[str, str], dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a search skips what would end too late, and ends in time with less: that is not the record's
    fault. The same answer without asking the clock is."""
    held = written(stored["fabric", "ring"], tmp_path / "record.json")
    worse = written(stored["fabric", "direct"], tmp_path / "worse.json").solution()
    instance = held.find_instance()
    for asks, answer in ((True, "unknown"), (False, "other")):

        def less(_: Any, options: RunOptions, asks: bool = asks) -> Outcome:
            if asks:
                assert not options.fits(1e9)
            return Outcome("finished", worse)

        monkeypatch.setattr(Method, "load", lambda _, less=less: less)
        monkeypatch.setattr(repetition, "_KNOWN", {})
        assert repeat(held, instance).answer == answer
