"""From what ``nvidia-smi topo -m`` prints to an MSCCL XML and back: the README's commands and tables, as they stand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from exchange.machines.reading import SAMPLES
from typer.testing import CliRunner

from synth.cli.main import app
from synth.exchange import formats as exchange
from synth.exchange.machines import formats as machines
from synth.records import record as records
from synth.text.quantities import shown

ROOT = Path(__file__).resolve().parents[2]


README = (ROOT / "README.md").read_text()


def test_three_commands_from_topo_to_xml_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of the README, run on a DGX-1's matrix; the algorithm that leaves is valid and, back on the machine,
    as fast as its schedule."""
    monkeypatch.chdir(tmp_path)

    def synth(*words: str) -> str:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (words, done.output, done.exception)
        return done.stdout

    block = next(part for part in README.split("```") if "synth import topo.txt" in part)
    lines = [line.split()[1:] for line in block.splitlines() if line.startswith("synth ")]
    assert [line[0] for line in lines] == ["import", "solve", "export"]
    shutil.copy(SAMPLES / "dgx1-topo.txt", "topo.txt")
    for line in lines:
        synth(*line)
    assert re.search(r"<algo [^>]*ngpus=\"8\"", Path("dgx1.xml").read_text())
    assert "`synth check dgx1.xml`" in README
    assert "`synth import dgx1.xml --machine dgx1.json`" in README
    assert synth("check", "dgx1.xml").startswith("ok ")
    value = records.read(Path("results/fabric/dgx1/forest-highs.json")).value
    assert f"on dgx1: {shown(value, 's')}, proven bound" in synth("import", "dgx1.xml", "--machine", "dgx1.json")


def named(*ways: str) -> list[str]:
    """The formats that the README's table names in its first column, with one of these words in its second."""
    table = README.split("| format | way |")[1].split("\n\n")[0]
    rows = [line.split("|") for line in table.splitlines()[2:]]
    return sorted(name for row in rows if row[2].strip() in ways for name in re.findall(r"`([\w-]+)`", row[1]))


def test_the_table_names_every_format() -> None:
    """CSV stands there twice: machines come in, schedules go out."""
    algorithms = ["mscclpp", "msccl-xml"]
    assert named("in", "both") == sorted([*(one.name for one in machines.FORMATS), *algorithms])
    assert named("out", "both") == sorted(exchange.FORMATS)
