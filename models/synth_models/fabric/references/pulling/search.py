"""Large-neighbourhood search: take a few pieces out, grow them again, keep what is no worse.

Ruin and recreate (Schrimpf, Schneider, Stamm-Wilbrandt, Dueck 2000) on reservations: among the pieces taken out is
mostly one that arrives last; they are grown again in random order, some with prices on crowded links, so that they stay
off them. Accepted is what lowers the completion, or leaves it and does not raise the sum of arrivals by more than a
little.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.kernel_clock import now as read_clock
from synth.kernels import jit
from synth_models.fabric.references.pulling.board import shape
from synth_models.fabric.references.pulling.grow import cancel, drop, grow, reserve


@jit
def build(
    board: Any,
    book: Any,
    slots: Any,
    labels: Any,
    pieces: Any,
    order: Any,
    finish: Any,
    wants: Any,
    price: Any,
    toward: Any,
    cutoff: Any,
    seconds: float,
) -> Any:
    """Grow all pieces in this order; ``pieces``: origin, goal and class per piece; ``finish``, per piece, is written.
    Returns the completion or what :func:`grow` says is wrong; anything once the seconds are over."""  # fmt: skip
    worst, end = np.int64(0), read_clock() + seconds
    for p in order:
        if read_clock() > end:
            break
        finish[p] = grow(
            board, book, slots, labels, p, pieces[0][p], pieces[1][p], pieces[2][p], wants, price, toward, cutoff
        )
        if finish[p] < 0:
            return finish[p]
        worst = max(worst, finish[p])
    return worst


@jit
def _squared(x: Any) -> Any:
    """x * x, to the bit: a power may be rounded in other ways."""
    return x * x


@jit
def _load(board: Any, slots: Any, pieces: Any, price: Any) -> None:
    """Write every resource's share of the busiest one's time into ``price``."""
    price[:] = 0.0
    route, _, following, first, _ = slots
    for p in range(len(first)):
        i = first[p]
        while i >= 0:
            count = shape(board, route[i], pieces[2][p])
            for k in range(count):
                price[board[14][k]] += board[16][k]
            i = following[i]
    most = price.max()
    if most > 0:
        price /= most


@jit
def improve(
    board: Any,
    book: Any,
    slots: Any,
    labels: Any,
    pieces: Any,
    finish: Any,
    wants: Any,
    toward: Any,
    rounds: Any,
    most: Any,
    bound: Any,
    seed: Any,
    resources: Any,
    seconds: float,
) -> Any:
    """``rounds`` of ruin and recreate with up to ``most`` pieces each; stops at ``bound``, and when the seconds are
    over. Returns the completion and
    the rounds that were made; a negative completion means that memory was full and the book is not to be used.
    """  # fmt: skip
    np.random.seed(seed)
    count = len(finish)
    worst = finish.max()
    total = 0.0
    for p in range(count):
        total += finish[p]
    chosen = np.empty(most, dtype=np.int64)
    old_first = np.empty(most, dtype=np.int64)
    old_finish = np.empty(most, dtype=np.int64)
    taken = np.zeros(count, dtype=np.bool_)
    price, scaled = np.zeros(resources), np.zeros(resources)
    free_price = np.zeros(0)
    first, route, start, following = slots[3], slots[0], slots[1], slots[2]
    made = 0
    end = read_clock() + seconds
    for step in range(rounds):
        if worst <= bound or read_clock() > end:
            break
        made += 1
        if step % 64 == 0:
            _load(board, slots, pieces, price)
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
            if taken[p] or (alike and picked and pieces[0][p] != pieces[0][chosen[0]]):
                continue
            taken[p] = True
            chosen[picked] = p
            picked += 1
        for j in range(picked):
            p = chosen[j]
            taken[p] = False
            old_first[j], old_finish[j] = first[p], finish[p]
            i = first[p]
            first[p] = -1
            while i >= 0:  # out of the book; the slots are kept for the way back
                if not cancel(board, book, route[i], pieces[2][p], start[i]):
                    return np.int64(-3), made
                i = following[i]
        for j in range(picked - 1, 0, -1):
            other = np.random.randint(j + 1)
            chosen[j], chosen[other] = chosen[other], chosen[j]
            old_first[j], old_first[other] = old_first[other], old_first[j]
            old_finish[j], old_finish[other] = old_finish[other], old_finish[j]
        dear = np.random.random() < 0.4
        if dear:
            scaled[:] = price
            scaled *= 4.0 * _squared(np.random.random())
        grown, good = 0, True
        after = total
        for j in range(picked):
            p = chosen[j]
            grown += 1
            finish[p] = grow(
                board, book, slots, labels, p, pieces[0][p], pieces[1][p], pieces[2][p], wants,
                scaled if dear else free_price, toward, worst,
            )  # fmt: skip
            if finish[p] < 0:
                if finish[p] == -3:
                    return np.int64(-3), made
                good = False
                break
            after += finish[p] - old_finish[j]
        now = np.int64(0)
        if good:
            now = finish.max()
            good = now < worst or after <= total * (1.0 + 0.01 * _squared(_squared(np.random.random())))
        if good:
            worst, total = now, after
            for j in range(picked):
                i = old_first[j]
                while i >= 0:
                    nxt = following[i]
                    following[i], slots[4][0] = slots[4][0], i
                    i = nxt
            continue
        for j in range(grown):
            if not drop(board, book, slots, chosen[j], pieces[2][chosen[j]]):
                return np.int64(-3), made
        for j in range(picked):
            p = chosen[j]
            first[p], finish[p] = old_first[j], old_finish[j]
            i = first[p]
            while i >= 0:
                if not reserve(board, book, route[i], pieces[2][p], start[i]):
                    return np.int64(-3), made
                i = following[i]
    return worst, made
