"""Fewer pieces for the same rounds: pieces of a part that take the same way are one, wherever they lay."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from synth.exchange.rounds.plan import Rounds


def joined(rounds: Rounds) -> Rounds:
    """The same rounds with the least pieces: which bytes of its part a piece is is free, so that those of one part that
    the same messages carry lie side by side as one."""
    r = rounds
    order = np.lexsort((r.dst, r.src, r.round, r.piece))
    rows = np.stack([r.round, r.src, r.dst, r.adds.astype(np.int64)], axis=1).astype(np.int64)[order]
    ends = np.searchsorted(r.piece[order], np.arange(len(r.part) + 1))
    ways = [(int(part), rows[ends[k] : ends[k + 1]].tobytes()) for k, part in enumerate(r.part.tolist())]
    first: dict[tuple[int, bytes], int] = {}
    for k, way in enumerate(ways):
        first.setdefault(way, k)
    kept = sorted(first.items(), key=lambda one: (one[0][0], rows[ends[one[1]] : ends[one[1] + 1]].tolist()))
    number = {way: k for k, (way, _) in enumerate(kept)}
    of = np.array([number[way] for way in ways], dtype=np.int64)
    size = np.zeros(len(kept), dtype=np.int64)
    np.add.at(size, of, r.size)
    part = np.array([way[0] for way, _ in kept], dtype=np.int64)
    unit = math.gcd(r.units, *size.tolist())
    size //= unit
    before = np.cumsum(size) - size
    new = np.concatenate([[True], part[1:] != part[:-1]]) if len(part) else np.zeros(0, dtype=bool)
    offset = before - np.maximum.accumulate(np.where(new, before, 0)) if len(part) else before
    messages = np.unique(np.stack([r.round, r.src, r.dst, of[r.piece], r.adds.astype(np.int64)], axis=1), axis=0).T
    return replace(
        r, units=r.units // unit, part=part, offset=offset, size=size, round=messages[0], src=messages[1],
        dst=messages[2], piece=messages[3], adds=messages[4].astype(bool),
    )  # fmt: skip
