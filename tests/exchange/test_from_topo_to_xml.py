"""From what ``nvidia-smi topo -m`` prints to an MSCCL XML: the README's three commands, as they stand there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from command import run
from exchange.machines.reading import SAMPLES

ROOT = Path(__file__).resolve().parents[2]


def test_three_commands_from_topo_to_xml_as_the_readme_says(tmp_path: Path) -> None:
    """The lines of the README, run on a DGX-1's matrix: import, solve, export; the last skips until it exists."""
    block = next(part for part in (ROOT / "README.md").read_text().split("```") if "synth import topo.txt" in part)
    lines = [line.partition("  #")[0].split() for line in block.splitlines() if line.startswith("synth ")]
    assert [line[1] for line in lines] == ["import", "solve", "export"]
    shutil.copy(SAMPLES / "dgx1-topo.txt", tmp_path / "topo.txt")
    for line in lines[:2]:
        run(*line[1:], cwd=tmp_path)
    assert list(tmp_path.glob("results/fabric/*/*.json"))
    if "│ export " not in run("--help", cwd=tmp_path).stdout:
        pytest.skip("synth export is not there yet")
    run(*lines[2][1:], cwd=tmp_path)
    written = next(word for word in lines[2] if word.endswith(".xml"))
    text = (tmp_path / written).read_text()
    assert re.search(r"<algo [^>]*ngpus=\"8\"", text)
    checked = run("check", written, cwd=tmp_path)
    assert "1 algorithm holds" in checked.stdout
