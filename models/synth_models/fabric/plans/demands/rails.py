"""Which bytes of a demand go over which rail: every pair of boxes in equal parts, with as few hops inside as possible.

What one box sends to another is cut into as many equal parts as there are rails (balanced as in FAST, 2025). A block
from place g to place h goes over rail g = h without a hop inside a box, over rail g or h with one, over another with
two: blocks take the rails with the fewest hops first, while there is room.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit

HALVED = 2  # th of a rail's part: a block of more is shared by the rails of its two ends
CLASSES = 4  # of a part, by hops before and behind the rail: those that come first on a rail, to those that come last


class Parts(NamedTuple):
    """Parts of blocks on rails, those of one pair of boxes and rail together, in the order in which they go.

    ``row``: shape (boxes * boxes * rails + 1,); parts ``row[k]:row[k + 1]`` go from box b to box c over rail q,
    ``k = (b * boxes + c) * rails + q``. ``origin``, ``goal`` (ranks), ``bytes``: shape (parts,).
    """

    row: IntArray
    origin: IntArray
    goal: IntArray
    bytes: IntArray


@jit
def on_rails(demand: IntArray, boxes: int, size: int) -> tuple[Parts, IntArray]:
    """The parts on rails of a demand (bytes from rank to rank, shape (ranks, ranks)), and the bytes of every pair of
    boxes on its fullest rail, shape (boxes, boxes)."""
    most = boxes * boxes * (2 * size * size + size)
    row = np.zeros(boxes * boxes * size + 1, dtype=np.int64)
    origin, goal = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)
    amount = np.zeros(most, dtype=np.int64)
    fullest = np.zeros((boxes, boxes), dtype=np.int64)
    share = np.zeros((size, size, size), dtype=np.int64)
    top = 0
    for b in range(boxes):
        for c in range(boxes):
            base = (b * boxes + c) * size
            if b != c:
                block = demand[b * size : (b + 1) * size, c * size : (c + 1) * size]
                fullest[b, c] = _dealt(block, share)
                for q in range(size):
                    for rank in range(CLASSES):
                        top = _listed(share, q, rank, b * size, c * size, origin, goal, amount, top)
                    row[base + q + 1] = top
            else:
                row[base + 1 : base + size + 1] = top
    return Parts(row, origin[:top], goal[:top], amount[:top]), fullest


@jit
def _dealt(block: IntArray, share: IntArray) -> int:
    """Fill ``share[q, g, h]``, bytes from place g to place h on rail q; the bytes on the fullest rail."""
    size = len(block)
    left = block.copy()
    total = left.sum()
    share[:] = 0
    room = np.empty(size, dtype=np.int64)
    for q in range(size):
        room[q] = total // size + (1 if q < total % size else 0)
    for g in range(size):
        taken = min(left[g, g], room[g])
        share[g, g, g] = taken
        left[g, g] -= taken
        room[g] -= taken
    for step in range(1, size):
        for g in range(size):
            h = (g + step) % size
            first, second = (g, h) if room[g] >= room[h] else (h, g)
            many = left[g, h] * size > total // HALVED
            for q in (first, second):
                taken = min(left[g, h], room[q])
                if many and q == first:
                    taken = min(taken, (room[first] - room[second] + left[g, h] + 1) // 2)
                share[q, g, h] = taken
                room[q] -= taken
                left[g, h] -= taken
    q = 0
    for g in range(size):
        for h in range(size):
            while left[g, h] > 0:
                while room[q] == 0:
                    q += 1
                taken = min(left[g, h], room[q])
                share[q, g, h] += taken
                left[g, h] -= taken
                room[q] -= taken
    return int((total + size - 1) // size)


@jit
def _listed(
    share: IntArray, q: int, rank: int, first: int, last: int, origin: IntArray, goal: IntArray, amount: IntArray,
    top: int,
) -> int:  # fmt: skip
    """List the parts of a class on rail q: 0 begins there and hops behind it, 1 hops on both sides, 2 none, 3 hops
    before it only. The new ``top``."""
    size = len(share)
    for g in range(size):
        for h in range(size):
            before, behind = g != q, h != q
            kind = (1 if behind else 3) if before else (0 if behind else 2)
            if share[q, g, h] > 0 and kind == rank:
                origin[top], goal[top], amount[top] = first + g, last + h, share[q, g, h]
                top += 1
    return top
