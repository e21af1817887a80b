"""Hop-limited concurrent flow as a linear program over simple routes, for one pair of each orbit of a symmetry group:

    minimise u                                                             over shares >= 0
    (25) load    sum_{r crosses o} w_p(r) y_r <= c_o u                     of a link of orbit o
    (26) once    sum_{r of p} y_r = 1                                      of a pair p

=================  ==============================  ======================  ==================================
page               code                            index set               unit
=================  ==============================  ======================  ==================================
y_r                first columns                   simple routes r         share of the pair's volume
u                  last column                     one number              volumes of the pair with most
w_p                ``volume``                      chosen pairs p          volumes of the pair with most
c_o                ``count``                       orbits o of links       parallel links
r crosses o        ``link_orbit[routes.link]``     routes, orbits          times
=================  ==============================  ======================  ==================================

One row per orbit of links: by symmetry the load of a link is the sum, over the chosen pairs, of how often their routes
cross its orbit. Exact when all simple routes of at most ``hop_limit`` hops are listed. There is one such program a
pattern, topology and hop limit, so that its rows are sparse matrices from the start and go to HiGHS by scipy.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit
from synth.solvers import model_file
from synth.solvers.lp import linprog
from synth.solvers.names import Names, all_named

MOST_REMEMBERED = 20_000  # coefficients of a program whose values are remembered
REMEMBERED = 1_000  # programs
_known: dict[bytes, FloatArray] = {}


@dataclass(frozen=True)
class Routes:
    """Simple routes: ``pair`` (routes,) is an index into the chosen pairs; the links of route r, in order, are
    ``link[start[r]:start[r + 1]]`` (indices into the topology's rows)."""

    pair: IntArray
    start: IntArray
    link: IntArray


@jit
def _search(
    pairs: IntArray, first: IntArray, heads: IntArray, distance: IntArray, hop_limit: int, most: int, room: int
) -> tuple[int, IntArray, IntArray, IntArray]:
    """Depth-first listing of all simple routes; the count is -1 when there are more than ``most`` of them."""
    of_pair, start = np.empty(most, dtype=np.int64), np.zeros(most + 1, dtype=np.int64)
    link = np.empty(room, dtype=np.int64)
    seen = np.zeros(distance.shape[0], dtype=np.bool_)
    stack, edge, count, used = np.empty(hop_limit + 1, np.int64), np.empty(hop_limit + 1, np.int64), 0, 0
    for index in range(len(pairs)):
        source, end = pairs[index, 0], pairs[index, 1]
        depth = 0
        stack[0], edge[0] = source, first[source]
        seen[source] = True
        while depth >= 0:
            at = stack[depth]
            if edge[depth] == first[at + 1]:
                seen[at] = False
                depth -= 1
                continue
            chosen = edge[depth]
            edge[depth] += 1
            head = heads[chosen]
            if head == end:
                if count == most or used + depth + 1 > room:
                    return -1, of_pair[:0], start[:1], link[:0]
                for hop in range(depth + 1):
                    link[used + hop] = edge[hop] - 1
                used += depth + 1
                of_pair[count] = index
                count += 1
                start[count] = used
            elif not seen[head] and distance[head, end] <= hop_limit - depth - 1:
                depth += 1
                stack[depth], edge[depth] = head, first[head]
                seen[head] = True
    return count, of_pair[:count], start[: count + 1], link[: start[count]]


def list_routes(
    pairs: IntArray, links: IntArray, distance: IntArray, hop_limit: int, most: int = 20_000
) -> Routes | None:
    """All simple routes of at most ``hop_limit`` hops of the given pairs; None when there are more than ``most``.

    ``links`` are sorted by source; ``distance`` (gpus, gpus) in hops, large where there is no route.
    """
    gpus = len(distance)
    first = np.searchsorted(links[:, 0], np.arange(gpus + 1))
    count, pair, start, link = _search(
        pairs, first, np.ascontiguousarray(links[:, 1]), distance, hop_limit, most, most * min(hop_limit, 64)
    )
    return None if count < 0 else Routes(pair[:count], start[: count + 1], link[: start[count]])


def solve(routes: Routes, volume: FloatArray, link_orbit: IntArray, count: IntArray) -> FloatArray:
    """Shares of the routes of smallest largest load; each pair's sum to 1 but for rounding.

    ``volume`` (pairs,) are shares of the largest; ``link_orbit`` (links,) numbers the orbits 0, 1, …; ``count``
    (orbits,) are the parallel links.
    """
    number, pairs = len(routes.pair), len(volume)

    def names() -> tuple[list[str], list[str]]:
        shares = all_named("share", "p r", zip(routes.pair.tolist(), range(number), strict=True))
        rows = all_named("load", "o", range(len(count))) + all_named("once", "p", range(pairs))
        return [*shares, "largest_load"], rows

    share = np.maximum(
        least_load(load(routes, volume, link_orbit, count), once(routes, pairs), np.ones(pairs), names)[:number], 0.0
    )
    share[share < 1e-12] = 0.0
    share /= np.bincount(routes.pair, share, pairs)[routes.pair]
    return share


def load(routes: Routes, volume: FloatArray, link_orbit: IntArray, count: IntArray) -> Any:
    """(25): what routes carry over a link of an orbit is at most u a parallel link, as rows <= 0."""
    number = len(routes.pair)
    of_entry = np.repeat(np.arange(number), np.diff(routes.start))
    amount = volume[routes.pair[of_entry]]
    use: Any = csr_array((amount, (link_orbit[routes.link], of_entry)), shape=(len(count), number + 1))
    return use + csr_array(
        (-count.astype(float), (np.arange(len(count)), np.full(len(count), number))), shape=use.shape
    )


def once(routes: Routes, pairs: int) -> Any:
    """(26): the shares of a pair's routes sum to 1."""
    number = len(routes.pair)
    return csr_array((np.ones(number), (routes.pair, np.arange(number))), shape=(pairs, number + 1))


def least_load(loads: Any, equal: Any, right: FloatArray, names: Names | None = None) -> FloatArray:
    """Values of least last entry with ``loads @ x <= 0``, ``equal @ x = right``, ``x >= 0`` (sparse), by HiGHS; not to
    be written to. ``names``: those of columns and rows in an exported file. The last small programs are remembered: one
    that states a profile comes again for the routes, and for the next method that asks about the same topology."""
    cost = np.zeros(loads.shape[1])
    cost[-1] = 1.0
    words: dict[str, Any] = {"c": cost, "A_ub": loads, "b_ub": np.zeros(loads.shape[0]), "A_eq": equal, "b_eq": right}
    point: FloatArray | None = model_file.offer("linprog", words, names)
    if point is not None:
        return point
    if loads.nnz + equal.nnz > MOST_REMEMBERED:
        return _solved(words)
    key = _digest(loads, equal, right)
    values = _known.pop(key, None)
    if values is None:
        values = _solved(words)
        values.setflags(write=False)
    _known[key] = values  # the last that was asked for
    if len(_known) > REMEMBERED:
        del _known[next(iter(_known))]
    return values


def _solved(words: dict[str, Any]) -> FloatArray:
    found: Any = linprog(**words, method="highs")
    if found.status != 0:
        raise RuntimeError(f"the concurrent-flow program ended with: {found.message}")
    values: FloatArray = found.x
    return values


def _digest(loads: Any, equal: Any, right: FloatArray) -> bytes:
    """Tells programs apart: all their numbers, with the lengths of the rows and of the parts."""
    parts = [part for rows in (loads, equal) for part in (rows.indptr, rows.indices, rows.data)]
    return blake2b(b"".join(b"%d %b" % (part.size, part.tobytes()) for part in (*parts, right))).digest()
