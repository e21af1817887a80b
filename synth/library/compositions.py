"""Every instance of the library by method ``composed``: what its records of other instances make of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from synth import api
from synth.family import get_family
from synth.library import best_known
from synth.library.best_known import Row
from synth.records import record as records
from synth.records.optimality import meets
from synth.records.record import Record

METHOD = "composed"


def better(rows: Iterable[Row], library: Path, results: Path, seconds: float) -> Iterator[tuple[Row, Record | None]]:
    """Of every open row of a family with the method, the widest gaps first: the row, and the record that is better,
    written below ``results``, or None. ``seconds``: of a run at most. Raises :class:`InputError` and ``OSError``."""
    given = {} if best_known.find(None) == library else {"library": str(library)}
    tried = [row for row in rows if row.status != "closed" and METHOD in get_family(row.family).methods]
    for row in sorted(tried, key=lambda row: -float(row.gap or 1)):
        instance = best_known.instance_of(row, library.parent)
        found = api.solve(instance, METHOD, time_limit=seconds, options=given)
        place = records.record_path(results, row.family, row.instance, METHOD, None)
        yield row, records.write(found, place) if _is_better(found, row) else None


def _is_better(found: Record, row: Row) -> bool:
    value = found.value if found.ok else None
    return value is not None and (not row.value or (value < float(row.value) and not meets(float(row.value), value)))
