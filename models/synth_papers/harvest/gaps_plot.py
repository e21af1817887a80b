"""Picture of the page of gaps: ``python -m synth_papers.harvest.gaps_plot FOLDER`` draws ``gaps.png`` there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from synth.errors import InputError
from synth.options import RELATIVE_GAP
from synth.records.folder import read_all
from synth.records.optimality import gap
from synth.text.quantities import percent
from synth.views.figure_style import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def gaps(folder: Path) -> dict[str, float]:
    """Of each instance with records of ``bound`` and ``candidates`` in ``folder`` the gap of ``candidates`` to the best
    bound that any record has."""
    values: dict[str, float] = {}
    bounds: dict[str, float] = {}
    asked = set()
    for record in read_all([folder]):
        if isinstance(record, InputError):
            raise record
        if record.path is None or record.path.parents[1] != folder:
            continue
        name = str(record["instance"])
        if record.bound is not None:
            bounds[name] = max(record.bound, bounds.get(name, 0.0))
        if record["method"] == "candidates" and record.value is not None:
            values[name] = record.value
        if record["method"] == "bound":
            asked.add(name)
    return {name: gap(value, bounds[name]) or 0.0 for name, value in values.items() if name in asked}


def drawn(found: dict[str, float]) -> Figure:
    """A bar an instance, the widest gap on top."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    rows = sorted(found, key=lambda name: (found[name] > RELATIVE_GAP and found[name], name))
    figure = Figure(figsize=(7.5, 0.9 + 0.22 * len(rows)), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh(rows, [100 * found[name] for name in rows], color="#1f6fb4")
    words = [percent(found[name]) if found[name] > RELATIVE_GAP else "met" for name in rows]
    axes.bar_label(bars, words, padding=3, fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:g} %"))
    axes.set_xlim(0, 115 * max(found.values()))
    axes.set_xlabel("gap of candidates to the best proven bound")
    return figure


if __name__ == "__main__":
    place = Path(sys.argv[1])
    save(drawn(gaps(place)), place / "gaps.png", bbox_inches="tight", dpi=110)
