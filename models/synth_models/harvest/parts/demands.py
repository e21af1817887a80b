"""A step's demand matrix as rows (source, destination, volume), and what it asks of the busiest GPU.

Rows without a third column are pairs of volume 1. A step of m bytes moves m times its volume on every pair.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np

from synth.arrays import FloatArray, IntArray

LOAD_HALVINGS = 40  # of a range of loads


def volumes(pairs: IntArray) -> IntArray:
    """Volume of every row, shape (pairs,)."""
    return np.ascontiguousarray(pairs[:, 2]) if pairs.shape[1] == 3 else np.ones(len(pairs), dtype=np.int64)


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


def direct_load(pairs: IntArray, ports: int) -> Fraction | None:
    """The least volume a link with which whole links from every pair's source to its destination fit into the ports;
    None where a GPU has more partners than ports. Where pairs have one hop only, no topology has a smaller load."""
    if most_partners(pairs) > ports:
        return None
    return max(_shared_load(group, ports) for side in (0, 1) for group in _by_gpu(pairs, side))


def _by_gpu(pairs: IntArray, side: int) -> Counter[tuple[int, ...]]:
    """The volumes that single GPUs send (side 0) or receive (1), ascending, with how many GPUs have the same."""
    volume = volumes(pairs)
    order = np.lexsort((volume, pairs[:, side]))
    starts = np.flatnonzero(np.diff(pairs[order, side])) + 1
    sorted_volume = volume[order]
    if len(starts) + 1 == len(pairs):  # one pair each
        values, counts = np.unique(volume, return_counts=True)
        return Counter(dict(zip([(value,) for value in values.tolist()], counts.tolist(), strict=True)))
    cuts = [0, *starts.tolist(), len(pairs)]
    return Counter(tuple(sorted_volume[a:b].tolist()) for a, b in pairwise(cuts))


def _shared_load(sent: tuple[int, ...], ports: int) -> Fraction:
    """The least largest volume a link at one GPU: link after link goes to the pair that has most a link."""
    count = [1] * len(sent)
    for _ in range(ports - len(sent)):
        heaviest = max(range(len(sent)), key=lambda i: Fraction(sent[i], count[i]))
        count[heaviest] += 1
    return max(Fraction(volume, links) for volume, links in zip(sent, count, strict=True))


def routed_load(pairs: IntArray, ports: int, gpus: int) -> Fraction:
    """A load that no routes on whole links are below, to 2^-40 of itself: a pair's volume takes one hop as far as it
    fits on the pair's own links and two at least beyond, and all links together carry the sum of the hops.

    With links of load u that is ``ports * gpus * u >= sum over GPUs of (2 * volume sent - most that goes directly)``,
    and likewise for what GPUs receive; what goes directly from a GPU is what its ports' best links carry, the next link
    of a pair carrying u or what is left of its volume.
    """
    volume, low = volumes(pairs), Fraction(pattern_degree(pairs), ports)
    # of a GPU's volumes no more than its ports' number, the largest, can matter: each of these has a link as good
    sides = [Counter[tuple[int, ...]]() for _ in (0, 1)]
    for side, largest in enumerate(sides):
        for group, gpus_alike in _by_gpu(pairs, side).items():
            largest[group[-ports:]] += gpus_alike
    total = 2 * sum(volume.tolist())

    def fits(load: Fraction) -> bool:
        room = total - ports * gpus * load
        return all(sum(n * _direct_volume(group, ports, load) for group, n in one.items()) >= room for one in sides)

    if fits(low):
        return low
    high = 2 * low  # where all take two hops
    for _ in range(LOAD_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return low


def _direct_volume(sent: tuple[int, ...], ports: int, load: Fraction) -> Fraction:
    """The most that one GPU's links carry of these volumes directly, ``load`` each."""
    carried: list[Fraction] = []
    for volume, pairs in Counter(sent).items():
        full, rest = divmod(Fraction(volume), load)
        carried += [load] * min(int(full) * pairs, ports) + [rest] * min(pairs, ports)
    return sum(sorted(carried, reverse=True)[:ports], Fraction(0))


def fewest_hops(pairs: IntArray, ports: int) -> int:
    """Hops within which a GPU can reach, or be reached from, all its partners (Moore: d + d^2 + …), the most of any."""
    hops, reached, partners = 1, ports, most_partners(pairs)
    while reached < partners:
        hops += 1
        reached += ports**hops
    return hops
