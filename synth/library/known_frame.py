"""The library as a pandas frame."""

from __future__ import annotations

import math
from pathlib import Path

from synth.errors import Fault, InputError
from synth.library import best_known
from synth.library.best_known import Row
from synth.tables.frame import COLUMNS, Frame, numbers

OTHERS = (
    "status", "when", "record", "bound_by", "bound_when", "bound_record", "sha256", "selection", "data",
)  # fmt: skip
FIRST = ("family", "instance", "size", "size_class")
TELLING = ("family", "instance", "size", "value", "bound", "gap", "proof", "made_by")


def library(file: str | Path | None = None) -> Frame:
    """The best values and bounds known, a row an instance, as ``synth library`` lists them.

    ``file``: a library, by default ``results/published/library.csv`` here or above. The columns are those of
    ``synth.tables.frame.COLUMNS`` but for ``seconds``; ``size`` counts ranks, ``status`` is ``closed`` where value and
    bound meet, and all others are those of the file. Raises :class:`InputError` for what is no library, and where there
    is none.
    """
    found = best_known.demand(None if file is None else Path(file), "library(file)")
    rows = [_row(row, f"{found}: line {line}") for line, row in enumerate(best_known.read(found), 2)]
    shared = [name for name in COLUMNS if name != "seconds"]
    return Frame.of(rows, columns=[*FIRST, *shared, *OTHERS], telling=TELLING).astype({"certified": bool})


def _row(row: Row, source: str) -> dict[str, object]:
    value, bound, gap = (_number(row, name, source) for name in ("value", "bound", "gap"))
    return {
        "family": row.family,
        "instance": row.instance,
        "size": int(_number(row, "size", source) or 0),
        "size_class": row.size_class,
        **numbers(value, bound, row.unit),
        "gap": math.nan if gap is None else gap,
        "certified": row.grade == "certified",
        "proof": row.grade or None,
        "made_by": row.by or None,
        **{name: getattr(row, name) or None for name in OTHERS},
    }


def _number(row: Row, name: str, source: str) -> float | None:
    """The number in a cell, None in an empty one. Raises :class:`InputError`."""
    text = getattr(row, name)
    try:
        number = float(text) if text else None
        if number is not None and not math.isfinite(number):
            raise ValueError
    except ValueError:
        raise InputError([Fault(name, "must be a finite number", text, True)], source) from None
    return number
