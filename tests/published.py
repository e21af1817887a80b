"""The published records and tables, and the pages of text, for the tests that hold one against the other."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pandas as pd

from synth.library.best_known import statements
from synth.records import record as records
from synth.records.optimality import gap
from synth.records.record import Record

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "results" / "published"


def published() -> tuple[Record, ...]:
    """All published records, by path."""
    folders = sorted({path.relative_to(PUBLISHED).parts[0] for path in PUBLISHED.rglob("records.jsonl")})
    return tuple(record for folder in folders for record in below(folder))


@cache
def below(folder: str) -> tuple[Record, ...]:
    """Those of one folder, as a family's or a page's is: what they state, without the arrays of schedules and
    certificates, which take longer to read (:func:`whole`)."""
    return tuple(sorted(statements(PUBLISHED / folder), key=lambda record: str(record.path)))


def whole(record: Record) -> Record:
    """The same record with its arrays."""
    assert record.path is not None
    return records.read(record.path)


def held_for(family: str, instance: str | None = None) -> dict[str, dict[str, Record]]:
    """The records of a family's shipped instances: by instance, then by the file's stem."""
    found: dict[str, dict[str, Record]] = {}
    for record in below(family):
        assert record.path is not None
        if record.path.parents[1] == PUBLISHED / family and instance in (None, record.path.parent.name):
            found.setdefault(record.path.parent.name, {})[record.path.stem] = record
    return found


def readme(page: str = "README.md") -> str:
    return (ROOT / page).read_text()


def prose(family: str) -> str:
    """A family's page and the further ones that it has (``fabric-problem.md``), in one line."""
    pages = [ROOT / f"models/{family}.md", *sorted((ROOT / "models").glob(f"{family}-*.md"))]
    return re.sub(r"\s+", " ", "\n".join(page.read_text() for page in pages))


def ours(paper: str, where: str, what: str) -> float:
    """Our number in the published table of comparisons."""
    table = pd.read_csv(PUBLISHED / paper / "comparisons.csv")
    [value] = table[(table["where"] == where) & (table["what"] == what)]["ours"]
    return float(value)


def value_of(family: str, instance: str, method: str) -> float | None:
    return records.read(PUBLISHED / family / instance / f"{method}.json").value


def unlike_records(family: str, name: str, columns: dict[str, tuple[str, ...]]) -> list[tuple[str, str, str, str]]:
    """Where the table ``<!-- published: NAME -->`` of the family's page differs from its records: instance, column,
    what stands there, and what the records say.

    ``columns`` names, by header, the files' stems of which the least value counts, of a bound the greatest. A cell's
    first word is compared. A header with "gap" asks for that of the best value to the best bound of all records.
    """
    block = readme(f"models/{family}.md").split(f"<!-- published: {name} -->\n")[1].split("<!-- end -->")[0]
    header, _, *rows = ([cell.strip() for cell in line[1:-1].split("|")] for line in block.strip().splitlines())
    assert {*columns, *(word for word in header[1:] if "gap" in word)} == {*header[1:]}
    found, held = [], held_for(family)
    for instance, *cells in rows:
        there = held[instance.split()[0].rstrip(",")]
        for head, cell in zip(header[1:], cells, strict=True):
            asked = [there[stem] for stem in columns.get(head, there) if stem in there]
            bounds = [record.bound for record in asked if record.bound is not None]
            values = [record.value for record in asked if record.value is not None]
            if "gap" in head:
                left = gap(min(values), max(bounds))
                said = "0" if left == 0 else f"{100 * left:.1f}"
            else:
                of = max(bounds, default=None) if "bound" in head else min(values, default=None)
                said = "–" if of is None else f"{of:g}"
            if cell.split()[0] != said:
                found.append((instance, head, cell, said))
    return found
