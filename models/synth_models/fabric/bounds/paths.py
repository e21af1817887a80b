"""Least latencies on a machine's links in whole ticks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.graph.shortest_paths import UNREACHABLE, search
from synth.kernels import jit
from synth_models.fabric.bounds.arrays import Links


@jit
def into_ranks(dst: IntArray, src: IntArray, length: IntArray, distance: IntArray, last: IntArray) -> IntArray:
    """For every node the least ``distance[tail] + length`` over the links that enter it; ``last`` gets that link."""
    found = np.full(len(distance), UNREACHABLE, dtype=np.int64)
    last[:] = -1
    for e in range(len(src)):
        if distance[src[e]] < UNREACHABLE and distance[src[e]] + length[e] < found[dst[e]]:
            found[dst[e]] = distance[src[e]] + length[e]
            last[dst[e]] = e
    return found


def distances(links: Links, length: IntArray, sources: Any, through: BoolArray | None = None) -> IntArray:
    """Distances from the nearest of the sources, shape (nodes,); :data:`UNREACHABLE` where there is no path."""
    first = np.full(links.nodes, UNREACHABLE, dtype=np.int64)
    first[sources] = 0
    return _from(links, length, first, through)


def later(links: Links, length: IntArray, first: Mapping[int, int]) -> IntArray:
    """Distances likewise, each source's own ones so much longer."""
    begins = np.full(links.nodes, UNREACHABLE, dtype=np.int64)
    begins[list(first)] = list(first.values())
    return _from(links, length, begins)


def earliest(links: Links, sources: Any) -> IntArray:
    """The tick at which something of the nearest of the sources can be at each node, shape (nodes,): a latency's
    distance behind the moment at which the source has it."""
    first = np.full(links.nodes, UNREACHABLE, dtype=np.int64)
    first[sources] = links.begins[sources]
    return _from(links, links.delay, first)


def _from(links: Links, length: IntArray, first: IntArray, through: BoolArray | None = None) -> IntArray:
    came, order = np.empty(links.nodes, dtype=np.int64), np.empty(links.nodes, dtype=np.int64)
    anywhere = np.ones(links.nodes, dtype=bool) if through is None else through
    found: IntArray = search(*links.out, links.dst, length, first, anywhere, came, order)
    return found
