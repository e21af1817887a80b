"""Waiting lines: which transfers wait at a resource, the first in a fixed order found at once.

Every use of a resource has a place of its own among those of that resource, by the order of their transfers. Who waits
is a bit at that place; bits above it say which 32 places below have any, level after level. So joining a line, leaving
it and finding its first take a few steps, however long it is. What a transfer occupies lies beside each of its places,
so that a line is read from front to end in memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth_models.fabric.scheduling.reservations import Uses

BITS = 5  # of a place, that choose one bit of a word
WORD = 1 << BITS
MOST_BESIDE = 1 << 23  # uses that lie beside places; of more, only one copy is kept
DE_BRUIJN = 0x077CB531  # times a power of two: its upper five of 32 bits are different for each
LOWEST = np.array(
    [0, 1, 28, 2, 29, 14, 24, 3, 30, 22, 20, 15, 25, 17, 4, 8, 31, 27, 13, 23, 21, 19, 16, 7, 26, 12, 18, 6, 11, 5, 10,
     9], dtype=np.int64,
)  # fmt: skip


class Lines(NamedTuple):
    """The line of resource x has the places ``first[x]:first[x + 1]``, shape (resources + 1,).

    ``place``: of every use, shape (uses,). ``transfer``: of every place, shape (places,). What that of place p occupies
    is ``resource`` from ``offset`` ticks after its start on, with ``at`` for its place there, in the entries
    ``begin[p]:begin[p + 1]``; where all this would take too much memory, ``begin`` is empty, and the entries are those
    of the uses. ``bits``, ``level``: who waits, in words of 32 places; level l begins at ``level[l]``.
    """

    first: IntArray
    place: IntArray
    transfer: IntArray
    begin: IntArray
    resource: IntArray
    offset: IntArray
    at: IntArray
    bits: IntArray
    level: IntArray


def empty_lines(uses: Uses, resources: int, order: IntArray, beside: bool = False) -> Lines:
    """Lines where nobody waits, those in front first that come first in ``order``, a permutation of the transfers.
    ``beside``: what they occupy lies beside their places, however much memory that takes."""
    levels, words = [0], len(uses.resource) // WORD + 1
    while words > 1:
        levels.append(levels[-1] + words)
        words = words // WORD + 1
    bits, level = np.zeros(levels[-1] + words, dtype=np.int64), np.array(levels, dtype=np.int64)
    beside = beside or int((np.diff(uses.row) ** 2).sum()) <= MOST_BESIDE
    return Lines(*_places(uses, resources, order, beside), bits, level)


@jit
def _places(
    uses: Uses, resources: int, order: IntArray, beside: bool
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """All but the bits."""
    row, resource, offset = uses.row, uses.resource, uses.offset
    count = len(resource)
    first = np.zeros(resources + 1, np.int64)
    for k in range(count):
        first[resource[k] + 1] += 1
    first = np.cumsum(first)
    free = first[:-1].copy()
    place, transfer = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for i in order:
        for k in range(row[i], row[i + 1]):
            x = resource[k]
            place[k], transfer[free[x]] = free[x], i
            free[x] += 1
    if not beside:
        return first, place, transfer, np.zeros(0, np.int64), resource, offset, place
    begin = np.zeros(count + 1, np.int64)
    begin[1:] = np.cumsum(row[transfer + 1] - row[transfer])
    own, after, at = np.zeros(begin[-1], np.int64), np.zeros(begin[-1], np.int64), np.zeros(begin[-1], np.int64)
    for p in range(count):
        top = begin[p]
        for k in range(row[transfer[p]], row[transfer[p] + 1]):
            own[top], after[top], at[top] = resource[k], offset[k], place[k]
            top += 1
    return first, place, transfer, begin, own, after, at


@jit(inlined=True)
def join(bits: IntArray, level: IntArray, place: int) -> None:
    """Let whoever has this place wait there."""
    p = place
    for start in level:
        word = start + (p >> BITS)
        before = bits[word]
        bits[word] = before | (1 << (p & (WORD - 1)))
        if before != 0:
            break
        p >>= BITS


@jit(inlined=True)
def leave(bits: IntArray, level: IntArray, place: int) -> None:
    """Let nobody wait at this place."""
    p = place
    for start in level:
        word = start + (p >> BITS)
        bits[word] &= ~(1 << (p & (WORD - 1)))
        if bits[word] != 0:
            break
        p >>= BITS


@jit(inlined=True)
def next_in_line(bits: IntArray, level: IntArray, place: int, end: int) -> int:
    """The first place from ``place`` on, before ``end``, where somebody waits; -1 for none."""
    p, up, found = place, 0, np.int64(0)
    if place < end:
        found = bits[p >> BITS] >> (p & (WORD - 1))
        while found == 0 and up + 1 < len(level):
            p, up = (p >> BITS) + 1, up + 1
            found = bits[level[up] + (p >> BITS)] >> (p & (WORD - 1))
    if found == 0:
        return -1
    p += LOWEST[(((found & -found) * DE_BRUIJN) & 0xFFFFFFFF) >> 27]
    while up > 0:
        up -= 1
        found = bits[level[up] + p]
        p = (p << BITS) + LOWEST[(((found & -found) * DE_BRUIJN) & 0xFFFFFFFF) >> 27]
    return int(p) if p < end else -1
