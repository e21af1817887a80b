"""Tables and pictures of gaps are made again from their records, by the commands that the scripts name."""

from __future__ import annotations

import re

from published import PUBLISHED, readme

from synth_papers.harvest import exact_table, gaps_plot

FOLDER = PUBLISHED / "harvest"


def test_the_published_table_is_that_of_its_records() -> None:
    assert exact_table.page(FOLDER) == (FOLDER / "exact.md").read_text()
    assert re.findall(r"python -m (\S+)", (FOLDER / "exact.sh").read_text()) == [exact_table.__name__]


def test_the_picture_of_the_table_has_a_mark_a_run() -> None:
    """One mark for each solver that was given the instance, the slowest instance on top, its gap beside it."""
    records = exact_table.records(FOLDER)
    [axes] = exact_table.drawn(records).axes
    assert sum(len(line.get_xdata()) for line in axes.lines) == len(records) == 38
    assert [text.get_text() for text in axes.texts] == [" gap 4.28 %"]
    assert axes.get_yticklabels()[-1].get_text() == "bruck-allgather-8-static-p2"


def test_the_picture_of_gaps_has_those_that_the_page_names() -> None:
    assert re.findall(r"python -m (\S+)", (FOLDER / "make-gaps.sh").read_text()) == [gaps_plot.__name__]
    found = gaps_plot.gaps(FOLDER)
    [axes] = gaps_plot.drawn(found).axes
    words = [text.get_text() for text in axes.texts]
    page = readme("results/published/harvest/gaps.md")
    assert f"On {words.count('met')} of {len(words)} sequences" in page
    assert all(word in page for word in words if word != "met")
