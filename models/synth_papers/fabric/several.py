"""Several collectives at once on one machine, beside one after the other: the page ``several``."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent, shown, times
from synth.views.figure_style import legend_below
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.reach import OF_SEVERAL
from synth_papers.fabric.grid import Cell

LIBRARIES = "one_after_another"
OURS = ("together", "flow", "pull")
LIMIT_S = 20.0


def reproduce(page: Reproduction) -> None:
    """Solve every shipped instance of several collectives by every method that knows them; the answer, the picture and
    the table."""
    cells: list[Cell] = []
    for path in sorted((page.instances / "fabric").glob("*.json")):
        instance = page.shipped("fabric", path.stem)
        assert isinstance(instance, FabricInstance)
        if instance.collectives is None or (page.quick and cells):
            continue
        cell = Cell(path.stem, instance.collective, instance.bytes, instance)
        for _, record in page.solve([instance], OF_SEVERAL, time_limit=LIMIT_S):
            cell.records[record["method"]] = record
        cells.append(cell)
    known = {cell.machine: row for cell in cells if (row := _row(cell)) is not None}
    for cell in cells:
        if cell.machine not in known:
            page.skip(f"{cell.machine}: no schedule of all together, or none of one after the other, in {LIMIT_S:g} s")
    rows = pd.DataFrame(known.values())
    page.opens(_answer(rows))
    page.figure(_draw(rows), "saved", "Time of the best schedule of all together over that of one after the other.")
    page.table("Shipped instances", _in_words(rows))
    page.note(
        "One after the other: a collective begins when those before it that share a rank or a link have ended, as on "
        "one stream of a library. Each is the best of what libraries run and ours, in the best order. Time: the last "
        "end, or where the instance says so the ends weighted by their priorities."
    )
    page.note(
        f"Every method has {LIMIT_S:g} s, here on two cores that other work shared: one that its time ended, also one "
        "after the other, may find a quicker schedule. Every schedule was replayed, and every bound is certified."
    )


def _row(cell: Cell) -> dict[str, object] | None:
    """What is known of an instance."""
    ours, theirs = cell.best(OURS), cell.best([LIBRARIES])
    if ours is None or theirs is None:
        return None
    best = min(ours, theirs)
    assert cell.instance.collectives is not None
    return {
        "instance": cell.machine, "collectives": len(cell.instance.collectives), "together_s": best[0],
        "one_after_another_s": theirs[0], "bound_s": cell.bound, "by": best[1],
    }  # fmt: skip


def _answer(rows: pd.DataFrame) -> str:
    """Three sentences."""
    saved = 1 - rows["together_s"] / rows["one_after_another_s"]
    gaps = 1 - rows["bound_s"] / rows["together_s"]
    most, least, far = (rows.iloc[int(at)] for at in (saved.argmax(), saved.argmin(), gaps.argmax()))
    return (
        f"Scheduled together, the collectives of {len(rows)} instances take {percent(float(saved.min()))} "
        f"(`{least['instance']}`) to {percent(float(saved.max()))} (`{most['instance']}`) less time than one after the "
        f"other. The largest gap to a certified bound is {percent(float(gaps.max()))} "
        f"(`{far['instance']}`). {int((gaps <= 0.05).sum())} of {len(rows)} are within 5 %."
    )


def _in_words(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows for a person."""
    seconds = {"one after the other": "one_after_another_s", "together": "together_s", "bound": "bound_s"}
    told = {name: [shown(float(value), "s") for value in rows[column]] for name, column in seconds.items()}
    return pd.DataFrame(
        {
            "instance": rows["instance"],
            "collectives": rows["collectives"],
            **told,
            "gap": [percent(float(value)) for value in 1 - rows["bound_s"] / rows["together_s"]],
            "times as quick": [times(float(value)) for value in rows["one_after_another_s"] / rows["together_s"]],
            "by": rows["by"],
        }
    )


def _draw(rows: pd.DataFrame) -> Figure:
    """A bar an instance: the part of the time of one after the other that is left, and the bound's."""
    figure = Figure(figsize=(7.5, 2.8), layout="constrained")
    axes = figure.subplots()
    share = rows["together_s"] / rows["one_after_another_s"]
    axes.barh(rows["instance"], share, color="#4477aa", label="together")
    axes.plot(rows["bound_s"] / rows["one_after_another_s"], rows["instance"], "k|", markersize=16, label="bound")
    axes.axvline(1.0, color="#bbbbbb", linewidth=1)
    axes.set_xlabel("time over that of one after the other")
    axes.invert_yaxis()
    axes.set_axisbelow(True)
    legend_below(figure, axes.get_legend_handles_labels()[0])
    return figure
