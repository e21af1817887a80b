"""The papers' printed numbers: every file can be read, every number has its row, every row its number, every erratum
its computation; judged again on the published tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from published import PUBLISHED

import synth_papers
from synth.reproduction import printed
from synth.reproduction.printed import Comparison, Numbers, Printed

FILES = {path.parent.name: path for path in Path(synth_papers.__file__).parent.glob(f"*/{printed.FILE}")}
PAGES = {  # papers with rows on several pages; the others have one of their name
    "xtree": ("xtree", "xtree-scale"),
    "fabric": ("fabric", "clusters"),
}


def table(paper: str) -> pd.DataFrame:
    """The published rows of a paper."""
    pages = [PUBLISHED / page / "comparisons.csv" for page in PAGES.get(paper, (paper,))]
    return pd.concat([pd.read_csv(page, dtype={"paper": str}) for page in pages], ignore_index=True)


def judged(paper: str) -> dict[str, Comparison]:
    """The entries by key, each with ours as published: the first row of its place and words."""
    first = table(paper).drop_duplicates(["where", "what"]).set_index(["where", "what"])
    return {
        key: Comparison(one, float(first.loc[(one.where, one.of), "ours"]))
        for key, one in printed.read(FILES[paper]).items()
        if one.row
    }


def test_every_paper_has_its_file():
    assert set(FILES) == {"xtree", "mlfm", "optree", "bine", "harvest", "fabric", "peers", "topology"}
    for page in PUBLISHED.glob("*/comparisons.csv"):
        shown = len(pd.read_csv(page))
        assert not shown or any(page.parent.name in PAGES.get(paper, (paper,)) for paper in FILES), page


@pytest.mark.parametrize("paper", sorted(FILES))
def test_every_number_has_one_row_and_every_row_a_number(paper):
    """A row is a number's own, or stands beside it: then it is at the same place and shows the same number."""
    entries = printed.read(FILES[paper])
    rows = table(paper).fillna({"unit": ""})
    own = {(one.where, one.of): one for one in entries.values() if one.row}
    places = {(row.where, row.what) for row in rows.itertuples()}
    assert set(own) <= places
    assert not {(one.where, one.of) for one in entries.values() if not one.row} & places
    for row in rows.itertuples():
        cited = [own[row.where, row.what]] if (row.where, row.what) in own else _at(entries, row.where)
        assert any(_shown(row.paper) == one.paper and row.unit == one.unit for one in cited), row


def _shown(paper: str) -> float | str:
    try:
        return float(paper)
    except ValueError:
        return paper


def _at(entries: Numbers, where: str) -> list[Printed]:
    return [one for one in entries.values() if one.where == where]


@pytest.mark.parametrize("paper", sorted(FILES))
def test_an_erratum_is_computed_and_needed(paper):
    """What is labelled differs from ours, and the page proves the erratum that the label names."""
    page = (PUBLISHED / f"{paper}.md").read_text()
    for key, found in judged(paper).items():
        if found.printed.erratum:
            assert found.verdict == "erratum", key
            assert f"**{found.printed.erratum}.**" in page


@pytest.mark.parametrize(
    ("paper", "differing"),
    [
        ("fabric", {"pccl"}),
        ("mlfm", set()),
        ("peers", {"tacos.steps"}),
        ("optree", {"worked-example.three-stages", "table-2.wrht.average", "table-2.ring.average",
                    "table-2.neighbor_exchange.average", "table-2.neighbor_exchange.deviation", "table-3.wrht.average",
                    "table-3.wrht.deviation", "table-3.ring.average", "table-3.ring.deviation",
                    "table-3.neighbor_exchange.average", "table-3.neighbor_exchange.deviation"}),
    ],
)  # fmt: skip
def test_what_differs_from_print(paper, differing):
    """Of these papers all else is printed as ours, or its erratum says why not. OpTree's averages and deviations are of
    entries that have errata; TACOS takes a step more than ours; three stages take a step less than OpTree says; PCCL's
    minutes are seconds here."""
    assert {key for key, found in judged(paper).items() if found.verdict == "differs"} == differing
