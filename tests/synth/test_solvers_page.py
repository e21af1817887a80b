"""The page that compares a study's solvers: its statistics by hand, its files, and what is published."""

import math
import re
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from synth.cli.main import app
from synth.errors import InputError
from synth.study import measures, solvers_page

PUBLISHED = Path(__file__).parents[2] / "results" / "published"


def runs(*rows):
    """A study's table: (instance, seed, solver, seconds, solved, proof, gap, termination)."""
    columns = ("instance_sha256", "seed", "solver", "total_s", "solved", "proof", "gap", "termination")
    table = pd.DataFrame([dict(zip(columns, row, strict=True)) for row in rows])
    return table.assign(status="ok", value=1.0, to_gap_s=table["total_s"])


def test_by_solver_by_hand():
    """B is not given the instance c, so c counts for none. A and B both prove a and b with seed 0: A in 0 s and 3 s
    (shifted mean sqrt(1·4) - 1 = 1), B in 3 s and 3 s (3). The gap's mean is over all values."""
    table = runs(
        ("a", 0, "A", 0.0, True, "certified", 0.0, "optimal"),
        ("b", 0, "A", 3.0, True, "A", 0.0, "optimal"),
        ("b", 1, "A", 9.0, False, "A", 0.3, "time_limit"),
        ("c", 0, "A", 7.0, True, "certified", 0.0, "optimal"),
        ("a", 0, "B", 3.0, True, "certified", 0.0, "optimal"),
        ("b", 0, "B", 3.0, True, "B", 0.0, "optimal"),
        ("b", 1, "B", 2.0, False, "", 0.5, "size_limit"),
        ("a", 0, "", 2.0, True, "certified", 0.0, "finished"),
    )
    found = {row["solver"]: row for row in measures.by_solver(table).to_dict("records")}
    assert list(found) == ["A", "B"]
    whole = ("runs", "with_value", "solved", "certified", "refused", "common", "quickest", "reached")
    assert [found["A"][key] for key in whole] == [3, 3, 2, 1, 0, 2, 2, 3]
    assert [found["B"][key] for key in whole] == [3, 3, 2, 1, 1, 2, 1, 3]
    assert [found[name]["time_s"] for name in "AB"] == pytest.approx([1.0, 3.0])
    assert [found[name]["mean_gap"] for name in "AB"] == pytest.approx([0.1, 0.5 / 3])


def test_without_common_cases_there_is_no_mean():
    found = measures.by_solver(
        runs(("a", 0, "A", 1.0, True, "A", 0.0, "optimal"), ("a", 0, "B", 1.0, False, "B", 0.1, "time_limit"))
    )
    assert found["common"].tolist() == [0, 0]
    assert all(math.isnan(seconds) for seconds in found["time_s"])


@pytest.mark.long
def test_a_study_of_two_solvers_writes_its_page(tmp_path):
    study = tmp_path / "two.toml"
    study.write_text(
        f'name = "two"\ntitle = "Two solvers"\ninstances = ["{Path("instances/optree/ring-4-w1.json").resolve()}"]\n'
        'figures = ["gaps"]\n[[run]]\nmethods = ["bound"]\n'
        '[[run]]\nmethods = ["rwa"]\nsolvers = ["highs", "scip"]\ntime_limits = ["20s"]\n'
    )
    page = tmp_path / "pages" / "two.md"
    command = ["study", str(study), "--results", str(tmp_path / "results"), "--jobs", "1", "--page", str(page)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert text.startswith("# Two solvers\n\nEvery solver was given 1 cases")
    assert re.search(r"^\| HiGHS \| 1 \| 1 \|", text, re.MULTILINE)
    pictures = re.findall(r"\]\((two/[\w-]+\.png)\)", text)
    assert "two/gaps.png" in pictures
    assert {f"two/{path.name}" for path in page.with_suffix("").iterdir()} == {*pictures, "two/table.csv"}
    assert not {"host", "record"} & set(pd.read_csv(tmp_path / "pages" / "two" / "table.csv").columns)


@pytest.mark.parametrize("target", ["page.html", "page"])
def test_a_page_is_markdown_of_one_study(tmp_path, target):
    done = CliRunner().invoke(app, ["study", "optree", "--collect", "--page", str(tmp_path / target)])
    assert isinstance(done.exception, InputError)
    assert "--page" in str(done.exception)


def test_the_published_page_is_made_of_its_table():
    table = pd.read_csv(PUBLISHED / "solvers" / "table.csv", keep_default_na=False, na_values=[""])
    table = table.assign(solver=table["solver"].fillna(""), proof=table["proof"].fillna(""))
    text = (PUBLISHED / "solvers.md").read_text()
    assert solvers_page.by_solver_table(measures.by_solver(table)) in text
    assert solvers_page.by_family_tables(table) in text
    assert set(table["solver"]) == {"", "cpsat", "gurobi", "highs", "scip"}
