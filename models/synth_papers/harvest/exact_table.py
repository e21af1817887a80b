"""Page of the records of ``misocp`` with its picture: ``python -m synth_papers.harvest.exact_table FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from synth.errors import InputError
from synth.options import RELATIVE_GAP
from synth.records.folder import read_all
from synth.records.record import Record
from synth.solvers.catalogue import known_solvers
from synth.text.quantities import percent
from synth.views.figure_style import legend_below, looks, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = "Seconds until the solver ended, by instance and solver. Where the limit ended it, the gap is marked."
LEAST_S = 0.01  # on the axis


def page(folder: Path) -> str:
    """Title, answer and table of the records ``*/misocp-<solver>.json`` in ``folder``."""
    found = records(folder)
    gaps = {f"`{record['instance']}` by {record['solver']}": record.gap for record in found if record.gap is not None}
    widest = max(gaps, key=lambda name: gaps[name])
    settled = [record for record in found if record["termination"] == "optimal"]
    instances, runs = len({record["instance"] for record in found}), f"{len(settled)} of {len(found)} runs"
    return f"""\
# Harvest over all topologies: the program of appendix A

`misocp` searches all topologies of {instances} small workloads. In {runs} the solver proves
the schedule optimal within {percent(RELATIVE_GAP)}. The largest gap is {percent(gaps[widest])} ({widest}).

![{CAPTION}](exact.png)

{CAPTION}

Made by `harvest/exact.sh`. Seconds are those of a machine beside other work.

{table(found)}
"""


def records(folder: Path) -> list[Record]:
    """The records of ``misocp`` that lie one folder below ``folder``."""
    found = []
    for record in read_all([folder]):
        if isinstance(record, InputError):
            raise record
        if record["method"] == "misocp" and record.path is not None and record.path.parents[1] == folder:
            found.append(record)
    return found


def table(found: list[Record]) -> str:
    """One row for every instance and solver.

    Times in microseconds, seconds on the machine of the record (loaded or not, so compare them with care).
    """
    lines = [
        "| instance | solver | time (us) | proven bound (us) | gap | ended | seconds |",
        "|---|---|---:|---:|---:|---|---:|",
    ]
    for record in found:
        value, bound = record.value, record.bound
        gap = f"{100 * (value - bound) / value:.4f} %" if value is not None and bound is not None else "-"
        shown = ["-" if number is None else f"{number * 1e6:.4f}" for number in (value, bound)]
        lines.append(
            f"| {record['instance']} | {record['solver']} | {shown[0]} | {shown[1]} | {gap} | {record['termination']} "
            f"| {record.run_s:.1f} |"
        )
    return "\n".join(lines)


def drawn(found: list[Record]) -> Figure:
    """A row an instance, a mark a solver, at the seconds of its run; where the limit ended it, its gap."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    quickest: dict[str, float] = {}
    for record in found:
        name = str(record["instance"])
        quickest[name] = min(record.run_s, quickest.get(name, record.run_s))
    rows = {name: row for row, name in enumerate(sorted(quickest, key=lambda name: quickest[name]))}
    figure = Figure(figsize=(8, 1.0 + 0.22 * len(rows)), layout="constrained")
    axes = figure.subplots()
    solvers = list(dict.fromkeys(str(record["solver"]) for record in found))
    for solver, look in looks(solvers).items():
        runs = [record for record in found if record["solver"] == solver]
        at = [(max(record.run_s, LEAST_S), rows[record["instance"]]) for record in runs]
        axes.plot(*zip(*at, strict=True), **{**look, "linestyle": "", "label": known_solvers()[solver].title})
    for record in found:
        if record["termination"] != "optimal":
            left = f" gap {percent(record.gap)}" if record.gap is not None else " nothing found"
            axes.annotate(left, (record.run_s, rows[record["instance"]]), xytext=(-4, 0), textcoords="offset points",
                          ha="right", va="center", fontsize=8)  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g} s"))
    axes.set_yticks(list(rows.values()), list(rows), fontsize=7)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.grid(linewidth=0.4, alpha=0.5)
    axes.set_xlabel("time of the run")
    legend_below(figure, axes.get_legend_handles_labels()[0])
    return figure


def main(folder: Path) -> None:
    """Write the page and its picture."""
    (folder / "exact.md").write_text(page(folder))
    save(drawn(records(folder)), folder / "exact.png", bbox_inches="tight", dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
