"""Method ``bruck`` (reference): Bruck's algorithms, log2 n steps for any number of ranks.

Bruck, Ho, Kipnis, Upfal, Weathersby: "Efficient algorithms for all-to-all communications in multiport message-passing
systems", IEEE TPDS 1997. Allgather: in step s every rank sends all it has, at most what is still missing, to the rank
2^s before it. Alltoall: in step s every rank sends to the rank 2^s behind it all blocks whose remaining distance has
bit s; a block travels once for every bit of its distance.

With direct routes between all (latency a, bandwidth b): allgather of M bytes ``a ceil(log2 n) + (n - 1) / n M / b``;
alltoall, M bytes a rank, ``log2 n (a + M / (2 b))`` for n = 2^k. Complexity: N^2 transfers, N^2 log N for alltoall.
"""

from __future__ import annotations

import numpy as np

from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans import spreading
from synth_models.fabric.plans.out_trees import Trees, best_of, empty, refusal
from synth_models.fabric.plans.pair_paths import best_paths
from synth_models.fabric.plans.spreading import over
from synth_models.fabric.routes.routes_in_turn import Edges

KNOWN = ("allgather", "alltoall")


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``bruck``."""
    refused = refusal(instance, KNOWN, "bruck")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    if instance.collective == "alltoall":
        return best_paths(instance, options, "Bruck", _edges(instance))
    made = trees(instance)
    return best_of(instance, options, [("Bruck", lambda: (made, made))])


def _edges(instance: FabricInstance) -> Edges:
    """The ways of all blocks over other ranks."""
    place = {rank: k for k, rank in enumerate(instance.members)}
    rows = list[tuple[int, int, int, int]]()
    for b, (origin, goal) in enumerate(
        zip(instance.blocks.origin.tolist(), instance.blocks.goal.tolist(), strict=True)
    ):
        stops, steps = _stops(instance.members, place[origin], place[goal])
        rows += zip([b] * len(steps), stops, stops[1:], steps, strict=False)
    return Edges(*np.array(rows, dtype=np.int64).T.copy())


def _stops(members: tuple[int, ...], first: int, last: int) -> tuple[list[int], list[int]]:
    """The ranks that a block visits, and the step of every move."""
    n = len(members)
    left = (last - first) % n
    stops, steps, at, s = [members[first]], [], first, 0
    while left >> s:
        if left >> s & 1:
            at = (at + (1 << s)) % n
            stops.append(members[at])
            steps.append(s)
        s += 1
    return stops, steps


def trees(instance: FabricInstance) -> Trees:
    """The ranks that have a rank's data, 1, 2, 4, … before it in number."""
    return Trees(1, over(instance.members, spreading.bruck), lambda variant: instance.members)
