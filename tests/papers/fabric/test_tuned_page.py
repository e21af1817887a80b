"""What the page `tuned` promises of its rows: bounds below, references no quicker; and its counts are theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from published import PUBLISHED

from synth.errors import InputError
from synth.reproduction.collect import Reproduction
from synth.tuning import Question, Row, references
from synth.tuning.costs import tolerated
from synth_papers.fabric import tuned
from synth_papers.fabric.tuned import COLLECTIVES, FORMS, GOALS, MACHINES, MIB, SIZES, TOPO, Machine, Part


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
        assert re.search(rf"^\| {re.escape(title)} +\| {said} +\|$", text.split("## Not tuned yet")[1], re.M)


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


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes the page with another tuner, and says which pairs this was asked for."""
    asked: list[str] = []

    def invented(page: Reproduction, part: Part, state: str) -> Iterator[dict[str, Any]]:
        machine, what = part.machine, part.collective
        asked.append(" ".join([machine.title, what, *(part.forms if part.forms != FORMS else ())]))
        for form in reversed(part.forms):
            for size in reversed(SIZES):
                yield {
                    "machine": machine.title, "form": form, "collective": what, "bytes": size, "method": "ring",
                    "form_s": 2.0, "scheduled_s": 2.0, "scheduled_method": "ring", "form_over_scheduled": 1.0,
                    "bound_s": 1.0, "reference": "ring", "reference_s": 2.0, "code": state, "reference_code": state,
                }  # fmt: skip

    monkeypatch.setattr(tuned, "_tuned", invented)

    def make(state: str, *only: str, **flags: bool) -> tuple[list[str], pd.DataFrame, Any]:
        monkeypatch.setattr(tuned, "state_of_the_code", lambda: state)
        asked.clear()
        page = Reproduction(tmp_path / "tuned", only=only, **flags)
        tuned.reproduce(page)
        states = next(table for title, table in page.tables if title.startswith("Which state"))
        return list(asked), pd.read_csv(tmp_path / "tuned/rows.csv"), states

    return make


@pytest.mark.long
def test_the_page_is_made_in_parts_by_the_command_itself(made: Any) -> None:
    asked, rows, states = made("aaaa", "dgx-h100 x2 broadcast", "topo.txt")
    assert asked[0] == "topo.txt allreduce"
    assert set(asked) == {"dgx-h100 x2 broadcast", *(f"topo.txt {name}" for name in COLLECTIVES)}
    assert set(states["state"]) == {"aaaa"}
    assert made("aaaa", "topo.txt", again=True)[0] == []  # resumed: nothing is left to do
    assert made("bbbb", "topo.txt")[0] == []  # rows of another state are taken over, unless
    asked, rows, states = made("bbbb", "topo.txt allgather", "allreduce", again=True)
    assert sorted(asked) == sorted([*(f"{one.title} allreduce" for one in MACHINES), "topo.txt allgather"])
    assert set(rows[rows["code"] == "aaaa"]["collective"]) == set(COLLECTIVES) - {"allreduce", "allgather"}
    old = states[states["state"] == "aaaa"].set_index("machine")["collectives"]
    assert old["topo.txt"] == ", ".join(name for name in COLLECTIVES if name not in ("allreduce", "allgather"))


@pytest.mark.long
def test_a_part_may_be_one_form_alone(made: Any) -> None:
    made("aaaa", "topo.txt broadcast")
    assert made("bbbb", "topo.txt broadcast mscclpp", again=True)[0] == ["topo.txt broadcast mscclpp"]
    asked, rows, _ = made("bbbb", "topo.txt mscclpp", again=True)
    assert asked[0] == "topo.txt allreduce mscclpp"
    assert "topo.txt broadcast mscclpp" not in asked
    assert set(rows[rows["code"] == "aaaa"]["form"]) == {"msccl:azure"}


@pytest.mark.long
def test_references_are_exported_again_and_rows_that_they_beat_made_again(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the plans one size is beaten; the other rows keep what they were made by, and name the references' code."""
    made("aaaa", "topo.txt broadcast")
    seen = []

    def exported(asked: Question) -> list[Row]:
        seen.append(asked.form)
        rows = [Row(asked.make("broadcast", size), "broadcast", size) for size in SIZES]
        for row in rows:
            row.references = {"ring": 3.0, "double_tree": 1.5 if asked.form == "mscclpp" and row.size == MIB else 2.5}
        return rows

    monkeypatch.setattr(tuned, "references", exported)
    asked, rows, _ = made("bbbb", "topo.txt broadcast", references=True)
    assert seen == list(FORMS)
    assert asked == ["topo.txt broadcast mscclpp"]
    xml = rows[rows["form"] == "msccl:azure"]
    assert set(xml["code"]) == {"aaaa"}
    assert set(rows["reference_code"]) == {"bbbb"}
    assert xml["reference_s"].tolist() == [2.5, 2.5]
    assert set(xml["reference"]) == {"double_tree"}
    assert made("bbbb", "topo.txt broadcast", references=True)[0] == []
    assert seen == list(FORMS)


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["dgx-a100", "dgx1", "topo.txt"])
def test_no_row_is_slower_than_a_reference_exported_now(machine: str, rows: pd.DataFrame, tmp_path: Path) -> None:
    """By the code as it is, whichever made the rows."""
    one = next(one for one in MACHINES if one.title == machine)
    for form in FORMS:
        for found in references(Question(one.instance, COLLECTIVES, SIZES, form, tmp_path, resume=True)):
            mine = rows[(rows["machine"] == machine) & (rows["form"] == form) & (rows["bytes"] == found.size)]
            [seconds] = mine[mine["collective"] == found.collective]["form_s"]
            assert seconds <= min(found.references.values()) * (1 + 1e-9), (form, found.collective, found.size)


@pytest.mark.long
def test_rows_stand_in_the_page_s_order_whenever_they_were_made(made: Any) -> None:
    made("aaaa", "topo.txt broadcast")
    _, rows, _ = made("aaaa", "dgx-a100 allgather", "dgx-a100 allreduce")
    found = list(zip(rows["machine"], rows["collective"], rows["form"], rows["bytes"], strict=True))
    pairs = [("dgx-a100", "allreduce"), ("dgx-a100", "allgather"), ("topo.txt", "broadcast")]
    assert found == [(*pair, form, size) for pair in pairs for form in FORMS for size in SIZES]


def test_a_part_that_is_none_is_refused(made: Any) -> None:
    with pytest.raises(InputError, match="no machine, collective or both"):
        made("aaaa", "dgx-a100 allrecude")


def test_the_state_of_the_code_is_that_of_its_files() -> None:
    assert tuned.state_of_the_code() == tuned.state_of_the_code()
    assert len(tuned.state_of_the_code()) == 12
