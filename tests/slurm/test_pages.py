"""The commands that pages show for Slurm run on one, in their order, with its partition in place of `P`."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from pathlib import Path

import command
import pytest
import test_site
from published import ROOT
from slurm.test_slurm import slurm_answers

PAGES = ("models/site/pages/how-to/batch.md", "models/site/pages/start/cluster.md")
LONGEST_S = 600


@pytest.fixture(scope="module", autouse=True)
def _needs_slurm() -> None:
    if not slurm_answers():
        pytest.skip("no Slurm answers; tests/slurm/single_node.sh starts one")


def commands(page: Path) -> list[list[str]]:
    """The words of the page's commands for Slurm, those that only show a script left out."""
    shown = [block["text"] for block in test_site.blocks(page) if "--engine slurm" in block["text"]]
    lines = [part for text in shown for line in text.splitlines() for part in line.partition(" #")[0].split("; ")]
    words = [shlex.split(line) for line in lines if line.startswith("synth batch ")]
    return [one for one in words if "--dry-run" not in one]


def over(folder: str, where: Path) -> dict[str, int]:
    """The counts of the batch once nothing of it runs or waits."""
    deadline = time.monotonic() + LONGEST_S
    while True:
        counts = json.loads(command.run("batch", "status", folder, "--json", cwd=where).stdout)["counts"]
        if not counts["running"] and not counts["queued"]:
            return dict(counts)
        assert time.monotonic() < deadline, counts
        time.sleep(2)


@pytest.mark.parametrize("name", [PAGES[0], *(pytest.param(name, marks=pytest.mark.slow) for name in PAGES[1:])])
def test_the_commands_of_a_page_run_on_slurm(name: str, tmp_path: Path) -> None:
    test_site.prepare(tmp_path)
    partition = subprocess.run(["sinfo", "-h", "-o", "%R"], capture_output=True, text=True).stdout.split()[0]
    asked = commands(ROOT / name)
    folder = asked[0][asked[0].index("--folder") + 1]
    for words in asked:
        if words[2] == "resubmit":
            over(folder, tmp_path)
        command.run(*(partition if word == "P" else word for word in words[1:]), cwd=tmp_path)
    counts = over(folder, tmp_path)
    assert (counts["failed"], counts["lost"]) == (0, 0)
    assert counts["done"] > 30
    if asked[-1][2] == "collect":
        assert re.search(r"^study,", (tmp_path / folder / "table.csv").read_text())
