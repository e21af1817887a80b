"""What `models/bine.md` says is what the published records and tables say."""

from __future__ import annotations

import pandas as pd
from published import PUBLISHED, ROOT, held_for, prose, value_of

import synth
from synth.records import record as records


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
    assert "| 256 | 24.11 % |" in text
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
    text = prose("bine")
    assert "a large allreduce on 5, 3 and 8 ranks takes 16 rounds, where Bine takes 8 and a ring 30" in text
    assert rounds("groups-5-3-8-allreduce-large") == [16, 8, 30]
    assert "on 6, 7 and 6 ranks takes 7 rounds, where Bine takes 6 and a ring 18" in text
    assert rounds("groups-6-7-6-allgather") == [7, 6, 18]


def rounds(instance: str) -> list[int]:
    held = held_for("bine", instance)[instance]
    return [held[method]["verified"]["facts"]["rounds"] for method in ("leaders", "bine", "ring")]
