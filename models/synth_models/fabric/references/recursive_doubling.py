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
from typing import NamedTuple

from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.out_trees import Kind, Trees, best_of, empty, refusal
from synth_models.fabric.references.spreading import doubling, over
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import Transfers, timed
from synth_models.fabric.scheduling.reversal import arrivals
from synth_models.fabric.scheduling.routes import Route, Routes
from synth_models.fabric.solution import Schedule

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


class Message(NamedTuple):
    """A whole piece, from a member to a member (their places among the members): added there, or instead of what is
    there. Messages of one step go at once."""

    source: int
    target: int
    step: int
    adds: bool
    piece: int = 0


def messages(n: int) -> list[Message]:
    """Folding, log2 n exchanges, unfolding."""
    half = 1 << (n.bit_length() - 1)
    found = [Message(k, k - half, 0, True) for k in range(half, n)]
    bit, step = 1, 1
    while bit < half:
        found += [Message(k, k ^ bit, step, True) for k in range(half)]
        bit, step = 2 * bit, step + 1
    return found + [Message(k - half, k, step, False) for k in range(half, n)]


def exchanged(instance: FabricInstance, sent: Sequence[Message], pieces: int = 1) -> Schedule | None:
    """Allreduce by these messages of whole pieces, in the order of their steps; None where a rank would receive before
    it has sent, or where partners have no direct route."""
    sizes = chunks.cut(int(instance.blocks.bytes[0]), pieces)
    sent = [m for m in sent if m.piece < len(sizes)]
    moves = _over_direct_routes(instance, sent, sizes)
    if moves is None:
        return None
    schedule = timed(instance, moves)
    first = schedule.start
    if instance.switching.mode == "store_and_forward":
        first = first[moves.route_start[:-1]]
    came = arrivals(instance, moves, schedule)
    left = {(m.piece, m.source, m.step): int(first[i]) for i, m in enumerate(sent)}
    for i, m in enumerate(sent):
        if m.adds and any(left.get((m.piece, m.target, s), -1) >= came[i] for s in range(m.step + 1)):
            return None  # the target would send on what it is about to receive from another
    return schedule


def _over_direct_routes(instance: FabricInstance, sent: Sequence[Message], sizes: Sequence[int]) -> Transfers | None:
    """The messages as transfers, each after all of its piece that its source has received in earlier steps; None where
    one of them has no direct route."""
    members = instance.members
    routes = Routes.of(instance, max(sizes))
    links: list[Route] = []
    before: list[list[int]] = []
    received: dict[tuple[int, int], list[int]] = {}
    now: list[tuple[tuple[int, int], int]] = []  # piece and target, and number of the messages of this step
    step = 0
    for i, message in enumerate(sent):
        if message.step != step:
            for key, arrived in now:
                received.setdefault(key, []).append(arrived)
            now, step = [], message.step
        found = routes.hops(members[message.source], members[message.target])
        if len(found) > 1:
            return None
        routes.take(found[0])
        links.append(found[0])
        before.append(list(received.get((message.piece, message.source), ())))
        now.append(((message.piece, message.target), i))
    steps, adds, piece = [m.step for m in sent], [m.adds for m in sent], [m.piece for m in sent]
    return Transfers.of([0] * len(sizes), sizes, piece, links, before, steps, adds)
