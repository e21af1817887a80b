"""'Add a paper' as a third party does it: a distribution of its own with an entry point, in a temporary folder.

The toy family is copied there and made findable as an installer does (package and ``.dist-info`` on the path, no
network); then every step of the checklist in ``models/README.md`` is tried through the command.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from third_party import ROOT, TOY, Place


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The folder of somebody else's project, the toy family installed beside it."""
    made = Place(tmp_path_factory.mktemp("third-party"))
    made.install_toy()
    return made


def test_the_family_is_found_without_touching_ours(place):
    assert "toy_broadcast" in place.done("families")
    assert "toy_broadcast" not in subprocess.run(
        [sys.executable, "-c", "from synth.family import family_names; print(family_names())"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def test_make(place):
    assert "nodes, the informed one included" in place.done("make", "toy_broadcast", "--help")
    place.done("make", "toy_broadcast", "nodes=8", "-o", "eight.json")
    assert json.loads((place.work / "eight.json").read_text())["nodes"] == 8


def test_a_wrong_file_names_every_fault(place):
    wrong = {"format": "synth-instance/1", "family": "toy_broadcast", "name": "wrong", "source": "", "nodes": 0, "x": 1}
    (place.work / "wrong.json").write_text(json.dumps(wrong))
    result = place.synth("solve", "wrong.json")
    assert result.returncode == 2
    assert "nodes = 0: must be >= 1" in result.stderr
    assert "x = 1: unknown key" in result.stderr or "x: unknown key" in result.stderr


def test_solve_check_and_show(place):
    """13 nodes: a chain takes 12 rounds, doubling 4, and 2^3 < 13 proves 4."""
    output = place.done("solve", "instances", "--json")
    found = {line["method"]: line for line in map(json.loads, output.splitlines())}
    assert {name: line["objective"]["value"] for name, line in found.items()} == {
        "bound": None,
        "chain": 12,
        "doubling": 4,
    }
    assert found["bound"]["bound"] == 4
    place.done("check", "results")
    record = "results/toy_broadcast/toy-13/doubling.json"
    assert "round 4" in place.done("show", record)
    assert place.done("show", record, "--csv").splitlines()[:2] == ["round,src,dst", "1,0,1"]
    place.done("show", record, "--plot", "a.png")
    assert (place.work / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_damaged_solution_is_caught(place):
    place.done("solve", "instances", "-m", "doubling", "--results", "damaged")
    path = place.work / "damaged" / "toy_broadcast" / "toy-13" / "doubling.json"
    data = json.loads(path.read_text())
    data["solution"]["sends"] = data["solution"]["sends"][1:]
    path.write_text(json.dumps(data))
    result = place.synth("check", "damaged")
    assert result.returncode == 1
    assert "node 0 sends what it does not have" not in result.stdout
    assert "never informed" in result.stdout + result.stderr or "does not have" in result.stdout + result.stderr


def test_reproduce(place):
    place.done("reproduce", "toy_broadcast", "--out", "pages")
    words = (place.work / "pages" / "toy_broadcast.md").read_text().split()
    assert "| folklore | rounds for 8 nodes | 3 | 3 | 0 |" in " ".join(words)


def test_study(place):
    (place.work / "study.toml").write_text(
        'name = "toy"\ninstances = ["instances"]\nbaselines = ["chain"]\n'
        '[[run]]\nmethods = ["bound", "chain", "doubling"]\n'
    )
    place.done("study", "study.toml")
    table = (place.work / "results" / "studies" / "toy" / "table.csv").read_text()
    assert "doubling" in table


def test_the_checklist_names_these_steps():
    """Every numbered step of the checklist and every file of the toy family are named there."""
    text = (ROOT / "models" / "README.md").read_text().split("## Add a paper")[1]
    files = {path.name for path in (TOY / "toy_broadcast").glob("*.py")} - {"__init__.py"}
    for name in (*files, "pyproject.toml", "instances/"):
        assert f"`{name}`" in text, name
    for command in ("make", "solve", "check", "show", "study", "reproduce"):
        assert f"synth {command}" in text
