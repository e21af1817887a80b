"""Effective bandwidth over message size: bytes per node over completion time, for EquiMesh, the mesh baselines, and
the most that any algorithm on the mesh can reach (XTree, section V-B, figures 7 and 8).

Completion times are those of :mod:`synth.schedule.timing` (alpha-beta model, no barrier between timesteps). The size M
is what every node ends up with: an allgather's whole vector (M/N from each node), an allreduce's vector. Every
algorithm takes the number of chunks that suits the size best, out of those it was run with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from synth.api import method_options
from synth.making import make
from synth.method import load
from synth.reproduction.collect import Reproduction
from synth.schedule import Schedule
from synth.schedule.timing import earliest_times
from synth.views.figure_style import legend_below, looks, panels, size_axis
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.family import FAMILY
from synth_models.xtree.instance import XTreeInstance

BYTES = tuple(2.0**k for k in range(10, 31, 2))  # 1 KiB to 1 GiB
SATURATED = BYTES[-1]
TIME_LIMIT = 120.0
FINE = 1000  # chunks per node at which a bound in timesteps is as good as one in bytes
XTREE, OURS = "XTree on EquiMesh", "pull on EquiMesh (ours)"
FOREST = "forest on the mesh (ours)"  # allreduce only; no baseline of the paper's
FOREST_CHUNKS = (1, 4, 16, 32, 64)
MESH_BOUND, EQUIMESH_BOUND = "bound of any algorithm, mesh", "bound of any algorithm, EquiMesh"
BASELINES = {  # method and the chunk counts it is run with; XTree's section V-A names the five
    "2DMesh": ("mesh2d_rings", (1, 4)),
    "MultiTree": ("multitree", (1,)),
    "TACOS": ("tacos", (1, 4)),
    "TTO (reconstruction)": ("tto", (1, 4, 16, 32)),
    "TidalMesh (reconstruction)": ("tidalmesh", (1, 4, 16, 32)),
}
BEST_BASELINE, BYTES_HELD = "best baseline on the mesh", "bytes per node"


@dataclass
class Curves:
    """Schedules of one network size and collective, by algorithm; and the bounds on both networks."""

    rows: int
    cols: int
    collective: str
    schedules: dict[str, list[tuple[XTreeInstance, Schedule]]] = field(default_factory=dict)
    bounds: dict[str, XTreeInstance] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``5x11 allgather``."""
        return f"{self.rows}x{self.cols} {self.collective}"

    def seconds(self, algorithm: str, size: float) -> float:
        """Completion time, or the least possible one for the two bounds; ``size`` in bytes per node."""
        if algorithm in self.bounds:
            return least_seconds(self.bounds[algorithm], size)
        return min(completion(instance, schedule, size) for instance, schedule in self.schedules[algorithm])

    def bandwidth(self, algorithm: str, size: float) -> float:
        """Effective bandwidth in bytes per second."""
        return size / self.seconds(algorithm, size)

    def best_baseline(self, size: float) -> tuple[str, float]:
        """The fastest mesh baseline at this size and its seconds."""
        return self._fastest(BASELINES, size)

    def best_on_mesh(self, size: float) -> tuple[str, float]:
        """The same with ours among them, where there is one of ours."""
        return self._fastest([*BASELINES, *([FOREST] if FOREST in self.schedules else [])], size)

    def share(self, seconds: float, size: float) -> float:
        """What part of the mesh bound's bandwidth is reached by taking so long."""
        return self.seconds(MESH_BOUND, size) / seconds

    def _fastest(self, names: Iterable[str], size: float) -> tuple[str, float]:
        times = {name: self.seconds(name, size) for name in names}
        name = min(times, key=lambda key: times[key])
        return name, times[name]


def completion(instance: XTreeInstance, schedule: Schedule, size: float) -> float:
    """Seconds that the schedule takes when every node ends up with ``size`` bytes."""
    return earliest_times(instance.topology, instance.task, schedule, size / instance.total_chunks).completion


def least_seconds(instance: XTreeInstance, size: float) -> float:
    """A lower bound on the seconds of any algorithm, whatever its chunks.

    The bytes that must cross the strongest cut (or, for an allreduce, all transfers that must be made, see
    :mod:`bound`) spread over the links that there are, after one latency; and the latency of the longest way.
    """
    network = instance.topology
    alpha, rate = float(network.latency.min()), float(network.bandwidth.max())
    certificate = lower_bound(instance)[2]
    if certificate["binding"] == "cut":
        shards = certificate["crossings"] / certificate["capacity"] / instance.chunks
    else:
        assert certificate["binding"] == "volume", certificate
        phases = 2 if instance.collective == "allreduce" else 1
        shards = phases * (network.nodes - 1) * network.nodes / network.links
    return float(max(alpha + shards * size / network.nodes / rate, network.diameter * alpha))


def curves(page: Reproduction, rows: int, cols: int, collective: str) -> Curves:
    """Run (or read) every algorithm of one size and collective."""
    result = Curves(rows, cols, collective)
    published = "xtree" if collective == "allgather" else "mirror_xtree"
    wanted: list[tuple[str, str, str, tuple[int, ...]]] = [
        (XTREE, "equimesh", published, (1, 4)),
        (OURS, "equimesh", "pull", (1, 4)),
    ]
    wanted += [(label, "mesh", method, chunks) for label, (method, chunks) in BASELINES.items()]
    if collective == "allreduce":
        wanted.append((FOREST, "mesh", "forest", FOREST_CHUNKS))
    for label, network, method, chunks in wanted:
        part = f"forest-{rows}x{cols}" if label == FOREST else "bandwidth"
        result.schedules[label] = [
            _solved(page, page.placed(made(network, rows, cols, c, collective), part), method)
            for c in chunks
            if c <= 4 or not page.quick
        ]
    for label, network in ((MESH_BOUND, "mesh"), (EQUIMESH_BOUND, "equimesh")):
        result.bounds[label] = made(network, rows, cols, FINE, collective)
    return result


def made(network: str, rows: int, cols: int, chunks: int = 1, collective: str = "allgather") -> XTreeInstance:
    """``synth make xtree`` with these keys."""
    words = {"network": network, "rows": rows, "cols": cols, "chunks": chunks, "collective": collective}
    instance = make(FAMILY, words)
    assert isinstance(instance, XTreeInstance)
    return instance


def _solved(page: Reproduction, place: tuple[XTreeInstance, str], method: str) -> tuple[XTreeInstance, Schedule]:
    instance, part = place
    limit = TIME_LIMIT if method in ("xtree", "mirror_xtree", "pull", "forest") else 60.0
    family = FAMILY
    assert method_options(family, family.method(method), None, {})[0] is None  # references only: no solver needed
    [(_, record)] = page.solve([instance], [method], time_limit=limit, part=part)
    assert record.packed is not None, record["message"]
    return instance, load(family.unpack)(instance, record.packed)


def draw(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """One panel per size, from its :func:`table` by name: effective bandwidth over bytes per node, bounds dashed; of
    the paper's mesh baselines the best at each size."""
    figure = Figure(figsize=(5.2 * len(tables), 4.4), layout="constrained")
    for axes, (name, shown) in zip(panels(figure, len(tables)), tables.items(), strict=True):
        rates = shown.astype(float).set_index(BYTES_HELD)
        rates[BEST_BASELINE] = rates[[label for label in rates if label in BASELINES]].max(axis=1)
        lines = [label for label in (XTREE, OURS, FOREST, BEST_BASELINE) if label in rates]
        for label, look in looks(lines).items():
            axes.plot(rates.index, rates[label], label=label, **look)
        for label, colour in ((MESH_BOUND, "black"), (EQUIMESH_BOUND, "grey")):
            axes.plot(rates.index, rates[label], label=label, color=colour, linestyle="--", linewidth=1.0)
        size_axis(axes, rates.index.tolist())
        axes.set(xlabel=BYTES_HELD, title=name, ylim=(0, None), ylabel="effective bandwidth, GB/s")
    legend_below(figure, figure.axes[0].get_legend_handles_labels()[0])
    return figure


def table(curve: Curves) -> pd.DataFrame:
    """Rows: size in bytes per node; columns: effective bandwidth of every algorithm and bound in GB/s."""
    names = (*curve.schedules, *curve.bounds)
    rows = [[int(size), *[round(curve.bandwidth(name, size) / 1e9, 3) for name in names]] for size in BYTES]
    return pd.DataFrame(np.array(rows, dtype=object), columns=[BYTES_HELD, *names])


def forest_table(found: Sequence[Curves]) -> pd.DataFrame:
    """Rows: mesh and number of chunks; columns: the bound, what ``forest`` takes, and the share of the bound's
    bandwidth at 1 GiB."""
    rows = [
        (
            f"{curve.rows}x{curve.cols}",
            instance.chunks,
            lower_bound(instance)[0],
            schedule.steps,
            f"{100 * curve.share(completion(instance, schedule, SATURATED), SATURATED):.2f} %",
        )
        for curve in found
        for instance, schedule in curve.schedules[FOREST]
    ]
    return pd.DataFrame(rows, columns=["mesh", "C", "bound", "forest", "share of the bound's bandwidth at 1 GiB"])
