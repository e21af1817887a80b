"""Every column of a study's tables is defined on one page, ``models/formats/tables.md``, as the code defines it.

``PYTHONPATH=tests python tests/synth/test_study_columns.py`` writes the page's tables again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from synth.study import measures, print_table, sizes
from synth.study.table import COLUMNS
from synth.tables import frame

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "models" / "formats" / "tables.md"
TABLES: dict[str, Mapping[str, str]] = {
    "table": {**COLUMNS, "ratio_to_<baseline>": "value over the baseline's best value on the instance [1]"},
    "summary": measures.SUMMARY,
    "print": print_table.COLUMNS,
    "sizes": sizes.COLUMNS,
    "frame": frame.COLUMNS,
}


def made(what: str) -> str:
    rows = [f"| `{name}` | {meaning.replace('|', chr(92) + '|')} |\n" for name, meaning in TABLES[what].items()]
    return "".join(["| column | what it holds |\n", "| --- | --- |\n", *rows])


def page() -> str:
    """The page with its tables as they are generated."""
    text = PAGE.read_text()
    for what in TABLES:
        before, mark, rest = text.partition(f"<!-- fields: {what} -->\n")
        text = f"{before}{mark}{made(what)}<!-- end -->{rest.partition('<!-- end -->')[2]}"
    return text


def test_the_page_is_what_is_generated() -> None:
    assert PAGE.read_text() == page(), f"run PYTHONPATH=tests python {Path(__file__).relative_to(ROOT)}"
    assert all(f"| `{name}` |" in PAGE.read_text() for table in TABLES.values() for name in table)


@pytest.mark.parametrize("name", ["table.csv", "summary.csv", "summary-methods.tex", "summary.tex", "best_by_size.csv"])
def test_the_page_names_every_table(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text()


if __name__ == "__main__":
    PAGE.write_text(page())
