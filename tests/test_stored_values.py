"""The script that solves the library again: it sees a worse value, a weaker bound, a lost certificate and a better one,
and the published library is nowhere worse than it was."""

from __future__ import annotations

import csv
import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from published import PUBLISHED, ROOT

import synth
from synth.library import best_known
from synth.library.best_known import Before
from synth.records.folder import pack


def script() -> Any:
    spec = importlib.util.spec_from_file_location("stored_values", ROOT / "tests/benchmarks/stored_values.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("value", "bound", "grade", "said"),
    [
        (2.0 * (1 + 1e-10), 1.0 * (1 - 1e-10), "certified", "same"),
        (2.0 * (1 + 1e-8), 1.0, "certified", "value"),
        (None, 1.0, "certified", "value"),
        (2.0, 1.0 * (1 - 1e-8), "certified", "bound"),
        (2.0, 1.0, "solver", "certificate"),
        (3.0, None, "", "value+bound+certificate"),
        (2.0 * (1 - 1e-8), 1.0, "certified", "better"),
        (2.0, 1.0 * (1 + 1e-8), "certified", "better"),
        (1.5, 0.5, "certified", "bound"),
    ],
)
def test_what_is_worse(value: float | None, bound: float | None, grade: str, said: str) -> None:
    found = script()
    assert found.verdict(found.Pin(2.0, 1.0, "certified"), value, bound, grade) == said


def library(folder: Path) -> Path:
    """A library of one instance, an allgather on a ring of four: 3 blocks of 256 bytes over links of 1e9 bytes/s."""
    made = synth.make("fabric", network="ring", nodes=4, bandwidth="1GB/s", latency="0", bytes=1024)
    file = folder.parent / "ring.json"
    file.write_text(made.to_json())
    instance = synth.read(file)
    for method in ("ring", "bound"):
        synth.solve(instance, method, results=folder)
    pack(folder)
    best_known.make(folder)
    return folder / best_known.NAME


def lines(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(file.open(newline="")))


def test_a_library_solved_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first run finds all as it was. Then the table claims half the value, and then history does: worse each time,
    with or without the default methods. A row that was solved is not solved again, but a
    worse one with more patience."""
    file, out = library(tmp_path / "lib"), tmp_path / "out.csv"
    again = script().main
    assert again([str(out), "--library", str(file)]) == 0
    assert again([str(out), "--library", str(file), "--against", str(out)]) == 0
    said = capsys.readouterr().out
    assert "1 rows: 1 same" in said
    assert "of 1 rows that both have" in said
    [line] = lines(out)
    assert (line["verdict"], line["grade"]) == ("same", "certified")
    assert float(line["value"]) == float(line["stored_value"])

    text = file.read_text()
    [row] = best_known.read(file)
    half = repr(float(row.value) / 2)
    file.write_text(text.replace(row.value, half, 1))
    assert again([str(tmp_path / "half.csv"), "--library", str(file), "--race"]) == 1
    [line] = lines(tmp_path / "half.csv")
    assert (line["verdict"], line["value"]) == ("value", row.value)
    assert float(line["raced_value"]) <= float(row.value)
    assert "value: " in capsys.readouterr().out
    assert again([str(tmp_path / "half.csv"), "--library", str(file)]) == 1
    assert len(lines(tmp_path / "half.csv")) == 1
    assert again([str(tmp_path / "half.csv"), "--library", str(file), "--patience", "3"]) == 1
    assert len(lines(tmp_path / "half.csv")) == 2

    file.write_text(text)
    kept = Before("fabric", row.instance, row.sha256, "value", half, "ring", row.when, row.record)
    (file.parent / best_known.HISTORY).write_text(best_known.as_csv(Before._fields, [kept]))
    assert again([str(tmp_path / "before.csv"), "--library", str(file)]) == 1
    assert lines(tmp_path / "before.csv")[0]["stored_value"] == half


def test_what_is_better_is_kept(tmp_path: Path) -> None:
    """The table claims twice the value."""
    file = library(tmp_path / "lib")
    [row] = best_known.read(file)
    file.write_text(file.read_text().replace(row.value, repr(float(row.value) * 2), 1))
    out, kept = tmp_path / "out.csv", tmp_path / "kept"
    assert script().main([str(out), "--library", str(file), "--keep", str(kept)]) == 0
    assert lines(out)[0]["verdict"] == "better"
    [written] = kept.rglob("*.json")
    assert synth.check(written).ok


def test_rows_are_chosen(tmp_path: Path) -> None:
    """Three rows of 1, 20 and 30 seconds: the quick one, and a sample of the others; parts share them out."""
    cells = ["fabric", "a", "0" * 64, "4", "1-16", "s", "3.0", "pull", *[""] * 11]
    rows = [replace(best_known.Row(*cells), sha256=str(k) * 64) for k in range(3)]
    seconds = {row.sha256: each for row, each in zip(rows, (20.0, 1.0, 30.0), strict=True)}

    def chosen(**own: Any) -> list[int]:
        given = {"family": "fabric", "only": "", "under": 10.0, "sample": 0, "seed": 0, "part": "1/1"} | own
        return [rows.index(row) for row in script().chosen(rows, seconds, type("Given", (), given))]

    assert chosen() == [1]
    assert chosen(sample=5) == [1, 0, 2]
    assert len(chosen(sample=1)) == 2
    assert [*chosen(sample=5, part="1/2"), *chosen(sample=5, part="2/2")] == [1, 2, 0]
    assert chosen(only="forest") == []


def test_no_published_value_or_bound_is_worse_than_one_that_stood_there() -> None:
    rows = best_known.read(PUBLISHED / best_known.NAME)
    held = script().pins(rows, best_known.read_history(PUBLISHED))
    worse = [
        (row.family, row.instance, row.value, row.bound, held[row.sha256])
        for row in rows
        if held[row.sha256].worse(float(row.value) if row.value else None)
        or held[row.sha256].weaker(float(row.bound) if row.bound else None)
    ]
    assert worse == []
