"""What `models/mlfm.md` says is what the published records and tables say."""

from __future__ import annotations

import pandas as pd
from published import PUBLISHED, prose, unlike_records, value_of

from synth.records import record as records


def test_numbers_of_the_mlfm_paragraph():
    text = prose("mlfm")
    assert "the whole machine of 6156 servers (37,896,336 transfers in 6156 phases)" in text
    whole = records.read(PUBLISHED / "mlfm" / "d18-n18l19m18" / "closed_form.json")
    assert (whole.value, whole["verified"]["facts"]["transfers"]) == (6156, 37_896_336)
    assert "On (2, 4, 3) `shift` takes 52 phases instead of 24. Its mean worst link load is 2.17" in text
    shift = records.read(PUBLISHED / "mlfm" / "d3-n2l4m3" / "shift.json")
    assert (shift.value, round(shift["verified"]["facts"]["mean_worst_link_load"], 2)) == (52, 2.17)
    assert value_of("mlfm", "d3-n2l4m3", "cpsat-cpsat") == 24
    demands = pd.read_csv(PUBLISHED / "mlfm" / "demands.csv")
    assert (len(demands), demands["servers"].max(), set(demands["targets"].str[-2:])) == (60, 24, {" 2", " 6", "12"})
    assert (demands["bound"] == demands["cpsat"]).all()
    failures, blocks = (pd.read_csv(PUBLISHED / "mlfm" / f"{name}.csv") for name in ("single-failures", "blocks"))
    assert "| cable of the job's leaves; spine | 24 | 32 |" in text
    assert set(failures[failures.failed == "spine"]["phases"]) == {32}
    assert "All 54 single failures of the job (2, 4, 3) are solved to gap 0" in text
    assert (len(failures), len(blocks), set(blocks.groupby(["d", "n", "l", "m"]).size())) == (54, 130, {2})
    assert set(failures["gap"]) | set(blocks["gap"]) == {0}
    assert set(failures["verified"]) | set(blocks["verified"]) == {True}


def test_phases_by_method_are_those_of_the_records():
    methods = ("closed_form", "greedy", "pairwise", "shift")
    columns = {f"`{name}`": (name,) for name in ("bound", *methods)}
    columns["`cpsat`, `ilp`"] = ("cpsat-cpsat", "ilp-highs")
    assert unlike_records("mlfm", "mlfm", columns) == []
