"""Frames of what is installed and of the library, how they are shown, and quantities with units from Python."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import synth
from synth.family import family_names, get_family
from synth.method import load
from synth.study.run_frame import frame_of
from synth.tables.frame import Frame, unit_of

SCRIPT = Path(__file__).resolve().parents[1] / "users_script.py"
ROOT = SCRIPT.parents[1]


def test_dir_holds_the_public_names_alone_and_each_says_what_it_is() -> None:
    assert dir(synth) == sorted(synth.__all__)
    for name in dir(synth):
        assert (inspect.getdoc(getattr(synth, name)) or "").strip(), name


@pytest.mark.parametrize("name", [name for name in synth.__all__ if name not in ("Frame", "InputError", "__version__")])
def test_the_members_of_public_types_have_docstrings_too(name: str) -> None:
    found = getattr(synth, name)
    members = vars(found).items() if inspect.isclass(found) else ()
    own = [
        (key, one) for key, one in members if not key.startswith("_") and (callable(one) or isinstance(one, property))
    ]
    assert [key for key, one in own if not inspect.getdoc(one)] == []


def test_families_and_methods_are_frames() -> None:
    families = synth.families()
    assert set(families.index) == {name for name in family_names() if name != "faulty"}
    assert families.loc["fabric", "unit"] == "s"
    methods = synth.methods("fabric")
    assert list(methods.index) == list(get_family("fabric").methods)
    assert methods["kind"].value_counts()["program"] == families.loc["fabric", "programs"]
    assert methods.loc["ring", "published"]
    assert methods.loc["ring", "source"].startswith("Patarasuk and Yuan: Bandwidth Optimal")
    assert methods.loc["ring", "takes"] == "transfers"
    assert pd.isna(methods.loc["pull", "source"])
    assert "highs" in methods.loc["forest", "solvers"]
    with pytest.raises(synth.InputError, match="did you mean fabric"):
        synth.methods("fabrik")


@pytest.mark.parametrize("family", [name for name in family_names() if name != "faulty"])
def test_every_key_has_a_meaning_and_its_example_is_taken(family: str) -> None:
    keys, taken = synth.keys(family), load(get_family(family).keys)
    assert list(keys.index) == taken.names()
    assert keys["meaning"].str.len().min() > 3
    for key, example in keys["example"].dropna().items():
        assert taken.reads(key, example), (key, example)
    assert keys["example"].notna().mean() > 0.7
    needed = [key for key, field in taken.model_fields.items() if field.is_required()]
    assert sorted(keys.index[keys["needed"]]) == sorted(needed)


def test_defaults_stand_as_they_are_typed_or_in_words() -> None:
    keys = synth.keys("fabric")
    assert keys.loc["collective", "default"] == "allgather"
    assert keys.loc["relay", "default"] == "off"
    assert keys.loc["boxes", "default"] == "1"
    assert pd.isna(keys.loc["demand", "default"])
    assert keys.loc["nic_latency", "example"] == "0.7us"


def library_of(folder: Path, **changed: str) -> Path:
    from dataclasses import astuple

    from synth.library import best_known

    cells = dict.fromkeys(best_known.COLUMNS, "") | {
        "family": "fabric", "instance": "four", "size": "4", "unit": "s", "value": "2e-06", "bound": "1e-06",
        "grade": "certified", "gap": "0.5", "by": "ring", "status": "open",
    }  # fmt: skip
    rows = [best_known.Row(**cells | changed), best_known.Row(**cells | {"unit": "steps", "value": "3", "gap": ""})]
    file = folder / "library.csv"
    file.write_text(best_known.as_csv(best_known.COLUMNS, map(astuple, rows)))
    return file


def test_the_library_is_a_frame_of_numbers(tmp_path: Path) -> None:
    known = synth.library(library_of(tmp_path))
    assert known["value"].tolist() == [2e-6, 3.0]
    assert known["value_s"].tolist()[0] == 2e-6
    assert np.isnan(known["value_s"].tolist()[1])
    assert known["size"].dtype.kind == "i"
    assert known["certified"].all()
    assert known["gap"].isna().tolist() == [False, True]
    assert "2.00 us" in repr(known[["value", "unit"]])
    assert "3 steps" in repr(known[["value", "unit"]])
    assert known["made_by"].tolist() == ["ring", "ring"]


@pytest.mark.parametrize(("column", "text"), [("value", "quick"), ("bound", "nan"), ("gap", "inf"), ("size", "1e999")])
def test_a_number_in_a_library_that_is_none_is_said(tmp_path: Path, column: str, text: str) -> None:
    with pytest.raises(synth.InputError, match=f"line 2: {column} = '{text}': must be a finite number"):
        synth.library(library_of(tmp_path, **{column: text}))


def test_no_library_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(synth.InputError, match=r"no results/published/library.csv .* name one with library\(file\)"):
        synth.library()


def test_the_published_library_reads() -> None:
    known = synth.library(ROOT / "results/published/library.csv")
    both = known.dropna(subset=["value", "bound"])
    assert len(both) > 1000
    assert (both.loc[both["status"] == "closed", "gap"] == 0).all()
    assert known.loc[known["unit"] == "s", "value_s"].equals(known.loc[known["unit"] == "s", "value"])


def test_a_study_s_rows_gain_what_all_frames_share() -> None:
    rows = pd.DataFrame(
        {
            "record": ["a", "b"], "value": [1e-3, 4.0], "bound": [np.nan, 2.0], "unit": ["s", "steps"],
            "proof": ["", "certified"], "total_s": [0.5, 1.0], "solver": ["", "highs"],
        }
    )  # fmt: skip
    frame = frame_of(rows, {"a": "ring", "b": None})
    assert frame["certified"].tolist() == [False, True]
    assert frame["proof"].isna().tolist() == frame["solver"].isna().tolist() == [True, False]
    assert frame["made_by"].isna().tolist() == [False, True]
    assert frame["seconds"].tolist() == [0.5, 1.0]
    assert frame["value_s"].isna().tolist() == [False, True]
    assert rows["proof"].tolist() == ["", "certified"]


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        ("value", "unit"), ("best_bound", "unit"), ("value_s", "s"), ("to_gap_s", "s"), ("seconds", "s"),
        ("seeds", None),
        ("size_bytes", "bytes"), ("bytes", "bytes"), ("gap", "%"), ("gap_own", "%"), ("mean_gap", "%"), ("wins", None),
        (("value_s", "ring"), "s"), (3, None),
    ],
)  # fmt: skip
def test_a_column_s_name_says_its_unit(column: object, unit: str | None) -> None:
    assert unit_of(column) == unit


def test_what_is_shown_is_one_line_a_row_and_no_markup() -> None:
    made = Frame.of([{"made_by": "\x1b[31mred\nline", "gap": None}, {"made_by": "<b>", "gap": 0.25}])
    assert "\x1b" not in repr(made)
    assert len(repr(made).splitlines()) == 3
    assert "<b>" not in made._repr_html_()
    assert "<b>" not in made.style.to_html()
    assert "25.00 %" in repr(made)


def test_a_long_frame_is_cut_where_pandas_cuts_it() -> None:
    made = Frame.of(pd.DataFrame({"value_s": np.arange(1, 1001) * 1e-6}))
    assert len(repr(made).splitlines()) < 80
    assert "1.00 us" in repr(made)
    assert "1.00 ms" in repr(made)
    with pd.option_context("display.max_rows", None):
        assert "500 us" in repr(made)


LIMITS = ["20 parsecs", "", "-5s", 0, -1.0, float("nan"), [20], True]


@pytest.mark.parametrize("limit", LIMITS, ids=map(repr, LIMITS))
def test_a_wrong_limit_is_one_message(limit: object) -> None:
    ring = synth.make("xtree", network="ring", nodes=4, chunks=1)
    with pytest.raises(synth.InputError, match=r"^time_limit = .*: must be a duration > 0 such as 90, 60s"):
        synth.solve(ring, "bound", time_limit=limit)  # type: ignore[arg-type]
    with pytest.raises(synth.InputError, match=r"^time_limit = "):
        synth.compare(ring, ["bound"], time_limit=limit)  # type: ignore[arg-type]
    with pytest.raises(synth.InputError, match=r"^time_limit = "):
        synth.study("xtree", time_limit=limit)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limit", "seconds"), [("20s", 20.0), ("1.5m", 90.0), (" 2h ", 7200.0), (3, 3.0), ("none", None), (None, None)]
)
def test_limits_have_units(limit: str | float | None, seconds: float | None) -> None:
    record = synth.solve(synth.make("xtree", network="ring", nodes=4, chunks=1), "bound", time_limit=limit, gap="1%")
    assert record["options"]["time_limit_s"] == seconds
    assert record["options"]["relative_gap"] == 0.01


@pytest.mark.parametrize("gap", ["2", "-1%", "wide", float("nan"), None])
def test_a_wrong_gap_is_one_message(gap: object) -> None:
    with pytest.raises(synth.InputError, match=r"^gap = .*: must be a gap from 0 to 1"):
        synth.solve(synth.make("xtree", network="ring", nodes=4, chunks=1), gap=gap)  # type: ignore[arg-type]


@pytest.mark.parametrize("memory", ["4 apples", -1, 0, "", True])
def test_a_wrong_memory_is_one_message(memory: object) -> None:
    with pytest.raises(synth.InputError, match=r"^memory_mb = .*: must be a size > 0"):
        synth.study("xtree", memory_mb=memory)  # type: ignore[arg-type]


def test_networks_take_units() -> None:
    network = synth.Network(2, [(0, 1), (1, 0)], "25GB/s", ["0.7us", 1e-6])
    assert network.bandwidth.tolist() == [25e9, 25e9]
    assert network.latency.tolist() == [7e-7, 1e-6]
    with pytest.raises(ValueError, match="must be a rate such as 25GB/s"):
        synth.Network(2, [(0, 1)], "25 apples")


@pytest.mark.long
def test_a_user_s_script_runs(tmp_path: Path) -> None:
    (tmp_path / SCRIPT.name).write_text(SCRIPT.read_text())
    done = subprocess.run([sys.executable, SCRIPT.name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "there is no results/published/library.csv" in done.stdout
    assert (tmp_path / "mine.pdf").stat().st_size > 1000


@pytest.mark.slow
def test_a_strict_type_checker_accepts_a_user_s_script(tmp_path: Path) -> None:
    """Outside the checkout, where mypy finds synth as an installed package; a wrong use is told."""
    wrong = SCRIPT.read_text().replace('time_limit="5s", seed=1', 'time_limit="5s", sede=1')
    (tmp_path / "right.py").write_text(SCRIPT.read_text())
    (tmp_path / "wrong.py").write_text(wrong)
    words = [sys.executable, "-m", "mypy", "--strict", "right.py", "wrong.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("right.py")] == []
    assert [line for line in lines if line.startswith("wrong.py") and "sede" in line]
