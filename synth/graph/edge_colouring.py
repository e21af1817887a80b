"""Proper colourings of the edges of a bipartite multigraph: how many rounds (phases) a set of messages needs when every
sender sends one a round and every receiver receives one. König (1916): as many as the largest degree."""

from __future__ import annotations

import numpy as np

from synth.arrays import AnyIntArray, IntArray
from synth.kernels import jit


def edge_colours(left: AnyIntArray, right: AnyIntArray, lefts: int, rights: int, colours: int) -> IntArray:
    """A proper edge colouring of a bipartite multigraph of degree at most ``colours`` (König), shape (edges,).

    ``left``, ``right``: the ends of every edge, shape (edges,), numbers below ``lefts`` and ``rights``. By alternating
    paths, O(edges * vertices). Raises ``ValueError`` when a vertex has a larger degree.
    """
    if len(left) and max(np.bincount(left).max(), np.bincount(right).max()) > colours:
        raise ValueError("a vertex has more edges than there are colours")
    return _edge_colours(left, right, lefts, rights, colours)


@jit
def _edge_colours(left: AnyIntArray, right: AnyIntArray, lefts: int, rights: int, colours: int) -> IntArray:
    at_left = np.full((lefts, colours), -1, np.int64)  # the edge of that colour at the vertex
    at_right = np.full((rights, colours), -1, np.int64)
    colour = np.full(len(left), -1, np.int64)
    for e in range(len(left)):
        u, v = left[e], right[e]
        a = b = 0
        while at_left[u, a] >= 0:
            a += 1
        while at_right[v, b] >= 0:
            b += 1
        if a != b and at_right[v, a] >= 0:
            # swap colours a and b along the path that starts at v with a; it cannot reach u, which misses a
            f, on_right, old, new = at_right[v, a], True, a, b
            at_right[v, a] = -1
            while f >= 0:
                w = left[f] if on_right else right[f]
                if on_right:
                    at_right[right[f], new] = f
                    following = at_left[w, new]
                    at_left[w, new] = f
                    if at_left[w, old] == f:
                        at_left[w, old] = -1
                else:
                    at_left[left[f], new] = f
                    following = at_right[w, new]
                    at_right[w, new] = f
                    if at_right[w, old] == f:
                        at_right[w, old] = -1
                colour[f] = new
                f, on_right, old, new = following, not on_right, new, old
        colour[e] = a
        at_left[u, a] = e
        at_right[v, a] = e
    return colour
