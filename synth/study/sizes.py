"""The best method per size: what a tuner would choose, and where the choice changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from synth.arrays import SAME
from synth.errors import InputError
from synth.records.record import Record
from synth.study.bandwidth_figure import title_of
from synth.study.table import VALUE_COUNTS, baselines_of

COLUMNS: dict[str, str] = {
    "family": "problem class",
    "series": "what the instances share, as figures name it; they differ in size only",
    "size_bytes": "size [bytes]",
    "best_by": "method with the least replayed value at this size; of several a baseline before ours",
    "changes": "whether another method was best at the next smaller size",
    "value": "its value [unit]",
    "bandwidth": "size_bytes / value [bytes/unit]",
    "bound": "greatest proven bound [unit]",
    "gap": "(value - bound) / value [1]",
    "baseline": "the best of the study's baselines, else of the methods that are published or in use today",
    "baseline_value": "its value [unit]",
    "speedup": "baseline_value / value [1]",
}


def in_form(table: pd.DataFrame, records: Mapping[str, Record], form: str) -> pd.DataFrame:
    """The runs that differ in size only, with the times of their schedules in a form of :mod:`synth.exchange.forms` as
    values, without those that cannot be lowered; ``records`` by the table's column ``record``. Raises
    :class:`InputError` for an unknown form."""
    from synth.exchange.forms import form_of
    from synth.exchange.forms import in_form as timed

    form_of(form)
    rows: Any = table[table["series"].ne("") & table["size_bytes"].notna() & (table["evidence"] == "replayed")]
    values: list[float] = []
    for name in rows["record"]:
        try:
            values.append(timed(records[name], form).seconds)
        except InputError:  # no executor of the form takes it
            values.append(math.nan)
    made: pd.DataFrame = rows.assign(value=values)
    bounds = made["best_bound"].astype(float)
    return made.assign(gap=(made["value"] - bounds) / made["value"])


def best_by_size(table: pd.DataFrame) -> pd.DataFrame:
    """A row per series and size, sizes ascending; empty where no instances differ in size only."""
    from synth.family import get_family

    rows: Any = table[table["series"].ne("") & table["size_bytes"].notna()]
    held = rows[rows["status"].isin(VALUE_COUNTS) & (rows["evidence"] == "replayed") & rows["value"].notna()]
    found: list[dict[str, Any]] = []
    for (family, series), group in held.groupby(["family", "series"], sort=True):
        if group["size_bytes"].nunique() < 2:
            continue
        before, title = None, title_of(str(series), group["instance"])
        opponents = get_family(str(family)).opponents(baselines_of(table))
        for size, runs in group.groupby("size_bytes", sort=True):
            best = _first_of_least(runs, opponents)
            today = runs[runs["method"].isin(opponents)]
            base = _first_of_least(today, opponents) if len(today) else None
            value = float(best["value"])
            found.append(
                {
                    "family": family,
                    "series": title,
                    "size_bytes": int(size),
                    "best_by": best["label"],
                    "changes": before is not None and best["label"] != before,
                    "value": value,
                    "bandwidth": size / value if value else None,
                    "bound": best["best_bound"],
                    "gap": best["gap"],
                    "baseline": "" if base is None else base["label"],
                    "baseline_value": None if base is None else float(base["value"]),
                    "speedup": None if base is None or not value else float(base["value"]) / value,
                }
            )
            before = best["label"]
    return pd.DataFrame(found, columns=list(COLUMNS))


def _first_of_least(runs: Any, opponents: Sequence[str]) -> Any:
    """Of the rows whose values are the least up to rounding an opponent, in their order, before others."""
    least = runs[runs["value"] <= runs["value"].min() * (1 + SAME)]
    places = [opponents.index(name) if name in opponents else len(opponents) for name in least["method"]]
    return least.iloc[int(np.argmin(places))]
