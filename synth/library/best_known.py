"""The library's table: for every instance of which there are records, the best value and the best bound known.

``library.csv`` lies in the folder whose records it is made from; addresses are relative to that folder.
``library-history.csv`` keeps what stood there before something else took its place. Files ``synth-lib-VERSION.csv``
beside them are selections of instances, which no command changes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from synth.errors import InputError
from synth.family import get_family
from synth.instance import Instance
from synth.instance import read as read_instance
from synth.records import packed
from synth.records import record as records
from synth.records.contradictions import Standing, by_instance, standing, value_stands
from synth.records.optimality import gap
from synth.records.record import Record
from synth.records.summary import InstanceRow
from synth.text.files import read_text, write_atomically
from synth.text.quantities import percent, shown

NAME, HISTORY, SELECTION = "library.csv", "library-history.csv", "synth-lib-"
CLASSES = (16, 64, 256, 1024)  # sizes up to which an instance belongs to a class
DEFAULT = Path("results/published") / NAME


@dataclass(frozen=True)
class Row:
    """What is known of one instance, every cell a text; empty where nothing is.

    ``value``, ``bound``: doubles as Python prints them, in ``unit``; ``by``, ``bound_by``: the method, or who handed it
    in; ``when``, ``bound_when``: the record's date; ``record``, ``bound_record``: addresses below the folder;
    ``grade``: what proves the bound; ``gap``: (value - bound) / value; ``status``: ``closed`` where they meet;
    ``selection``: versions of the selection it is in; ``data``: whose the instance's data are.
    """

    family: str
    instance: str
    sha256: str
    size: str
    size_class: str
    unit: str
    value: str
    by: str
    when: str
    record: str
    bound: str
    bound_by: str
    bound_when: str
    bound_record: str
    grade: str
    gap: str
    status: str
    selection: str
    data: str


class Before(NamedTuple):
    """An earlier state: ``what`` (value or bound) of an instance was ``number``, by whom, since when."""

    family: str
    instance: str
    sha256: str
    what: str
    number: str
    by: str
    when: str
    record: str


COLUMNS = tuple(one.name for one in fields(Row))


def statements(folder: Path) -> Iterator[Record]:
    """The records of all collections below a folder without their arrays: what they state, not what they hold. Raises
    :class:`InputError` for what cannot be read."""
    for file in sorted(folder.rglob(packed.NAME)):
        opened = packed.opened(file)
        if opened.faults:
            raise opened.faults[0]
        for place in opened.lines:
            yield records.stated(opened.data(place), file.parent / place, file)


def rows_of(found: Iterable[Record], folder: Path) -> list[Row]:
    """The table of these records, by family, name and hash; addresses are relative to ``folder``."""
    selected = selections(folder)
    rows = []
    for (_, sha256), group in by_instance(found).items():
        row = _row(group, folder)
        versions = [version for version, held in selected.items() if sha256 in held]
        data = next((selected[version][sha256] for version in versions), "")
        rows.append(replace(row, selection=" ".join(versions), data=data))
    return sorted(rows, key=lambda row: (row.family, row.instance, row.sha256))


def _row(group: list[Record], folder: Path) -> Row:
    """What the records of one instance know of it."""
    judged = standing(group)
    best, bounded = _best_value(group, judged), _first_bound(group, judged)
    first, unit = group[0], group[0]["objective"]["unit"]
    size = _size(group)
    left = None if best is None or bounded is None else gap(best.value, bounded.bound)
    nothing = ("",) * 4
    return Row(
        first["family"],
        first["instance"],
        first["instance_sha256"],
        str(size),
        size_class(size),
        unit,
        *(nothing if best is None else (repr(best.value), best.whose, *_where(best, folder))),
        *(nothing if bounded is None else (repr(bounded.bound), bounded.bounded_by, *_where(bounded, folder))),
        "" if bounded is None else bounded.proof,
        "" if left is None else f"{left:.6g}",
        "closed" if left == 0 else "open",
        "",
        "",
    )


def _best_value(group: list[Record], judged: Standing) -> Record | None:
    """The least replayed value that stands; of equal ones the first."""
    alarming = {id(value) for value, _ in judged.alarms}
    values = [one for one in group if value_stands(one) and one.evidence == "replayed" and id(one) not in alarming]
    return min(values, key=lambda one: (one.value or 0.0, *_order(one)), default=None)


def _first_bound(group: list[Record], judged: Standing) -> Record | None:
    """The best bound that stands; of equal ones a certified one, of these the first."""
    if judged.best is None:
        return None
    false = {id(bound) for bound, _ in judged.disproved} | {id(bound) for _, bound in judged.alarms}
    same = [one for one in group if one.ok and one.bound == judged.best.bound and id(one) not in false]
    return min(same, key=lambda one: (one.grade != "certified", *_order(one)), default=judged.best)


def _order(record: Record) -> tuple[str, str]:
    return str(record.data.get("created")), str(record.path)


def _where(record: Record, folder: Path) -> tuple[str, str]:
    """On which day, and the record's address."""
    assert record.path is not None
    address = record.path.resolve().relative_to(folder.resolve()).as_posix()
    return str(record.data.get("created", ""))[:10], address


def _size(group: list[Record]) -> int:
    family = get_family(group[0]["family"])
    return int(family.capability("size")(group[0].find_instance())) if family.can("size") else 0


def size_class(size: int) -> str:
    """The class of an instance with so many ranks: ``1-16``, …, ``1025-``."""
    low = 1
    for most in CLASSES:
        if size <= most:
            return f"{low}-{most}"
        low = most + 1
    return f"{low}-"


def selections(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """The selections in a folder: by version, of every instance's hash whose its data are."""
    found = {}
    for file in sorted(folder.glob(f"{SELECTION}*.csv")):
        lines = csv.DictReader(io.StringIO(read_text(file)))
        found[file.stem.removeprefix(SELECTION)] = {line["sha256"]: line["data"] for line in lines}
    return found


def read(file: Path) -> list[Row]:
    """The rows of a library. Raises :class:`InputError` for what is none."""
    try:
        lines = list(csv.reader(io.StringIO(read_text(file))))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", str(file)) from None
    if not lines or tuple(lines[0]) != COLUMNS:
        raise InputError(f"is no library: its first line must be {','.join(COLUMNS)}", str(file))
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(COLUMNS):
            raise InputError(f"line {number}: {len(line)} cells, not {len(COLUMNS)}", str(file))
    return [Row(*line) for line in lines[1:]]


def read_history(folder: Path) -> list[Before]:
    """What stood in the library before. Raises :class:`InputError`."""
    file = folder / HISTORY
    lines = list(csv.reader(io.StringIO(read_text(file)))) if file.is_file() else []
    if any(len(line) != len(Before._fields) for line in lines):
        raise InputError(f"is no history: each line must have {','.join(Before._fields)}", str(file))
    return [Before(*line) for line in lines[1:]]


def history(before: list[Before], old: Iterable[Row], new: Iterable[Row]) -> list[Before]:
    """What stood before, with what of the ``old`` rows has another number in the ``new`` ones."""
    now = {row.sha256: row for row in new}
    found = list(before)
    for row in old:
        after = now.get(row.sha256)
        for what, number, who in (
            ("value", row.value, (row.by, row.when, row.record)),
            ("bound", row.bound, (row.bound_by, row.bound_when, row.bound_record)),
        ):
            if number and (after is None or getattr(after, what) != number):
                found.append(Before(row.family, row.instance, row.sha256, what, number, *who))
    return sorted(dict.fromkeys(found))


def make(folder: Path) -> list[Row]:
    """Write the library of the records below a folder, and keep what it replaces. Raises :class:`InputError` and
    ``OSError``."""
    rows = rows_of(statements(folder), folder)
    file = folder / NAME
    old = read(file) if file.is_file() else []
    kept = history(read_history(folder), old, rows)
    write_atomically(folder / HISTORY, as_csv(Before._fields, kept).encode())
    write_atomically(file, as_csv(COLUMNS, map(astuple, rows)).encode())
    return rows


def as_csv(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """The table as text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def find(given: Path | None) -> Path | None:
    """The library's file: the one given, or ``results/published/library.csv`` here or above. Raises
    :class:`InputError` for one that is given and not there."""
    if given is not None:
        if not given.is_file():
            raise InputError("no such file", str(given))
        return given
    here = Path.cwd()
    return next((folder / DEFAULT for folder in (here, *here.parents) if (folder / DEFAULT).is_file()), None)


def loose_parts(found: InstanceRow, known: Row) -> str:
    """Which of an open instance's schedule and bound the library shows to be loose, and by how much at least; empty
    where it knows no better."""
    unit, told = known.unit, []
    best, bound = found.best.value if found.best is not None else None, found.standing.bound
    if known.value and best is not None and (over := gap(best, float(known.value))):
        value = f"{shown(float(known.value), unit)} by {known.by.partition(',')[0]}"
        told.append(f"the schedule is loose by {percent(over)} or more: the library has {value}")
    if known.bound and bound is not None and (under := gap(float(known.bound), bound)):
        value = f"{shown(float(known.bound), unit)} by {known.bound_by.partition(',')[0]}"
        told.append(f"the bound is loose by {percent(under)} or more: the library has {value}")
    return "; ".join(told)


def demand(given: Path | None, by: str = "--library") -> Path:
    """The library's file as :func:`find` does. Raises :class:`InputError` where there is none; ``by``: what names
    one."""
    found = find(given)
    if found is None:
        raise InputError(f"there is no {DEFAULT} here or above: name one with {by}")
    return found


def rows_for(rows: Iterable[Row], word: str) -> list[Row]:
    """The rows of the instance that a word names: its name, the beginning of its hash, or its file."""
    path = Path(word)
    if path.is_file():
        sha256 = read_instance(path).sha256
        return [row for row in rows if row.sha256 == sha256]
    beginning = word if len(word) >= 8 else "-"
    return [row for row in rows if row.instance == word or row.sha256.startswith(beginning)]


def instance_of(row: Row, folder: Path) -> Instance:
    """The instance of a row, from the record that holds it. Raises :class:`InputError`."""
    return records.read(folder / (row.record or row.bound_record)).find_instance()


def in_library(record: Record, library: Path | None) -> list[Record]:
    """The library's records of a record's instance."""
    found: list[Record] = []
    file = find(library)
    for row in read(file) if file is not None else ():
        if row.sha256 == record["instance_sha256"] and file is not None:
            places = dict.fromkeys(place for place in (row.record, row.bound_record) if place)
            found += [records.read(file.parent / place) for place in places]
    return found
