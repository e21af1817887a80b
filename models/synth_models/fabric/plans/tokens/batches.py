"""Batches of copies: which go over which rail when, and on to which ranks of the box.

What one box sends another is dealt to the rails in equal shares, each rank's own rail first. A rail's share is cut
where a stage between boxes ends (:mod:`synth_models.fabric.plans.demands.decomposition`), and into a few more parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth_models.fabric.plans.demands.decomposition import Stages
from synth_models.fabric.plans.demands.timeline import up_to_cut
from synth_models.fabric.plans.tokens.classes import Classes


class Batches(NamedTuple):
    """Copies that go together, in any order; shape (batches,) but for ``fan``.

    ``origin``: the rank that holds them, ``box``: where they go, over ``rail`` (in the same box: the origin's place).
    They are the ``tokens`` from place ``first`` on of what the origin sends the box. ``turn``: when they would cross
    the rail if nothing else took time, in tokens. ``fan[i, h]``: how many place h of the box wants and does not get
    over the rail, shape (batches, size).
    """

    origin: IntArray
    box: IntArray
    rail: IntArray
    first: IntArray
    tokens: IntArray
    turn: IntArray
    fan: IntArray


class Pieces(NamedTuple):
    """Copies of one class that go in one batch; shape (pieces,) each, batch after batch."""

    batch: IntArray
    kind: IntArray
    tokens: IntArray


@jit
def dealt(sent: IntArray) -> IntArray:
    """How many copies of each rank's go over each rail: ``share[b, c, g, q]``; ``sent[b, c, g]`` in all. Every rail of
    a pair of boxes has as many, or one more: first those whose own ranks have more."""
    boxes, size = sent.shape[0], sent.shape[2]
    share, room = np.zeros((boxes, boxes, size, size), np.int64), np.zeros(size, np.int64)
    for b in range(boxes):
        for c in range(boxes):
            if b == c:
                continue
            total = sent[b, c].sum()
            room[:] = total // size
            more = total % size
            for k in range(2 * size):
                q = (k + b + c) % size
                if more > 0 and room[q] == total // size and (k >= size or sent[b, c, q] > room[q]):
                    room[q] += 1
                    more -= 1
            for q in range(size):
                share[b, c, q, q] = min(sent[b, c, q], room[q])
                room[q] -= share[b, c, q, q]
            q = 0
            for g in range(size):
                left = sent[b, c, g] - share[b, c, g, g]
                while left > 0:
                    while room[q] == 0:
                        q += 1
                    taken = min(left, room[q])
                    share[b, c, g, q] = taken
                    room[q] -= taken
                    left -= taken
    return share


@jit
def batches_of(sent: IntArray, share: IntArray, stages: Stages, cuts: IntArray, cells: int, until: int) -> Batches:
    """All batches, their fans still empty. ``cuts``: turns at which batches end; what stays in its box goes in
    ``cells`` parts, their turns spread evenly until ``until``."""
    boxes, size = sent.shape[0], sent.shape[2]
    most = boxes * size * (len(stages.length) + len(cuts) + 1 + boxes + cells) + (share > 0).sum()
    origin, box, rail = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    first, tokens, turns = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    begin = np.cumsum(stages.length) - stages.length
    gone = np.zeros(size, np.int64)
    top: Any = 0
    for b in range(boxes):
        by_target = np.argsort(stages.target[:, b], kind="mergesort")
        start = 0
        for c in range(boxes):
            last = start
            while last < len(by_target) and stages.target[by_target[last], b] == c:
                last += 1
            gone[:] = 0
            for g in range(size):
                gone[g] = share[b, c, g, g]  # what takes another rail comes behind it
            for q in range(size if b != c else 0):
                stage, used = start, np.int64(0)
                for turn_of in range(size):
                    g = (q + turn_of) % size
                    left = share[b, c, g, q]
                    at = np.int64(0) if g == q else gone[g]
                    while left > 0:
                        s = by_target[stage]
                        turn = begin[s] + used
                        taken = up_to_cut(min(left, stages.length[s] - used), turn, cuts)
                        origin[top], box[top], rail[top] = b * size + g, c, q
                        first[top], tokens[top], turns[top] = at, taken, turn
                        top += 1
                        left -= taken
                        at += taken
                        used += taken
                        if used == stages.length[s]:
                            stage, used = stage + 1, np.int64(0)
                    if g != q:
                        gone[g] = at
            start = last
            for g in range(size if b == c else 0):
                for k in range(cells):
                    low, high = sent[b, b, g] * k // cells, sent[b, b, g] * (k + 1) // cells
                    if high > low:
                        origin[top], box[top], rail[top] = b * size + g, b, g
                        first[top], tokens[top], turns[top] = low, high - low, until * k // cells
                        top += 1
    fan = np.zeros((top, size), np.int64)
    return Batches(origin[:top], box[:top], rail[:top], first[:top], tokens[:top], turns[:top], fan)


@jit
def pieces_of(classes: Classes, batches: Batches, boxes: int) -> Pieces:
    """The classes of every batch; fills the batches' fans."""
    size = batches.fan.shape[1]
    row, wanted, of_class, before = classes.row, classes.wanted, classes.tokens, classes.before
    count = len(batches.tokens)
    most = len(of_class) + count
    batch, kind, tokens = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    fan = batches.fan
    top: Any = 0
    for i in range(count):
        s, q = batches.origin[i], batches.rail[i]
        k = (s // size * boxes + batches.box[i]) * size + s % size
        at, left = batches.first[i], batches.tokens[i]
        x = row[k] + np.searchsorted(before[row[k] : row[k + 1]], at, side="right") - 1
        while left > 0:
            taken = min(left, before[x] + of_class[x] - at)
            batch[top], kind[top], tokens[top] = i, x, taken
            top += 1
            mask = wanted[x] & ~(1 << q)
            h = 0
            while mask > 0:
                if mask & 1:
                    fan[i, h] += taken
                mask >>= 1
                h += 1
            at += taken
            left -= taken
            x += 1
    return Pieces(batch[:top], kind[:top], tokens[:top])
