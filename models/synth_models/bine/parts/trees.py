"""Trees: parents and rounds of binomial and Bine trees, and the four collectives on any tree.

Distance-halving and -doubling binomial trees (MPICH, Open MPI) exist for every number of ranks. Bine trees are the
butterfly restricted to informed units (De Sensi et al., sections 2.3 and 3.2); other p are folded, the excess ranks
being served in one more round. Roots other than 0 rotate the ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth_models.bine.parts.butterfly import fold, partners
from synth_models.bine.parts.steps import Rows
from synth_models.bine.solution import Steps


@dataclass(frozen=True)
class Tree:
    """``parent`` and ``round`` (the broadcast round of the message from the parent), shape (p,); -1 at the root."""

    root: int
    parent: IntArray
    round: IntArray


def binomial(ranks: int, root: int, order: str) -> Tree:
    """The distance-halving (MPICH) or -doubling (Open MPI) binomial tree on any number of ranks."""
    bits = (ranks - 1).bit_length()
    r = np.arange(1, ranks, dtype=np.int64)
    bit = r & -r if order == "halving" else 1 << np.floor(np.log2(r)).astype(np.int64)
    step = np.round(np.log2(bit)).astype(np.int64)
    parent = np.concatenate([[-1], r - bit])
    when = np.concatenate([[-1], bits - 1 - step if order == "halving" else step])
    return rotate(Tree(0, parent, when), root)


def bine(ranks: int, root: int, order: str) -> Tree:
    """The distance-halving or -doubling Bine tree."""
    folding = fold(ranks, first_acts=True)
    pairing = partners("bine", order, folding.bits)
    parent, when = np.full(ranks, -1), np.full(ranks, -1)
    informed = np.zeros(1, dtype=np.int64)
    for i in range(folding.bits):
        reached = pairing[i][informed]
        parent[folding.rep[reached]], when[folding.rep[reached]] = folding.rep[informed], i
        informed = np.concatenate([informed, reached])
    parent[folding.partner] = folding.rep[: len(folding.partner)]
    when[folding.partner] = folding.bits
    return rotate(Tree(0, parent, when), root)


def rotate(tree: Tree, root: int) -> Tree:
    """The tree with every rank r renamed to (r + root) mod p."""
    size = len(tree.parent)
    old = (np.arange(size) - root) % size
    parent = np.where(tree.parent[old] < 0, -1, (tree.parent[old] + root) % size)
    return Tree(root, parent, tree.round[old])


def preorder(tree: Tree) -> tuple[IntArray, IntArray, IntArray]:
    """Ranks in preorder, each rank's place in it, and the size of its subtree, all of shape (p,)."""
    size = len(tree.parent)
    below = np.ones(size, dtype=np.int64)
    late_first = np.argsort(-tree.round, kind="stable")
    late_first = late_first[tree.parent[late_first] >= 0]
    for r in late_first:  # children are reached after their parents
        below[tree.parent[r]] += below[r]
    place = np.zeros(size, dtype=np.int64)
    free = place + 1
    for r in late_first[::-1]:
        parent = tree.parent[r]
        place[r] = free[parent]
        free[parent] += below[r]
        free[r] = place[r] + 1
    order = np.empty(size, dtype=np.int64)
    order[place] = np.arange(size)
    return order, place, below


def on_tree(tree: Tree, collective: str) -> Steps:
    """The rows of broadcast, reduce, scatter or gather on the tree; reduce and gather run it backwards."""
    child = np.flatnonzero(tree.parent >= 0)
    parent, last = tree.parent[child], int(tree.round.max())
    rows = Rows()
    backwards = collective in ("reduce", "gather")
    step = last - tree.round[child] if backwards else tree.round[child]
    src, dst = (child, parent) if backwards else (parent, child)
    if collective in ("broadcast", "reduce"):
        rows.add(step, src, dst, 0, 1, collective == "reduce")
        return rows.finish(np.zeros(1, dtype=np.int64))
    order, place, below = preorder(tree)
    rows.add(step, src, dst, place[child], below[child])
    return rows.finish(order)


def matched(leave: list[int], arrive: list[int]) -> list[tuple[int, int]]:
    """Departures matched to arrivals elsewhere: pairs of different groups that use up all of both.

    Taking the group with most left to do and its busiest possible partner keeps ``leave + arrive <= total`` for every
    group (two groups can be tight at once, and then they are each other's partners), so it never gets stuck.
    """
    pairs = []
    groups = range(len(leave))
    while sum(leave):
        a = max(groups, key=lambda g: leave[g] + arrive[g])
        out = leave[a] > 0
        left = arrive if out else leave
        b = max((g for g in groups if g != a and left[g] > 0), key=lambda g: leave[g] + arrive[g])
        source, target = (a, b) if out else (b, a)
        leave[source] -= 1
        arrive[target] -= 1
        pairs.append((source, target))
    return pairs
