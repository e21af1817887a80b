"""The mlfm family: what ties its instances, methods, check and views together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.family import Family, Method, Objective, Verdict
from synth.options import Parameter, read_flag, read_int
from synth.untrusted import choice, whole, whole_numbers
from synth_models.mlfm.instance import MAX_TRANSFERS, MLFMInstance
from synth_models.mlfm.phases import NOTHING, Phases, PhaseTable, ProductPhases, Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from synth.frames import Frames
    from synth.reproduction import Reproduction

_MODULES = "synth_models.mlfm"
MOST = 2**20  # of every number in a solution: above all ids and ranks, and sums of two fit 32 bits
_DECOMPOSE = Parameter(
    "decompose",
    read_flag,
    True,
    "count flows per route first, then colour them (exact for one-spine routes); off: one model",
)
_HORIZON = Parameter("horizon", read_int(1), None, "decide this number of phases only: phases, or proven infeasible")
_AS_PRINTED = Parameter("as_printed", read_flag, False, "apply the printed rule to any block, the check judges")
_PHASES = Parameter("phases", read_int(1), None, "number of phases; the number of servers N when not given")


_METHODS = (
    Method(
        "bound", "bound", "strongest of N, forced links, leaf degree and fractional routing", f"{_MODULES}.bound:solve"
    ),
    Method(
        "closed_form", "reference", "the published rule, for blocks with m <= l-1 <= d",
        f"{_MODULES}.references:solve_closed_form", (), (_AS_PRINTED,),
    ),
    Method(
        "shift", "reference", "rank x to x + p mod N, static minimal routes (congested)",
        f"{_MODULES}.references:solve_shift",
    ),
    Method(
        "pairwise", "reference", "partners exchange in every phase, static minimal routes (congested)",
        f"{_MODULES}.references:solve_pairwise",
    ),
    Method(
        "greedy", "reference", "first phase that fits, transfers in seeded random order",
        f"{_MODULES}.references:solve_greedy",
    ),
    Method(
        "cpsat", "program", "phases, destinations and routes, fewest phases (CP-SAT, then edge colouring)",
        f"{_MODULES}.cpsat:solve", ("cpsat",), (_DECOMPOSE, _HORIZON),
    ),
    Method(
        "ilp", "program", "the same through Pyomo", f"{_MODULES}.ilp:solve", ("highs", "gurobi", "scip"),
        (_DECOMPOSE, _HORIZON),
    ),
    Method(
        "min_congestion", "program", "smallest worst link load for a fixed number of phases",
        f"{_MODULES}.congestion:solve", ("cpsat",), (_PHASES,),
    ),
)  # fmt: skip


class MLFMFamily(Family):
    """All-to-all among servers of a multi-layer full mesh; minimises congestion-free phases."""

    name = "mlfm"
    title = "MLFM: congestion-free all-to-all on part of a multi-layer full mesh"
    citation = (
        "Congestion-free all-to-all communication using part of the servers on the Multi-layer full mesh topology"
    )
    objective = Objective("phases", "phases")
    instance_type = MLFMInstance
    default_methods = ("bound", "closed_form", "shift", "cpsat")
    methods = MappingProxyType({method.name: method for method in _METHODS})

    def defaults_for(self, instance: MLFMInstance) -> Sequence[str]:
        """The methods to run when none is named: those that fit the job's kind and size."""
        left_out = set()
        if instance.block is None or instance.any_link_failed or instance.failed.servers:
            left_out.add("closed_form")
        if instance.ranks**2 > MAX_TRANSFERS:
            left_out |= {"shift", "cpsat"}
        return [name for name in self.default_methods if name not in left_out]

    def make(self, parameters: Mapping[str, str]) -> MLFMInstance:
        """An instance from texts: ``d=3 layers=2 columns=4 servers=3`` or ``d=4 subset=FILE``; see :mod:`.making`."""
        from synth_models.mlfm.making import make

        return make(parameters)

    def check(self, instance: MLFMInstance, solution: Phases) -> Verdict:
        from synth_models.mlfm.check import check_phases

        return check_phases(instance, solution)

    def check_bound(self, instance: MLFMInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
        from synth_models.mlfm.check import check_bound

        return check_bound(instance, bound, certificate)

    def pack(self, solution: Phases) -> dict[str, Any]:
        if isinstance(solution, ProductPhases):
            names = ("pattern", "layer_shift", "slot_shift", "column", "spine")
            return {"form": "product", "layers": solution.layers} | {
                key: _narrow(getattr(solution, key)) for key in names
            }
        assert isinstance(solution, PhaseTable)
        packed: dict[str, Any] = {"form": "table", "dest": _narrow(solution.dest), "spine": _narrow(solution.spine)}
        if solution.middle is not None and solution.second is not None:
            packed |= {"middle": _narrow(solution.middle), "second": _narrow(solution.second)}
        return packed

    def unpack(self, instance: MLFMInstance, packed: Mapping[str, Any]) -> Phases:
        """Raises ``ValueError`` for data of a wrong kind, shape or range; what the numbers mean is the check's."""
        if choice(packed, "form", "product", "table") == "product":
            shifts = (_table(packed, key, (None,), 0) for key in ("pattern", "layer_shift", "slot_shift"))
            tables = (_table(packed, key, (None, None, None)) for key in ("column", "spine"))
            return ProductPhases(whole(packed, "layers", 1, MOST), *shifts, *tables)
        names = ("dest", "spine") + (("middle", "second") if "middle" in packed or "second" in packed else ())
        return PhaseTable(*(_table(packed, key, (None, None)) for key in names))

    def table(self, instance: MLFMInstance, solution: Phases) -> pd.DataFrame:
        """Columns ``phase,src,dst,via``: servers as ``layer.column.slot``; ``via`` lists the leaves
        (``layer.column``) and spines (``column-column``) along the route, separated by spaces, one leaf only for a
        transfer inside it."""
        from synth_models.mlfm.views import table

        return table(instance, solution)

    def frames(self, instance: MLFMInstance, solution: Phases) -> Frames | None:
        from synth_models.mlfm.animation import frames

        return frames(instance, solution)

    def describe(self, instance: MLFMInstance, solution: Phases) -> str:
        from synth_models.mlfm.views import describe

        return describe(instance, solution)

    def plot(self, instance: MLFMInstance, solution: Phases, title: str) -> Figure:
        from synth_models.mlfm.views import plot

        return plot(instance, solution, title)

    def reproduce(self, page: Reproduction) -> None:
        from synth_models.mlfm.reproduce import reproduce

        reproduce(page)


def _narrow(values: Table) -> Table:
    """In the smallest signed type that holds them."""
    for kind in (np.int8, np.int16):
        if values.size == 0 or (values.min() >= np.iinfo(kind).min and values.max() <= np.iinfo(kind).max):
            return values.astype(kind)
    return values


def _table(packed: Mapping[str, Any], key: str, shape: tuple[None, ...], least: int = NOTHING) -> Table:
    return whole_numbers(packed, key, least, MOST, shape).astype(np.int32)
