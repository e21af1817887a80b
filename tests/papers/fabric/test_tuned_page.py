"""What the page `tuned` promises of its rows: bounds below, references no quicker; and its counts are theirs."""

from __future__ import annotations

import pandas as pd
import pytest
from published import PUBLISHED

from synth.tuning.costs import tolerated
from synth_papers.fabric.tuned import COLLECTIVES, FORMS, GOALS, MACHINES, SIZES, TOPO, Machine


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return pd.read_csv(PUBLISHED / "tuned/rows.csv")


def test_every_question_has_a_row_or_is_said_to_have_none(rows: pd.DataFrame) -> None:
    text = (PUBLISHED / "tuned.md").read_text()
    found = list(zip(rows["machine"], rows["form"], rows["collective"], rows["bytes"], strict=True))
    assert len(found) == len(set(found))
    absent: dict[str, list[str]] = {}
    for machine in MACHINES:
        for what in COLLECTIVES:
            some = [(machine.title, form, what, size) in found for form in FORMS for size in SIZES]
            assert all(some) or not any(some)
            if not any(some):
                absent.setdefault(machine.title, []).append(what)
    assert ("Not tuned yet" in text) == bool(absent)
    for title, names in absent.items():
        said = "all" if len(names) == len(COLLECTIVES) else ", ".join(names)
        assert f"{title}: {said}" in text


def test_every_row_above_its_goal_has_a_reason(rows: pd.DataFrame) -> None:
    over = rows[rows["form_over_scheduled"] > rows["bytes"].map(GOALS)]
    assert over["limit"].fillna("").str.len().gt(0).all()
    assert {size: tolerated(size) for size in SIZES} == GOALS


def test_no_row_is_below_its_bound_or_slower_than_a_reference(rows: pd.DataFrame) -> None:
    for row in rows.dropna(subset=["form_s"]).to_dict("records"):
        assert row["form_s"] >= row["bound_s"] * (1 - 1e-9)
        assert row["form_s"] <= row["reference_s"] * (1 + 1e-9)
        assert row["form_over_scheduled"] == pytest.approx(row["form_s"] / row["scheduled_s"])
        assert row["scheduled_s"] >= row["bound_s"] * (1 - 1e-9)


def test_the_page_counts_what_misses(rows: pd.DataFrame) -> None:
    text = (PUBLISHED / "tuned.md").read_text()
    for size, goal in GOALS.items():
        some = rows[rows["bytes"] == size]["form_over_scheduled"].dropna()
        assert f"in {int((some <= goal).sum())} of {len(some)} rows at most" in text
    over = rows[rows["form_over_scheduled"] > rows["bytes"].map(GOALS)]
    missed = text.split("\n## ")[2]
    assert missed.count("\n| ") == len(over) + int(rows["form_s"].isna().sum()) + 1  # and the head


def test_topo_txt_is_a_dgx1() -> None:
    """As many NVLinks as `nvidia-smi` prints: NV1 and NV2 of every pair, both ways."""
    network = Machine("topo.txt").instance("allreduce", 2**20).machine.network  # type: ignore[attr-defined]
    links = sum(int(word[2:]) for word in TOPO.split() if word[:2] == "NV")
    assert network.bandwidth.sum() == pytest.approx(links * 25e9)
