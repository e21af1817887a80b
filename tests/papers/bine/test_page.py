"""What `models/bine.md` says is what the published records and tables say."""

from __future__ import annotations

import pandas as pd
import pytest
from published import PUBLISHED, ROOT, held_for, prose, value_of

import synth
from synth.errors import InputError
from synth.family import reproduced
from synth.records import record as records
from synth.reproduction.collect import Reproduction, plain_figures
from synth.reproduction.page import write_page
from synth_papers.bine import page as bine_page


def test_numbers_of_the_bine_paragraph():
    text, folder = prose("bine"), PUBLISHED / "bine"
    assert "`tree_ilp` proves 46 crossings in 11 rounds. Bine has 66, halving 90, doubling 1959, and the" in text
    assert "receive count alone proves 23." in text
    job = synth.read(ROOT / "instances" / "bine" / "groups-24-groups-2048-broadcast.json")
    best = records.read(folder / job.name / "tree_ilp-highs.json")
    assert (best.value, best.bound) == (46 * job.bytes, 46 * job.bytes)
    assert [best["verified"]["facts"]["rounds"], len(job.jobs[0].allocation.split()) - 1] == [11, 23]
    trees = ("bine", "binomial_halving", "binomial_doubling")
    assert [value_of("bine", job.name, tree) for tree in trees] == [66 * job.bytes, 90 * job.bytes, 1959 * job.bytes]
    assert "| all powers of two | 2.33 % (−187.5 to 31.65 %) |" in text
    saved = pd.read_csv(folder / "allreduce.csv").set_index("ranks")
    assert (saved["mean"][0], saved["mean"][256], saved["min"][0]) == (2.33, 24.11, -187.5)
    trees = pd.read_csv(folder / "trees-summary.csv").set_index("ranks").loc[0]
    assert "All 585 power-of-two broadcasts over three or more groups are solved to proven optimality" in text
    assert "Prices of rounds certify all of these optima" in text
    assert (trees["jobs"], trees["proven"], trees["certified"]) == (585, 585, 585)
    certified = records.read(folder / job.name / "bound.json")
    assert (certified.bound, certified.grade) == (46 * job.bytes, "certified")
    means = " | ".join(f"{trees[f'{name}_gap_mean']:.2f} %" for name in ("bine", "halving", "doubling"))
    assert f"| {means} | 585 |" in text
    placed = pd.read_csv(folder / "placements-summary.csv").set_index("ranks").loc[0]
    assert "All 923 jobs of up to 16 ranks are proven" in text
    assert (placed["exact"], placed["proven"]) == (923, 923)


def test_rounds_of_leaders_on_unequal_groups():
    """Ours, Bine's and a ring's."""
    assert rounds("groups-5-3-8-allreduce-large") == [16, 8, 30]
    assert rounds("groups-6-7-6-allgather") == [7, 6, 18]


def rounds(instance: str) -> list[int]:
    held = held_for("bine", instance)[instance]
    return [held[method]["verified"]["facts"]["rounds"] for method in ("leaders", "bine", "ring")]


def test_without_the_trace_the_page_says_what_is_left_out(tmp_path, monkeypatch):
    """The answer at its head is made of tables of real jobs; a page that left nothing out must have them."""
    monkeypatch.setattr(bine_page, "_gaps", lambda page: None)  # half a minute
    page = Reproduction(tmp_path / "bine", False, ROOT / "instances", tmp_path / "no-data")
    with plain_figures():
        bine_page.reproduce(page)
    write_page(page, reproduced()["bine"], tmp_path / "bine.md", bine_page.opening)
    text = (tmp_path / "bine.md").read_text()
    assert "* everything on real allocations: leonardo-jobs.csv.gz is not in the data folder" in text
    assert "| Figure 3, 8 nodes    | distance of the roots in Bine " in text
    assert "jobs of Leonardo (powers of two, several groups) a large allreduce" not in text
    page.skipped.clear()
    with pytest.raises(InputError, match="no one table called"):
        write_page(page, reproduced()["bine"], tmp_path / "bine.md", bine_page.opening)
