"""A study's runs as Python hands them out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from synth.tables.frame import Frame

TELLING = ("instance", "label", "value", "bound", "gap", "proof", "status")


def frame_of(rows: pd.DataFrame, makers: Mapping[str, str | None]) -> Frame:
    """The rows of ``table.csv`` with the columns that all frames share, and empty texts as missing ones. ``makers``:
    by the column ``record`` who made the schedule."""
    found = rows.copy()
    for name in found.columns[found.dtypes.map(pd.api.types.is_numeric_dtype).eq(False)]:
        found[name] = [None if isinstance(cell, str) and not cell else cell for cell in found[name]]
    in_seconds = rows["unit"] == "s"
    found["value_s"], found["bound_s"] = rows["value"].where(in_seconds), rows["bound"].where(in_seconds)
    found["certified"] = np.asarray(rows["proof"] == "certified", dtype=bool)
    found["seconds"] = rows["total_s"]
    found["made_by"] = [makers.get(str(record)) for record in rows["record"]]
    return Frame.of(found, telling=TELLING)
