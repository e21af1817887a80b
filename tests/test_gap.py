"""What a gap is stands wherever gaps are printed, and nothing else is printed under that name."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from published import PUBLISHED, ROOT, published, whole
from typer.testing import CliRunner

from synth.cli.main import app
from synth.family import get_family
from synth.method import load
from synth.records.optimality import meets
from synth_models.fabric.check.certificates import ARGUMENTS
from synth_models.fabric.scheduling.chunks import seconds

DEFINED = re.compile(r"\((?:value|best) [−-] bound\) / (?:value|best)")
SOURCES = [*(ROOT / "synth").rglob("*.py"), *(ROOT / "models").rglob("*.py")]


def cells(notebook: Path) -> str:
    """The sources of a notebook's cells."""
    return "\n".join("".join(cell["source"]) for cell in json.loads(notebook.read_text())["cells"])


@pytest.mark.parametrize("page", ["README.md", *(f"results/published/{p.name}" for p in PUBLISHED.glob("*.md"))])
def test_pages_that_print_gaps_define_them(page: str) -> None:
    text = (ROOT / page).read_text()
    made = re.search(r"^Made by `synth reproduce", text, re.MULTILINE)
    if (made or page == "README.md") and "gap" in text.lower():
        assert DEFINED.search(text), page


def test_the_help_the_report_and_the_notebooks_define_them() -> None:
    assert DEFINED.search(" ".join(re.sub(r"[│\n]", " ", CliRunner().invoke(app, ["solve", "--help"]).output).split()))
    assert DEFINED.search((ROOT / "synth/study/page/report.html").read_text())
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        text = cells(notebook)
        if re.search(r"\bgap\b[^=]*[{%]|gap\(", text):
            assert DEFINED.search(text), notebook.name


def test_what_lies_above_a_bound_is_relative_to_the_bound() -> None:
    """No printed line divides by the value and says "above the bound"."""
    wrong = re.compile(r"1 - [\w.]*bound ?/[^\n]*above the bound|gap\}[^\n]*above the bound")
    texts = {file: file.read_text() for file in SOURCES} | {n: cells(n) for n in (ROOT / "notebooks").glob("*.ipynb")}
    assert [str(file) for file, text in texts.items() if wrong.search(text)] == []


def test_records_mean_the_same_by_it() -> None:
    for record in published():
        if record.gap is not None and record.value and record.bound is not None:
            assert record.gap == pytest.approx((record.value - record.bound) / abs(record.value), abs=1e-9)


def test_published_values_that_meet_their_bounds_are_exactly_the_least() -> None:
    """Why neighbouring doubles meet: of every published schedule in seconds with gap 0 the certificate proves the exact
    number of ticks, before anything is rounded."""
    count = 0
    for record in published():
        if record["family"] != "fabric" or record.value is None or record.gap != 0:
            continue
        record = whole(record)
        assert record.certificate is not None
        instance = record.find_instance()
        exact = seconds(instance, load(get_family("fabric").unpack)(instance, record.packed))
        assert meets(record.value, float(exact))
        needed, capacity = ARGUMENTS[record.certificate["argument"]](instance, record.certificate)
        assert capacity.until(Fraction(exact)) <= needed, record.path
        count += 1
    assert count > 50
