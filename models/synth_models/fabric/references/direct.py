"""Method ``direct`` (reference): everybody sends to everybody at once.

What NCCL does for alltoall, gather and scatter, and MPI's linear algorithms: a block goes straight from its origin to
each rank that needs it, over the quickest route. Rank i sends to i + 1, i + 2, … in the order of the group, so that no
two send to the same rank first. Reductions are this backwards: every contribution goes straight to the rank that adds
them up; an allreduce does so for N shares of the buffer and then hands each out the same way ("two-shot"), or sends
whole buffers, which everybody adds up ("one-shot": NCCL's symmetric kernels, MSCCL++'s all pairs, vLLM), where all have
sent before they receive: few bytes. What is quicker is kept.

With direct routes between all (latency a, bandwidth b a rank) allgather and alltoall of M bytes take ``a + (n - 1) / n
M / b``, allreduce twice that or ``a + (n - 1) M / b``. Where routes lead over ranks, what several goals need is sent
over a shared stretch once, and a reduction is added up where its routes meet; of an alltoall equally quick ways are
used evenly, as by routing in all orders of a torus's dimensions. Complexity: N^2 transfers a chunk.
"""

from __future__ import annotations

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.block_schedules import best_trees
from synth_models.fabric.plans.block_trees import Habit
from synth_models.fabric.plans.even_ways import PARTS, evenly
from synth_models.fabric.plans.out_trees import Trees, best_of, empty, too_large
from synth_models.fabric.plans.pair_edges import straight_to_goals
from synth_models.fabric.plans.pair_paths import best_paths
from synth_models.fabric.plans.spreading import over, star
from synth_models.fabric.plans.whole_messages import exchanged, to_all
from synth_models.fabric.scheduling import chunks

PAIRS = ("alltoall", "gather", "scatter", "demand")


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``direct``."""
    message = too_large(instance)
    if message is not None:
        return Outcome("unsupported", message=message)
    if not len(instance.blocks):
        return empty(instance)
    if instance.collective in PAIRS:
        return _in_pairs(instance, options)
    if instance.traffic is not None:
        return best_trees(instance, options, "direct: the nearest holder to every wanter", [Habit(0.0, 1.0)])
    spreading = trees(instance)
    found = best_of(instance, options, [("direct", lambda: (spreading, spreading))])
    if instance.collective == "allreduce":
        whole = exchanged(instance, to_all(len(instance.members)))
        if whole is not None and chunks.seconds(instance, whole) < chunks.seconds(instance, found.solution):
            return Outcome("finished", solution=whole, message="direct, whole buffers")
    return found


def _in_pairs(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Every block straight to its goal, equally quick ways in turn, and also in parts as evenly as the ways allow."""
    edges = straight_to_goals(instance, instance.blocks.origin, instance.blocks.goal)
    best = best_paths(instance, options, "direct", edges)
    for parts in PARTS:
        if best.termination != "finished" or options.out_of_time():
            break
        even = evenly(instance, instance.blocks.bytes, edges, parts)
        if even is None:
            continue
        name = f"direct, evenly over equally quick ways, {parts} a block"
        found = best_paths(instance, options, name, even, parts)
        if chunks.seconds(instance, found.solution) < chunks.seconds(instance, best.solution):
            best = found
    return best


def trees(instance: FabricInstance) -> Trees:
    """Stars: to the next rank first."""
    return Trees(1, over(instance.members, star), lambda variant: instance.members)
