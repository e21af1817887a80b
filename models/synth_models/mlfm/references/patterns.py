"""Methods ``shift`` and ``pairwise``: the patterns that the paper measures against, on fixed minimal routes.

``shift`` sends from rank ``x`` to ``x + p mod N`` in phase ``p``; ``pairwise`` exchanges: ``x xor p`` when N is a
power of two, else ``p - x mod N``. Both use minimal routes fixed by the destination, as forwarding tables do: within
column j, slot k is reached through spine ``{j, j + k + 1}`` (counted over the working ones); their phases may be
congested. Of a partial all-to-all they keep what is asked for (:func:`restricted`). O(N * N).
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.errors import SizeLimitError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.column_phases import NOTHING, Rows
from synth_models.mlfm.parts.leaf_problem import LeafProblem, cut_off, leaf_problem, with_routes
from synth_models.mlfm.solution import Phases, PhaseTable

MAX_DENSE = 16_000_000  # transfers of methods that store every one


def shift(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``shift``: the pattern that OpenMPI's *pairwise* runs and the paper measures against."""
    return _pattern(instance, "shift")


def pairwise(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``pairwise``: partners exchange in every phase."""
    return _pattern(instance, "pairwise")


def _pattern(instance: MLFMInstance, kind: str) -> Outcome:
    ranks = instance.ranks
    if ranks**2 > MAX_DENSE:
        raise SizeLimitError(f"{kind} stores every transfer, at most {MAX_DENSE}; here {ranks**2}")
    problem = leaf_problem(instance)
    reason = cut_off(instance, problem)
    if reason is not None:
        return Outcome("infeasible", message=reason)
    x = np.arange(ranks)
    if kind == "shift":
        dest = (x[None, :] + x[:, None]) % ranks
    elif ranks & (ranks - 1) == 0:
        dest = x[None, :] ^ x[:, None]
    else:
        dest = (x[:, None] - x[None, :]) % ranks
    if instance.demand is not None:
        dest = _asked(instance, dest)
    return Outcome("finished", solution=with_routes(problem, dest, static_routes(instance, problem, dest)))


def _asked(instance: MLFMInstance, dest: IntArray) -> IntArray:
    """Only the transfers that are asked for, shape (phases, N); the routes come later."""
    nowhere = np.full(dest.shape, NOTHING, np.int32)
    return restricted(instance, PhaseTable(dest.astype(np.int32), nowhere)).dest.astype(np.int64)


def static_routes(instance: MLFMInstance, problem: LeafProblem, dest: IntArray) -> IntArray:
    """Every transfer's route (its number, -1 inside a leaf), chosen among the shortest by the destination's slot."""
    place = np.searchsorted(problem.leaf, instance.server_leaf)
    pair = place[None, :] * problem.leaves + place[dest]
    shortest = np.bincount(problem.pair[problem.middle < 0], minlength=problem.leaves**2)
    all_routes = np.diff(problem.start)
    choices = np.where(shortest > 0, shortest, all_routes)
    turn = instance.servers[:, 2][dest] % np.maximum(1, choices[pair])
    return np.where((dest >= 0) & (all_routes[pair] > 0), problem.start[:-1][pair] + turn, NOTHING)


def restricted(instance: MLFMInstance, whole: Phases) -> PhaseTable:
    """The asked transfers in the order and on the routes of ``whole``, a schedule of all pairs of the job: the others
    are left out, and phases that become empty. A pair that is asked for several times takes the phase again as often.

    This is what a library does that runs its all-to-all with empty messages, except that it would not notice when a
    phase is empty everywhere.
    """
    owed = np.zeros((instance.ranks, instance.ranks), dtype=np.int64)
    source, target, count = instance.pairs.T
    owed[source, target] = count
    everyone, kept = np.arange(instance.ranks), list[Rows]()
    for rows in whole.rows(1):
        times = np.where(rows.dest[0] >= 0, owed[everyone, rows.dest[0]], 0)
        for turn in range(int(times.max(initial=0))):
            now = times[None] > turn
            parts = (np.where(now, part, NOTHING) for part in (rows.dest, rows.spine, rows.middle, rows.second))
            kept.append(Rows(len(kept), *parts))
    empty = np.zeros((0, instance.ranks), np.int32)
    dest, spine, middle, second = (
        np.concatenate([empty, *(getattr(rows, key) for rows in kept)]).astype(np.int32)
        for key in ("dest", "spine", "middle", "second")
    )
    return PhaseTable(dest, spine) if (middle < 0).all() else PhaseTable(dest, spine, middle, second)
