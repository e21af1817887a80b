"""The bine family: what ties its instances, methods, check and views together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from synth.family import Family, Method, Objective, Verdict
from synth.options import Parameter, read_choice, read_int
from synth.untrusted import MOST, flags, whole, whole_numbers
from synth_models.bine.instance import MAX_RANKS, BineInstance
from synth_models.bine.plan import MAX_BLOCKS, MAX_ROUNDS, Plan

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from synth.frames import Frames
    from synth.reproduction import Reproduction

_ORDER = Parameter("order", read_choice("halving", "doubling"), None, "trees: halving, butterflies: doubling first")
_BLOCKS = Parameter(
    "blocks", read_choice("permute", "pieces", "exchange"), "permute",
    "blocks that are no neighbours: permute them before, send the pieces, or exchange them in one more round",
)  # fmt: skip
_HERE = "synth_models.bine."
_INTS = ("job", "round", "src", "dst", "first", "count", "adds", "layout", "starts")


class BineFamily(Family):
    """Collectives on real allocations; minimises bytes on global links."""

    name = "bine"
    title = "Bine trees: traffic of collectives on global links"
    citation = "De Sensi et al.: Bine Trees: Enhancing Collective Operations by Optimizing Communication Locality"
    objective = Objective("bytes on global links", "bytes")
    instance_type = BineInstance
    default_methods = (
        "bound", "binomial_halving", "binomial_doubling", "recursive", "ring", "bruck", "sparbit", "bucket",
        "bine", "bine_torus", "placement_greedy", "placement", "tree_ilp",
    )  # fmt: skip
    methods: ClassVar[Mapping[str, Method]] = {
        method.name: method
        for method in (
            Method("bound", "bound", "trees: receive count; butterflies: edge-isoperimetric count",
                   _HERE + "bound:solve"),
            Method("binomial_halving", "reference", "distance-halving binomial trees (MPICH)",
                   _HERE + "references:binomial_halving"),
            Method("binomial_doubling", "reference", "distance-doubling binomial trees (Open MPI)",
                   _HERE + "references:binomial_doubling"),
            Method("recursive", "reference", "recursive halving/doubling butterflies",
                   _HERE + "references:recursive", (), (_ORDER,)),
            Method("ring", "reference", "ring; alltoall: pairwise shifts", _HERE + "references:ring"),
            Method("bruck", "reference", "Bruck's allgather and alltoall", _HERE + "references:bruck"),
            Method("swing", "reference", "Swing: Bine's partners, blocks in pieces",
                   _HERE + "references:swing", (), (_ORDER,)),
            Method("sparbit", "reference", "Sparbit's allgather", _HERE + "references:sparbit"),
            Method("bucket", "reference", "rings along the dimensions of a torus", _HERE + "references:bucket"),
            Method("bine", "reference", "Bine trees and butterflies (the paper's)",
                   _HERE + "references:bine", (), (_ORDER, _BLOCKS)),
            Method("bine_torus", "reference", "Bine on a torus, one collective per direction",
                   _HERE + "references:bine_torus"),
            Method("placement_greedy", "reference", "hypercube positions: aligned blocks, then swaps (ours)",
                   _HERE + "greedy:solve", (),
                   (Parameter("restarts", read_int(1), 4, "starting points of the local search"),)),
            Method("placement", "program", "hypercube positions as a quadratic assignment, linearised (ours)",
                   _HERE + "placement:solve", ("cpsat", "highs", "scip", "gurobi")),
            Method("tree_ilp", "program", "least-crossing tree as an integer flow over (group, round) (ours)",
                   _HERE + "tree_ilp:solve", ("highs", "scip", "gurobi"),
                   (Parameter("rounds", read_int(1), None, "rounds of the tree, at most the problem's"),)),
        )
    }  # fmt: skip

    def defaults_for(self, instance: BineInstance) -> tuple[str, ...]:
        """The methods that have a form of the instance's collective."""
        tree = instance.problem == "tree"
        rooted = instance.collective in ("broadcast", "reduce", "scatter", "gather")
        halves = instance.collective in ("allgather", "reduce_scatter") or (
            instance.collective == "allreduce" and instance.vector == "large"
        )
        free = instance.problem == "any"
        usable = {
            "bound": True, "bine": instance.problem != "butterfly", "tree_ilp": tree,
            "binomial_halving": rooted, "binomial_doubling": rooted, "recursive": not rooted,
            "ring": free and (halves or instance.collective == "alltoall"),
            "bruck": free and instance.collective in ("allgather", "alltoall"),
            "sparbit": free and instance.collective == "allgather", "bucket": instance.torus is not None and halves,
            "bine_torus": instance.torus is not None and halves and all(s & (s - 1) == 0 for s in instance.torus),
            "placement_greedy": instance.problem == "butterfly", "placement": instance.problem == "butterfly",
        }  # fmt: skip
        return tuple(name for name in self.default_methods if usable[name])

    def make(self, parameters: Mapping[str, str]) -> BineInstance:
        from synth_models.bine.make import make

        return make(parameters)

    def check(self, instance: BineInstance, solution: Plan) -> Verdict:
        from synth_models.bine.check import check_plan

        return check_plan(instance, solution)

    def check_bound(self, instance: BineInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
        from synth_models.bine.check_bound import check_bound

        return check_bound(instance, bound, certificate)

    def pack(self, solution: Plan) -> dict[str, Any]:
        packed: dict[str, Any] = {
            key: getattr(solution, key).astype(np.int8 if key == "adds" else np.int64) for key in _INTS
        }
        return packed | {"shares": solution.shares}

    def unpack(self, instance: BineInstance, packed: Mapping[str, Any]) -> Plan:
        """Raises ``ValueError`` for data of a wrong kind, shape or range; what the numbers mean is the check's."""
        most = {"job": MOST, "round": MAX_ROUNDS - 1, "src": MAX_RANKS - 1, "dst": MAX_RANKS - 1}
        columns = {key: whole_numbers(packed, key, 0, most.get(key, MAX_BLOCKS)) for key in _INTS if key != "adds"}
        return Plan(**columns, adds=flags(packed, "adds"), shares=whole(packed, "shares", 1, MAX_RANKS))

    def table(self, instance: BineInstance, solution: Plan) -> pd.DataFrame:
        """Columns ``round,src,dst,bytes``, one row a message; ``job`` in front where there are several jobs."""
        import pandas as pd

        unit = np.array([instance.block_bytes(len(groups)) for groups in instance.allocations]) / solution.shares
        frame = pd.DataFrame(
            {
                "job": solution.job, "round": solution.round, "src": solution.src, "dst": solution.dst,
                "bytes": solution.count * unit[solution.job],
            }
        )  # fmt: skip
        frame = frame.groupby(["job", "round", "src", "dst"])["bytes"].sum().reset_index()
        return frame if len(instance.allocations) > 1 else frame.drop(columns="job")

    def frames(self, instance: BineInstance, solution: Plan) -> Frames | None:
        from synth_models.bine.animation import frames

        return frames(instance, solution)

    def describe(self, instance: BineInstance, solution: Plan) -> str:
        from synth_models.bine.views import describe

        return describe(instance, solution)

    def plot(self, instance: BineInstance, solution: Plan, title: str) -> Figure:
        from synth_models.bine.views import plot

        return plot(instance, solution, title)

    def reproduce(self, page: Reproduction) -> None:
        from synth_models.bine.reproduce import reproduce

        reproduce(page)
