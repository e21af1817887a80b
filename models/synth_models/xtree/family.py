"""The xtree family: what ties its instances, methods, check and views together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from synth.errors import Fault, InputError
from synth.family import Family, Method, Objective, Verdict
from synth.instance import parse
from synth.network.spec import SPECS, links_from_csv
from synth.options import Parameter, read_choice, read_flag, read_float, read_int
from synth.schedule import Schedule
from synth.untrusted import flags, whole_numbers
from synth_models.xtree.instance import XTreeInstance

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from synth.frames import Frames
    from synth.reproduction import Reproduction

_PROGRAM_PARAMETERS = (
    Parameter("horizon", read_int(1), None, "decide this number of timesteps only: a schedule, or proven infeasible"),
    Parameter("warm_start", read_flag, True, "start from the best reference: it caps the horizons that are tried"),
    Parameter("break_chunks", read_flag, True, "symmetry breaking: order the interchangeable chunks of a node"),
    Parameter("break_rotations", read_flag, True, "symmetry breaking: rotations and reflections of the network"),
    Parameter("fold", read_flag, False, "look only for schedules that the network's symmetries map onto themselves"),
    Parameter("relaxation", read_flag, True, "first try to refute a horizon by the symmetric LP relaxation"),
)
_RESTARTS = Parameter("restarts", read_int(1), 10, "schedules to try, each with other random numbers")


class XTreeFamily(Family):
    """Link allocation on EquiMesh and any other network; minimises timesteps."""

    name = "xtree"
    title = "XTree: link allocation for allgather, reduce-scatter, allreduce"
    citation = "Cui, Qin, Cai, Huang: XTree on EquiMesh: Topology and Algorithm Co-Design for Collective Communication"
    objective = Objective("timesteps", "timesteps")
    instance_type = XTreeInstance
    default_methods = ("bound", "xtree", "mirror_xtree", "pull", "ilp")
    methods: ClassVar[Mapping[str, Method]] = {
        method.name: method
        for method in (
            Method("bound", "bound", "strongest of receive/min-cut, diameter and volume bound",
                   "synth_models.xtree.bound:solve"),
            Method("relaxation", "bound", "LP relaxation folded by the network's symmetries refutes horizons",
                   "synth_models.xtree.relaxation:solve", ("highs",)),
            Method("xtree", "reference", "the published greedy, algorithm 2 (allgather)",
                   "synth_models.xtree.xtree:solve"),
            Method("mirror_xtree", "reference", "the published MirrorXTree, algorithm 3 (reductions)",
                   "synth_models.xtree.xtree:solve_mirror"),
            Method("pull", "reference", "every node pulls the rarest missing chunks by matching (ours)",
                   "synth_models.xtree.pull:solve", (), (_RESTARTS,)),
            Method("symmetric", "reference", "one node's schedule carried over by translations (ours)",
                   "synth_models.xtree.symmetric:solve"),
            Method("mesh2d_rings", "reference", "hierarchical rings, one dimension of a mesh or torus after the other",
                   "synth_models.xtree.mesh2d_rings:solve"),
            Method("multitree", "reference", "MultiTree: one tree per node, trees take free links in turn",
                   "synth_models.xtree.multitree:solve"),
            Method("tacos", "reference", "TACOS: random greedy matching of links and chunks per timestep",
                   "synth_models.xtree.tacos:solve"),
            Method("tto", "reference", "TTO, reconstruction: three link-disjoint trees rooted at corners of a mesh",
                   "synth_models.xtree.tto:solve"),
            Method("tidalmesh", "reference", "TidalMesh, reconstruction: dimension-ordered trees, halves overlapped",
                   "synth_models.xtree.tidalmesh:solve"),
            Method("ilp", "program", "time-expanded link allocation, fewest timesteps (Pyomo)",
                   "synth_models.xtree.ilp:solve", ("highs", "gurobi", "scip"), _PROGRAM_PARAMETERS),
            Method("cpsat", "program", "the same as a CP-SAT model (one thread repeats by seed)",
                   "synth_models.xtree.cpsat:solve", ("cpsat",), _PROGRAM_PARAMETERS),
        )
    }  # fmt: skip

    def defaults_for(self, instance: XTreeInstance) -> tuple[str, ...]:
        wrong = "mirror_xtree" if instance.collective == "allgather" else "xtree"
        return tuple(name for name in self.default_methods if name != wrong)

    def make(self, parameters: Mapping[str, str]) -> XTreeInstance:
        """An instance from texts: ``network=equimesh rows=4 cols=6 chunks=4 collective=allgather``.

        Other keys: the network's own parameters, ``links=FILE.csv`` instead of ``network``, ``rings=`` one direction
        or four (top,bottom,left,right) of an EquiMesh, ``chunk_bytes``, ``bandwidth``, ``latency``, ``name``.
        """
        given = dict(parameters)
        raw: dict[str, Any] = {"family": "xtree", "source": "synth make xtree " + _words(parameters)}
        faults: list[Fault] = []
        readers = {
            "chunks": read_int(1), "chunk_bytes": read_float(0, exclusive=True),
            "collective": read_choice("allgather", "reduce_scatter", "allreduce"),
        }  # fmt: skip
        name = given.pop("name", None)
        network = _network(given, set(readers), faults)
        for key, read in readers.items():
            if key in given:
                try:
                    raw[key] = read(given.pop(key))
                except ValueError as error:
                    faults.append(Fault(key, str(error), parameters[key], True))
        raw.setdefault("chunks", 1) if "chunks" not in parameters else None
        faults += [Fault(key, "unknown parameter of this network", value, True) for key, value in given.items()]
        if faults:
            raise InputError(faults, "synth make xtree")
        raw["network"] = network
        raw["name"] = name or _default_name(network, raw)
        instance = parse(raw, XTreeInstance, "synth make xtree")
        assert isinstance(instance, XTreeInstance)
        return instance

    def check(self, instance: XTreeInstance, solution: Schedule) -> Verdict:
        from synth_models.xtree.check import check_schedule

        return check_schedule(instance, solution)

    def check_bound(self, instance: XTreeInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
        from synth_models.xtree.check import check_bound

        return check_bound(instance, bound, certificate)

    def pack(self, solution: Schedule) -> dict[str, Any]:
        ordered = solution.sorted()
        packed: dict[str, Any] = {"step": ordered.step, "link": ordered.link, "chunk": ordered.chunk}
        if ordered.adds.any():
            packed["adds"] = ordered.adds.astype(np.int8)
        return packed

    def unpack(self, instance: XTreeInstance, packed: Mapping[str, Any]) -> Schedule:
        columns = [whole_numbers(packed, key) for key in ("step", "link", "chunk")]
        adds = flags(packed, "adds", (len(columns[0]),)) if "adds" in packed else False
        return Schedule.of(columns[0], columns[1], columns[2], adds)

    def table(self, instance: XTreeInstance, solution: Schedule) -> pd.DataFrame:
        """Columns ``step,src,dst,link,origin,chunk`` (chunk 0..C-1 of its origin) and, for reductions, ``collective
        phase``: ``reduce_scatter`` rows add to the receiver's partial sum, ``allgather`` rows copy a complete sum."""
        import pandas as pd

        ordered, network = solution.sorted(), instance.topology
        columns: dict[str, Any] = {
            "step": ordered.step, "src": network.src[ordered.link], "dst": network.dst[ordered.link],
            "link": ordered.link, "origin": ordered.chunk // instance.chunks, "chunk": ordered.chunk % instance.chunks,
        }  # fmt: skip
        if instance.task.reduces:
            columns["collective phase"] = np.where(ordered.adds, "reduce_scatter", "allgather")
        return pd.DataFrame(columns)

    def frames(self, instance: XTreeInstance, solution: Schedule) -> Frames | None:
        from synth_models.xtree.animation import frames

        return frames(instance, solution)

    def describe(self, instance: XTreeInstance, solution: Schedule) -> str:
        from synth_models.xtree.views import describe

        return describe(instance, solution)

    def plot(self, instance: XTreeInstance, solution: Schedule, title: str) -> Figure:
        from synth_models.xtree.views import plot

        return plot(instance, solution, title)

    def reproduce(self, page: Reproduction) -> None:
        from synth_models.xtree.reproduce import reproduce

        reproduce(page)


def _words(parameters: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in parameters.items())


_READERS = {
    "rows": read_int(1), "cols": read_int(1), "nodes": read_int(1), "dimension": read_int(1), "degree": read_int(1),
    "bandwidth": read_float(0, exclusive=True), "latency": read_float(0), "bidirectional": read_flag,
}  # fmt: skip


def _network(given: dict[str, str], others: set[str], faults: list[Fault]) -> dict[str, Any]:
    """Take the network's keys out of ``given``; the raw network, faults appended."""
    if "links" in given and "network" not in given:
        try:
            return links_from_csv(Path(given.pop("links")))
        except InputError as error:
            faults += [
                replace(fault, path=f"links ({error.source})" + (f", {fault.path}" if fault.path else ""))
                for fault in error.faults
            ]
            return {}
    kind = given.pop("network", None)
    if kind is None or kind not in SPECS or kind == "links":
        choices = ", ".join(k for k in SPECS if k != "links")
        faults.append(Fault("network", f"must be one of {choices}, or give links=FILE.csv", kind, kind is not None))
        for key in [key for key in given if key not in others]:
            del given[key]
        return {}
    raw: dict[str, Any] = {"kind": kind}
    fields = SPECS[kind].model_fields
    if "rings" in given and kind == "equimesh":
        directions = given.pop("rings").split(",")
        if len(directions) not in (1, 4) or not set(directions) <= {"even_up", "odd_up"}:
            message = "one direction or four (top,bottom,left,right), each even_up or odd_up"
            faults.append(Fault("rings", message, ",".join(directions), True))
        else:
            sides = ("top", "bottom", "left", "right")
            raw["rings"] = dict(zip(sides, directions * (4 // len(directions)), strict=True))
    for key, read in _READERS.items():
        if key in fields and key in given:
            text = given.pop(key)
            try:
                raw[key] = read(text)
            except ValueError as error:
                faults.append(Fault(key, str(error), text, True))
    present = set(raw) | {fault.path for fault in faults}
    faults += [
        Fault(key, f"is missing: network={kind} needs it")
        for key, info in fields.items()
        if info.is_required() and key not in present
    ]
    return raw


def _default_name(network: Mapping[str, Any], raw: Mapping[str, Any]) -> str:
    size = "x".join(str(network[key]) for key in ("rows", "cols", "nodes", "dimension", "degree") if key in network)
    collective = raw.get("collective", "allgather")
    suffix = "" if collective == "allgather" else "-" + collective.replace("_", "")
    return f"{network['kind']}-{size}-c{raw['chunks']}{suffix}"
