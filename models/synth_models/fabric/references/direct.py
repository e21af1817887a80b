"""Method ``direct`` (reference): everybody sends to everybody at once.

What NCCL does for alltoall, gather and scatter, and MPI's linear algorithms: a block goes straight from its origin to
each rank that needs it, over the quickest route. Rank i sends to i + 1, i + 2, … in the order of the group, so that no
two send to the same rank first. Reductions are this backwards: every contribution goes straight to the rank that adds
them up; an allreduce does so for N shares of the buffer and then hands each out the same way.

With direct routes between all (latency a, bandwidth b a rank) allgather and alltoall of M bytes take ``a + (n - 1) / n
M / b``, allreduce twice that. Where routes lead over ranks, what several goals need is sent over a shared stretch once,
and a reduction is added up where its routes meet. Complexity: N^2 transfers a chunk.
"""

from __future__ import annotations

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.out_trees import Trees, best_of, empty, too_large
from synth_models.fabric.plans.pair_edges import straight_to_goals
from synth_models.fabric.plans.pair_paths import best_paths
from synth_models.fabric.plans.spreading import over, star

PAIRS = ("alltoall", "gather", "scatter", "demand")


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``direct``."""
    message = too_large(instance)
    if message is not None:
        return Outcome("unsupported", message=message)
    if not len(instance.blocks):
        return empty(instance)
    if instance.collective in PAIRS:
        edges = straight_to_goals(instance, instance.blocks.origin, instance.blocks.goal)
        return best_paths(instance, options, "direct", edges)
    spreading = trees(instance)
    return best_of(instance, options, [("direct", lambda: (spreading, spreading))])


def trees(instance: FabricInstance) -> Trees:
    """Stars: to the next rank first."""
    return Trees(1, over(instance.members, star), lambda variant: instance.members)
