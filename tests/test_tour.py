"""The README shows what ``synth tour`` prints. ``python tests/test_tour.py`` writes the block anew."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from synth.cli.main import app
from synth.results import read_all
from synth.summary import COLUMNS, rows_by_instance

README = Path(__file__).resolve().parents[1] / "README.md"


def block(folder: Path) -> str:
    """The tour's rows as Markdown, from its records."""
    found = [record for record in read_all([folder / "records"]) if not isinstance(record, Exception)]
    rows = sorted(rows_by_instance(found), key=lambda row: (row.family, row.instance))
    lines = [["family", *COLUMNS], ["---"] * (len(COLUMNS) + 1), *([row.family, *row.cells()] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def run(folder: Path) -> str:
    done = CliRunner().invoke(app, ["tour", "--results", str(folder)])
    assert done.exit_code == 0, done.output
    assert (folder / "report.html").stat().st_size > 100_000
    return done.stdout


@pytest.mark.slow
def test_the_readme_shows_the_tour(tmp_path: Path) -> None:
    printed = run(tmp_path)
    assert "report.html" in printed
    shown = README.read_text().split("<!-- tour -->\n")[1].split("<!-- end -->")[0]

    def plain(text: str) -> list[str]:
        """Without the method: which of several equal ones is named first depends on the order in which they ended."""
        return [re.sub(r"\| [\w-]+ (?=\| [^|]*\|$)", "", line) for line in text.splitlines()]

    assert plain(shown) == plain(block(tmp_path))


if __name__ == "__main__":
    text = README.read_text()
    before, _, rest = text.partition("<!-- tour -->\n")
    README.write_text(
        f"{before}<!-- tour -->\n{block(Path(sys.argv[1]))}<!-- end -->{rest.partition('<!-- end -->')[2]}"
    )
