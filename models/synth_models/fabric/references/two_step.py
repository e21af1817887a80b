"""Method ``two_step`` (reference): over the sender's own rail first, then inside the goal's box.

What libraries for mixtures of experts do (DeepEP, 2025): rank g of a box sends what is for another box to rank g there,
which hands it on over NVLink. Only the sender's NIC carries what it sends: ranks that send much hold up all.
Complexity: two transfers a block and chunk.
"""

from __future__ import annotations

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.out_trees import empty, refusal
from synth_models.fabric.plans.pair_edges import by_rail_then_inside
from synth_models.fabric.plans.pair_paths import best_paths

KNOWN = ("alltoall", "demand")


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``two_step``."""
    refused = refusal(instance, KNOWN, "two_step")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    found = by_rail_then_inside(instance, instance.blocks.origin, instance.blocks.goal)
    return best_paths(instance, options, "rail, then NVLink", found)
