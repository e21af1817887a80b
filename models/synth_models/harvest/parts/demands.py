"""A step's demand matrix as rows (source, destination, volume), and what it asks of the busiest GPU.

Rows without a third column are pairs of volume 1. A step of m bytes moves m times its volume on every pair.
"""

from __future__ import annotations

import numpy as np

from synth_models.harvest.solution import FloatArray, IntArray


def volumes(pairs: IntArray) -> IntArray:
    """Volume of every row, shape (pairs,)."""
    return pairs[:, 2] if pairs.shape[1] == 3 else np.ones(len(pairs), dtype=np.int64)


def relative_volumes(pairs: IntArray) -> FloatArray:
    """Volumes as shares of the largest, shape (pairs,): what programs count in."""
    found = volumes(pairs).astype(np.float64)
    shares: FloatArray = found / found.max()
    return shares


def common_volume(pairs: IntArray) -> int | None:
    """The volume that all pairs have, None where they differ."""
    found = volumes(pairs)
    return int(found[0]) if np.all(found == found[0]) else None


def most_partners(pairs: IntArray) -> int:
    """Largest number of pairs that leave or enter one GPU."""
    return max(int(np.bincount(pairs[:, side]).max()) for side in (0, 1))


def pattern_degree(pairs: IntArray) -> int:
    """Largest volume that leaves or enters one GPU: the largest row or column sum of the matrix."""
    return max(int(np.bincount(pairs[:, side], volumes(pairs)).max()) for side in (0, 1))


def fewest_hops(pairs: IntArray, ports: int) -> int:
    """Hops within which a GPU can reach, or be reached from, all its partners (Moore: d + d^2 + …), the most of any."""
    hops, reached, partners = 1, ports, most_partners(pairs)
    while reached < partners:
        hops += 1
        reached += ports**hops
    return hops
