"""Every instance of the library by method ``composed``: what its records of other instances make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
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
    written below ``results`` (of several instances of one name below their hashes), or None. ``seconds``: of a run at
    most. Raises :class:`InputError` and ``OSError``."""
    given = {} if best_known.find(None) == library else {"library": str(library)}
    tried = [
        row
        for row in rows
        if row.status != "closed" and (row.record or row.bound_record) and METHOD in get_family(row.family).methods
    ]
    twice = Counter((row.family, row.instance) for row in tried)
    for row in sorted(tried, key=lambda row: -float(row.gap or 1)):
        before = records.read(library.parent / (row.record or row.bound_record))
        found = api.solve(before.find_instance(), METHOD, time_limit=seconds, options=given)
        if not _is_better(found, row):
            yield row, None
            continue
        where = {key: before.data[key] for key in ("instance_file", "instance_text") if before.data.get(key)}
        below = results / row.sha256[:8] if twice[row.family, row.instance] > 1 else results
        place = records.record_path(below, row.family, row.instance, METHOD, None)
        yield row, records.write(replace(found, data={**found.data, **where}), place)


def _is_better(found: Record, row: Row) -> bool:
    value = found.value if found.ok else None
    return value is not None and (not row.value or (value < float(row.value) and not meets(float(row.value), value)))
