"""The tables of methods on the families' pages and in models/README.md are made of what the families state.

``python tests/test_method_tables.py`` writes them again, between ``<!-- methods: FAMILY -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from synth.family import Family, Method, families, get_family
from synth.solvers.catalogue import known_solvers, solvers_for

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "models"
ALL, BAR = "all", "\\|"
KINDS = ("program", "reference", "bound")


def own(family: Family) -> list[Method]:
    """Its methods, without those of other distributions."""
    return [method for method in family.methods.values() if method.origin is None]


def methods(family: Family) -> str:
    """A row a method: kind, solvers, options, and what it does; a star marks those that run by default."""
    rows = [("method", "kind", "what it does", "solvers", "options"), ("---",) * 5]
    for method in own(family):
        star = " *" if method.name in family.default_methods else ""
        solvers = [name for name in solvers_for(method.needs) if known_solvers()[name].origin is None]
        options = [f"`{parameter.name}`" for parameter in method.parameters]
        rows.append((f"`{method.name}`{star}", method.kind, method.summary, ", ".join(solvers), ", ".join(options)))
    return "".join(f"| {' | '.join(cell.replace('|', BAR) for cell in row)} |\n" for row in rows)


def every_family() -> str:
    """A row a family: its paper, what it minimises, and its methods by kind."""
    rows = [("family", "minimises", *(f"{kind}s" for kind in KINDS)), ("---",) * 5]
    for family in families():
        by_kind = (", ".join(f"`{method.name}`" for method in own(family) if method.kind == kind) for kind in KINDS)
        rows.append((f"[`{family.name}`](synth_models/{family.name})", family.objective.name, *by_kind))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def made(name: str) -> str:
    return every_family() if name == ALL else methods(get_family(name))


def blocks() -> dict[str, Path]:
    """The pages by the name of the table that they hold."""
    pages = [(name, page) for page in MODELS.glob("*.md") for name in MARK.findall(page.read_text())]
    assert len(dict(pages)) == len(pages)
    return dict(pages)


MARK = re.compile(r"^<!-- methods: (\w+) -->$", re.MULTILINE)
BLOCK = "<!-- methods: {} -->\n"


def test_every_family_has_its_table_once() -> None:
    shipped = [file.parent.name for file in MODELS.glob("synth_models/*/family.py")]
    assert sorted(blocks()) == sorted([ALL, *shipped])


@pytest.mark.parametrize("name", [ALL, "bine", "fabric", "harvest", "mlfm", "optree", "xtree"])
def test_the_table_is_what_the_families_state(name: str) -> None:
    page = blocks()[name]
    now = page.read_text().partition(BLOCK.format(name))[2].partition("<!-- end -->")[0]
    assert now == made(name), f"run python tests/{Path(__file__).name}"


if __name__ == "__main__":
    for name, page in blocks().items():
        before, mark, rest = page.read_text().partition(BLOCK.format(name))
        page.write_text(f"{before}{mark}{made(name)}<!-- end -->{rest.partition('<!-- end -->')[2]}")
