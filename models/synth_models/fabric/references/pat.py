"""Method ``pat`` (reference): NCCL's parallel aggregated trees, for allgather and reduce-scatter.

Jeaugey: "PAT: a new algorithm for all-gather and reduce-scatter operations at scale", 2025 (arXiv 2506.20252); in NCCL
since 2.23 (2024). Bruck's trees (Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 1997), one a rank and all of the same
shape, with the farthest step first: the few blocks of the first steps go far, and the many of the last to neighbours,
for any number of ranks. A message takes at most A blocks of different ranks (the buffer that is there for what is on
its way): the first log2 A steps lead n / A ranks away or more, n / A - 1 further ones take A blocks each to all nearer
ranks, in the order of a depth-first walk. Reduce-scatter is this backwards.

With direct routes between all (latency a, bandwidth b; n = 2^k ranks, M bytes) allgather takes
``a (log2 A + n / A - 1) + (n - 1) / n M / b`` if messages follow one another. On boxes of 2^j ranks behind one switch
only the far steps leave the box, along rails.

NCCL runs it with one rank a node, in a channel a NIC. Here the ranks are those of the group in its order, A is the best
of several powers of two (``together=A`` states it), and channels take equally quick routes. Complexity: N^2 transfers.
Guarantee: none.
"""

from __future__ import annotations

from functools import partial

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.out_trees import Kind, Trees, best_of, empty, refusal
from synth_models.fabric.plans.spreading import far_first, over

KNOWN = ("allgather", "reduce_scatter")


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``pat``."""
    refused = refusal(instance, KNOWN, "pat")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    return best_of(instance, options, _kinds(instance, options.method.get("together")))


def _kinds(instance: FabricInstance, asked: int | None) -> list[Kind]:
    """Every second power of two from the number of ranks down, or what is asked for, rounded down to a power."""
    top = (len(instance.members) - 1).bit_length()
    sizes = [1 << k for k in range(top, -1, -2)]
    if asked is not None:
        sizes = [1 << min(asked.bit_length() - 1, top)]
    return [(f"PAT, {size} blocks a message", partial(_trees, instance, size)) for size in sizes]


def _trees(instance: FabricInstance, together: int) -> tuple[Trees, Trees]:
    members = instance.members
    found = Trees(1, over(members, partial(far_first, together=together)), lambda variant: members)
    return found, found
