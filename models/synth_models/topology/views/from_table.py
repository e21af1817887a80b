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
from synth_models.topology.parts.folds import Folded, folded, rows, tree_flows
from synth_models.topology.parts.renumberings import offered
from synth_models.topology.solution import MOST_AMOUNT, MOST_SCALE, Topology

CIRCUITS = ("switch", "sends", "receives")
FLOWS = ("source", "src", "dst", "amount", "scale")
MOST = (1 << 31) - 1


def from_table(instance: TopologyInstance, file: InputFile, flows: InputFile | None = None) -> Topology:
    """Return the topology. Sources in ``flows`` are all nodes, or one of every orbit under the symmetries that are
    found among those offered; without it trees route the circuits (:mod:`synth_models.topology.parts.folds`). Raises
    :class:`InputError` with every faulty line; what the circuits join is the check's."""
    if instance.objective == "mix":
        raise InputError("a table of circuits holds no schedules, which a mix needs", str(file))
    circuits = _columns(file, CIRCUITS, "circuit", [MOST] * 3)
    folds = None if instance.objective == "hops" else folded_circuits(instance, circuits)
    if flows is not None and instance.objective == "hops":
        if len(flows.text.splitlines()) > 1:
            raise InputError("flows have no meaning with objective hops, which routes nothing", str(flows))
        flows = None
    if flows is None:
        if folds is None or (folds.away < 0).any():
            return Topology(circuits)
        *_, (flow, rounds) = tree_flows(folds, RunOptions(time_limit_s=None))
        return Topology(circuits, rounds, folds.symmetries, rows(folds, flow))
    last = instance.nodes - 1
    found = _columns(flows, FLOWS, "flow", [last, last, last, MOST_AMOUNT, MOST_SCALE])
    scales = np.unique(found[:, 4])
    if len(scales) != 1 or scales[0] < 1:
        raise InputError("scale must be one number from 1 in all rows", str(flows))
    symmetries = np.zeros((0, instance.nodes), dtype=np.int64)
    if folds is not None and len(np.unique(found[:, 0])) < instance.nodes:
        symmetries = folds.symmetries
    return Topology(circuits, int(scales[0]), symmetries, found[:, :4])


def folded_circuits(instance: TopologyInstance, circuits: IntArray) -> Folded | None:
    """The topology of these circuits, folded; None where they name ports or nodes that are none."""
    if instance.degree is not None and (circuits[:, 1:] >= instance.nodes).any():
        return None
    try:
        return folded(arcs_of(instance, circuits), offered(instance, circuits))
    except IndexError:
        return None


def _columns(file: InputFile, names: tuple[str, ...], what: str, most: list[int]) -> IntArray:
    readers = {"src": whole_cell(MOST), "dst": whole_cell(MOST)}
    readers |= {name: whole_cell(limit) for name, limit in zip(names, most, strict=True)}
    found = typed_rows(file, readers, names, what)
    return np.array([[row[name] for name in names] for row in found], dtype=np.int64).reshape(-1, len(names))
