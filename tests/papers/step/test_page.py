"""What the page `step` says is what its records say; what it lacks it names."""

from __future__ import annotations

from pathlib import Path

import pytest
from published import PUBLISHED, held_for

from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent, shown
from synth_papers.step.page import NEAR, reproduce


def rows() -> dict[str, dict[str, str]]:
    """The page's table by step."""
    text = (PUBLISHED / "step.md").read_text()
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return {line[0]: dict(zip(lines[0], line, strict=True)) for line in lines[2:]}


@pytest.mark.parametrize(
    ("step", "name"),
    [("zero-bubble pipeline, 4 stages, 8 microbatches", "zb-p4-m8"),
     ("DeepSeek-V3, 983 kernels, EP 64", "deepseek_train_kernels")],
)  # fmt: skip
def test_a_row_has_the_best_of_its_records(step: str, name: str) -> None:
    records = list(held_for("step")[name].values())
    values = [record.value for record in records if record.value is not None]
    (bound,) = [record.bound for record in records if record["method"] == "bound"]
    assert bound is not None
    assert all(record.grade == "certified" for record in records if record.bound is not None)
    assert bound <= min(values) * (1 + 1e-12)
    row = rows()[step]
    assert (row["value"], row["bound"]) == (shown(min(values), "s"), shown(bound, "s"))


def test_the_published_profile_lies_between_compute_and_what_was_measured() -> None:
    (bound,) = [one.bound for one in held_for("step")["deepseek_train_kernels"].values() if one["method"] == "bound"]
    assert bound is not None
    assert 0.1243 <= bound <= 0.1290


def test_most_published_steps_end_near_their_bound() -> None:
    """Six of the seven workloads and the profile, at least."""
    gaps = [float(row["gap"].removesuffix("%")) for name, row in rows().items() if "G" in name[:2] or "L" in name[:1]]
    assert len(gaps) == 7
    assert sum(gap <= 100 * NEAR for gap in gaps) >= 6
    assert percent(NEAR) in (PUBLISHED / "step.md").read_text()


def test_what_has_no_data_is_left_out_and_named(tmp_path: Path) -> None:
    page = Reproduction(tmp_path / "step", True, tmp_path, tmp_path, lambda line: None)
    reproduce(page)
    assert len(page.tables[0][1]) == 1
    told = " ".join(page.skipped)
    for words in ("DeepSeek's profile", "AICB's workloads", "the generated traces llama8"):
        assert words in told
