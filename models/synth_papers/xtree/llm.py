"""One training step's forward and backward pass of four language models on 8x8 nodes (XTree, section V-C, figure 9).

The paper states peak compute (512 x 512 MACs at 1 GHz per node, 32 bit) and 'SP + TP', not the sequence length, the
collectives of a layer or what overlaps. **Our model**, all 64 nodes one tensor-parallel group, batch 1, ``TOKENS``
tokens, embedding and head left out:

* a layer has two blocks (attention, MLP); the activations M = tokens * hidden * 4 bytes;
* forward, per block: an allgather of M (sequence parallelism), an allreduce of M (tensor parallelism), neither hidden;
* backward: twice the forward's MACs; per block the same two collectives, the allgather either hidden completely (its
  data fetched ahead) or exposed like the allreduce;
* a layer's forward MACs per token: projections and MLP weights, and 2 * tokens * (query width) for the attention.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from synth_papers.xtree.bandwidth import MESH_BOUND, XTREE, Curves

TOKENS = 4096
BYTES_PER_NUMBER = 4
MACS_PER_SECOND = 512 * 512 * 1e9
BLOCKS = 2  # attention and MLP
OVER_FOREST = "speedup over mesh with forest"
PASSES = ("forward", "backward, allgather hidden", "backward, all exposed")
Seconds = Callable[[Curves, float], float]


@dataclass(frozen=True)
class Model:
    """A transformer: widths in numbers; ``gated`` MLPs have three matrices."""

    name: str
    layers: int
    hidden: int
    mlp: int
    query: int
    key_value: int
    gated: bool

    def layer_macs(self, tokens: int) -> float:
        """Forward multiply-accumulates of one layer."""
        projections = self.hidden * (2 * self.query + 2 * self.key_value)
        weights = projections + (3 if self.gated else 2) * self.hidden * self.mlp
        return float(tokens) * (weights + 2 * tokens * self.query)


MODELS = (
    Model("GPT-NeoX-20B", 44, 6144, 24576, 6144, 6144, False),
    Model("OPT-30B", 48, 7168, 28672, 7168, 7168, False),
    Model("Qwen3-32B", 64, 5120, 25600, 8192, 1024, True),
    Model("Llama-3-70B", 80, 8192, 28672, 8192, 1024, True),
)


def pass_seconds(model: Model, which: str, allgather: Curves, allreduce: Curves, time: Seconds) -> float:
    """Seconds of one pass through all layers; ``time`` gives a collective's seconds at a size."""
    size = float(TOKENS * model.hidden * BYTES_PER_NUMBER)
    nodes = allgather.rows * allgather.cols
    compute = model.layer_macs(TOKENS) / nodes / MACS_PER_SECOND * (1 if which == "forward" else 2)
    gather, reduce = BLOCKS * time(allgather, size), BLOCKS * time(allreduce, size)
    if which == "backward, allgather hidden":
        return model.layers * (compute + reduce)
    return model.layers * (compute + gather + reduce)


def speedups(allgather: Curves, allreduce: Curves) -> pd.DataFrame:
    """Per model and pass: milliseconds on EquiMesh and on the best mesh baselines, the speedup, and the speedup over a
    mesh whose collectives run at the bound of any algorithm; then milliseconds on a mesh that also has ``forest``, and
    the speedup over it."""
    times: tuple[Seconds, ...] = (
        lambda curve, size: curve.seconds(XTREE, size),
        lambda curve, size: curve.best_baseline(size)[1],
        lambda curve, size: curve.seconds(MESH_BOUND, size),
        lambda curve, size: curve.best_on_mesh(size)[1],
    )
    rows = []
    for model in MODELS:
        for which in PASSES:
            here, there, least, ours = (pass_seconds(model, which, allgather, allreduce, time) for time in times)
            rows.append(
                (model.name, which, 1e3 * here, 1e3 * there, there / here, least / here, 1e3 * ours, ours / here)
            )
    columns = ["model", "pass", "EquiMesh, ms", "best mesh baseline, ms", "speedup", "speedup over mesh bound"]
    return pd.DataFrame(rows, columns=[*columns, "mesh with forest, ms", OVER_FOREST])


def draw(table: pd.DataFrame) -> Figure:
    """One panel per pass: speedup over the best mesh baseline, a tick where the mesh bound puts it, a triangle where
    ``forest`` does."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    names = [model.name for model in MODELS]
    for axes, which in zip(figure.subplots(1, len(PASSES), sharey=True), PASSES, strict=True):
        mine = table[table["pass"] == which]
        axes.bar(range(len(names)), mine["speedup"], width=0.6, label="over the best mesh baseline", zorder=2)
        places = np.arange(len(names))
        axes.plot(places, mine[OVER_FOREST], "^", color="tab:cyan", zorder=4, label="over the mesh with forest (ours)")
        least = mine["speedup over mesh bound"]
        label = "over any algorithm on the mesh, at least"
        axes.hlines(least, places - 0.22, places + 0.22, color="black", linewidth=2, zorder=3, label=label)
        axes.set_xticks(range(len(names)), names, rotation=15)
        axes.set_title(which)
        axes.axhline(1, color="grey", linewidth=1)
    figure.axes[0].set_ylabel("speedup of XTree on EquiMesh")
    figure.axes[0].set_ylim(0, None)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=3, loc="outside lower center")
    return figure


def geometric_mean(values: pd.Series[float]) -> float:
    """Of positive numbers."""
    return float(np.exp(np.log(values).mean()))
