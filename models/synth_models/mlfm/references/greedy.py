"""Method ``greedy`` (ours): every transfer into the first phase that has room for it.

All transfers come in random order (seeded); each goes into the first phase in which both servers and all links of
one of its routes are free, trying routes shortest first. A transfer is kept out of at most 2N - 2 phases by its servers
and of one per other flow on its route's links, which bounds the phases; time O(N * N * phases).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import SizeLimitError
from synth.kernels import jit
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.column_phases import NOTHING
from synth_models.mlfm.parts.leaf_problem import cut_off, leaf_problem, with_routes

MAX_PLACED = 1_000_000  # transfers of greedy, all to all among 1000 servers


def solve(instance: MLFMInstance, options: RunOptions) -> Outcome:
    """Method ``greedy``: first phase that fits."""
    ranks = instance.ranks
    if instance.transfers > MAX_PLACED:
        raise SizeLimitError(f"greedy takes at most {MAX_PLACED} transfers")
    problem = leaf_problem(instance)
    reason = cut_off(instance, problem)
    if reason is not None:
        return Outcome("infeasible", message=reason)
    source, target, count = instance.pairs.T
    order = np.repeat(source * ranks + target, count)
    order = order[np.random.default_rng(options.seed).permutation(len(order))]
    place = np.searchsorted(problem.leaf, instance.server_leaf)
    most = 8 * instance.busiest
    while True:
        dest, route = (np.full((most, ranks), NOTHING, np.int64) for _ in range(2))
        receives, busy = (np.zeros((most, width), np.bool_) for width in (ranks, problem.link_count))
        placed = True
        for begin in range(0, len(order), 20_000):
            if options.out_of_time():
                return Outcome("time_limit", message=f"{begin} of {len(order)} transfers placed")
            batch = order[begin : begin + 20_000]
            placed = placed and _first_fit(
                batch, place, problem.start, problem.links, problem.leaves, _Phases(dest, route, receives, busy)
            )
        if placed:
            break
        most *= 2
    phases = int(np.flatnonzero((dest >= 0).any(axis=1))[-1]) + 1
    return Outcome("finished", solution=with_routes(problem, dest[:phases], route[:phases]))


class _Phases(NamedTuple):
    """What is placed: ``dest``, ``route`` (-1: none) and whether the rank ``receives``, shape (phases, ranks) each;
    whether a link is ``busy``, shape (phases, links)."""

    dest: IntArray
    route: IntArray
    receives: BoolArray
    busy: BoolArray


@jit
def _first_fit(
    order: IntArray, place: IntArray, start: IntArray, links: IntArray, leaves: int, phases: _Phases
) -> bool:
    """Put each transfer of ``order`` (sender times ranks plus receiver) into the first phase with a free route; False
    if one finds none. ``place``: leaf of every rank; routes of a pair of leaves: rows ``start`` of ``links``."""
    dest, route, receives, busy = phases
    ranks = len(place)
    for item in order:
        x, y = item // ranks, item % ranks
        pair = place[x] * leaves + place[y]
        done = False
        for p in range(len(dest)):
            if dest[p, x] >= 0 or receives[p, y]:
                continue
            chosen = -1
            if place[x] != place[y]:
                for r in range(start[pair], start[pair + 1]):
                    free = True
                    for e in links[r]:
                        if e >= 0 and busy[p, e]:
                            free = False
                            break
                    if free:
                        chosen = r
                        break
                if chosen < 0:
                    continue
                for e in links[chosen]:
                    if e >= 0:
                        busy[p, e] = True
            dest[p, x], route[p, x], receives[p, y] = y, chosen, True
            done = True
            break
        if not done:
            return False
    return True
