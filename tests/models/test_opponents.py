"""Who ours are measured against: models/README.md and the families name the same methods."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from synth.family import Family, get_family

README = Path(__file__).resolve().parents[2] / "models" / "README.md"
FAMILIES = ("xtree", "mlfm", "optree", "bine", "harvest", "fabric")
OTHERS = {"imported"}  # a file's, whoever made it


def named(family: str) -> dict[str, set[str]]:
    """The references of the family's row by the words behind them: ``published``, ``in use today``, ``ours``."""
    [row] = [line for line in README.read_text().splitlines() if line.startswith(f"| [`{family}`]")]
    cell = re.sub(r"\]\([^)]*\)", "]", row.split("|")[5])
    found: dict[str, set[str]] = {}
    for names, words in re.findall(r"([^()]*)\(([^)]*)\)", cell):
        found.setdefault(re.split(r"[:;]", words)[0], set()).update(re.findall(r"`(\w+)`", names))
    return found


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    return get_family(request.param)


def test_the_index_and_the_family_agree(family: Family) -> None:
    of = named(family.name)
    assert set(of) - {"a file's"} <= {"published", "in use today", "ours"}
    assert of["published"] | of.get("in use today", set()) == set(family.published)
    assert of.get("in use today", set()) == set(family.in_use)
    assert not of["ours"] & set(family.published)


def test_every_reference_is_published_or_ours(family: Family) -> None:
    references = {name for name, method in family.methods.items() if method.kind == "reference"}
    assert references == set(family.published) | named(family.name)["ours"] | (references & OTHERS)


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
