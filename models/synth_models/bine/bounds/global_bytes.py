"""Lower bounds on bytes over global links (method ``bound``), re-verified by the check from the instance alone.

* **receive** (any schedule): a byte that exists on one side of a group's border and is wanted on the other must cross,
  and a message enters exactly one group. Broadcast: every group but the root's receives m. Scatter: every rank outside
  the root's group receives its block. Allgather: group g receives p - n_g blocks from outside. Alltoall: n_g(p - n_g)
  blocks enter g. Reduce, gather and reduce-scatter are these backwards. Allreduce: shrink groups to points; for
  each byte position G - 1 transfers happen before a group first has the sum (they connect all groups), and every other
  group is completed by a later transfer into it: 2(G-1)m. On a torus every rank is a group of its own.
* **isoperimetric** (problem butterfly): order the dimensions of the hypercube by falling weight w_0 >= w_1 >= … and put
  f(k) = sum_{i<k} sum_{bits b of i} w_b. A set of k vertices holds at most f(k) internal weight: with
  d_t = w_t - w_(t+1) >= 0 (w_last+1 = 0) the internal weight is sum_t d_t e_t, e_t the internal edges of dimensions
  0..t. Those dimensions cut the hypercube into cubes of t+1 dimensions. A cube with j chosen vertices has at most
  h(j) = sum_{i<j} popcount(i) internal edges (Harper 1964, Hart 1976: split along a dimension and use
  h(a) + h(b) + min(a,b) <= h(a+b)); shifting chosen vertices from one cube to another until all but one are full or
  empty never lowers sum h(j), since h(a+b) >= h(a) + h(b) while they fit one cube, and by complement
  (h(2^n - c) = h(2^n) - nc + h(c)) also when they do not. So e_t <= sum_{i<k} popcount(i mod 2^(t+1)); summing over t
  gives f(k). Groups are disjoint, hence the cut weight is at least the total minus sum_g f(n_g); an edge carries two
  messages.
* **positions** (problem butterfly, jobs of up to 16 ranks): all placements, ``bounds/positions.py``.
* **prices** (problem tree, broadcast and reduce of whole vectors): prices of rounds, ``bounds/round_prices.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.bine.bounds.positions import least_bytes
from synth_models.bine.bounds.round_prices import SCALE, best_prices
from synth_models.bine.instance import BineInstance
from synth_models.bine.parts.weights import isoperimetric_bytes, isoperimetric_cut, receive_bytes

RECEIVE = "receive count per group"
ISOPERIMETRIC = "edge-isoperimetric count of the hypercube"
POSITIONS = "all placements on the hypercube, counted over sets of positions"
PRICES = "prices of rounds"
WORDS = {"receive": RECEIVE, "isoperimetric": ISOPERIMETRIC, "positions": POSITIONS, "prices": PRICES}


def solve(instance: BineInstance, options: RunOptions) -> Outcome:
    """The strongest of the bounds that hold for the instance's problem, summed over its jobs."""
    binding, best = "receive", receive_bytes(instance)
    if instance.problem == "butterfly" and (other := isoperimetric_bytes(instance)) > best:
        binding, best = "isoperimetric", other
    if (
        instance.problem == "butterfly"
        and (other := least_bytes(instance, partial(isoperimetric_cut, instance))) > best
    ):
        binding, best = "positions", other
    if instance.problem == "tree" and instance.collective in ("broadcast", "reduce"):
        priced, prices = _priced(instance, options)
        if priced > best:
            certificate = {"binding": "prices", "scale": SCALE, "prices": prices}
            return Outcome("finished", bound=priced, bound_proof=PRICES, certificate=certificate)
    return Outcome("finished", bound=best, bound_proof=WORDS[binding], certificate={"binding": binding})


def bound_words(instance: BineInstance, certificate: Mapping[str, Any]) -> str:
    """What a certificate proves, in words."""
    return WORDS[certificate["binding"]]


def _priced(instance: BineInstance, options: RunOptions) -> tuple[float, list[int]]:
    """Bytes that prices of rounds prove, and the prices of every job and partition; equal ones are found once."""
    known: dict[tuple[object, ...], tuple[int, list[int]]] = {}
    rows, prices = [], []
    for job, groups in enumerate(instance.allocations):
        ranks = len(groups)
        if instance.blocks(ranks) != 1 or instance.torus is not None:
            return 0.0, []
        for weight, part in instance.partitions(job):
            sizes, root, rounds = np.bincount(part), int(part[instance.root]), instance.round_limit(ranks)
            key = (int(sizes[root]), tuple(sorted(sizes.tolist())), rounds)
            if key not in known:
                known[key] = best_prices(sizes, root, rounds, options)
            rows.append((ranks, weight * known[key][0]))
            prices += known[key][1]
    return instance.bytes_of(rows), prices
