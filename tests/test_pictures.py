"""The README's pictures are what the command draws."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from synth.cli.main import app
from synth.reproduction.collect import Reproduction, plain_figures
from synth_papers.xtree import bandwidth
from synth_papers.xtree.page import SIZES

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "results" / "published"
SCHEDULE = PUBLISHED / "pictures" / "schedule.png"
COMMAND = ["show", "results/published/xtree/equimesh-3x3-c2/pull.json", "--plot"]


@pytest.mark.long
def test_the_schedule_of_the_readme_is_drawn_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made by ``synth show results/published/xtree/equimesh-3x3-c2/pull.json --plot FILE``; another version of
    matplotlib may move a few pixels."""
    from matplotlib.testing.compare import compare_images

    monkeypatch.chdir(ROOT)
    drawn = tmp_path / "schedule.png"
    done = CliRunner().invoke(app, [*COMMAND, str(drawn)])
    assert done.exit_code == 0, done.output
    assert compare_images(str(SCHEDULE), str(drawn), tol=5) is None
    assert "results/published/pictures/schedule.png" in (ROOT / "README.md").read_text()


@pytest.mark.long
def test_the_other_picture_is_the_papers_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figure 7 of the xtree page, made by ``synth reproduce xtree``: drawn again from the published records, of which
    none is made anew; another version of matplotlib may move a few pixels."""
    from matplotlib.testing.compare import compare_images

    shutil.copytree(PUBLISHED / "xtree", tmp_path / "xtree")
    monkeypatch.setattr("synth.api.execute", lambda *_: pytest.fail("a published record is not that of the page"))
    page = Reproduction(tmp_path / "xtree", instances=ROOT / "instances")
    with plain_figures():
        curves = [bandwidth.curves(page, rows, cols, "allgather") for rows, cols in SIZES]
        page.figure(bandwidth.draw({curve.name: bandwidth.table(curve) for curve in curves}), "figure-7", "")
    assert (
        compare_images(str(PUBLISHED / "xtree" / "figure-7.png"), str(tmp_path / "xtree" / "figure-7.png"), 5) is None
    )
    assert "results/published/xtree/figure-7.png" in (ROOT / "README.md").read_text()
    assert "figure-7.png" in (PUBLISHED / "xtree.md").read_text()
