"""Method ``placement_greedy`` (reference, ours): which rank takes which position of a hypercube butterfly.

Only units matter (groups; nodes where bytes between them count), so a placement is a unit for every position (bit 0 is
the heaviest dimension). Starts: groups cut
into aligned powers of two by falling size; groups one after the other in rank order, by falling or rising size; then
shuffled. From each, swaps of two aligned subcubes of 2^j positions, large ones first, while one helps (first
improvement, in order), O(p^2 log p) a pass. If the best misses the isoperimetric bound: simulated annealing by random
swaps (``MOVES`` per position) from it, and swaps again. No guarantee; ranks of a group take its positions in rank
order. Seeded; ties keep the earlier start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.clock.deadline import left
from synth.errors import UnsupportedError
from synth.kernels import jit
from synth.kernels.clock import now
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.bine.instance import BineInstance
from synth_models.bine.parts.butterfly import partners
from synth_models.bine.parts.units import Units, units_of
from synth_models.bine.parts.weights import dimension_weights, isoperimetric_cut
from synth_models.bine.references import exchanges
from synth_models.bine.solution import Steps, join

MOVES = 4000  # random swaps tried per position
SWAPS_LIMIT = 4096  # ranks above which pairs of positions are not searched
LOOK = 1000  # random swaps between looks at the clock


def solve(instance: BineInstance, options: RunOptions) -> Outcome:
    """Method ``placement_greedy``; needs the problem butterfly."""
    if instance.problem != "butterfly":
        raise UnsupportedError("placements are for the problem butterfly")
    restarts, placements = int(options.method.get("restarts", 4)), []
    aligned = [_aligned_in_groups(units_of(instance, job)) for job in range(len(instance.allocations))]
    options.held.offer(
        lambda: on_positions(instance, aligned), math.inf, "aligned subcubes stand in: the search did not end in time"
    )
    for job, groups in enumerate(instance.allocations):
        weights = np.array(dimension_weights(instance, len(groups)))
        units, least = units_of(instance, job), isoperimetric_cut(instance, job, weights.tolist())
        placements.append(best_placement(units, weights, least, options.seed, restarts, options))
    return Outcome("finished", on_positions(instance, placements))


def cut(units: Units, placed: Sequence[int] | IntArray, weights: Sequence[int] | IntArray) -> int:
    """What the hypercube's edges cost between positions of these units, in blocks each way."""
    return int(_cut(np.asarray(placed, dtype=np.int64), np.asarray(weights, dtype=np.int64), _costs(units)))


class _Costs(NamedTuple):
    """The ``group`` of every unit, shape (units,), and what a byte costs ``inside`` a unit, between units that are
    ``near`` (of one group) and ``far``."""

    group: IntArray
    inside: int
    near: int
    far: int


def _costs(units: Units) -> _Costs:
    return _Costs(np.asarray(units.group, dtype=np.int64), int(units.inside), int(units.near), int(units.far))


def best_placement(
    units: Units, weights: IntArray, least: int, seed: int, restarts: int, options: RunOptions | None = None
) -> IntArray:
    """Unit of every position, shape (p,), of the best local optimum found, or of what a search ends at that a time
    limit in force stops; ``least`` is a proven bound."""
    ranks = len(units.of_rank)
    sizes, costs = units.sizes, _costs(units)
    chooser = np.random.default_rng(seed)
    orders = [np.arange(len(sizes)), np.argsort(-sizes, kind="stable"), np.argsort(sizes, kind="stable")]
    best = np.asarray(units.of_rank, dtype=np.int64)
    best_cut = _cut(best, weights, costs)
    for restart in range(max(restarts, 1)):
        order = orders[restart - 1] if 1 <= restart <= len(orders) else chooser.permutation(len(sizes))
        place = np.repeat(order, sizes[order]).astype(np.int64) if restart else _aligned_in_groups(units)
        if ranks <= SWAPS_LIMIT:
            _improve(place, weights, costs, left())
        found = _cut(place, weights, costs)
        if found < best_cut:
            best, best_cut = place, found
        if best_cut <= least or (options is not None and options.out_of_time()):
            return best
    if ranks <= SWAPS_LIMIT:
        place = best.copy()
        warmest = float(max(weights)) * (units.far - units.inside)
        _anneal(place, weights, costs, MOVES * ranks, warmest, seed, left())
        _improve(place, weights, costs, left())
        if _cut(place, weights, costs) < best_cut:
            best = place
    return best


def _aligned(sizes: IntArray) -> IntArray:
    """Groups cut into powers of two, laid out by falling size: every piece is an aligned subcube."""
    pieces = [(1 << b, g) for g, n in enumerate(sizes.tolist()) for b in range(n.bit_length()) if n >> b & 1]
    pieces.sort(key=lambda piece: -piece[0])
    return np.repeat([g for _, g in pieces], [n for n, _ in pieces]).astype(np.int64)


def _aligned_in_groups(units: Units) -> IntArray:
    """The groups so, and every group's units likewise on its positions."""
    if not units.nested:
        return _aligned(units.sizes)
    place = np.empty(len(units.of_rank), dtype=np.int64)
    by_group = _aligned(np.bincount(units.group, weights=units.sizes).astype(np.int64))
    for g in range(int(units.group.max()) + 1):
        inside = np.flatnonzero(units.group == g)
        place[by_group == g] = inside[_aligned(units.sizes[inside])]
    return place


def on_positions(instance: BineInstance, placements: list[IntArray]) -> Any:
    """The recursive butterfly of every job with its ranks on the positions: position v is taken by the next rank of its
    unit. Position bits run from the heaviest dimension (the first of the reduce-scatter) upwards."""
    parts = []
    for job, place in enumerate(placements):
        ranks = len(place)
        rank_at = np.empty(ranks, dtype=np.int64)
        rank_at[np.argsort(place, kind="stable")] = np.argsort(units_of(instance, job).of_rank, kind="stable")
        pairing = partial(partners, "recursive", "doubling")
        steps = exchanges.run(pairing, ranks, instance.collective, instance.vector)
        parts.append(_renamed(steps, rank_at, ranks, instance.collective))
    return join(parts)


def _renamed(steps: Steps, rank_at: IntArray, ranks: int, collective: str) -> Steps:
    layout = steps.layout
    if collective == "alltoall":
        layout = rank_at[layout // ranks] * ranks + rank_at[layout % ranks]
    elif len(layout) == ranks:
        layout = rank_at[layout]
    return Steps(steps.round, rank_at[steps.src], rank_at[steps.dst], steps.first, steps.count, steps.adds, layout)


@jit
def _apart(a: int, b: int, costs: _Costs) -> int:
    """What a byte costs between two units."""
    if a == b:
        return costs.inside
    return costs.near if costs.group[a] == costs.group[b] else costs.far


@jit
def _cut(place: IntArray, weights: IntArray, costs: _Costs) -> int:
    total = 0
    for v in range(len(place)):
        for b in range(len(weights)):
            total += weights[b] * _apart(place[v], place[v ^ (1 << b)], costs)
    return total // 2


@jit
def _gain(place: IntArray, weights: IntArray, costs: _Costs, u: int, v: int) -> int:
    """By how much swapping positions u and v lowers the cut."""
    gain = 0
    for b in range(len(weights)):
        x, y = u ^ (1 << b), v ^ (1 << b)
        if x == v:
            continue
        kept = _apart(place[x], place[u], costs) - _apart(place[x], place[v], costs)
        kept += _apart(place[y], place[v], costs) - _apart(place[y], place[u], costs)
        gain += weights[b] * kept
    return gain


@jit
def _anneal(
    place: IntArray, weights: IntArray, costs: _Costs, moves: int, warmest: float, seed: int, seconds: float
) -> None:
    """Random swaps, worsening ones with probability exp(-loss/temperature), cooling geometrically to 1/50 of
    the heaviest weight, for at most so many seconds; ends at the best placement seen."""
    until = now() + seconds
    np.random.seed(seed % 2**31)
    best, cut_now, least = place.copy(), 0, 0
    cool = 0.02 ** (1.0 / moves)
    temperature = warmest
    for move in range(moves):
        if move % LOOK == 0 and now() > until:
            break
        temperature *= cool
        u, v = np.random.randint(len(place)), np.random.randint(len(place))
        if place[u] == place[v]:
            continue
        gain = _gain(place, weights, costs, u, v)
        if gain >= 0 or np.random.random() < math.exp(gain / temperature):
            place[u], place[v] = place[v], place[u]
            cut_now -= gain
            if cut_now < least:
                least = cut_now
                best[:] = place
    place[:] = best


@jit
def _improve(place: IntArray, weights: IntArray, costs: _Costs, seconds: float) -> None:
    """Swap pairs of equal aligned subcubes (of 2^j positions, large ones first) while that lowers the cut, for at most
    so many seconds."""
    until = now() + seconds
    n, bits = len(place), len(weights)
    better = True
    while better:
        better = False
        for j in range(bits - 1, -1, -1):
            width = 1 << j
            for u in range(0, n, width):
                if now() > until:
                    return
                for v in range(u + width, n, width):
                    if _subcube_gain(place, weights, costs, u, v, j) > 0:
                        for o in range(width):
                            place[u + o], place[v + o] = place[v + o], place[u + o]
                        better = True


@jit
def _subcube_gain(place: IntArray, weights: IntArray, costs: _Costs, u: int, v: int, j: int) -> int:
    """By how much swapping the subcubes of 2^j positions that begin at u and v lowers the cut."""
    gain = 0
    for o in range(1 << j):
        at_u, at_v = place[u + o], place[v + o]
        if at_u == at_v:
            continue
        for b in range(j, len(weights)):
            x, y = (u + o) ^ (1 << b), (v + o) ^ (1 << b)
            if x != v + o:
                kept = _apart(place[x], at_u, costs) - _apart(place[x], at_v, costs)
                kept += _apart(place[y], at_v, costs) - _apart(place[y], at_u, costs)
                gain += weights[b] * kept
    return gain
