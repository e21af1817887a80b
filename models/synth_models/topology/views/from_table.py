"""A topology from its flat table, as ``synth show --csv`` prints it, routed by what ``show --csv --flows`` prints."""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.errors import InputError
from synth.options import RunOptions
from synth.text.csv import typed_rows, whole_cell
from synth.text.input_file import InputFile
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.parts.arcs import arcs_of
from synth_models.topology.parts.folds import folded, rows, tree_flows
from synth_models.topology.parts.renumberings import offered
from synth_models.topology.solution import MOST_AMOUNT, MOST_SCALE, Topology

CIRCUITS = ("switch", "sends", "receives")
FLOWS = ("source", "src", "dst", "amount", "scale")
MOST = (1 << 31) - 1


def from_table(instance: TopologyInstance, file: InputFile, flows: InputFile | None = None) -> Topology:
    """Return the topology. ``flows`` must name every node as a source; without it trees route the circuits
    (:mod:`synth_models.topology.parts.folds`). Raises :class:`InputError` with every faulty line; what the circuits
    join is the check's."""
    circuits = _columns(file, CIRCUITS, "circuit", [MOST] * 3)
    if flows is None:
        return circuits_alone(instance, circuits)
    last = instance.nodes - 1
    rows = _columns(flows, FLOWS, "flow", [last, last, last, MOST_AMOUNT, MOST_SCALE])
    scales = np.unique(rows[:, 4])
    if len(scales) != 1 or scales[0] < 1:
        raise InputError("scale must be one number from 1 in all rows", str(flows))
    none = np.zeros((0, instance.nodes), dtype=np.int64)
    return Topology(circuits, int(scales[0]), none, rows[:, :4])


def _columns(file: InputFile, names: tuple[str, ...], what: str, most: list[int]) -> IntArray:
    readers = {"src": whole_cell(MOST), "dst": whole_cell(MOST)}
    readers |= {name: whole_cell(limit) for name, limit in zip(names, most, strict=True)}
    found = typed_rows(file, readers, names, what)
    return np.array([[row[name] for name in names] for row in found], dtype=np.int64).reshape(-1, len(names))


def circuits_alone(instance: TopologyInstance, circuits: IntArray) -> Topology:
    """The topology of these circuits, for the load routed by trees if its nodes are all joined."""
    try:
        arcs = arcs_of(instance, circuits)
    except IndexError:
        return Topology(circuits)  # the check names the port
    if instance.objective == "hops" or (instance.degree is not None and (circuits[:, 1:] >= instance.nodes).any()):
        return Topology(circuits)
    folds = folded(arcs, offered(instance, circuits))
    if (folds.away < 0).any():
        return Topology(circuits)
    *_, (flow, rounds) = tree_flows(folds, RunOptions(time_limit_s=None))
    return Topology(circuits, rounds, folds.symmetries, rows(folds, flow))
