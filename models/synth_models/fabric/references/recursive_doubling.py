"""Method ``recursive_doubling`` (reference): what MPI libraries do for powers of two.

Thakur, Rabenseifner, Gropp: "Optimization of collective communication operations in MPICH", IJHPCA 2005. Allgather by
doubling: in step s, ranks whose numbers differ in bit s exchange all they have. Reduce-scatter by halving, which is
this backwards. Allreduce: Rabenseifner's (halving, then doubling), or in log2 n exchanges of whole buffers, which are
added up on both sides; what is quicker is kept. In an exchange both must have sent before they receive, which is only
so where partners have a direct route to each other and the machine is even; where the times show that they have not,
whole buffers are no candidate.

Three orders of the bits are tried: from bit 0 on; from the highest on, so that the most data go to neighbours; and,
for ranks with several ports, every cyclic order at once, each for an equal share (Johnsson, Ho: "Optimum broadcasting
and personalized communication in hypercubes", IEEE TC 1989; on tori of powers of two these are orders of the
dimensions). On a hypercube of dimension d all d ports are then busy in every step.

On n = 2^k ranks with direct routes (latency a, bandwidth b): allgather of M bytes at most
``a log2 n + (n - 1) / n M / b``, allreduce twice that or ``log2 n (a + M / b)``.

With n no power of two, the last n - p of p = 2^floor(log2 n) ranks fold: they hand their data to rank r - p first and
get the result from there at last. Complexity: N^2 transfers (2 N for whole buffers). Guarantee: latency-optimal where
all pairs are equally near.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.out_trees import Kind, Trees, best_of, empty, refusal
from synth_models.fabric.plans.spreading import doubling, over
from synth_models.fabric.plans.whole_messages import exchanged, messages
from synth_models.fabric.scheduling import chunks

KNOWN = ("allgather", "reduce_scatter", "allreduce")


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``recursive_doubling``."""
    refused = refusal(instance, KNOWN, "recursive_doubling")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    name = "halving and doubling" if instance.collective == "allreduce" else "doubling"
    name = "halving" if instance.collective == "reduce_scatter" else name
    found = best_of(instance, options, _kinds(instance, name), racing=True)
    if instance.collective == "allreduce":
        whole = exchanged(instance, messages(len(instance.members)))
        if whole is not None and chunks.seconds(instance, whole) < chunks.seconds(instance, found.solution):
            return Outcome("finished", solution=whole, message="doubling with whole buffers")
    return found


def _kinds(instance: FabricInstance, name: str) -> list[Kind]:
    bits = range(len(instance.members).bit_length() - 1)
    orders = {
        name: [tuple(bits)],
        f"{name}, the farthest first": [tuple(bits[::-1])],
        f"{name}, all bits at once": [(*bits[k:], *bits[:k]) for k in bits],
    }
    distinct = {tuple(tried): words for words, tried in reversed(orders.items()) if tried}
    return [(words, partial(_twice, instance, tried)) for tried, words in reversed(distinct.items())]


def _twice(instance: FabricInstance, orders: Sequence[Sequence[int]]) -> tuple[Trees, Trees]:
    found = trees(instance, orders)
    return found, found


def trees(instance: FabricInstance, orders: Sequence[Sequence[int]]) -> Trees:
    """Binomial trees: the data of a rank double in every step, over the bits in one of these orders."""
    members = instance.members
    half = 1 << (len(members).bit_length() - 1)  # the largest power of two
    patterns = [over(members, partial(doubling, order=order)) for order in orders]
    return Trees(len(orders), lambda holder, variant: patterns[variant](holder, 0), lambda variant: members[:half])
