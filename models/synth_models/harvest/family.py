"""The harvest family: what ties its instances, methods, check and views together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from synth.family import Family, Method, Objective, Verdict
from synth.options import Parameter, read_choice, read_flag, read_int
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.plan import Plan

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from synth.frames import Frames
    from synth.reproduction import Reproduction

_HERE = "synth_models.harvest."
_EXACT = (
    Parameter("symmetry", read_flag, True, "keep one of the topologies that relabelled GPUs turn into each other"),
    Parameter("strengthening", read_flag, True, "rows on reachability and distances; one port as a linear program"),
    Parameter(
        "cone", read_choice("auto", "cuts", "cone"), "auto", "T * theta >= m by tangents or as a cone (auto: SCIP)"
    ),
)


class HarvestFamily(Family):
    """Topologies for the steps of a collective; minimises the completion time."""

    name = "harvest"
    title = "Harvest: reconfiguration schedules for a photonic fabric"
    citation = "Harvest: adaptive photonic switching schedules for collective communication in scale-up domains"
    objective = Objective("completion time", "s")
    instance_type = HarvestInstance
    default_methods = (
        "bound", "static_ring", "static_torus", "static_kautz", "bvn", "greedy", "recursive_doubling_closed_form",
        "dp_k", "candidates",
    )  # fmt: skip
    methods: ClassVar[Mapping[str, Method]] = {
        method.name: method
        for method in (
            Method("bound", "bound", "least time over all topology sequences, by relaxations of intervals (ours)",
                   _HERE + "bound:solve", (),
                   (Parameter("rates", read_choice("on", "off"), "on", "joint limits on rates"),)),
            Method("static_ring", "reference", "the 1-D ring throughout", _HERE + "references:static_ring"),
            Method("static_torus", "reference", "the 2-D or 3-D torus throughout", _HERE + "references:static_torus"),
            Method("static_kautz", "reference", "the generalised Kautz network throughout",
                   _HERE + "references:static_kautz"),
            Method("bvn", "reference", "reconfigure before every step whose pattern differs",
                   _HERE + "references:bvn"),
            Method("greedy", "reference", "reconfigure when the step alone gains more than the delay (ours)",
                   _HERE + "candidates:greedy"),
            Method("dp_k", "reference", "Algorithm 1: least time for every number of reconfigurations (the paper's)",
                   _HERE + "candidates:solve_dp_k", (),
                   (Parameter("reconfigurations", read_int(0), None, "intervals less one, instead of the best k"),)),
            Method("recursive_doubling_closed_form", "reference",
                   "recursive doubling on one port in O(log^2 n) (the paper's section 5)", _HERE + "closed_form:solve"),
            Method("candidates", "program", "concurrent flows on candidate topologies, then a shortest path",
                   _HERE + "candidates:solve", ("highs",)),
            Method("misocp", "program", "appendix A over all topologies with the outer program: proven optimal (exact)",
                   _HERE + "misocp:solve", ("highs", "scip", "gurobi"), _EXACT),
        )
    }  # fmt: skip

    def defaults_for(self, instance: HarvestInstance) -> tuple[str, ...]:
        """The methods that have a form for the instance's ports and steps."""
        from synth_models.harvest.closed_form import applies
        from synth_models.harvest.topologies import pattern_degree, static_tori

        usable = {
            "bvn": all(pattern_degree(pairs) <= instance.ports for pairs in instance.pairs),
            "static_torus": bool(static_tori(instance)), "static_kautz": 2 <= instance.ports < instance.gpus,
            "recursive_doubling_closed_form": applies(instance),
        }  # fmt: skip
        return tuple(name for name in self.default_methods if usable.get(name, True))

    def make(self, parameters: Mapping[str, str]) -> HarvestInstance:
        from synth_models.harvest.making import make

        return make(parameters)

    def check(self, instance: HarvestInstance, solution: Plan) -> Verdict:
        from synth_models.harvest.check import check_plan

        return check_plan(instance, solution)

    def check_bound(self, instance: HarvestInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
        from synth_models.harvest.check_bound import check_bound

        return check_bound(instance, bound, certificate)

    def pack(self, solution: Plan) -> dict[str, Any]:
        from synth_models.harvest.plan import pack

        return pack(solution)

    def unpack(self, instance: HarvestInstance, packed: Mapping[str, Any]) -> Plan:
        from synth_models.harvest.plan import unpack

        return unpack(packed)

    def table(self, instance: HarvestInstance, solution: Plan) -> pd.DataFrame:
        """Columns ``step,src,dst,links``: the topology of every step."""
        from synth_models.harvest.views import topology_table

        return topology_table(solution)

    def flow_table(self, instance: HarvestInstance, solution: Plan) -> pd.DataFrame:
        """Columns ``step,pair_src,pair_dst,src,dst,flow``: the share of a pair's bytes on a link."""
        from synth_models.harvest.views import flow_table

        return flow_table(instance, solution)

    def describe(self, instance: HarvestInstance, solution: Plan) -> str:
        from synth_models.harvest.views import describe

        return describe(instance, solution)

    def frames(self, instance: HarvestInstance, solution: Plan) -> Frames | None:
        from synth_models.harvest.animation import frames

        return frames(instance, solution)

    def plot(self, instance: HarvestInstance, solution: Plan, title: str) -> Figure:
        from synth_models.harvest.views import plot

        return plot(instance, solution, title)

    def reproduce(self, page: Reproduction) -> None:
        from synth_models.harvest.reproduction import reproduce

        reproduce(page)
