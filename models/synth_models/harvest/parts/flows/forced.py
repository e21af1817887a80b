"""Routes on topologies where they are forced or nearly so: out-degree 1, and rings that run both ways.

Where every GPU has links to one other GPU only, a pair has a single route, and hop counts and loads are exact sums.
On a two-way shifted ring a pair that is a shift has two simple routes, clockwise and counter-clockwise, and by rotation
all pairs split alike, which gives a profile of at most two points.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit
from synth_models.harvest.parts.demands import common_volume, volumes
from synth_models.harvest.parts.flows.flow_rows import UNREACHABLE, FlowRows, Profile


def successors(links: IntArray, gpus: int) -> tuple[IntArray, IntArray] | None:
    """The only GPU that each leads to (-1: none) and its parallel links; None if some GPU leads to several."""
    src = links[:, 0]
    if len(src) != len(np.unique(src)):
        return None
    following, count = np.full(gpus, -1, dtype=np.int64), np.ones(gpus, dtype=np.int64)
    following[src], count[src] = links[:, 1], links[:, 2]
    return following, count


@jit
def _walk(pairs: IntArray, volume: IntArray, following: IntArray, load: FloatArray, hops: IntArray) -> bool:
    """Add every pair's volume to ``load`` along its route (by source of the link) and the route's length to ``hops``;
    False if one has none."""
    gpus = len(following)
    for index in range(len(pairs)):
        at, end, length = pairs[index, 0], pairs[index, 1], 0
        while at != end:
            if following[at] < 0 or length >= gpus:
                return False
            load[at] += volume[index]
            at = following[at]
            length += 1
        hops[index] = length
    return True


def forced_profile(pairs: IntArray, following: IntArray, count: IntArray) -> Profile:
    """The single point of an out-degree-1 topology; O(sum of the route lengths)."""
    load, hops = np.zeros(len(following)), np.zeros(len(pairs), dtype=np.int64)
    if not _walk(pairs, volumes(pairs), following, load, hops):
        return UNREACHABLE
    return Profile(np.array([hops.max()]), np.array([(load / count).max()]))


@jit
def _write(pairs: IntArray, following: IntArray, columns: IntArray) -> None:
    row = 0
    for index in range(len(pairs)):
        at, end, length = pairs[index, 0], pairs[index, 1], 0
        while at != end:
            columns[0, row], columns[1, row], columns[2, row], columns[3, row] = index, length, at, following[at]
            at = following[at]
            length += 1
            row += 1


def forced_routes(pairs: IntArray, following: IntArray) -> FlowRows:
    """The flow on an out-degree-1 topology on which all pairs are reachable."""
    hops = np.zeros(len(pairs), dtype=np.int64)
    if not _walk(pairs, volumes(pairs), following, np.zeros(len(following)), hops):
        raise ValueError("a pair cannot be reached")
    columns = np.empty((4, int(hops.sum())), dtype=np.int64)
    _write(pairs, following, columns)
    index, length, src, dst = columns
    return FlowRows(index, length, src, dst, np.ones(columns.shape[1]))


def shift_counts(links: IntArray, gpus: int) -> dict[int, int] | None:
    """Parallel links of every shift when all GPUs have the same ones (a circulant topology), else None."""
    if len(links) % gpus:
        return None
    each = len(links) // gpus
    shift = (links[:, 1] - links[:, 0]) % gpus
    table = np.sort(shift * (links[:, 2].max(initial=0) + 1) + links[:, 2]).reshape(-1, gpus) if each else shift[:0]
    if not each or np.any(table != table[:, :1]) or np.any(np.bincount(links[:, 0], minlength=gpus) != each):
        return None
    first = links[links[:, 0] == 0]
    return dict(zip(first[:, 1].tolist(), first[:, 2].tolist(), strict=True))


def pattern_shift(pairs: IntArray, gpus: int) -> int | None:
    """The shift k when the pattern is exactly ``u -> u + k`` for all GPUs, of one volume, else None."""
    shift = (pairs[:, 1] - pairs[:, 0]) % gpus
    same = len(pairs) == gpus and bool(np.all(shift == shift[0])) and common_volume(pairs) is not None
    return int(shift[0]) if same else None


def two_way(counts: dict[int, int], gpus: int) -> int | None:
    """The smaller shift s when the circulant's shifts are s and -s, s != -s, else None."""
    if len(counts) != 2:
        return None
    low, high = sorted(counts)
    return low if low + high == gpus else None


def _distances(shift: int, ring: int, gpus: int) -> tuple[int, int] | None:
    """Hops from u to u + shift in steps of ``ring`` and of ``-ring``, or None when it is on another ring."""
    common = gcd(ring, gpus)
    if shift % common:
        return None
    length = gpus // common
    forward = (shift // common) * pow(ring // common, -1, length) % length
    return forward, length - forward


def one_way_profile(shift: int, counts: dict[int, int], gpus: int) -> Profile | None:
    """The single point of a shift of volume 1 on a one-way shifted ring (one entry in ``counts``), None elsewhere: as
    many hops as the ring needs to get there, and each link carries so many pairs."""
    if len(counts) != 1:
        return None
    ((ring, links),) = counts.items()
    common = gcd(ring, gpus)
    if shift % common:
        return UNREACHABLE
    length = gpus // common
    hops = (shift // common) * pow(ring // common, -1, length) % length
    return Profile(np.array([hops]), np.array([hops / links]))


def two_way_profile(shift: int, ring: int, counts: dict[int, int], gpus: int) -> Profile:
    """At most two points: the shorter way alone, and the split that loads both ways alike."""
    distances = _distances(shift, ring, gpus)
    if distances is None:
        return UNREACHABLE
    forward, back = _loads(distances, ring, counts, gpus)
    both = forward * back / (forward + back)
    low, high = sorted(distances)
    alone = min(load for load, hops in zip((forward, back), distances, strict=True) if hops == low)
    if low == high:
        return Profile(np.array([high]), np.array([both]))
    return Profile(np.array([low, high]), np.array([alone, both]))


def two_way_routes(
    sources: IntArray, shift: int, ring: int, counts: dict[int, int], gpus: int, hop_limit: int
) -> FlowRows:
    """The flow behind :func:`two_way_profile` for a hop limit that is one of its points; ``sources`` of the pairs."""
    distances = _distances(shift, ring, gpus)
    if distances is None or hop_limit < min(distances):
        raise ValueError("a pair cannot be reached")
    forward, back = _loads(distances, ring, counts, gpus)
    if hop_limit >= max(distances):
        shares = (back / (forward + back), forward / (forward + back))
    else:
        shares = (1.0, 0.0) if distances[0] < distances[1] else (0.0, 1.0)
    both = zip(distances, shares, (ring, -ring), strict=True)
    used = [(hops, share, step) for hops, share, step in both if share > 0]
    hop = np.concatenate([np.arange(hops, dtype=np.int64) for hops, _, _ in used])
    step = np.concatenate([np.full(hops, step, dtype=np.int64) for hops, _, step in used])
    share = np.concatenate([np.full(hops, share) for hops, share, _ in used])
    pair = np.repeat(np.arange(len(sources), dtype=np.int64), len(hop))
    src = (np.repeat(sources, len(hop)) + np.tile(hop * step, len(sources))) % gpus
    dst = (src + np.tile(step, len(sources))) % gpus
    return FlowRows(pair, np.tile(hop, len(sources)), src, dst, np.tile(share, len(sources)))


def _loads(distances: tuple[int, int], ring: int, counts: dict[int, int], gpus: int) -> tuple[float, float]:
    """Load per parallel link when everything goes one way, for both ways."""
    return distances[0] / counts[ring], distances[1] / counts[gpus - ring]
