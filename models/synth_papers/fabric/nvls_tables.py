"""Tables, words and the picture of the page ``nvls``, from its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from synth.text.quantities import percent, shown, times

GIB = 2**30
WIDE = 0.15  # of a gap
BOXES_OF = ("dgx-h100-nvls", "dgx-b200-nvls")


def in_words(table: pd.DataFrame) -> pd.DataFrame:
    """Times and gaps in words."""
    return table.assign(
        bytes=[shown(float(size), "bytes") for size in table["bytes"]],
        time=[shown(value, "s") for value in table["time"]],
        bound=[shown(value, "s") for value in table["bound"]],
        gap=[percent(value) for value in table["gap"]],
    )


def by_machine(table: pd.DataFrame) -> pd.DataFrame:
    """Median and largest gap of every machine, and where the largest is."""
    found = []
    for machine, rows in table.groupby("machine", sort=False):
        widest = rows.sort_values("gap").to_dict("records")[-1]
        found.append(
            {
                "machine": machine,
                "cells": len(rows),
                "median": percent(rows["gap"].median()),
                "above 15 %": int((rows["gap"] > WIDE).sum()),
                "largest": percent(widest["gap"]),
                "of": f"{widest['collective']}, {shown(float(widest['bytes']), 'bytes')}",
            }
        )
    return pd.DataFrame(found)


def by_size(table: pd.DataFrame, column: str = "gap", words: Callable[[float], str] = percent) -> pd.DataFrame:
    """A row a machine and collective, a column a size."""
    index = [name for name in ("machine", "collective") if name in table.columns]
    shape = table.pivot(index=index, columns="bytes", values=column)
    shape.columns = [shown(float(size), "bytes") for size in shape.columns]
    told = shape.map(lambda value: None if pd.isna(value) else words(value))
    return table[index].drop_duplicates().merge(told.reset_index(), on=index)


def crossover(worth: pd.DataFrame) -> str:
    """What it is worth between boxes at 1 GiB, where it is worth anything."""
    said = []
    for name in BOXES_OF:
        large = worth[worth["machine"].str.startswith(f"{name} x") & (worth["bytes"] == GIB)]
        large = large.assign(boxes=large["machine"].str.split(" x").str[1].astype(int), times=large["worth"].map(times))
        large = large[large["boxes"] > 1]
        gained = [f"{row['times']} on {row['boxes']}" for _, row in large.iterrows() if row["times"] != times(1.0)]
        if gained:
            said.append(f"{' and '.join(gained)} boxes of {name}")
        elif len(large):
            said.append(f"nothing on {large['boxes'].min()} to {large['boxes'].max()} of {name}")
    if not said:
        return "Between boxes nothing was measured."
    return f"Between boxes, whose rails only forward, it is worth less at 1 GiB: {', '.join(said)}."


def beside_ours(beside: pd.DataFrame) -> pd.DataFrame:
    """Allreduce: times of the others over ours."""
    mine = beside[beside["collective"] == "allreduce"].drop(columns="collective")
    others = [name for name in mine.columns if name not in ("machine", "bytes", "ours")]
    told = {name: [None if pd.isna(v) else times(v) for v in mine[name] / mine["ours"]] for name in others}
    sizes = [shown(float(size), "bytes") for size in mine["bytes"]]
    return mine.assign(bytes=sizes, ours=[shown(value, "s") for value in mine["ours"]], **told)


def on_many_ranks(runs: pd.DataFrame) -> str:
    """Of runs on 16 and 64 boxes: how many have a time, which have none and why; sizes and transfers by boxes."""
    empty = runs[runs["value"].isna()]
    methods = " and ".join(f"`{name}`" for name in runs["method"].unique())
    said = [f"On 16 and 64 boxes {methods} were run {len(runs)} times; {len(runs) - len(empty)} have a time."]
    for boxes, rows in runs.groupby(runs["machine"].str.split(" x").str[1].astype(int)):
        sizes = ", ".join(shown(float(size), "bytes") for size in sorted(rows["bytes"].unique()))
        said.append(f"Run on {boxes} boxes: {sizes}, up to {rows['transfers'].max():,} transfers.")
    for (machine, ended), rows in empty.groupby(["machine", "ended"], sort=False):
        said.append(f"Without a schedule on {machine!s}, {str(ended).replace('_', ' ')}: {_listed(rows)}.")
    return " ".join(said)


def _listed(rows: pd.DataFrame) -> str:
    """The runs of a machine by collective and sizes, methods together."""
    found: dict[tuple[str, str], list[str]] = {}
    for (collective, method), here in rows.groupby(["collective", "method"], sort=False):
        sizes = ", ".join(shown(float(size), "bytes") for size in here["bytes"])
        found.setdefault((str(collective), sizes), []).append(f"`{method}`")
    return "; ".join(f"{' and '.join(names)}, {collective} ({sizes})" for (collective, sizes), names in found.items())


def drawn(worth: pd.DataFrame) -> Any:
    """Bars: what it is worth at 1 GiB by machine."""
    from matplotlib.figure import Figure

    large = worth[worth["bytes"] == GIB]
    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh(list(large["machine"]), list(large["worth"]), color="tab:blue")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.bar_label(bars, labels=[times(value) for value in large["worth"]], padding=2)
    axes.invert_yaxis()
    axes.set_axisbelow(True)
    axes.grid(axis="y", visible=False)
    axes.set(xlabel="time without copies and sums in switches / with", xlim=(0, 2.3))
    return figure
