"""Tables, words and the picture of the page ``nvls``, from its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from synth.text.quantities import percent, shown, times

GIB = 2**30
WIDE = 0.15  # of a gap
LITTLE = 1.1  # times as fast, below which it is worth less than a tenth
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
    return table[index].drop_duplicates().merge(shape.map(words).reset_index(), on=index)


def crossover(worth: pd.DataFrame) -> str:
    """What it is worth between boxes, and by size from how many boxes on less than a tenth."""
    said = []
    for name in BOXES_OF:
        mine = worth[worth["machine"].str.startswith(name) & ~worth["machine"].str.endswith(" x1")]
        if mine.empty:
            continue
        boxes = mine["machine"].str.split(" x").str[1].astype(int)
        large = mine["bytes"] == GIB
        rows = zip(mine.loc[large, "worth"], boxes[large], strict=True)
        told = ", ".join(f"{times(value)} on {count}" for value, count in rows)
        said.append(f"on {name} boxes it is worth {told} at 1 GiB and {_from_where(mine.assign(boxes=boxes))}")
    return f"Between boxes, whose rails only forward: {'; '.join(said) or 'nothing measured'}."


def _from_where(mine: pd.DataFrame) -> str:
    """By size, the least number of boxes from which on it is worth less than a tenth."""
    found = []
    for size in mine["bytes"].unique():
        rows = mine[mine["bytes"] == size]
        much = rows.loc[rows["worth"] >= LITTLE, "boxes"]
        beyond = rows.loc[rows["boxes"] > much.max(), "boxes"] if len(much) else rows["boxes"]
        where = f"from {beyond.min()} boxes on" if len(beyond) else "nowhere measured"
        found.append(f"{where} at {shown(float(size), 'bytes')}")
    return f"less than a tenth {', '.join(found)}"


def beside_ours(beside: pd.DataFrame) -> pd.DataFrame:
    """Allreduce: times of the others over ours."""
    mine = beside[beside["collective"] == "allreduce"].drop(columns="collective")
    others = [name for name in mine.columns if name not in ("machine", "bytes", "ours")]
    told = {name: [None if pd.isna(v) else times(v) for v in mine[name] / mine["ours"]] for name in others}
    sizes = [shown(float(size), "bytes") for size in mine["bytes"]]
    return mine.assign(bytes=sizes, ours=[shown(value, "s") for value in mine["ours"]], **told)


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
    axes.set(xlabel="time without copies and sums in switches / with", xlim=(0, 2.3))
    return figure
