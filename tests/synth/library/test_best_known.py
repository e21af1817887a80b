"""The library: made again from the records without a difference; what is better replaces, and is kept."""

from __future__ import annotations

import csv
import json
from dataclasses import astuple, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from command import flat
from published import PUBLISHED
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError
from synth.library import best_known, figure, page, submission
from synth.library.best_known import (
    COLUMNS,
    HISTORY,
    NAME,
    Before,
    Row,
    as_csv,
    history,
    loose_parts,
    make,
    read,
    rows_of,
    statements,
)
from synth.records import record as records
from synth.records.folder import pack
from synth.records.optimality import gap, meets
from synth.text.input_file import InputFile
from synth.views.figure_style import save


@pytest.mark.long
def test_the_published_library_is_made_again_without_a_difference() -> None:
    rows = rows_of(statements(PUBLISHED), PUBLISHED)
    made = as_csv(COLUMNS, map(astuple, rows))
    command = "synth library --make results/published"
    assert made == (PUBLISHED / NAME).read_text(), f"the records have changed: run {command}"
    before = best_known.read_history(PUBLISHED)
    assert page.text(rows, before) == (PUBLISHED / page.NAME).read_text(), f"run {command}"
    assert as_csv(Before._fields, before) == (PUBLISHED / HISTORY).read_text()


def test_the_figure_is_drawn_again_from_the_table(tmp_path: Path) -> None:
    """Another version of matplotlib may move a few pixels."""
    from matplotlib.testing.compare import compare_images

    rows = read(PUBLISHED / NAME)
    save(figure.draw(rows), tmp_path / "library.png", bbox_inches="tight", dpi=110)
    assert compare_images(str(PUBLISHED / figure.NAME), str(tmp_path / "library.png"), tol=5) is None
    assert f"]({figure.NAME})" in (PUBLISHED / page.NAME).read_text()


def test_the_bars_are_as_long_as_shares_and_every_instance_is_in_one() -> None:
    """The shares are counted here from the columns of the table."""
    rows = read(PUBLISHED / NAME)
    families = sorted({row.family for row in rows})
    expected: dict[str, list[int]] = {family: [0] * 6 for family in families}
    for row in rows:
        if not (row.value and row.bound):
            place = 5
        elif row.status == "closed":
            place = 0
        else:
            above = (float(row.value) - float(row.bound)) / float(row.value)
            place = 1 + (above >= 0.01) + (above >= 0.05) + (above >= 0.2)
        expected[row.family][place] += 1
    (axes,) = figure.draw(rows).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == [f"{f} ({sum(expected[f])})" for f in families]
    assert [bars.get_label() for bars in axes.containers] == list(figure.CLASSES)
    for place, bars in enumerate(axes.containers):
        lengths = [bar.get_width() for bar in bars]
        assert lengths == pytest.approx([expected[family][place] / sum(expected[family]) for family in families])
    assert [bar.get_x() + bar.get_width() for bar in axes.containers[-1]] == pytest.approx([1.0] * len(families))


@pytest.mark.long
def test_every_row_is_what_its_records_say() -> None:
    """Each row against the records that it names, read whole; no record of the instance is better."""
    rows = {row.sha256: row for row in read(PUBLISHED / NAME)}
    assert len(rows) > 1000
    for record in statements(PUBLISHED):
        row = rows[record["instance_sha256"]]
        assert (row.family, row.instance) == (record["family"], record["instance"])
        if record.value is not None and record.evidence == "replayed" and record.ok:
            assert float(row.value) <= record.value
        if record.bound is not None and record.ok and record.grade == "certified":
            assert float(row.bound) >= record.bound
    for row in list(rows.values())[::25]:
        if row.value:
            assert records.read(PUBLISHED / row.record).value == float(row.value)
        if row.bound:
            assert records.read(PUBLISHED / row.bound_record).bound == float(row.bound)
        if row.value and row.bound:
            assert (row.status == "closed") == meets(float(row.value), float(row.bound))
            assert float(row.gap) == pytest.approx(gap(float(row.value), float(row.bound)), rel=1e-5, abs=1e-12)


def test_the_selection_is_what_it_says() -> None:
    rows = [row for row in read(PUBLISHED / NAME) if "1.0" in row.selection.split()]
    assert 250 <= len(rows) <= 350
    assert {row.family for row in rows} == {"bine", "fabric", "harvest", "mlfm", "optree", "xtree"}
    assert any(row.data.startswith("real jobs") and "licence" in row.data for row in rows)
    assert any(row.data.startswith("machine") for row in rows)
    sizes = [int(row.size) for row in rows]
    assert 1000 <= max(sizes) <= 1056
    assert all(row.data and row.value and row.bound for row in rows)
    listed = list(csv.DictReader((PUBLISHED / "synth-lib-1.0.csv").open()))
    assert len({line["sha256"] for line in listed}) == len(listed) == len(rows)


def ring(folder: Path, nodes: int = 6) -> synth.Instance:
    raw = {
        "format": "synth-instance/1", "family": "xtree", "name": f"ring{nodes}", "source": "test", "chunks": 1,
        "network": {"kind": "ring", "nodes": nodes},
    }  # fmt: skip
    path = folder / f"ring{nodes}.json"
    path.write_text(json.dumps(raw))
    return synth.read(path)


def test_a_better_record_replaces_a_worse_one_and_the_history_keeps_it(tmp_path: Path) -> None:
    instance = ring(tmp_path, 8)
    folder = tmp_path / "lib"
    rows = [f"{t + 1},{2 * v},{(v - t) % 8},0\n" for t in range(7) for v in range(8)]  # all clockwise
    (tmp_path / "slow.csv").write_text("step,link,origin,chunk\n" + "".join(rows))
    slow = submission.schedule(instance, [InputFile(tmp_path / "slow.csv")], submission.Sender("Jane Doe"))
    records.write(slow, records.record_path(folder, "xtree", "ring8", slow["method"], None, slow.question))
    pack(folder)
    [first] = make(folder)
    assert (first.value, first.by, first.bound, first.status) == (repr(slow.value), "Jane Doe", "", "open")
    assert best_known.read_history(folder) == []
    [again] = make(folder)
    assert again == first
    quick = synth.solve(instance, "pull", results=folder)
    synth.solve(instance, "bound", results=folder)
    assert quick.value is not None
    assert slow.value is not None
    assert quick.value < slow.value
    pack(folder)
    [second] = make(folder)
    assert (second.value, second.by, second.status) == (repr(quick.value), "pull", "closed")
    kept = best_known.read_history(folder)
    assert [(one.what, one.number, one.by) for one in kept] == [("value", repr(slow.value), "Jane Doe")]
    make(folder)
    assert best_known.read_history(folder) == kept


def test_what_the_records_lose_stays_in_the_history() -> None:
    cells = ("x", "a", "0" * 64, "4", "1-16", "steps", "3.0", "pull", "2026-01-01", "a/pull.json", "2.0", "bound",
             "2026-01-01", "a/bound.json", "certified", "0.33", "open", "", "")  # fmt: skip
    old = best_known.Row(*cells)
    lost = history([], [old], [])
    assert [(one.what, one.number) for one in lost] == [("bound", "2.0"), ("value", "3.0")]
    assert history(lost, [old], [old]) == lost
    assert history(lost, [old], [replace(old, value="2.5")]) == lost


@pytest.mark.parametrize(("text", "said"), [("", "is no library"), ("a,b\n1,2\n", "is no library")])
def test_what_is_no_library_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        read(tmp_path / "l.csv")
    (tmp_path / "l.csv").write_text(",".join(COLUMNS) + "\n1,2\n")
    with pytest.raises(InputError, match="line 2: 2 cells, not 19"):
        read(tmp_path / "l.csv")


def run(*words: object) -> str:
    done = CliRunner().invoke(app, ["library", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return flat(done.output)


def test_the_command_says_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PUBLISHED.parents[1])
    assert "instances," in run("xtree", "--open")
    said = run("equimesh-8x8-c4-allreduce")
    assert "best value" in said
    assert "because: " in said
    text = CliRunner().invoke(app, ["library", "bine", "--csv"]).stdout
    assert text.splitlines()[0] == ",".join(COLUMNS)
    run("groups-6-4-6-alltoall", "--write", tmp_path)
    [row] = best_known.rows_for(read(PUBLISHED / NAME), str(tmp_path / "groups-6-4-6-alltoall.json"))
    assert row.instance == "groups-6-4-6-alltoall"
    with pytest.raises(InputError, match="holds nothing of nosuch"):
        run("nosuch")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="name one with --library"):
        run()


@pytest.mark.parametrize(
    ("value", "bound", "words"),
    [
        ("4", "2", []),
        ("", "", []),
        ("3", "2", ["the schedule is loose by 25.00 % or more: the library has 3 by one"]),
        ("4", "2.5", ["the bound is loose by 20.00 % or more: the library has 2.5 by two"]),
        ("3", "2.5", ["the schedule is loose", "the bound is loose"]),
        ("5", "1", []),
    ],
)
def test_which_part_of_a_gap_is_loose(value: str, bound: str, words: list[str]) -> None:
    """An instance whose best value is 4 and whose bound is 2."""
    known = Row(*("",) * len(COLUMNS))
    known = replace(known, value=value, bound=bound, by="one,option=3", bound_by="two")
    best = SimpleNamespace(best=SimpleNamespace(value=4.0), standing=SimpleNamespace(bound=2.0))
    found = loose_parts(cast(Any, best), known)
    assert all(word in found for word in words)
    assert bool(found) == bool(words)
