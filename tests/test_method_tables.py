"""The tables of methods on the families' pages and in models/README.md are made of what the families state.

``python tests/test_method_tables.py`` writes them again, between ``<!-- methods: FAMILY -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from synth.family import Family, families, get_family
from synth.method import Method
from synth.solvers.catalogue import known_solvers, solvers_for

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "models"
ALL, BAR = "all", "\\|"
KINDS = ("program", "reference", "bound")


def own(family: Family) -> list[Method]:
    """Its methods, without those of other distributions."""
    return [method for method in family.methods.values() if method.origin is None]


def methods(family: Family) -> str:
    """A row a method: kind, whose it is, what it does, solvers and options; a star marks those that run by default."""
    rows = [("method", "kind", "whose", "what it does", "solvers", "options"), ("---",) * 6]
    for method in own(family):
        star = " *" if method.name in family.default_methods else ""
        solvers = [name for name in solvers_for(method.needs) if known_solvers()[name].origin is None]
        options = [f"`{parameter.name}`" for parameter in method.parameters]
        used = [", ".join(solvers), ", ".join(options)]
        rows.append((f"`{method.name}`{star}", method.kind, whose(family, method), method.summary, *used))
    return "".join(f"| {' | '.join(cell.replace('|', BAR) for cell in row)} |\n" for row in rows)


def whose(family: Family, method: Method) -> str:
    """In use today, published, or nothing for ours."""
    return "in use" if method.name in family.in_use else "published" if method.name in family.published else ""


def every_family() -> str:
    """A row a family: what it minimises, its methods that are published or in use, and the others by kind."""
    rows = [("family", "minimises", "published or in use", *(f"other {kind}s" for kind in KINDS)), ("---",) * 6]
    for family in families():
        found: dict[str, list[str]] = {}
        for method in own(family):
            found.setdefault("others" if whose(family, method) else method.kind, []).append(f"`{method.name}`")
        cells = (", ".join(found.get(group, ())) for group in ("others", *KINDS))
        rows.append((f"[`{family.name}`](synth_models/{family.name})", family.objective.name, *cells))
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


@pytest.mark.parametrize("name", [ALL, "bine", "fabric", "harvest", "mlfm", "optree", "step", "topology", "xtree"])
def test_the_table_is_what_the_families_state(name: str) -> None:
    page = blocks()[name]
    now = page.read_text().partition(BLOCK.format(name))[2].partition("<!-- end -->")[0]
    assert now == made(name), f"run python tests/{Path(__file__).name}"


if __name__ == "__main__":
    for name, page in blocks().items():
        before, mark, rest = page.read_text().partition(BLOCK.format(name))
        page.write_text(f"{before}{mark}{made(name)}<!-- end -->{rest.partition('<!-- end -->')[2]}")
