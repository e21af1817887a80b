"""Method ``two_step`` (reference): over the sender's own rail first, then inside the goal's box.

What libraries for mixtures of experts do (DeepEP, 2025): rank g of a box sends what is for another box to rank g there,
which hands it on over NVLink. Only the sender's NIC carries what it sends: ranks that send much hold up all.
Complexity: two transfers a block and chunk.
"""

from __future__ import annotations

from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.out_trees import empty, refusal
from synth_models.fabric.references.pair_paths import best_paths

KNOWN = ("alltoall", "demand")


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``two_step``."""
    refused = refusal(instance, KNOWN, "two_step")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    box = {rank: b for b, ranks in enumerate(instance.boxes) for rank in ranks}
    place = {rank: g for ranks in instance.boxes for g, rank in enumerate(ranks)}
    group = {rank: k for k, rank in enumerate(instance.members)}

    def path(origin: int, goal: int) -> tuple[list[int], list[int]]:
        there = instance.boxes[box[goal]]
        step = (group[goal] - group[origin]) % len(group)
        if box[origin] == box[goal] or place[origin] >= len(there) or there[place[origin]] == goal:
            return [origin, goal], [step]
        return [origin, there[place[origin]], goal], [step, step]

    return best_paths(instance, options, "rail, then NVLink", path)
