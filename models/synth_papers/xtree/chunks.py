"""The number of chunks by message size on EquiMesh (XTree, Section IV-A; what figure 7 adapts): the quickest that
``chunk_count`` finds, against a bound that holds for every number."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from synth.making import make
from synth.reproduction.collect import Reproduction
from synth.views.figure_style import legend_below, looks, panels, size_axis, size_word
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.chunk_times import at_count, cut_into
from synth_models.xtree.family import FAMILY
from synth_models.xtree.instance import XTreeInstance

SIZES = ((5, 11), (8, 8))
BYTES = tuple(2.0**k for k in range(10, 31, 2))  # that every node ends up with, 1 KiB to 1 GiB
PAPERS = 4  # "For a full four-degree EquiMesh, XTree sets the chunk count to 4"
SHOWN = (1, 2, 3, 4, 8)
PART = "bandwidth"


def reproduce(page: Reproduction) -> None:
    """The table of both sizes, the figure and what they say."""
    rows = [_row(page, grid, size) for grid in (SIZES[1:] if page.quick else SIZES) for size in BYTES]
    columns = ["EquiMesh", "bytes per node", "chunks", "timesteps", "us", "bound of every number, us", "gap"]
    columns += ["us with 4 chunks at least", "4 chunks take more"]
    shown = pd.DataFrame(rows, columns=columns)
    grids = list(dict.fromkeys(str(row[0]) for row in rows))
    page.table("Chunks per node in an allgather, the quickest number by size", shown)
    page.figure(draw(grids), "chunk-counts", CAPTION)
    best = {grid: sorted({str(count) for name, _, count, *_ in rows if name == grid}) for grid in grids}
    words = "; ".join(f"on {grid} {', '.join(counts)}" for grid, counts in best.items())
    page.note(
        f"The paper cuts a node's data into a multiple of the least degree, {PAPERS} on EquiMesh. By size the quickest "
        f"numbers are {words}. The bound holds for every number of chunks, however large, and for every schedule "
        "(`synth_models.xtree.check.chunk_times`); each record's certificate has it, and the check derives it again."
    )


CAPTION = (
    "Least time of an allgather with so many chunks a node, over the least with any of these; 128 GB/s, 20 ns a hop. "
    "Every value is a proven bound, which `pull` or HiGHS reaches where the line is the lowest."
)


def _instance(grid: tuple[int, int], size: float, chunks: int) -> XTreeInstance:
    """An allgather after which every node holds ``size`` bytes."""
    rows, cols = grid
    words = {"network": "equimesh", "rows": rows, "cols": cols, "chunks": chunks}
    made = make(FAMILY, words | {"chunk_bytes": size / (rows * cols * chunks)})
    assert isinstance(made, XTreeInstance)
    return made.model_copy(update={"name": f"equimesh-{rows}x{cols}-{size_word(size).replace(' ', '')}-c{chunks}"})


def _row(page: Reproduction, grid: tuple[int, int], size: float) -> tuple[object, ...]:
    """The record of the quickest number of chunks, with its bound as the record's certificate states it."""
    chunks = min(SHOWN, key=lambda count: _least(grid, size, count))
    kept = page.keep(_instance(grid, size, chunks), PART)
    own = {"chunk_count": {"relaxation": "off"}}
    [(_, record)] = page.solve([kept], own, time_limit=60.0, part=PART)
    assert record.value is not None, record["message"]
    name = f"{grid[0]}x{grid[1]}"
    steps = record.value
    if record.bound is not None and steps > record.bound:  # HiGHS may find fewer timesteps than pull
        [(_, exact)] = page.solve([kept], ["ilp"], time_limit=120.0, part=PART)
        steps = min(steps, exact.value or steps)
    bound = record["certificate"]["chunk_times"]["least_seconds"]
    seconds = float(at_count(kept, kept.chunks, round(steps)))  # links are alike: a timestep takes the same everywhere
    papers = _least(grid, size, PAPERS)
    return (
        name, int(size), chunks, int(steps), f"{seconds * 1e6:.4g}", f"{bound * 1e6:.4g}",
        f"{100 * max(0.0, 1 - bound / seconds):.2f} %", f"{papers * 1e6:.4g}", f"{100 * (papers / seconds - 1):.1f} %",
    )  # fmt: skip


def _least(grid: tuple[int, int], size: float, chunks: int) -> float:
    """A lower bound on the seconds with so many chunks."""
    cut = cut_into(_instance(grid, size, 1), chunks)
    return float(at_count(cut, cut.chunks, lower_bound(cut)[0]))


def draw(grids: list[str]) -> Figure:
    """One panel per size: the least time with a number of chunks over the least with any of them."""
    figure = Figure(figsize=(5.2 * len(grids), 4.0), layout="constrained")
    for axes, name in zip(panels(figure, len(grids)), grids, strict=True):
        rows, cols = map(int, name.split("x"))
        times = {count: [_least((rows, cols), size, count) for size in BYTES] for count in SHOWN}
        least = [min(column) for column in zip(*times.values(), strict=True)]
        for (label, look), count in zip(looks([_label(count) for count in SHOWN]).items(), SHOWN, strict=True):
            ratios = [time / low for time, low in zip(times[count], least, strict=True)]
            axes.plot(BYTES, ratios, label=label, **look)
        size_axis(axes, BYTES)
        axes.set(xlabel="bytes per node", title=f"{name} allgather", ylim=(0.98, 2.0), ylabel="time over the least")
    legend_below(figure, figure.axes[0].get_legend_handles_labels()[0])
    return figure


def _label(count: int) -> str:
    return "1 chunk" if count == 1 else f"{count} chunks"
