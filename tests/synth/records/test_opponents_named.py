"""The column *published*: whose value it is, of whom where a study names baselines, and who is named first in a tie."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import synth
from synth import api
from synth.family import get_family
from synth.method import Outcome, Verdict
from synth.options import RunOptions
from synth.records.record import Record
from synth.records.summary import InstanceRow, rows_by_instance
from synth.study import study

STUDY = """
name = "by-{}"
{}
[[generate]]
family = "fabric"
[generate.parameters]
network = "ring"
nodes = 4
bandwidth = "25GB/s"
latency = "0.7us"
collective = "allgather"
bytes = ["64KiB", "4MiB"]
[[run]]
methods = ["bound", "ring", "direct"]
time_limits = ["20s"]
"""


def row(
    *given: tuple[str, float, str],
    baselines: tuple[str, ...] = (),
    family: str = "fabric",
    made_by: Mapping[str, list[str]] | None = None,
) -> InstanceRow:
    """The row of records with these methods, values and evidence (``replayed`` or ``counted``); ``made_by``: who made
    what a method holds."""
    keys: dict[str, Any] = {"network": "ring", "nodes": 4, "collective": "allgather", "bytes": "4MiB"}
    instance = synth.make("fabric", **keys) if family == "fabric" else synth.make("optree", nodes=8, wavelengths=2)
    records = []
    for name, value, evidence in given:
        method = get_family(family).methods[name]
        verdict = Verdict(value, {"replayed": evidence == "replayed"})
        data = api._record_data(instance, method, RunOptions(), Outcome("finished"), verdict, 0.0, value)
        records.append(Record(data | {"made_by": (made_by or {}).get(name)}, made_here=True))
    [found] = rows_by_instance(records, baselines)
    return found


def test_the_cell_names_the_best_of_all_opponents() -> None:
    """Ours takes 2 s. Of theirs `tacos` is best: 3 s, 1.5 times as much."""
    found = row(("ring", 4.0, "replayed"), ("tacos", 3.0, "replayed"), ("pull", 2.0, "replayed"))
    assert found.cells()[-1] == "3.00 s by tacos (1.5×)"
    assert found.label == "pull"


@pytest.mark.parametrize("name", ["ring", "bfb", "fast", "tacos", "nvls", "sharp", "spread_out", "two_step"])
def test_everybody_counts(name: str) -> None:
    assert row((name, 3.0, "replayed"), ("pull", 2.0, "replayed")).cells()[-1] == f"3.00 s by {name} (1.5×)"


def test_a_studys_baselines_take_the_place_of_the_published() -> None:
    given = ("ring", 4.0, "replayed"), ("tacos", 3.0, "replayed"), ("pull", 2.0, "replayed")
    assert row(*given, baselines=("ring",)).cells()[-1] == "4.00 s by ring (2×)"
    assert row(*given, baselines=("pull",)).cells()[-1] == "2.00 s by pull"
    assert row(*given, baselines=("bine",)).cells()[-1] == "3.00 s by tacos (1.5×)"  # no method of this family


def test_where_ours_only_ties_theirs_is_named() -> None:
    """Also where it is later by what rounding leaves: then the value is still the least."""
    tie = row(("pull", 2.0, "replayed"), ("tacos", 2.0, "replayed"), ("ring", 2.0, "replayed"))
    assert (tie.label, tie.cells()[-1]) == ("ring", "2.00 s by ring")  # the paper's own first, then in their order
    near = row(("pull", 2.0, "replayed"), ("tacos", 2.0 * (1 + 1e-12), "replayed"))
    assert (near.label, near.cells()[-1]) == ("tacos", "2.00 s by tacos")
    assert near.best is not None
    assert near.best.value == 2.0
    apart = row(("pull", 2.0, "replayed"), ("tacos", 2.0 * (1 + 1e-6), "replayed"))
    assert apart.label == "pull"
    mine = row(("pull", 2.0, "replayed"), ("ring", 2.0, "replayed"), ("bfb", 2.0, "replayed"), baselines=("bfb",))
    assert mine.label == "bfb"


def test_a_borrowed_schedule_is_its_makers() -> None:
    """`pull` ends with the schedule of `bfb`, 2 s: theirs, though nobody ran `bfb`. What `ring` has of ours is ours."""
    lent = row(("ring", 4.0, "replayed"), ("pull", 2.0, "replayed"), made_by={"pull": ["bfb"]})
    assert (lent.label, lent.cells()[-1]) == ("bfb", "2.00 s by bfb")
    ours = row(("ring", 2.0, "replayed"), ("direct", 4.0, "replayed"), made_by={"ring": ["pull"]})
    assert (ours.label, ours.cells()[-1]) == ("pull", "4.00 s by direct (2×)")
    own = row(("pull", 2.0, "replayed"), ("bfb", 2.0, "replayed"), made_by={"pull": ["bfb"]})
    assert own.published is not None
    assert own.published["method"] == "bfb"


def test_a_count_says_so_and_is_nobodys_best() -> None:
    found = row(("formula", 2.0, "counted"), ("optree", 4.0, "replayed"), ("relay", 3.0, "replayed"), family="optree")
    assert found.cells()[-1] == "2 steps (counted) by formula (0.667×)"
    assert (found.label, found.cells()[1]) == ("relay", "3 steps")


@pytest.mark.long
def test_all_of_a_study_takes_its_baselines(tmp_path: Path) -> None:
    """Two sizes; of the one baseline, or of both methods, which are published, the lesser: `best_by_size.csv` and the
    report name it."""
    for number, names in enumerate((["direct"], ["ring"], [])):
        file = tmp_path / f"{number}.toml"
        file.write_text(STUDY.format(number, f"baselines = {names}"))
        made = study(file, tmp_path / "out")
        theirs = made.table[made.table["method"].isin(names or ["ring", "direct"])]
        page = (made.folder / "report.html").read_text()
        for one in pd.read_csv(made.folder / "best_by_size.csv").to_dict("records"):
            of_size = theirs[theirs["size_bytes"] == one["size_bytes"]].set_index("method")["value"]
            assert one["baseline"] in of_size[of_size <= of_size.min() * (1 + 1e-9)]
            assert one["speedup"] == pytest.approx(of_size.min() / one["value"], rel=1e-9)
            assert f" by {one['baseline']}<" in page
