"""What the page `tuned` promises of its rows: no file slower than what is in use or than NCCL's own, bounds below,
within the executor's limits; and its counts are theirs."""

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
from synth_papers.fabric import tuned, tuned_rows
from synth_papers.fabric.tuned import ADDING, executor_limits, expected, left
from synth_papers.fabric.tuned_rows import COLLECTIVES, MACHINES, PARTS, SIZES, Part


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return pd.read_csv(PUBLISHED / "tuned/rows.csv", keep_default_na=False, na_values=[""])


@pytest.fixture(scope="module")
def text() -> str:
    return (PUBLISHED / "tuned.md").read_text()


def test_every_part_has_all_its_rows_or_is_said_to_have_none(rows: pd.DataFrame, text: str) -> None:
    found = list(zip(rows["machine"], rows["collective"], rows["bytes"], strict=True))
    assert len(found) == len(set(found))
    absent: dict[str, list[str]] = {}
    for part in PARTS:
        some = [(part.machine.title, part.collective, size) in found for size in SIZES]
        assert all(some) or not any(some)
        if not any(some):
            absent.setdefault(part.machine.title, []).append(part.collective)
    assert len(found) == len(SIZES) * (len(PARTS) - sum(map(len, absent.values())))
    assert ("Not tuned yet" in text) == bool(absent)
    for title, names in absent.items():
        every = next(machine.collectives for machine in MACHINES if machine.title == title)
        said = "all" if len(names) == len(every) else ", ".join(names)
        assert re.search(rf"^\| {re.escape(title)} +\| {said} +\|$", text.split("## Not tuned yet")[1], re.M)


EVEN = 1.011  # times the best in use: what a file may take that serves all sizes of whole 8 KiB a rank (--any-count)


def test_no_file_is_slower_than_what_is_in_use_or_below_its_bound(rows: pd.DataFrame) -> None:
    """But for one, whose quicker form serves fewer counts of elements."""
    assert rows["form_s"].notna().all()
    assert rows["reference_s"].notna().all()
    slower = rows[rows["form_s"] > rows["reference_s"] * (1 + 1e-9)]
    assert slower[["machine", "collective", "bytes"]].to_numpy().tolist() == [["dgx-a100", "broadcast", 4 * 2**20]]
    assert (slower["form_s"] <= slower["reference_s"] * EVEN).all()
    assert not (rows["form_s"] < rows["bound_s"] * (1 - 1e-9)).any()
    written = rows[~left(rows)]
    in_switches = written[written["machine"].isin(ADDING)]
    assert (in_switches["form_s"] <= in_switches["nccl_s"].fillna(float("inf"))).all()


def test_every_file_is_within_the_executor_s_limits(rows: pd.DataFrame) -> None:
    for name, most in executor_limits().items():
        assert rows[name].between(1, most).all()


def test_the_page_counts_its_rows(rows: pd.DataFrame, text: str) -> None:
    written = rows[~left(rows)]
    ratio = written["form_s"] / written["reference_s"]
    assert f"{int((ratio > 1 + 1e-9).sum()) or 'none'} of the {len(written)} files" in text
    assert f"{int((ratio <= 0.99).sum())} are quicker by 1 % or more" in text
    count = len(rows) - len(written)
    assert re.search(rf"{count or 'No'} rows? of {len(rows)} (is|are) left to NCCL", text)
    assert text.split("## Where NCCL's own is quicker")[1].split("\n## ")[0].count("\n| dgx") == count
    assert f"expects less than the file's time in {int(expected(written).sum()) or 'none'} of the others" in text


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes the page with another tuner, and says which pairs this was asked for."""
    asked: list[str] = []

    def invented(page: Reproduction, part: Part, state: str) -> Iterator[dict[str, Any]]:
        asked.append(f"{part.machine.title} {part.collective}")
        for size in reversed(SIZES):
            large = part.machine.title in ADDING and size == SIZES[-1]
            yield {
                "machine": part.machine.title, "collective": part.collective, "bytes": size, "method": "ring",
                "form_s": 2.0, "reference": "ring", "reference_s": 2.0, "nccl": "NVLS, Simple", "bound_s": 1.0,
                "nccl_s": 1.5 if large else 3.0, "blocks": 2, "channels": 1, "steps": 4, "ours": "forest",
                "code": state,
            }  # fmt: skip

    monkeypatch.setattr(tuned_rows, "tuned", invented)

    def make(state: str, *only: str, **flags: bool) -> tuple[list[str], pd.DataFrame, dict[str, Any]]:
        monkeypatch.setattr(tuned_rows, "state_of_the_code", lambda: state)
        monkeypatch.setattr(tuned, "_measured", lambda *_: pd.DataFrame({name: [] for name in tuned.MEASURED}))
        asked.clear()
        page = Reproduction(tmp_path / "tuned", only=only, **flags)
        tuned.reproduce(page)
        return list(asked), pd.read_csv(tmp_path / "tuned/rows.csv"), {title[:5]: table for title, table in page.tables}

    return make


@pytest.mark.long
def test_the_page_is_made_in_parts_by_the_command_itself(made: Any) -> None:
    asked, rows, tables = made("aaaa", "dgx-h100 x2 broadcast", "dgx-a100")
    assert asked[0] == "dgx-a100 allreduce"
    assert set(asked) == {"dgx-h100 x2 broadcast", *(f"dgx-a100 {name}" for name in COLLECTIVES)}
    assert set(tables["Which"]["state"]) == {"aaaa"}
    assert list(rows["bytes"]) == list(SIZES) * len(asked)
    assert made("aaaa", "dgx-a100", again=True)[0] == []  # resumed: nothing is left to do
    assert made("bbbb", "dgx-a100")[0] == []  # rows of another state are taken over, unless
    asked, rows, tables = made("bbbb", "dgx-a100 allgather", "allreduce", again=True)
    assert sorted(asked) == sorted([*(f"{one.title} allreduce" for one in MACHINES), "dgx-a100 allgather"])
    assert set(rows[rows["code"] == "aaaa"]["collective"]) == set(COLLECTIVES) - {"allreduce", "allgather"}
    old = tables["Which"][tables["Which"]["state"] == "aaaa"].set_index("machine")["collectives"]
    assert old["dgx-a100"] == ", ".join(name for name in COLLECTIVES if name not in ("allreduce", "allgather"))


@pytest.mark.long
def test_what_nccl_does_quicker_in_switches_is_left_to_it(made: Any) -> None:
    """The greatest size of the machine whose switches add; of no other, whatever NCCL's model expects."""
    _, rows, tables = made("aaaa", "dgx-h100-nvls allgather", "dgx-h100 allgather")
    assert rows[left(rows)][["machine", "bytes"]].to_numpy().tolist() == [["dgx-h100-nvls", SIZES[-1]]]
    assert tables["Where"]["takes"].tolist() == ["1.50 s"]


def test_a_part_that_is_none_is_refused(made: Any) -> None:
    with pytest.raises(InputError, match="no machine, collective or both"):
        made("aaaa", "dgx-a100 allrecude")


def test_the_state_of_the_code_is_that_of_its_files() -> None:
    assert tuned_rows.state_of_the_code() == tuned_rows.state_of_the_code()
    assert len(tuned_rows.state_of_the_code()) == 12
