"""Wavelengths for circuits that are all rotations of a few: how many hops fit, and who gets which wavelength.

Let every node ``r`` send arcs over ``a`` links starting at ``r`` (all ``N`` rotations of one arc). Cut the ring into
``q = floor(N/a)`` blocks of ``floor(N/q)`` or ``ceil(N/q)`` nodes; the arc that starts at place ``p`` of its block
gets wavelength ``p``. Two arcs of one wavelength start at least ``floor(N/q) >= a`` links apart, so they never share
a link: ``ceil(N / floor(N/a))`` wavelengths suffice, exactly ``a`` when ``a`` divides ``N``. An arc may be cut into
consecutive circuits. So a *bin* of ``a`` hops holds any circuits of one direction with at most ``a`` hops in sum,
for all rotations at once, and the wavelengths are split into bins so that the most hops fit.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt


def wavelengths_of(nodes: int, hops: int) -> int:
    """Wavelengths that a bin of ``hops`` (1..nodes) needs."""
    return -(-nodes // (nodes // hops))


@lru_cache(maxsize=64)
def bins(nodes: int, wavelengths: int) -> tuple[int, ...]:
    """Sizes in hops, largest first, of bins that share ``wavelengths`` wavelengths and hold the most hops in sum.

    Whole rings (``nodes`` hops in ``nodes`` wavelengths) come off first; the rest is an unbounded knapsack,
    O(wavelengths^2) for fewer wavelengths than nodes.
    """
    whole, rest = divmod(wavelengths, nodes)
    sizes = {}  # most hops in a bin of exactly so many wavelengths
    for hops in range(1, min(nodes, rest) + 1):
        needs = wavelengths_of(nodes, hops)
        if needs <= rest:
            sizes[needs] = max(sizes.get(needs, 0), hops)
    most, last = np.zeros(rest + 1, dtype=np.int64), np.zeros(rest + 1, dtype=np.int64)
    for budget in range(1, rest + 1):
        for needs, hops in sizes.items():
            # on a tie the larger bin: it is easier to fill
            if needs <= budget and most[budget - needs] + hops >= most[budget]:
                most[budget], last[budget] = most[budget - needs] + hops, needs
    chosen, budget = [nodes] * whole, rest
    while budget > 0 and last[budget]:
        chosen.append(sizes[int(last[budget])])
        budget -= int(last[budget])
    return tuple(sorted(chosen, reverse=True))


def pack_circuits(hops: list[int], sizes: tuple[int, ...]) -> list[tuple[int, int]] | None:
    """For every circuit its bin and where in the bin it starts, by first-fit-decreasing; None if they do not fit."""
    used = [0] * len(sizes)
    places: list[tuple[int, int]] = [(0, 0)] * len(hops)
    for i in sorted(range(len(hops)), key=lambda i: -hops[i]):
        fitting = next((k for k, size in enumerate(sizes) if used[k] + hops[i] <= size), None)
        if fitting is None:
            return None
        places[i] = (fitting, used[fitting])
        used[fitting] += hops[i]
    return places


def wavelength_of_start(nodes: int, hops: int) -> npt.NDArray[np.int64]:
    """Wavelength within a bin of ``hops`` for the arc that starts at node 0..N-1, shape (nodes,)."""
    blocks = nodes // hops
    starts = np.arange(nodes)
    block = (starts * blocks + blocks - 1) // nodes  # block k covers the starts from floor(k*N/blocks)
    block = np.where((block * nodes) // blocks > starts, block - 1, block)
    return starts - (block * nodes) // blocks
