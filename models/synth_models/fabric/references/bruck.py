"""Method ``bruck`` (reference): Bruck's algorithms, log2 n steps for any number of ranks.

Bruck, Ho, Kipnis, Upfal, Weathersby: "Efficient algorithms for all-to-all communications in multiport message-passing
systems", IEEE TPDS 1997. Allgather: in step s every rank sends all it has, at most what is still missing, to the rank
2^s before it. Alltoall: in step s every rank sends to the rank 2^s behind it all blocks whose remaining distance has
bit s; a block travels once for every bit of its distance. For several ports, or where bytes count more than steps, they
have a radix r: in step s a rank has r - 1 partners, 1, 2, … r - 1 times r^s away, and a block travels once for every
digit of its distance that is not 0. The best of the radices 2, 4 and 8 is kept.

With direct routes between all (latency a, bandwidth b): allgather of M bytes ``a ceil(log2 n) + (n - 1) / n M / b``;
alltoall, M bytes a rank, ``log2 n (a + M / (2 b))`` for n = 2^k. Complexity: N^2 transfers, N^2 log N for alltoall.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans import spreading
from synth_models.fabric.plans.out_trees import Trees, best_of, empty, refusal
from synth_models.fabric.plans.pair_paths import best_paths
from synth_models.fabric.plans.spreading import over
from synth_models.fabric.routes.routes_in_turn import Edges
from synth_models.fabric.scheduling import chunks

KNOWN = ("allgather", "alltoall")
RADICES = (2, 4, 8)


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``bruck``."""
    refused = refusal(instance, KNOWN, "bruck")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    radices = [radix for radix in RADICES if radix == RADICES[0] or radix < len(instance.members)]
    if instance.collective == "alltoall":
        return _best_paths(instance, options, radices)
    return best_of(
        instance, options, [(_name(radix), partial(_twice, instance, radix)) for radix in radices], racing=True
    )


def _name(radix: int) -> str:
    return "Bruck" if radix == RADICES[0] else f"Bruck, radix {radix}"


def _twice(instance: FabricInstance, radix: int) -> tuple[Trees, Trees]:
    made = trees(instance, radix)
    return made, made


def _best_paths(instance: FabricInstance, options: RunOptions, radices: list[int]) -> Outcome:
    best = best_paths(instance, options, _name(radices[0]), _edges(instance, radices[0]))
    for radix in radices[1:]:
        if best.termination != "finished" or options.out_of_time():
            break
        found = best_paths(instance, options, _name(radix), _edges(instance, radix))
        if chunks.seconds(instance, found.solution) < chunks.seconds(instance, best.solution):
            best = found
    return best


def _edges(instance: FabricInstance, radix: int) -> Edges:
    """The ways of all blocks over other ranks."""
    place = {rank: k for k, rank in enumerate(instance.members)}
    rows = list[tuple[int, int, int, int]]()
    for b, (origin, goal) in enumerate(
        zip(instance.blocks.origin.tolist(), instance.blocks.goal.tolist(), strict=True)
    ):
        stops, steps = _stops(instance.members, place[origin], place[goal], radix)
        rows += zip([b] * len(steps), stops, stops[1:], steps, strict=False)
    return Edges(*np.array(rows, dtype=np.int64).T.copy())


def _stops(members: tuple[int, ...], first: int, last: int, radix: int) -> tuple[list[int], list[int]]:
    """The ranks that a block visits, and the step of every move."""
    n = len(members)
    left = (last - first) % n
    stops, steps, at, s, unit = [members[first]], [], first, 0, 1
    while left:
        left, digit = divmod(left, radix)
        if digit:
            at = (at + digit * unit) % n
            stops.append(members[at])
            steps.append(s)
        s, unit = s + 1, unit * radix
    return stops, steps


def trees(instance: FabricInstance, radix: int) -> Trees:
    """The ranks that have a rank's data, and those that get them in a step."""
    return Trees(1, over(instance.members, partial(spreading.bruck, radix=radix)), lambda variant: instance.members)
