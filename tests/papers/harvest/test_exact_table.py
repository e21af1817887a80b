"""The published table of the exact program is made again from its records, by the command that its script names."""

from __future__ import annotations

import re

from published import PUBLISHED

from synth_papers.harvest import exact_table


def test_the_published_table_is_that_of_its_records() -> None:
    folder = PUBLISHED / "harvest"
    assert exact_table.page(folder) == (folder / "exact.md").read_text()
    assert re.findall(r"python -m (\S+)", (folder / "exact.sh").read_text()) == [exact_table.__name__]
