"""Method ``placement_greedy`` (reference, ours): which rank takes which position of a hypercube butterfly.

Only groups matter, so a placement is a group for every position. Start: positions in order (bit 0 is the heaviest
dimension) filled group by group, in rank order, by falling or rising size, or shuffled. Then swaps of two positions of
different groups while one helps (first improvement, positions in order), O(p^2 log p) a pass. No guarantee; ranks of
a group take its positions in rank order. Seeded; ties keep the earlier start.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.errors import UnsupportedError
from synth.family import Outcome
from synth.kernels import jit
from synth.options import RunOptions
from synth_models.bine import exchanges
from synth_models.bine.butterfly import partners
from synth_models.bine.check_bound import dimension_weights, internal_weights
from synth_models.bine.instance import BineInstance
from synth_models.bine.plan import Ints, Steps, join

SWAPS_LIMIT = 4096  # ranks above which pairs of positions are not searched


def solve(instance: BineInstance, options: RunOptions) -> Outcome:
    """Method ``placement_greedy``; needs the problem butterfly."""
    if instance.problem != "butterfly":
        raise UnsupportedError("placements are for the problem butterfly")
    placements = [
        best_placement(groups, np.array(dimension_weights(instance, len(groups))), options.seed,
                       int(options.method.get("restarts", 4)), options)
        for groups in instance.allocations
    ]  # fmt: skip
    return Outcome("finished", plan_of(instance, placements))


def best_placement(groups: Any, weights: Any, seed: int, restarts: int, options: RunOptions | None = None) -> Ints:
    """Group of every position, shape (p,), of the best local optimum found."""
    ranks = len(groups)
    sizes = np.bincount(groups)
    chooser = np.random.default_rng(seed)
    orders = [np.arange(len(sizes)), np.argsort(-sizes, kind="stable"), np.argsort(sizes, kind="stable")]
    least = weights.sum() * ranks / 2 - internal_weights(weights, ranks)[sizes].sum()
    best, best_cut = np.asarray(groups, dtype=np.int64), _cut(np.asarray(groups, dtype=np.int64), weights)
    for restart in range(max(restarts, 1)):
        order = orders[restart] if restart < len(orders) else chooser.permutation(len(sizes))
        place = np.repeat(order, sizes[order]).astype(np.int64)
        if ranks <= SWAPS_LIMIT:
            _improve(place, weights)
        cut = _cut(place, weights)
        if cut < best_cut:
            best, best_cut = place, cut
        if best_cut <= least or (options is not None and options.out_of_time()):
            break
    return best


def plan_of(instance: BineInstance, placements: list[Ints]) -> Any:
    """The recursive butterfly of every job with its ranks on the positions: position v is taken by the next rank of its
    group. Position bits run from the heaviest dimension (the first of the reduce-scatter) upwards."""
    parts = []
    for groups, place in zip(instance.allocations, placements, strict=True):
        ranks = len(groups)
        rank_at = np.empty(ranks, dtype=np.int64)
        rank_at[np.argsort(place, kind="stable")] = np.argsort(groups, kind="stable")
        steps = exchanges.run(
            lambda bits: partners("recursive", "doubling", bits), ranks, instance.collective, instance.vector
        )
        parts.append(_renamed(steps, rank_at, ranks, instance.collective))
    return join(parts)


def _renamed(steps: Steps, rank_at: Ints, ranks: int, collective: str) -> Steps:
    layout = steps.layout
    if collective == "alltoall":
        layout = rank_at[layout // ranks] * ranks + rank_at[layout % ranks]
    elif len(layout) == ranks:
        layout = rank_at[layout]
    return Steps(steps.round, rank_at[steps.src], rank_at[steps.dst], steps.first, steps.count, steps.adds, layout)


@jit
def _cut(place: Any, weights: Any) -> int:
    total = 0
    for v in range(len(place)):
        for b in range(len(weights)):
            if place[v] != place[v ^ (1 << b)]:
                total += weights[b]
    return total // 2


@jit
def _improve(place: Any, weights: Any) -> None:
    """Swap pairs of positions while that lowers the cut."""
    n, bits = len(place), len(weights)
    better = True
    while better:
        better = False
        for u in range(n):
            for v in range(u + 1, n):
                if place[u] == place[v]:
                    continue
                gain = 0
                for b in range(bits):
                    x, y = u ^ (1 << b), v ^ (1 << b)
                    if x == v:
                        continue
                    w = weights[b]
                    gain += w * ((place[x] == place[v]) - (place[x] == place[u]))
                    gain += w * ((place[y] == place[u]) - (place[y] == place[v]))
                if gain > 0:
                    place[u], place[v] = place[v], place[u]
                    better = True
