"""Every page of the site is followed as a user does: synth installed from its wheel, in a folder outside the checkout.

The wheel is built offline, without its dependences; these are the ones of the environment that runs the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
import test_site
from published import ROOT
from test_site import PAGES

STORY = PAGES / "start/topology.md"  # from a graph to a schedule that is handed in; it needs no file of the checkout
ALONE = (PAGES / "start/algorithm.md", PAGES / "how-to/study.md")  # these need none either
LONGEST_S = 600  # of one command


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has the wheel, and all else from the environment of the tests."""
    pytest.importorskip("hatchling")
    place = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", place, ROOT]
    subprocess.run(build, check=True, capture_output=True, text=True)
    [wheel] = place.glob("*.whl")
    venv.create(place / "env", with_pip=False)
    [packages] = (place / "env/lib").glob("python*/site-packages")
    subprocess.run(
        [*pip, "--python", place / "env/bin/python", "install", "--no-deps", "--no-index", wheel],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    others = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (packages / "tests_environment.pth").write_text("\n".join(others))
    return place / "env/bin"


def outside(programs: Path) -> test_site.Runner:
    """What runs a command there, with nothing of the checkout on its path."""
    where = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    where["PATH"] = f"{programs}{os.pathsep}{where['PATH']}"

    def run(words: list[str], folder: Path) -> str:
        line = [programs / words[0], *words[1:]]
        done = subprocess.run(line, cwd=folder, env=where, capture_output=True, text=True, timeout=LONGEST_S)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr, (words, done.stderr)
        return done.stdout

    return run


@pytest.mark.slow  # `.ci/run` runs it
def test_the_wheel_is_what_runs(installed: Path, tmp_path: Path) -> None:
    """No module of the toolkit or of a family comes from the checkout."""
    lines = "import synth, synth_models, synth_peers, sys; print(synth.__file__, *synth_models.__path__, sys.path)"
    said = outside(installed)(["python", "-c", lines], tmp_path)
    assert str(ROOT / "synth") not in said
    assert str(ROOT / "models") not in said
    assert said.startswith(str(installed.parent))


@pytest.mark.slow  # `.ci/run` runs it
def test_the_whole_story_needs_no_checkout(installed: Path, tmp_path: Path) -> None:
    """A graph, a study, its figure and table, a method of one's own, a schedule handed in: in an empty folder."""
    assert test_site.follow(STORY, tmp_path, run=outside(installed)) > 5
    study = tmp_path / "results/studies/paper"
    assert (study / "figures/bandwidth.pdf").stat().st_size > 5000
    assert "Ours" in (study / "summary.tex").read_text()
    assert list((tmp_path / "results/fabric/circulant-1MiB").glob("submitted-jane-doe-*.json"))


@pytest.mark.slow  # `.ci/run` runs it
@pytest.mark.parametrize("page", sorted(set(PAGES.rglob("*.md")) - {STORY}), ids=lambda page: page.stem)
def test_a_page_is_followed(page: Path, installed: Path, tmp_path: Path) -> None:
    """With the instances and published results of a checkout beside it where the page needs them."""
    if not test_site.to_run(page) or page == test_site.GALLERY:
        pytest.skip("no commands of a user's")
    if page not in ALONE:
        test_site.prepare(tmp_path)
    assert test_site.follow(page, tmp_path, run=outside(installed))
