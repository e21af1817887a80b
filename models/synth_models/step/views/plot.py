"""A step drawn: a row for every stream and port of every rank, over time."""

from __future__ import annotations

from matplotlib.figure import Figure

from synth_models.step.check.durations import taken
from synth_models.step.instance import TICKS, StepInstance
from synth_models.step.solution import Timetable

MOST_ROWS = 64


def plot(instance: StepInstance, timetable: Timetable, title: str) -> Figure:
    """Computations blue, collectives orange; time in ms."""
    rows: dict[tuple[int, str, str], list[tuple[float, float]]] = {}
    for i, places in enumerate(instance.places):
        at, long = int(timetable.start[i]), taken(instance, i, int(timetable.algorithm[i]))
        for kind, rank, name in places:
            if long:
                rows.setdefault((rank, kind, name), []).append((at / TICKS * 1e3, long / TICKS * 1e3))
    shown = sorted(rows, key=lambda row: (row[0], row[1] == "port", row[2]))[:MOST_ROWS]
    figure = Figure(figsize=(10, 1.5 + 0.3 * len(shown)), layout="constrained")
    axes = figure.subplots()
    for height, row in enumerate(shown):
        colour = "#ee7733" if row[1] == "port" else "#4477aa"
        axes.broken_barh(rows[row], (height - 0.4, 0.8), facecolors=colour, edgecolor="white", linewidth=0.3)
    axes.set_yticks(range(len(shown)), [f"rank {rank}, {name}" for rank, _, name in shown])
    axes.invert_yaxis()
    axes.set_xlabel("ms")
    axes.set_title(title)
    return figure
