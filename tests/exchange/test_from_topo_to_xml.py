"""From what ``nvidia-smi topo -m`` prints to an MSCCL XML and back: the site's commands and tables, as they stand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from exchange.machines.reading import SAMPLES
from typer.testing import CliRunner

from synth.cli.main import app
from synth.exchange import formats as exchange
from synth.exchange.machines import formats as machines
from synth.text.quantities import shown

ROOT = Path(__file__).resolve().parents[2]


MACHINE = (ROOT / "models/site/pages/start/machine.md").read_text()
FORMATS = (ROOT / "models/site/pages/how-to/export.md").read_text()


@pytest.mark.long
@pytest.mark.parametrize("only", [("-m", "forest"), pytest.param((), marks=pytest.mark.slow)])
def test_commands_from_topo_to_xml_and_back(
    only: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines of the page, run on a DGX-1's matrix (by default with forest alone, for the sake of time); the
    algorithms that leave are valid and, back on the machine, take the time of the table, near the bound."""
    monkeypatch.chdir(tmp_path)

    def synth(*words: str) -> str:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (words, done.output, done.exception)
        return done.stdout

    block = next(part for part in MACHINE.split("```") if "synth tune" in part)
    lines = [line.split()[1:] for line in block.splitlines() if line.startswith("synth ")]
    assert [line[0] for line in lines] == ["import", "tune"]
    shutil.copy(SAMPLES / "dgx1-topo.txt", "topo.txt")
    synth(*lines[0])
    synth(*lines[1], *only)
    assert "`synth check FILE.xml`" in MACHINE
    assert "`synth import FILE.xml --machine dgx1.json bytes=1GiB`" in MACHINE
    table = pd.read_csv("dgx1-tuned/table.csv")
    assert len(table) == 3
    for row in table.to_dict("records"):
        path = f"dgx1-tuned/{row['algorithm']}"
        assert re.search(r"<algo [^>]*ngpus=\"8\"", Path(path).read_text())
        assert synth("check", path, "--executor", "azure").startswith("ok ")
        assert row["form_s"] <= min(row["ring_s"], row["reference_s"])
    assert row["form_s"] <= 1.05 * row["bound_s"]
    said = synth("import", path, "--machine", "dgx1.json", "bytes=1GiB")
    assert f": {shown(row['form_s'], 's')}, proven bound" in said


def named(*ways: str) -> list[str]:
    """The formats that the page's table names in its first column, with one of these words in its second."""
    table = FORMATS.split("| format | in or out |")[1].split("\n\n")[0]
    rows = [line.split("|") for line in table.splitlines()[2:]]
    return sorted(name for row in rows if row[2].strip() in ways for name in re.findall(r"`([\w-]+)`", row[1]))


def test_the_table_names_every_format() -> None:
    """CSV stands there twice: machines come in, schedules go out."""
    algorithms = ["mscclpp", "msccl-xml"]
    assert named("in", "both") == sorted([*(one.name for one in machines.FORMATS), *algorithms])
    assert named("out", "both") == sorted(exchange.FORMATS)
