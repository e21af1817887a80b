"""Who ours are measured against: models/README.md and the families name the same methods."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from synth.family import get_family

README = Path(__file__).resolve().parents[2] / "models" / "README.md"
FAMILIES = ("xtree", "mlfm", "optree", "bine", "harvest", "fabric")


def column(family: str, title: str) -> set[str]:
    """The methods in one cell of the family's row."""
    lines = README.read_text().splitlines()
    [heading] = [line for line in lines if line.startswith("| family | minimises |")]
    [row] = [line for line in lines if line.startswith(f"| [`{family}`]")]
    titles, cells = ([cell.strip() for cell in line.split("|")] for line in (heading, row))
    return set(re.findall(r"`(\w+)`", cells[titles.index(title)]))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_index_and_the_family_agree(name: str) -> None:
    family = get_family(name)
    references = {method.name for method in family.methods.values() if method.kind == "reference"}
    assert column(name, "published or in use") == set(family.published)
    assert column(name, "other references") == references - set(family.published)
    assert set(family.in_use) <= set(family.published) <= references


def test_what_the_summary_of_a_method_calls_ours_is_no_opponent() -> None:
    methods = [(family, one) for family in map(get_family, FAMILIES) for one in family.methods.values()]
    ours = [(family, one.name) for family, one in methods if one.summary.endswith("(ours)")]
    assert len(ours) > 12
    assert not [(family.name, name) for family, name in ours if name in family.published]


def test_opponents_are_a_studys_baselines_where_it_names_any_of_the_family() -> None:
    family = get_family("fabric")
    assert family.opponents(["ring", "bine"]) == ("ring",)
    assert family.opponents(["bine"]) == family.opponents() == family.published
    assert family.opponents(["bine", "mine.stars:star"]) == ("mine.stars:star",)
    assert {"tacos", "bfb", "fast"} <= set(family.published) - set(family.today)
    harvest = get_family("harvest")
    assert "bvn" in harvest.published
    assert harvest.today == harvest.published
