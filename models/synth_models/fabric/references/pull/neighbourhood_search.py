"""Large-neighbourhood search: remove a few pieces, regrow their trees, keep the result unless it is worse.

Ruin and recreate (Schrimpf, Schneider, Stamm-Wilbrandt, Dueck 2000) on reservations. Among the pieces removed is mostly
one that arrives last. Their trees are grown again in random order, sometimes with prices on crowded links. The result
is accepted if it lowers the completion, or keeps it and does not raise the sum of arrivals by more than a little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.kernels import jit
from synth.kernels.clock import now as read_clock
from synth_models.fabric.references.pull.routing_state import find_uses, release_route, reserve_route
from synth_models.fabric.references.pull.tree_growth import FULL, TreeState, TreeTransfers, drop, grow


class Chosen(NamedTuple):
    """Pieces that are taken out, each with the first of its transfers and its last arrival before; shape (most,)."""

    piece: IntArray
    first: IntArray
    finish: IntArray


@jit
def build(tree: TreeState, order: IntArray, finish: IntArray, price: FloatArray, cutoff: int, seconds: float) -> int:
    """Grow all pieces in this order; ``finish``, the last arrival of every piece, is written. Returns the completion or
    what :func:`grow` says is wrong; anything once the seconds are over."""
    worst, end = np.int64(0), read_clock() + seconds
    for p in order:
        if read_clock() > end:
            break
        finish[p] = grow(tree, p, price, cutoff)
        if finish[p] < 0:
            return int(finish[p])
        worst = max(worst, finish[p])
    return int(worst)


@jit
def _squared(x: float) -> float:
    """x * x, to the bit: a power may be rounded in other ways."""
    return x * x


@jit
def _load(tree: TreeState, price: FloatArray) -> None:
    """Write every resource's share of the busiest one's time into ``price``."""
    price[:] = 0.0
    routing, transfers, kind = tree.routing, tree.transfers, tree.pieces.kind
    uses = routing.uses
    for p in range(len(transfers.first)):
        i = transfers.first[p]
        while i >= 0:
            find_uses(routing, transfers.route[i], kind[p])
            for k in range(uses.row[1]):
                price[uses.resource[k]] += uses.duration[k]
            i = transfers.following[i]
    most = price.max()
    if most > 0:
        price /= most


@jit
def _choose(origin: IntArray, finish: IntArray, worst: int, most: int, chosen: IntArray, taken: BoolArray) -> int:
    """Write up to ``most`` pieces into ``chosen``, mostly with one that arrives last; how many. ``taken``: scratch, all
    False."""
    count = len(finish)
    size = min(count, 1 + int(most * _squared(np.random.random())))
    picked = 0
    if np.random.random() < 0.8:  # one of those that arrive last
        seen, p = 0, -1
        for q in range(count):
            if finish[q] == worst:
                seen += 1
                if np.random.random() * seen < 1.0:
                    p = q
        chosen[0], picked = p, 1
        taken[p] = True
    alike = np.random.random() < 0.3
    tries = 0
    while picked < size and tries < 8 * size:
        tries += 1
        p = np.random.randint(count)
        if taken[p] or (alike and picked and origin[p] != origin[chosen[0]]):
            continue
        taken[p] = True
        chosen[picked] = p
        picked += 1
    for p in chosen[:picked]:
        taken[p] = False
    return picked


@jit
def _take_out(tree: TreeState, finish: IntArray, old: Chosen, picked: int) -> bool:
    """Release what the chosen pieces hold, keeping their transfers so that they can be put back, and shuffle them.
    False if the pool is full."""
    transfers, routing, reserved, kind = tree.transfers, tree.routing, tree.reserved, tree.pieces.kind
    for j in range(picked):
        p = old.piece[j]
        old.first[j], old.finish[j] = transfers.first[p], finish[p]
        i = transfers.first[p]
        transfers.first[p] = -1
        while i >= 0:
            if not release_route(routing, reserved, transfers.route[i], kind[p], transfers.start[i]):
                return False
            i = transfers.following[i]
    for j in range(picked - 1, 0, -1):
        other = np.random.randint(j + 1)
        old.piece[j], old.piece[other] = old.piece[other], old.piece[j]
        old.first[j], old.first[other] = old.first[other], old.first[j]
        old.finish[j], old.finish[other] = old.finish[other], old.finish[j]
    return True


@jit
def _give_up(transfers: TreeTransfers, old: Chosen, picked: int) -> None:
    """Let go of the transfers that the chosen pieces had before."""
    for j in range(picked):
        i = old.first[j]
        while i >= 0:
            following = transfers.following[i]
            transfers.following[i], transfers.free[0] = transfers.free[0], i
            i = following


@jit
def _put_back(tree: TreeState, finish: IntArray, old: Chosen, picked: int, grown: int) -> bool:
    """Drop the first ``grown`` of the new trees and reserve the old ones again. False if the pool is full."""
    transfers, routing, reserved, kind = tree.transfers, tree.routing, tree.reserved, tree.pieces.kind
    for j in range(grown):
        if not drop(tree, old.piece[j]):
            return False
    for j in range(picked):
        p = old.piece[j]
        transfers.first[p], finish[p] = old.first[j], old.finish[j]
        i = transfers.first[p]
        while i >= 0:
            if not reserve_route(routing, reserved, transfers.route[i], kind[p], transfers.start[i]):
                return False
            i = transfers.following[i]
    return True


@jit
def improve(
    tree: TreeState, finish: IntArray, rounds: int, most: int, bound: int, seed: int, seconds: float
) -> tuple[int, int]:
    """``rounds`` of ruin and recreate with up to ``most`` pieces each; stops at ``bound``, and when the seconds are
    over. Returns the completion and the rounds that were made; a negative completion means that memory was full and
    the reservations are not to be used."""
    np.random.seed(seed)
    worst, total = finish.max(), 0.0
    for p in range(len(finish)):
        total += finish[p]
    old = Chosen(np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64))
    taken = np.zeros(len(finish), dtype=np.bool_)
    resources = len(tree.reserved.first)
    price, scaled, no_price = np.zeros(resources), np.zeros(resources), np.zeros(0)
    made = 0
    end = read_clock() + seconds
    for step in range(rounds):
        if worst <= bound or read_clock() > end:
            break
        made += 1
        if step % 64 == 0:
            _load(tree, price)
        picked = _choose(tree.pieces.origin, finish, worst, most, old.piece, taken)
        if not _take_out(tree, finish, old, picked):
            return FULL, made
        dear = np.random.random() < 0.4
        if dear:
            scaled[:] = price
            scaled *= 4.0 * _squared(np.random.random())
        grown, good = 0, True
        after = total
        for j in range(picked):
            p = old.piece[j]
            grown += 1
            finish[p] = grow(tree, p, scaled if dear else no_price, worst)
            if finish[p] == FULL:
                return FULL, made
            if finish[p] < 0:
                good = False
                break
            after += finish[p] - old.finish[j]
        now = np.int64(0)
        if good:
            now = finish.max()
            good = now < worst or after <= total * (1.0 + 0.01 * _squared(_squared(np.random.random())))
        if good:
            worst, total = now, after
            _give_up(tree.transfers, old, picked)
        elif not _put_back(tree, finish, old, picked, grown):
            return FULL, made
    return int(worst), made
