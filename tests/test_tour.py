"""The README shows what ``synth tour`` prints. ``python tests/test_tour.py`` writes the block anew."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import command
import pytest
from command import SYNTH, write_ring
from without_extras import BLOCKED, WITHOUT_EXTRAS

from synth.records.folder import read_all
from synth.records.summary import COLUMNS, rows_by_instance

README = Path(__file__).resolve().parents[1] / "README.md"


def block(folder: Path) -> str:
    """The tour's rows as Markdown, from its records, which were made just now."""
    read = [record for record in read_all([folder / "records"]) if not isinstance(record, Exception)]
    found = [replace(record, made_here=True) for record in read]
    rows = sorted(rows_by_instance(found), key=lambda row: (row.family, row.instance))
    lines = [["family", *COLUMNS], ["---"] * (len(COLUMNS) + 1), *([row.family, *row.cells()] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def run(folder: Path) -> str:
    """The tour in an environment with no extra, printed into a pipe; the first table comes long before the end."""
    process = subprocess.Popen(
        [SYNTH, "tour", "--results", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **WITHOUT_EXTRAS},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    printed = ""
    for line in process.stdout:
        printed += line
        if line.startswith("bine:"):  # its table's last line
            break
    assert not list(folder.glob("records/*/xtree/tour-mesh-2x3-allreduce/*.json"))  # the last runs
    rest, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert 100_000 < (folder / "report.html").stat().st_size <= 3 * 2**20  # one file, which a mail takes
    assert not (folder / "table.parquet").exists()
    return printed + rest


@pytest.mark.slow
def test_the_readme_shows_the_tour(tmp_path: Path) -> None:
    printed = run(tmp_path)
    assert "report.html" in printed
    shown = README.read_text().split("<!-- tour -->\n")[1].split("<!-- end -->")[0]

    records = [record for record in read_all([tmp_path / "records"]) if not isinstance(record, Exception)]
    cut = {record["instance"] for record in records if record["stopped_by"] == "clock"}
    assert len(cut) < 6  # of twelve, on a busy machine

    def plain(text: str) -> list[str]:
        """Without the method (which of several equal ones is named first depends on the order in which they ended) and
        without the rows of what the clock cut."""
        lines = [line for line in text.splitlines() if not any(f"| {name} |" in line for name in cut)]
        return [re.sub(r"\| [\w-]+ (?=\| [^|]*\|$)", "", line) for line in lines]

    assert plain(shown) == plain(block(tmp_path))


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("solve", "INSTANCE", "-m", "ilp", "--solver", "scip"), "scip"),
        (("solve", "INSTANCE", "-m", "ilp", "--solver", "gurobi"), "gurobi"),
        (("batch", "submit", "INSTANCE", "--engine", "slurm", "--time", "1h"), "cluster"),
    ],
)
def test_a_command_names_the_extra_it_lacks(tmp_path: Path, words: tuple[str, ...], extra: str) -> None:
    """In one line, with exit code 2."""
    instance = str(write_ring(tmp_path))
    asked = [instance if word == "INSTANCE" else word for word in words]
    done = command.cold(*asked, cwd=tmp_path, code=2, **WITHOUT_EXTRAS)
    assert f"pip install 'collective-synth[{extra}]'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_study_without_parquet(tmp_path: Path) -> None:
    """Writes its other files, deletes an older table.parquet, and names the extra in one line."""
    write_ring(tmp_path)
    (tmp_path / "one.toml").write_text('name = "one"\ninstances = ["ring4.json"]\n[[run]]\nmethods = ["pull"]\n')
    words = ("study", "one.toml", "--results", tmp_path / "out")
    if importlib.util.find_spec("pyarrow"):
        command.run(*words, cwd=tmp_path)
        assert (tmp_path / "out/one/table.parquet").exists()
    done = command.cold(*words, cwd=tmp_path, **WITHOUT_EXTRAS)
    assert done.stderr.count("pip install 'collective-synth[parquet]'") == 1
    assert (tmp_path / "out/one/table.csv").exists()
    assert not (tmp_path / "out/one/table.parquet").exists()


@pytest.mark.parametrize("module", BLOCKED)
def test_what_is_blocked_cannot_be_found(module: str) -> None:
    """Or these tests would show nothing."""
    program = f"import importlib.util; assert importlib.util.find_spec({module!r}) is None; import {module}"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **WITHOUT_EXTRAS}, capture_output=True, text=True
    )
    assert done.stderr.strip().splitlines()[-1] == f"ModuleNotFoundError: No module named {module!r}"


if __name__ == "__main__":
    text = README.read_text()
    before, _, rest = text.partition("<!-- tour -->\n")
    README.write_text(
        f"{before}<!-- tour -->\n{block(Path(sys.argv[1]))}<!-- end -->{rest.partition('<!-- end -->')[2]}"
    )
