"""Method ``sharp`` (reference): allreduce over one aggregation tree of switches (SHARP; NCCL's CollNet).

Graham et al.: "Scalable Hierarchical Aggregation Protocol (SHArP)", COM-HPC 2016; the streaming trees of SHARP 2 are
what NCCL's CollNet algorithms use. All ranks' data go up one tree of switches that add, to its root, and the sum down
the same tree, at once: ``M / b`` and the latencies of the way up and down, b being the least bandwidth on it. The root
is the switch with the quickest tree. Complexity: a search a switch. Guarantee: none; other switches' links are idle.
"""

from __future__ import annotations

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.out_trees import empty, refusal
from synth_models.fabric.plans.switch_trees import hub_routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import Transfers, timed

KNOWN = ("allreduce",)
LACKING = "sharp needs a switch joined to all ranks over switches that add and copy"


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``sharp``."""
    refused = refusal(instance, KNOWN, "sharp")
    if refused is not None:
        return refused
    if len(instance.members) == 1:
        return empty(instance)
    able = instance.machine.abilities.any and instance.switching.mode == "cut_through"
    routes = hub_routes(instance) if able else []
    if not routes:
        return Outcome("unsupported", message=LACKING)
    made = [timed(instance, Transfers.of([0], [instance.bytes], [0], [route], [[]])) for route in routes]
    best = min(made, key=lambda schedule: chunks.seconds(instance, schedule))
    return Outcome("finished", best, message=f"one tree, the best of {len(routes)}")
