"""An algorithm for a person: a flat table of its steps, and a picture of its thread blocks over logical time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from synth.arrays import IntArray
from synth.exchange.algorithm import BUFFERS, KINDS, Algorithm
from synth.exchange.places import steps
from synth.views.figure_style import legend_below
from synth.views.occupancy import folded

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 400  # thread blocks that are drawn
MOST_TIMES = 1000  # moments that have a column each
NAMES = {
    "s": "send", "r": "receive", "cpy": "copy", "re": "reduce", "rrc": "receive, reduce", "rcs": "receive, send",
    "rrs": "receive, reduce, send", "rrcs": "receive, reduce, store, send", "nop": "wait",
}  # fmt: skip


def table(algorithm: Algorithm, level: IntArray) -> pd.DataFrame:
    """A row a step: ``gpu,tb,chan,step,type,send,recv,srcbuf,srcoff,dstbuf,dstoff,cnt,depid,deps,hasdep,time``, where
    ``time`` is the length of the longest chain of waits that ends with it (empty if the algorithm does not run)."""
    import pandas as pd

    a, at = algorithm, steps(algorithm)
    words = np.array(KINDS), np.array(BUFFERS)
    return pd.DataFrame({
        "gpu": at.rank, "tb": at.number, "chan": a.tb_channel[at.block], "step": at.position,
        "type": words[0][a.kind], "send": a.tb_send[at.block], "recv": a.tb_recv[at.block],
        "srcbuf": words[1][a.src_buffer], "srcoff": a.src_offset, "dstbuf": words[1][a.dst_buffer],
        "dstoff": a.dst_offset, "cnt": a.count, "depid": a.dep_tb, "deps": a.dep_step,
        "hasdep": a.has_dependents.astype(np.int64), "time": level if len(level) else "",
    })  # fmt: skip


def plot(algorithm: Algorithm, level: IntArray, title: str) -> Any:
    """A row a thread block, gpus one below the other, a column a moment of logical time; colours say what a step does.
    Up to :data:`MOST_ROWS` thread blocks, from gpu 0 on. ``level`` is not empty."""
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    a, at = algorithm, steps(algorithm)
    rows = min(len(a.tb_rank), MOST_ROWS)
    picture = np.full((rows, int(level.max(initial=1))), -1, dtype=np.int64)
    shown = at.block < rows
    picture[at.block[shown], level[shown] - 1] = a.kind[shown]
    used = [k for k in range(len(KINDS)) if np.any(picture == k)]
    colours = ["#2f6db3", "#8fbbe6", "#9a9a9a", "#6b4ba1", "#c98b2b", "#3f9c6d", "#b8504e", "#7a1f3d", "#e3e3e3"]
    figure = Figure(figsize=(min(14, 4 + 0.12 * picture.shape[1]), min(18, 2 + 0.12 * rows)), layout="constrained")
    axes = figure.add_subplot()
    extent = (0.5, picture.shape[1] + 0.5, rows - 0.5, -0.5)
    style: dict[str, Any] = dict(aspect="auto", interpolation="none", cmap=ListedColormap(colours))
    cells = np.ma.masked_less(folded(picture, MOST_ROWS, MOST_TIMES), 0)
    axes.imshow(cells, vmin=0, vmax=len(KINDS) - 1, extent=extent, **style)
    first = np.searchsorted(a.tb_rank[:rows], np.unique(a.tb_rank[:rows]))
    axes.set_yticks(first - 0.5, [f"gpu {rank}" for rank in np.unique(a.tb_rank[:rows])], fontsize=7)
    axes.grid(axis="y", linewidth=0.4)
    more = f" (the first {rows} of {len(a.tb_rank)} thread blocks)" if rows < len(a.tb_rank) else ""
    axes.set_ylabel(f"thread blocks{more}")
    axes.set_xlabel("logical time: the longest chain of waits that ends with a step")
    axes.set_title(title)
    legend = [Patch(color=colours[k], label=NAMES[KINDS[k]]) for k in used]
    legend_below(figure, legend, 4, fontsize=7)
    return figure
