"""A question without an answer has its own value and grade; what a certified bound excludes is verified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import synth
from synth import api
from synth.records import record as records
from synth.records.summary import closing_line, rows_by_instance

ROOT = Path(__file__).resolve().parents[2]
SHIPPED, SCCL = ROOT / "instances", ROOT / "results" / "published" / "peers" / "sccl" / "fabric"
BELOW = {  # family: instance, method, a question below its certified bound, the option that asks it
    "xtree cpsat": ("xtree/ring-8-c1", "cpsat", {"horizon": 3}),
    "xtree ilp": ("xtree/ring-8-c1", "ilp", {"horizon": 1}),
    "mlfm cpsat": ("mlfm/d3-n2l4m3", "cpsat", {"horizon": 3}),
    "mlfm ilp": ("mlfm/d3-n2l4m3", "ilp", {"horizon": 1}),
    "mlfm phases": ("mlfm/d3-n2l4m3", "min_congestion", {"phases": 2}),
    "optree": ("optree/ring-16-w2", "time_expanded", {"horizon": 2}),
    "fabric epochs": ("tour/dgx1-allgather", "epochs", {"horizon": 1}),
    "fabric steps": ("tour/dgx1-allgather", "steps", {"steps": 1, "rounds": 1, "chunks": 1}),
}


def stated(record: records.Record, place: str, path: Path, **changes: Any) -> records.Record:
    data = {**records.plain_data(record, records.split_arrays(record)), **changes}
    data["instance_text"] = (SHIPPED / f"{place}.json").read_text()
    path.write_text(json.dumps(data, default=lambda value: value.item()))
    return records.read(path)


@pytest.mark.parametrize("name", BELOW)
def test_below_a_certified_bound_is_verified_infeasible(tmp_path: Path, name: str) -> None:
    place, method, question = BELOW[name]
    made = api.solve(synth.read(SHIPPED / f"{place}.json"), method, options=question)
    assert made["termination"] == "infeasible"
    record = stated(made, place, tmp_path / "record.json")
    assert (record.infeasible_by, record.words_of_end) == ("certified", "infeasible, certified")
    verdict = synth.check(record)
    assert verdict.faults == []
    assert verdict.facts["infeasible"] == "verified"
    assert not any(text.startswith("termination") for text in verdict.unverified)
    [row] = rows_by_instance([record])
    assert row.cells()[1] == "infeasible, certified"
    assert row.cells()[4] == "–"
    assert not row.cells()[2].startswith("0")
    assert row.label == record.label
    assert closing_line([row]).startswith("1 instance: infeasible; ")
    wider = dict.fromkeys(question, 10**6)  # a question that the certificate does not refute
    options = {**made["options"], "method": {**made["options"]["method"], **wider}}
    other = stated(made, place, tmp_path / "other.json", options=options)
    assert other.infeasible_by != "certified"
    assert any(text.startswith("termination infeasible") for text in synth.check(other).unverified)


def test_a_solvers_word_is_named() -> None:
    instance = synth.read(SHIPPED / "xtree" / "ring-8-c1.json")
    alone = {"horizon": 3, "counting": False, "relaxation": False}
    for method, solver, name in (("cpsat", "cpsat", "CP-SAT"), ("ilp", "highs", "HiGHS")):
        record = api.solve(instance, method, solver=solver, options={**alone, "horizon": 3})
        assert record.grade in ("solver", "certified")
        if record.grade == "solver":
            assert record.words_of_end == f"infeasible, {name}"
            assert rows_by_instance([record])[0].cells()[1] == f"infeasible, {name}"


def test_a_refuted_question_of_steps_says_nothing_of_seconds() -> None:
    """Beside a schedule its 0 s is no bound and no gap of 100 %."""
    address = SCCL / "dgx1-allgather-315KiB" / "steps-cpsat-steps=2-rounds=4-chunks=3.json"
    refuted, beside = (
        records.read(address),
        records.read(address.with_name("steps-cpsat-steps=2-rounds=2-chunks=1.json")),
    )
    assert (refuted.stated_bound, refuted.bound, refuted.words_of_end) == (0.0, None, "infeasible, certified")
    [row] = rows_by_instance([refuted, beside])
    assert row.best is beside
    assert row.cells()[2:5] == ["–", "–", "–"]
