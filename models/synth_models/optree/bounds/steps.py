"""Lower bounds on the number of steps on a ring that hold for every schedule (method ``bound``; grids: ``grid.py``).

Let ``N`` be the nodes, ``w`` the wavelengths per direction; a step offers ``2 w N`` wavelength-hops (links x directions
x wavelengths).

**Receive bound.** Every node must receive ``N-1`` items, and its two incoming links carry ``2w`` per step:
``T >= ceil((N-1)/(2w))``.

**Leap bound.** ``T >= ceil((N-1)/(w+1))``, the reach bound below at equal prices, in closed form. Claim: filling a gap
of ``g`` links within ``t`` steps is charged ``V_t(g) >= 2(g-1) - 2t`` hops, and never less than ``g-1``, a hop for each
node. By induction over ``t``; ``t = 0`` leaves ``g = 1`` only. Let the first step reach ``k`` nodes from the left end,
the farthest ``a`` links away, at a charge of ``a`` and at least 1 for each of the others. The gaps between them have
``a-k`` nodes in all and are charged as many hops later: in sum ``2a-1`` at least (0 if ``k = 0``). The same from the
right end with ``b``. The gap in the middle has ``g-a-b`` links and is charged ``2(g-a-b-1) - 2(t-1)`` at least. All
together: ``2(g-1) - 2t``. An item starts with a gap of ``N`` links, so ``2(N-1) - 2T <= 2wT``. Where steps are many it
is reached (``references/relay_graph.py``), and nothing better is looked for.

**Reach bound.** Take any schedule of ``T`` steps and any prices ``y_1..y_T >= 0`` of a wavelength-hop in each step.
Fix one item and follow its holders. At the beginning they leave one gap, the ``N`` links from the origin round to the
origin. A circuit that gives the item to a node inside a gap starts at a holder, so it runs through an end of the gap
and uses inside it at least as many hops as the node is away from that end; charge it exactly these. If several circuits
in one step end inside the same gap, each of them is charged. The nodes that receive the item in the step cut the gap
into smaller ones, which nothing else connects. So the charges of the item are those of some way to fill the gap in
the recursion of ``parts/carrying_cost.py``, and what the item pays is at least ``V(y) = rest[1, N]``. All ``N``
items together use at most ``2 w N`` hops in step ``t``, therefore

    N * V(y)  <=  sum over t of  y_t * 2 w N,     that is     V(y) <= 2 w * sum(y).

Any ``y`` with ``V(y) > 2 w * sum(y)`` proves that ``T`` steps are not enough, for length-limited circuits too if the
recursion uses none longer. The best ``y`` is the dual solution of a linear program that mixes ways of reaching
(columns) so that no step uses more than ``2w`` hops per item on average; it is solved here by cutting planes, and
its solution is rounded to whole numbers so that the refutation is exact. Distance costs: reaching ``x`` links further
in one step costs ``x`` at once *and* leaves a gap of ``x`` to fill later, which is what makes this bound stronger
than the receive bound (19 against 8 steps at N = 1024, w = 64).

The certificate is the list of whole-number prices; ``check_bound`` recomputes ``V`` from them with code of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

import numpy as np

from synth.arrays import FloatArray
from synth.clock.deadline import OutOfTime
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.optree.bounds import grid
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import refuse_unmeetable
from synth_models.optree.parts.carrying_cost import Prices, price
from synth_models.optree.parts.leaps import leap_bound, leaps_suffice

REACH_NODES = 4096  # beyond it the recursion, quadratic in N, takes too long and the leap bound stands alone
ROUNDS = 60


def receive_bound(nodes: int, wavelengths: int) -> int:
    """``ceil((N-1)/(2w))`` steps."""
    return -(-(nodes - 1) // (2 * wavelengths))


def refute(nodes: int, wavelengths: int, horizon: int, max_hops: int, rounds: int = ROUNDS) -> list[int] | None:
    """Whole-number prices proving that ``horizon`` steps are too few, or None when none were found."""
    capacity = 2.0 * wavelengths
    quick = min(max_hops, 8 + 2 * isqrt(8 * wavelengths))  # search with short circuits, then test with all
    search = Prices({nodes: 1}, horizon, quick)
    if not search.search(capacity, rounds):
        return None
    for scale in (1000, 100_000):
        weights = _whole(search.best, scale)
        if _cost(nodes, weights, max_hops) > capacity * sum(weights) + 0.5:
            return weights
    if quick == max_hops or nodes > 2048:
        return None
    full = Prices({nodes: 1}, horizon, max_hops)  # long circuits helped: search again with them
    full.best = search.best
    if not full.search(capacity, 10 if nodes > 1024 else rounds):
        return None
    weights = _whole(full.best, 100_000)
    return weights if _cost(nodes, weights, max_hops) > capacity * sum(weights) + 0.5 else None


def _whole(prices: FloatArray, scale: int) -> list[int]:
    return [int(number) for number in np.rint(prices * scale * len(prices))]


def _cost(nodes: int, weights: list[int], max_hops: int) -> float:
    rest, _, _ = price(nodes, np.array(weights, dtype=float), max_hops)
    return float(rest[0, nodes])


def lower_bound(instance: OpTreeInstance, options: RunOptions) -> tuple[int, str, dict[str, Any]]:
    """The strongest bound in steps that is found in time, its proof in words and its certificate. The run holds it."""
    best: tuple[int, str, dict[str, Any]] | None = None
    with options.in_time():
        for steps, words, certificate in _bounds(instance, options):
            best = steps, words, certificate
            options.held.offer_bound(float(steps), words, certificate)
    if best is None:  # the first takes no time
        raise OutOfTime
    return best


def _bounds(instance: OpTreeInstance, options: RunOptions) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Bounds in the order of their cost, each the strongest so far."""
    if instance.grid is not None:
        yield from grid.bounds(instance, options)
        return
    nodes, wavelengths = instance.nodes, instance.wavelengths
    least = receive_bound(nodes, wavelengths)
    best: tuple[int, str, dict[str, Any]] = (
        least,
        f"receive: {nodes - 1} items into every node over {2 * wavelengths} wavelengths",
        {"binding": "receive"},
    )
    leaps = leap_bound(nodes, wavelengths)
    if leaps > least:
        words = f"leaps: a way round costs an item 2 * ({nodes} - 1 - T) hops at least, {2 * wavelengths} T are there"
        least, best = leaps, (leaps, words, {"binding": "leaps"})
    yield best
    if nodes > REACH_NODES or leaps_suffice(nodes, wavelengths, instance.max_hops):
        return
    # refuted horizons are tried in growing strides, then by bisection: a refuted horizon refutes all shorter ones
    low, high, stride = least - 1, None, 1
    while (high is None or high - low > 1) and not options.out_of_time():
        horizon = low + stride if high is None else (low + high) // 2
        if horizon < 1:
            low = horizon
            continue
        weights = refute(nodes, wavelengths, horizon, instance.max_hops)
        if weights is None:
            high = horizon
            continue
        low, stride = horizon, stride * 2
        words = (
            f"reach: at the certificate's prices one item costs more than the {2 * wavelengths} wavelength-hops per "
            f"item and step that {horizon} steps offer"
        )
        yield horizon + 1, words, {"binding": "reach", "weights": weights}


def solve(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``bound``: prove, solve nothing."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    steps, words, certificate = lower_bound(instance, options)
    return Outcome("finished", bound=float(steps), bound_proof=words, certificate=certificate)
