"""Method ``hierarchical`` (reference): allreduce of nodes with several ranks each (De Sensi et al., section 6.2).

With g ranks on each of n nodes, p = g n: (1) inside every node a reduce-scatter in one round, every rank sending each
other one its g-th of the vector; (2) an allreduce among the ranks of equal local number, one of each node, on the g-th
they then hold, reduce-scatter and allgather, by Bine's partners or by those that ``between`` names; (3) inside every
node an allgather in one round, backwards. Also the halves alone: ``reduce_scatter`` is (1) and the first half of (2),
``allgather`` the second half and (3). With one rank a node it is the flat algorithm. Ranks keep their local number in
the order of their ranks; nodes their order of first appearance. O(p log n + p g) rows. No guarantee on global traffic.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.bine.instance import BineInstance
from synth_models.bine.parts.butterfly import partners
from synth_models.bine.parts.steps import Rows
from synth_models.bine.references import exchanges, ring_algorithms
from synth_models.bine.solution import Steps, join

HALVES = ("allreduce", "reduce_scatter", "allgather")


def solve(instance: BineInstance, options: RunOptions) -> Outcome:
    """Method ``hierarchical``. Raises :class:`UnsupportedError` where nodes have unequal numbers of ranks."""
    collective, vector = instance.collective, instance.vector
    if instance.problem != "any" or collective not in HALVES or (collective == "allreduce" and vector == "small"):
        raise UnsupportedError("hierarchical is for large allreduce, reduce_scatter and allgather of the problem any")
    if instance.torus is not None:
        raise UnsupportedError("hierarchical needs nodes, a torus has none")
    between = options.method.get("between") or "bine"
    return Outcome("finished", join([pattern(nodes, collective, between) for nodes in instance.nodes]))


def pattern(nodes: Any, collective: str, between: str = "bine") -> Steps:
    """Rows of one job whose ranks lie on ``nodes``, shape (p,). Raises :class:`UnsupportedError`."""
    sizes = np.bincount(nodes)
    local, count = int(sizes[0]), len(sizes)
    if np.any(sizes != local):
        found = f"{int(sizes.min())} to {int(sizes.max())}"
        raise UnsupportedError(f"nodes have {found} ranks, hierarchical needs equal numbers")
    rank_of = np.argsort(nodes, kind="stable").reshape(count, local)
    across = _across(between, count, collective)
    before, after = collective != "allgather" and local > 1, collective != "reduce_scatter" and local > 1
    rows = Rows()
    if before:
        _inside(rows, 0, rank_of, receiver_owns=True)
    for number in range(local):
        ranks = rank_of[:, number]
        first = across.first + number * count
        rows.add(across.round + before, ranks[across.src], ranks[across.dst], first, across.count, across.adds)
    if after:
        last = int(across.round.max(initial=-1)) + 1 + before
        _inside(rows, last, rank_of, receiver_owns=False)
    return rows.finish(np.concatenate([rank_of[across.layout, number] for number in range(local)]))


def _across(between: str, count: int, collective: str) -> Steps:
    """The rows among ``count`` nodes, of one g-th of the vector."""
    if count == 1:
        nothing = np.zeros(0, dtype=np.int64)
        return Steps(nothing, nothing, nothing, nothing, nothing, nothing > 0, np.zeros(1, dtype=np.int64))
    if between == "ring":
        return ring_algorithms.bucket([count], collective)
    return exchanges.run(partial(partners, between, "doubling"), count, collective, "large")


def _inside(rows: Rows, when: int, rank_of: IntArray, receiver_owns: bool) -> None:
    """One round inside all nodes: all send all others the receiver's g-th, which it adds, or their own."""
    count, local = rank_of.shape
    src, dst = np.divmod(np.flatnonzero(~np.eye(local, dtype=bool).ravel()), local)
    owner = dst if receiver_owns else src
    for node in rank_of:
        rows.add(when, node[src], node[dst], owner * count, count, receiver_owns)
