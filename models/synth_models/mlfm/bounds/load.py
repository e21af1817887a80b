"""Lower bounds on the number of phases that hold for every schedule (method ``bound``).

They bound congestion-free phases, hence the objective of congested schedules too (``check/replay.py``).

* **ranks**: every server sends N transfers (its own among them), one a phase; of a partial all-to-all the server that
  sends or receives most decides.
* **links**: give every link a weight >= 0. A transfer takes up at least the weighted length of its shortest allowed
  route; a phase offers each link once. So ``phases >= sum of shortest lengths / sum of weights``. The best weights are
  the dual of the fractional routing that makes the most loaded link as light as possible (a linear program over route
  flows); the links with positive weight are the binding ones. Two special cases need no program and are tried first: a
  single link whose flows have no other route, and all up- or down-links of one leaf (the *degree* of that node).

Weights are rounded to whole numbers, which keeps the bound valid, and the check recounts it from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.clock.deadline import OutOfTime
from synth.options import RunOptions
from synth.text.untrusted import exact_dot
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_problem import LeafProblem

SHARE = 0.5  # of the time that is left
LP_ROUTES = 40_000  # above this many routes the linear program is left out and the simple link bounds stand

TIME_LIMIT = 1  # scipy's status for time and iterations
WAYS = ("up-link {leaf} to {spine}", "down-link {spine} to {leaf}")


@dataclass(frozen=True)
class Bound:
    """A proven number of phases, its proof in words and the certificate that the check verifies."""

    phases: int
    words: str
    certificate: dict[str, Any]


def lower_bound(instance: MLFMInstance, problem: LeafProblem, options: RunOptions | None = None) -> Bound:
    """The strongest bound that is found within a part of the time limit of ``options``, which hold every one that is
    found on the way. On a tie the one by ranks is named."""
    found: list[Bound] = []
    options = options or RunOptions(None)
    part = options.part(SHARE)
    with part.in_time():
        for bound in _bounds(instance, problem, part):
            found.append(bound)
            options.held.offer_bound(float(bound.phases), bound.words, bound.certificate)
    if not found:  # the first takes no time
        raise OutOfTime
    return max(found, key=lambda bound: bound.phases)


def _bounds(instance: MLFMInstance, problem: LeafProblem, options: RunOptions) -> Iterator[Bound]:
    """Bounds in the order of their cost, each above those before."""
    best = Bound(problem.busiest, turns_in_words(instance), {"binding": "ranks"})
    yield best
    candidates = [*_forced(problem), *_degrees(problem)]
    if not candidates:
        return
    strongest = max(range(len(candidates)), key=lambda i: _proves(problem, candidates[i]))
    for first in (candidates[strongest], None):
        weights = first
        if first is None:
            if problem.routes > LP_ROUTES or _equal_split_fits(problem, best.phases):
                return
            weights = _best_weights(problem, options)
        if weights is not None and (phases := _proves(problem, weights)) > best.phases:
            best = Bound(phases, _words(instance, problem, weights, phases), _certificate(instance, weights))
            yield best


def bound_words(instance: MLFMInstance, certificate: Mapping[str, Any]) -> str | None:
    """What a certificate by ``ranks`` proves, in words; None for one by ``links``, whose words say where it is from."""
    return turns_in_words(instance) if certificate["binding"] == "ranks" else None


def turns_in_words(instance: MLFMInstance) -> str:
    """What the bound by ranks rests on."""
    if instance.demand is None:
        return f"ranks: every server sends {instance.ranks} transfers, one a phase"
    sent, received = instance.turns
    turns, verb = (sent, "sends") if sent.max() >= received.max() else (received, "receives")
    rank = int(turns.argmax())
    return f"ranks: server {instance.server_name(rank)} {verb} {turns[rank]} transfers, one a phase"


def lengths(problem: LeafProblem, weights: IntArray) -> IntArray:
    """Weighted length of every pair's shortest route, shape (Q * Q,); 0 inside a leaf."""
    padded = np.append(weights, 0)  # index -1, an absent link, weighs nothing
    per_route = padded[problem.links].sum(axis=1)
    result = np.zeros(problem.leaves**2, dtype=np.int64)
    occupied = np.diff(problem.start) > 0
    if len(per_route):
        result[occupied] = np.minimum.reduceat(per_route, problem.start[:-1][occupied])
    return result


def _proves(problem: LeafProblem, weights: IntArray) -> int:
    needed = exact_dot(problem.demand, lengths(problem, weights))
    return -(-needed // int(weights.sum()))


def _single(problem: LeafProblem, links: Any) -> IntArray:
    weights = np.zeros(problem.link_count, dtype=np.int64)
    weights[links] = 1
    return weights


def _forced(problem: LeafProblem) -> list[IntArray]:
    """The single link with the most flows that have no other route."""
    routes = np.diff(problem.start)[problem.pair] == 1
    load = problem.loads(np.where(routes, problem.demand[problem.pair], 0))
    return [_single(problem, [int(load.argmax())])] if load.any() else []


def _degrees(problem: LeafProblem) -> list[IntArray]:
    """All up-links, and all down-links, of each leaf with servers: weights on those that some route uses."""
    used = np.zeros(problem.link_count, dtype=bool)
    used[problem.links[problem.links >= 0]] = True
    half = problem.link_count // 2
    found = []
    for leaf in problem.leaf.tolist():
        for way in (0, half):
            links = way + leaf * problem.columns + np.arange(problem.columns)
            if used[links].any():
                found.append(_single(problem, links[used[links]]))
    return found


def _equal_split_fits(problem: LeafProblem, phases: int) -> bool:
    """Whether spreading every pair evenly over its shortest routes already keeps all links within ``phases``."""
    shortest = problem.middle < 0
    per_pair = np.bincount(problem.pair[shortest], minlength=problem.leaves**2)
    if (per_pair[np.diff(problem.start) > 0] == 0).any():
        return False
    flows = np.where(shortest, problem.demand[problem.pair] / np.maximum(1, per_pair[problem.pair]), 0.0)
    used = problem.links >= 0
    weights = np.broadcast_to(flows[:, None], problem.links.shape)[used]
    return bool(np.bincount(problem.links[used], weights=weights, minlength=1).max(initial=0.0) <= phases + 1e-9)


def _best_weights(problem: LeafProblem, limits: RunOptions) -> IntArray | None:
    """Dual weights of ``min z: flows of each pair add up to its demand, no link carries more than z``."""
    from scipy.optimize import linprog  # half a second to import, and often not needed
    from scipy.sparse import coo_array, csr_array

    routes, pairs = problem.routes, problem.leaves**2
    occupied = np.flatnonzero(np.diff(problem.start) > 0)
    row_of = np.full(pairs, -1)
    row_of[occupied] = np.arange(len(occupied))
    meets = csr_array((np.ones(routes), (row_of[problem.pair], np.arange(routes))), shape=(len(occupied), routes + 1))
    used = problem.links >= 0
    route = np.broadcast_to(np.arange(routes)[:, None], problem.links.shape)[used]
    links, compact = np.unique(problem.links[used], return_inverse=True)
    rows = np.concatenate([compact, np.arange(len(links))])
    cols = np.concatenate([route, np.full(len(links), routes)])
    values = np.concatenate([np.ones(len(route)), np.full(len(links), -1.0)])
    carries = coo_array((values, (rows, cols)), shape=(len(links), routes + 1)).tocsr()
    cost = np.zeros(routes + 1)
    cost[-1] = 1.0
    seconds = limits.remaining()
    options = {} if seconds is None else {"time_limit": max(0.1, seconds)}
    run: Any = linprog
    demand = problem.demand[occupied].astype(float)
    result = run(cost, carries, np.zeros(len(links)), meets, demand, method="highs", options=options)
    if result.status == TIME_LIMIT:
        limits.clock.cut = True
        return None
    if result.status != 0:  # a program that always has an optimum
        raise RuntimeError(f"the linear program of the link weights failed: {result.message}")
    dual: FloatArray = np.maximum(0.0, -result.ineqlin.marginals)
    if not dual.any():
        return None
    found = []
    for whole in whole_duals(dual):
        weights = np.zeros(problem.link_count, dtype=np.int64)
        weights[links] = whole
        found.append(weights)
    return max(found, key=lambda weights: _proves(problem, weights))


def whole_duals(dual: FloatArray) -> list[IntArray]:
    """Whole numbers for dual weights that are not all 0: exactly where they are simple fractions, and rounded."""
    if not dual.any():
        return []
    rounded = np.round(dual / dual.max() * 1e6).astype(np.int64)
    return [whole for whole in (_small_fractions(dual), rounded) if whole is not None and whole.any()]


def _small_fractions(dual: FloatArray) -> IntArray | None:
    """The dual as whole numbers when its entries are fractions with small denominators, else None."""
    fractions = [Fraction(value / dual.max()).limit_denominator(120) for value in dual]
    scale = lcm(*(f.denominator for f in fractions))
    return np.array([int(f * scale) for f in fractions], dtype=np.int64) if scale <= 10**6 else None


def _words(instance: MLFMInstance, problem: LeafProblem, weights: IntArray, phases: int) -> str:
    links = np.flatnonzero(weights)
    names = ", ".join(instance.link_name(int(link), WAYS) for link in links[:4])
    names += f" and {len(links) - 4} more" if len(links) > 4 else ""
    needed = exact_dot(problem.demand, lengths(problem, weights))
    if len(links) == 1:
        return f"links: {needed // int(weights.sum())} flows must use {names}"
    total = int(weights.sum())
    return f"links: weighted flow {needed} over weight {total} of {len(links)} links ({names}) = {phases} rounded up"


def _certificate(instance: MLFMInstance, weights: IntArray) -> dict[str, Any]:
    half = instance.leaves * instance.columns
    links = np.flatnonzero(weights)
    rows = [[*divmod(int(link) % half, instance.columns), int(link >= half)] for link in links]
    return {"binding": "links", "links": rows, "weights": weights[links].tolist()}
