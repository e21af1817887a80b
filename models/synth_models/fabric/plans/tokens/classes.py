"""Tokens by class: what one rank sends to the same ranks of one box.

A token goes once to a box in which any rank wants it. So what it sends to several boxes are separate *copies*, and all
copies from a rank to a box that the same ranks there want are alike: the unit in which plans count.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import Int32Array, IntArray
from synth.errors import UnsupportedError
from synth.kernels import jit

WIDEST = 10  # ranks of a box up to which copies are counted in an array of all sets,
MOST_BITS = 62  # and which a word has room for
SPREAD = 0x9E3779B1  # odd: sets times this, modulo their number, are the order in which they go, each kind spread out


class Classes(NamedTuple):
    """Copies by class, in the order in which they go: by the sender's box, the box, and the sender.

    ``row``: shape (boxes * boxes * size + 1,); what rank g of box b sends box c are the classes ``row[k]:row[k + 1]``,
    ``k = (b * boxes + c) * size + g``. ``wanted``: a bit for every place of the box where the copy is wanted;
    ``tokens``: how many; ``before``: how many of the same k come before; shape (classes,). A place that sends to its
    own box is no wanter there. ``leave_rank``, ``leave_box``: tokens that leave a rank, and a box, to any other at
    least once; shape (ranks,) and (boxes,).
    """

    row: IntArray
    wanted: IntArray
    tokens: IntArray
    before: IntArray
    leave_rank: IntArray
    leave_box: IntArray


def of_routing(source: IntArray, goals: IntArray, place: IntArray, boxes: int, size: int) -> Classes:
    """The classes of tokens: token t is at rank ``source[t]``, shape (tokens,), and wanted by the ranks ``goals[t]``,
    shape (tokens, most), -1 for none; ``place[rank]`` of each in the order box after box. Raises
    :class:`UnsupportedError` for boxes of more than 62 ranks."""
    if size > MOST_BITS:
        raise UnsupportedError(f"boxes of {size} ranks: tokens are planned for boxes of up to {MOST_BITS}")
    ranks = boxes * size
    leave_rank, leave_box = np.zeros(ranks, np.int64), np.zeros(boxes, np.int64)
    if size <= WIDEST:
        count = np.zeros((boxes * boxes * size, 1 << size), np.int32)
        _counted(source, goals, place, (boxes, size), count, leave_rank, leave_box)
        return _listed(count, leave_rank, leave_box)
    key, wanted = _copies(source, goals, place, (boxes, size), leave_rank, leave_box)
    order = np.lexsort((turn_of(wanted, size), key))
    key, wanted = key[order], wanted[order]
    new = np.append(True, (np.diff(key) != 0) | (np.diff(wanted) != 0)) if len(key) else np.zeros(0, bool)
    first = np.flatnonzero(new)
    tokens = np.diff(np.append(first, len(key)))
    row = np.searchsorted(key[first], np.arange(boxes * boxes * size + 1)).astype(np.int64)
    gone = np.cumsum(tokens) - tokens
    of = np.repeat(np.arange(len(row) - 1), np.diff(row))
    before = gone - gone[row[:-1][of]] if len(first) else gone
    return Classes(row, wanted[first], tokens.astype(np.int64), before.astype(np.int64), leave_rank, leave_box)


def turn_of(wanted: IntArray, size: int) -> IntArray:
    """By what sets of a box of ``size`` ranks are sorted: as :func:`_listed` does up to :data:`WIDEST`."""
    few = size <= WIDEST
    return wanted * (pow(SPREAD, -1, 1 << size) if few else SPREAD) % (1 << (size if few else 31))


@jit
def _tables(place: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """The box of every rank, and the bit of its place there; behind the last rank what stands for none: no bit."""
    box, bit = np.zeros(len(place) + 1, np.int64), np.zeros(len(place) + 1, np.int64)
    for rank in range(len(place)):
        box[rank], bit[rank] = place[rank] // size, 1 << (place[rank] % size)
    return box, bit


@jit
def _counted(
    source: IntArray, goals: IntArray, place: IntArray, shape: tuple[int, int], count: Int32Array,
    leave_rank: IntArray, leave_box: IntArray,
) -> None:  # fmt: skip
    """Count copies: ``count[k, wanted]``, k as in :class:`Classes`. A set that is empty means nothing: a box that
    several goals are in is counted with its set once, and then with the empty one. ``shape``: boxes and their size."""
    boxes, size = shape
    box, bit = _tables(place, size)
    mask = np.zeros(boxes, np.int64)
    each = goals.shape[1]
    for t in range(len(source)):
        s = place[source[t]]
        b = box[source[t]]
        for n in range(each):
            mask[box[goals[t, n]]] |= bit[goals[t, n]]
        mask[b] &= ~bit[source[t]]
        stays, leaves = mask[b], np.int64(0)
        k = b * boxes * size + s - b * size
        for n in range(each):
            c = box[goals[t, n]]
            count[k + c * size, mask[c]] += 1
            leaves |= mask[c] * (c != b)
            mask[c] = 0
        leave_rank[s] += (stays | leaves) != 0
        leave_box[b] += leaves != 0


@jit
def _listed(count: Int32Array, leave_rank: IntArray, leave_box: IntArray) -> Classes:
    """The classes of counted copies."""
    keys, sets = count.shape
    most = 0
    for k in range(keys):
        for n in range(1, sets):
            most += count[k, n] > 0
    row, wanted = np.zeros(keys + 1, np.int64), np.zeros(most, np.int64)
    tokens, before = np.zeros(most, np.int64), np.zeros(most, np.int64)
    top = 0
    for k in range(keys):
        gone = np.int64(0)
        for n in range(sets):
            x = (n * SPREAD) & (sets - 1)
            if x > 0 and count[k, x] > 0:
                wanted[top], tokens[top], before[top] = x, count[k, x], gone
                gone += count[k, x]
                top += 1
        row[k + 1] = top
    return Classes(row, wanted, tokens, before, leave_rank, leave_box)


@jit
def _copies(
    source: IntArray,
    goals: IntArray,
    place: IntArray,
    shape: tuple[int, int],
    leave_rank: IntArray,
    leave_box: IntArray,
) -> tuple[IntArray, IntArray]:
    """Every copy on its own: its k, and who wants it. ``shape`` as above."""
    boxes, size = shape
    box, bit = _tables(place, size)
    mask = np.zeros(boxes, np.int64)
    key, wanted = np.zeros(goals.size, np.int64), np.zeros(goals.size, np.int64)
    top: Any = np.int64(0)
    for t in range(len(source)):
        s, b = place[source[t]], box[source[t]]
        for n in range(goals.shape[1]):
            mask[box[goals[t, n]]] |= bit[goals[t, n]]
        mask[b] &= ~bit[source[t]]
        stays, leaves = mask[b], np.int64(0)
        for n in range(goals.shape[1]):
            c = box[goals[t, n]]
            if mask[c] != 0:
                key[top], wanted[top] = (b * boxes + c) * size + s % size, mask[c]
                top += 1
                leaves |= mask[c] * (c != b)
                mask[c] = 0
        leave_rank[s] += (stays | leaves) != 0
        leave_box[b] += leaves != 0
    return key[:top], wanted[:top]


@jit
def pairs_of(classes: Classes, boxes: int, size: int) -> tuple[IntArray, IntArray, IntArray]:
    """What rank g of box b sends box c, copies, shape (boxes, boxes, size); copies that rank h gets from all others,
    shape (ranks,); and tokens from rank to rank if each wanter had its own, shape (ranks, ranks)."""
    sent, arrive = np.zeros((boxes, boxes, size), np.int64), np.zeros(boxes * size, np.int64)
    alone = np.zeros((boxes * size, boxes * size), np.int64)
    for b in range(boxes):
        for c in range(boxes):
            for g in range(size):
                k = (b * boxes + c) * size + g
                for x in range(classes.row[k], classes.row[k + 1]):
                    sent[b, c, g] += classes.tokens[x]
                    for h in range(size):
                        if classes.wanted[x] >> h & 1:
                            arrive[c * size + h] += classes.tokens[x]
                            alone[b * size + g, c * size + h] += classes.tokens[x]
    return sent, arrive, alone
