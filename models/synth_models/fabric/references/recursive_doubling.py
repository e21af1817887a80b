"""Method ``recursive_doubling`` (reference): what MPI libraries do for powers of two.

Thakur, Rabenseifner, Gropp: "Optimization of collective communication operations in MPICH", IJHPCA 2005. Allgather by
doubling: in step s, ranks whose numbers differ in bit s exchange all they have. Reduce-scatter by halving, which is
this backwards. Allreduce: Rabenseifner's (halving, then doubling), or in log2 n exchanges of whole buffers, which are
added up on both sides; what is quicker is kept. In an exchange both must have sent before they receive, which is only
so where partners have a direct route to each other and the machine is even; where the times show that they have not,
whole buffers are no candidate.

On n = 2^k ranks with direct routes (latency a, bandwidth b): allgather of M bytes at most
``a log2 n + (n - 1) / n M / b``, allreduce twice that or ``log2 n (a + M / b)``.

With n no power of two, the last n - p of p = 2^floor(log2 n) ranks fold: they hand their data to rank r - p first and
get the result from there at last. Complexity: N^2 transfers (2 N for whole buffers). Guarantee: latency-optimal where
all pairs are equally near.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.out_trees import Edge, Trees, best_of, empty, refusal
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
    spreading = trees(instance)
    name = "halving and doubling" if instance.collective == "allreduce" else "doubling"
    name = "halving" if instance.collective == "reduce_scatter" else name
    found = best_of(instance, options, [(name, lambda: (spreading, spreading))])
    if instance.collective == "allreduce":
        whole = exchanged(instance)
        if whole is not None and chunks.seconds(instance, whole) < chunks.seconds(instance, found.solution):
            return Outcome("finished", solution=whole, message="doubling with whole buffers")
    return found


def trees(instance: FabricInstance) -> Trees:
    """Binomial trees: the data of a rank double in every step, over bit 0 first."""
    members = instance.members
    n = len(members)
    half = 1 << (n.bit_length() - 1)  # the largest power of two
    place = {rank: k for k, rank in enumerate(members)}

    def edges(holder: int, variant: int) -> Iterator[Edge]:
        first = place[holder]
        if first >= half:
            yield holder, members[first - half], 0
            first -= half
        has, bit, step = [first], 1, 1
        while bit < half:
            yield from ((members[k], members[k ^ bit], step) for k in has)
            has += [k ^ bit for k in has]
            bit, step = 2 * bit, step + 1
        for k in range(half, n):
            if members[k] != holder:
                yield members[k - half], members[k], step

    return Trees(1, edges, lambda variant: members[:half])


class Message(NamedTuple):
    """A whole buffer, from a member to a member (their places among the members): added there, or instead of what is
    there. Messages of one step go at once."""

    source: int
    target: int
    step: int
    adds: bool


def _messages(n: int) -> list[Message]:
    """Folding, log2 n exchanges, unfolding."""
    half = 1 << (n.bit_length() - 1)
    found = [Message(k, k - half, 0, True) for k in range(half, n)]
    bit, step = 1, 1
    while bit < half:
        found += [Message(k, k ^ bit, step, True) for k in range(half)]
        bit, step = 2 * bit, step + 1
    return found + [Message(k - half, k, step, False) for k in range(half, n)]


def exchanged(instance: FabricInstance) -> Schedule | None:
    """Allreduce by exchanges of whole buffers; None where a rank would receive before it has sent, or where partners
    have no direct route."""
    messages = _messages(len(instance.members))
    moves = _over_direct_routes(instance, messages)
    if moves is None:
        return None
    schedule = timed(instance, moves)
    first = schedule.start
    if instance.switching.mode == "store_and_forward":
        first = first[moves.route_start[:-1]]
    came = arrivals(instance, moves, schedule)
    sent = {(m.source, m.step): int(first[i]) for i, m in enumerate(messages)}
    for i, m in enumerate(messages):
        if m.adds and any(sent.get((m.target, s), -1) >= came[i] for s in range(1, m.step + 1)):
            return None  # the target would send on what it is about to receive from another
    return schedule


def _over_direct_routes(instance: FabricInstance, messages: Sequence[Message]) -> Transfers | None:
    """The messages as transfers, each after all that its source has received in earlier steps; None where one of them
    has no direct route."""
    members, size = instance.members, int(instance.blocks.bytes[0])
    routes = Routes.of(instance, size)
    links: list[Route] = []
    before: list[list[int]] = []
    received: dict[int, list[int]] = {}
    now: list[tuple[int, int]] = []  # target and number of the messages of this step
    step = 0
    for i, message in enumerate(messages):
        if message.step != step:
            for target, arrived in now:
                received.setdefault(target, []).append(arrived)
            now, step = [], message.step
        found = routes.hops(members[message.source], members[message.target])
        if len(found) > 1:
            return None
        routes.take(found[0])
        links.append(found[0])
        before.append(list(received.get(message.source, ())))
        now.append((message.target, i))
    steps, adds = [m.step for m in messages], [m.adds for m in messages]
    return Transfers.of([0], [size], [0] * len(messages), links, before, steps, adds)
