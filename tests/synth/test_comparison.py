"""`synth.compare`: several methods on one instance, in numbers, shown with units."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import synth
from synth.tables.frame import COLUMNS


def pair(bytes_: int = 2000) -> synth.Instance:
    """Two ranks and a link of 1 GB/s each way: each needs half the bytes of the other."""
    made = {"nodes": 2, "collective": "allgather", "bytes": bytes_, "bandwidth": "1GB/s", "latency": "0s"}
    return synth.make("fabric", network="full", **made)


def test_a_row_a_method_in_numbers_with_the_gap_to_the_best_bound() -> None:
    """On a ring of four an allgather takes two timesteps: each node's two links bring three chunks."""
    table = synth.compare(synth.make("xtree", network="ring", nodes=4, chunks=1), ("pull", "bound"))
    assert list(table.index) == ["pull", "bound"]
    assert table.index.name == "method"
    assert set(COLUMNS) <= set(table.columns)
    assert table["value"].tolist()[0] == 2.0
    assert table["bound"].tolist() == [2.0, 2.0]
    assert table["unit"].tolist() == ["timesteps", "timesteps"]
    assert table["gap"].tolist()[0] == 0.0
    assert table["certified"].tolist() == [True, True]
    assert table["certified"].dtype == bool
    assert table["made_by"].tolist()[0] == "pull"
    assert table.loc["bound", ["value", "gap", "made_by", "solver", "message"]].isna().all()
    assert table["value_s"].isna().all()


def test_seconds_are_numbers_and_units_only_shown() -> None:
    """Half of 2,000 bytes at 1 GB/s take a microsecond."""
    table = synth.compare(pair(), ("direct",))
    assert table.loc["direct", "value"] == table.loc["direct", "value_s"] == pytest.approx(1e-6)
    assert table["seconds"].dtype == float
    assert "1.00 us" in repr(table)
    assert "<td>1.00 us</td>" in table._repr_html_()
    assert "1.00 us" in table.style.to_html()
    assert "us" not in table.to_csv()


def test_what_does_not_apply_has_no_value_and_says_so() -> None:
    block = synth.make("mlfm", d=3, layers=3, columns=3, servers=3)
    table = synth.compare(block, ("closed_form",))
    assert math.isnan(table.loc["closed_form", "value"])
    assert table.loc["closed_form", "termination"] == "unsupported"
    assert table.loc["closed_form", "message"]
    assert "unsupported" in repr(table)


def test_without_methods_those_run_that_the_command_runs() -> None:
    """In fabric no method of ours that runs in the race once a schedule has met the bound."""
    table = synth.compare(pair(), time_limit="5s")
    defaults = synth.methods("fabric")["default"]
    assert table.index[0] == "bound"
    assert set(table.index) < set(defaults.index[defaults])
    assert "forest" not in table.index
    assert "not run, for a schedule met the bound: " in repr(table)
    ring = synth.compare(synth.make("xtree", network="ring", nodes=4, chunks=1), time_limit="5s")
    assert {"bound", "pull", "xtree"} <= set(ring.index)


def test_options_go_to_the_methods_that_know_them_and_own_methods_are_taken(tmp_path: Path) -> None:
    table = synth.compare(pair(), ("ring", "direct", "forest"), options={"chunks": 1}, results=tmp_path)
    assert len(table) == len(list(tmp_path.rglob("*.json"))) == 3
    with pytest.raises(synth.InputError, match="unknown parameter 'pieces'"):
        synth.compare(pair(), ("ring", "direct"), options={"pieces": 1})
    own = synth.Method("mine", "reference", "", "synth_models.fabric.references.direct:solve")

    def as_direct(instance: synth.Instance) -> object:
        return synth.solve(instance, "direct").solution()

    assert list(synth.compare(pair(), ("direct", own, as_direct)).index) == ["direct", "mine", "as_direct"]
    assert synth.compare(pair(), as_direct)["value_s"].tolist() == pytest.approx([1e-6])


def test_pandas_does_with_it_what_it_does() -> None:
    small, large = (synth.compare(pair(size), ("direct", "ring", "bound")) for size in (2000, 4000))
    both = pd.concat([small.assign(bytes=2000), large.assign(bytes=4000)]).reset_index()
    wide = both.pivot_table(index="bytes", columns="method", values="value_s")
    assert wide.loc[4000, "direct"] == pytest.approx(2e-6)
    assert both.groupby("kind")["value_s"].min()["reference"] == pytest.approx(1e-6)
    assert small.sort_values("seconds").index.size == 3
    assert "bytes" not in repr(small)
    assert "3.91 KiB" in repr(both[["method", "bytes"]])
    assert "1.00 us" in repr(small[["value", "gap"]].head(1))
    first = both.pivot_table(index="bytes", columns="method", values=["value", "value_s", "unit"], aggfunc="first")
    assert "4.00 us" not in repr(first)
    assert "2.00 us" in repr(first)
    assert "1.00 us" in both[["value", "gap", "unit"]].style.to_html()


def test_one_is_a_row_and_none_is_none() -> None:
    assert synth.compare(pair(), "direct").index.tolist() == ["direct"]
    assert synth.compare(pair(), []).empty


def test_a_wrong_method_is_refused() -> None:
    with pytest.raises(synth.InputError, match="unknown method"):
        synth.compare(synth.make("xtree", network="ring", nodes=4, chunks=1), ("nobody",))


@pytest.mark.parametrize(
    ("given", "words"),
    [("ring.json", "synth.read reads a file"), ([], "synth.study takes several"), (None, "of type NoneType: must")],
)
def test_what_is_no_instance_is_said(given: Any, words: str) -> None:
    def take_moves(given: Any) -> object:
        return synth.Moves(given)

    for take in (synth.compare, synth.solve, take_moves):
        with pytest.raises(synth.InputError, match=words):
            take(given)
