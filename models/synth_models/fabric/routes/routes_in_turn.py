"""Many pieces along their routes, one after the other: :meth:`Routes.hops` and :meth:`Routes.take`, compiled.

Every piece goes along a chain of ranks. Each edge of it takes the quickest way, of equally quick routes the one whose
busiest link has least to do by then, and what it carries counts for those that come later. The choices are those of
:class:`~synth_models.fabric.routes.search.Routes`, to the bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import SAME, FloatArray, IntArray
from synth.kernels import jit
from synth_models.fabric.routes.quickest_routes import (
    Known,
    Scratch,
    Search,
    known_of,
    least_busy,
    longer,
    scratch_of,
    to_ranks,
)
from synth_models.fabric.routes.search import Routes


class Edges(NamedTuple):
    """Which ``piece`` goes from rank ``source`` to rank ``target``, those of a piece one behind the other, and with
    which ``priority``; shape (edges,) each. A piece begins at the source of its first edge."""

    piece: IntArray
    source: IntArray
    target: IntArray
    priority: IntArray


class Sent(NamedTuple):
    """Transfers: of which ``edge``, after which other transfer (-1: none; the one that brings the piece), and over the
    links ``link[start[i]:start[i + 1]]``."""

    edge: IntArray
    after: IntArray
    start: IntArray
    link: IntArray


def sent_in_turn(routes: Routes, edges: Edges, size: IntArray) -> Sent | None:
    """The transfers of pieces of these sizes (of every edge, shape (edges,)) along their edges. None where the machine
    is too large, or some rank cannot be reached."""
    known = known_of(routes)
    if known is None:
        return None
    search, over = to_ranks(routes, known.distance, edges.source)
    load = np.array(routes.load)
    sent, done = _sent(search, known, over, edges, size / routes.size, load, scratch_of(search), SAME)
    return sent if done else None


@jit
def _uses(search: Search, load: FloatArray) -> FloatArray:
    """Seconds for which every link, or its group, is used once one more piece goes over it."""
    use = np.zeros(len(search.src))
    for e in range(len(use)):
        used = load[e]
        if search.group[e] >= 0:
            used = max(used, load[len(use) + search.group[e]])
        use[e] = used + search.times[e]
    return use


@jit
def _sent(
    search: Search, known: Known, over: FloatArray, edges: Edges, share: FloatArray, load: FloatArray,
    scratch: Scratch, same: float,
) -> tuple[Sent, bool]:  # fmt: skip
    """The transfers of all edges, each over what is least used by then, and whether every one has a way. ``share``: of
    a piece for which ``search`` is made. Adds to ``load``."""
    place, ranks, row, direct, group = search.place, search.ranks, search.row, search.direct, search.group
    near_start, near, near_seconds, times, dst = (
        search.near_start,
        search.near,
        search.seconds,
        search.times,
        search.dst,
    )
    known_place, known_link, best, way, begin = known.place, known.link, scratch.best, scratch.link, scratch.begin
    piece, source, target, count = edges.piece, edges.source, edges.target, len(edges.piece)
    use, links, bandwidths = _uses(search, load), len(times), len(search.least)
    edge, after = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    start, link = np.empty(2 * count + 1, np.int64), np.empty(8 * count, np.int64)
    start[0] = 0
    holder, brought = np.zeros(len(ranks), np.int64), np.zeros(len(ranks), np.int64)
    top, end, held = 0, 0, 0
    for n in range(count):
        first, at, routes, room = place[source[n]], place[target[n]], 0, 0
        if n == 0 or piece[n] != piece[n - 1]:
            holder[0], brought[0], held = source[n], -1, 1
        if _place_in(holder, held, target[n]) >= 0:
            continue
        if not over[first, at] < np.inf:
            return Sent(edge[:0], after[:0], start[:1], link[:0]), False
        while at != first:  # back from the target, as Routes.hops does
            reach = over[first, at] * (1 + same)
            alone = direct[first, at] <= reach
            most, total, came = np.inf, np.inf, -1
            for k in range(near_start[at], near_start[at] + 1 if alone else near_start[at + 1]):
                w = first if alone else near[k]
                if not alone and not (over[first, w] + near_seconds[k] <= reach and over[first, w] < over[first, at]):
                    continue
                found = known_place[w * bandwidths + row[w, at], at]
                if found > 0:
                    length, busiest, uses = known_link[found], -np.inf, 0.0
                    for p in range(length):
                        e = known_link[found + 1 + p]
                        best[p] = e
                        busiest, uses = max(busiest, use[e]), uses + use[e]
                else:
                    length, busiest, uses = least_busy(search, known, use, ranks[w], ranks[at], scratch, same)
                if length == 0 or not (came < 0 or busiest < most or (busiest == most and uses < total)):
                    continue
                if room + length > len(way) or routes + 2 > len(begin):
                    return Sent(edge[:0], after[:0], start[:1], link[:0]), False
                most, total, came = busiest, uses, w
                for p in range(length):
                    way[room + p] = best[p]
                begin[routes + 1] = room + length
            if came < 0:
                return Sent(edge[:0], after[:0], start[:1], link[:0]), False
            routes += 1
            room, at = begin[routes], came
        if top + routes > len(edge):
            edge, after = longer(edge, top, routes), longer(after, top, routes)
            start = longer(start, top + 1, routes + 1)
        if end + room > len(link):
            link = longer(link, end, room)
        by = _place_in(holder, held, source[n])
        for k in range(routes - 1, -1, -1):
            to, grouped = dst[way[begin[k + 1] - 1]], False
            there = _place_in(holder, held, to)
            for p in range(begin[k], begin[k + 1]):
                e = way[p]
                load[e] += share[n] * times[e]
                use[e] = load[e] + times[e]
                if group[e] >= 0:
                    grouped = True
                    load[links + group[e]] += share[n] * times[e]
                if there < 0:
                    link[end] = e
                    end += 1
            if grouped:
                use = _uses(search, load)
            if there < 0:
                edge[top], after[top], start[top + 1] = n, brought[by], end
                holder[held], brought[held], there = to, top, held
                top, held = top + 1, held + 1
            by = there
    return Sent(edge[:top], after[:top], start[: top + 1], link[:end]), True


@jit(inlined=True)
def _place_in(holder: IntArray, held: int, rank: int) -> int:
    """Where a rank is among the first ``held``, -1 where it is not."""
    found = -1
    for k in range(held):
        if holder[k] == rank:
            found = k
    return found
