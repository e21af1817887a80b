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
    SizedMachine,
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
    busy = _Busy(np.array(routes.load), np.zeros(len(search.src)))
    sent, done = _sent(search, known, over, edges, size / routes.size, busy, scratch_of(search), SAME)
    return sent if done else None


class _Busy(NamedTuple):
    """Seconds for which every link, and behind them every group, is used: ``load``, shape (links + groups,); and for
    which every link, or its group, is once one more piece goes over it: ``use``, shape (links,)."""

    load: FloatArray
    use: FloatArray


@jit
def _sent(
    search: SizedMachine, known: Known, over: FloatArray, edges: Edges, share: FloatArray, busy: _Busy,
    scratch: Scratch, same: float,
) -> tuple[Sent, bool]:  # fmt: skip
    """The transfers of all edges, each over what is least used by then, and whether every one has a way. ``share``: of
    a piece for which ``search`` is made. Adds to ``busy``. Arrays out of named state are named once: each time counts
    references."""
    place, ranks, row, direct, near_start, near = (
        search.place, search.ranks, search.row, search.direct, search.near_start, search.near,
    )  # fmt: skip
    seconds, times, dst, group = search.seconds, search.times, search.dst, search.group
    known_place, known_link, best, way, begin = known.place, known.link, scratch.best, scratch.link, scratch.begin
    load, use, bandwidths = busy.load, busy.use, len(search.least)
    piece, source, target, count = edges.piece, edges.source, edges.target, len(edges.piece)
    edge, after = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    start, link = np.empty(2 * count + 1, np.int64), np.empty(8 * count, np.int64)
    start[0] = 0
    holder, brought = np.zeros(len(ranks), np.int64), np.zeros(len(ranks), np.int64)
    top, end, held = 0, 0, 0
    _use_all(load, use, times, group)
    for n in range(count):
        first, at, routes, room = place[source[n]], place[target[n]], 0, 0
        if n == 0 or piece[n] != piece[n - 1]:
            holder[0], brought[0], held = source[n], -1, 1
        if _place_in(holder, held, target[n]) >= 0:
            continue
        came = first if over[first, at] < np.inf else -1
        while at != first and came >= 0:  # back from the target, as Routes.hops does
            reach = over[first, at] * (1 + same)
            alone = direct[first, at] <= reach
            most, total, came = np.inf, np.inf, -1
            for k in range(near_start[at], near_start[at] + 1 if alone else near_start[at + 1]):
                w = first if alone else near[k]
                if not alone and not (over[first, w] + seconds[k] <= reach and over[first, w] < over[first, at]):
                    continue
                found = known_place[w * bandwidths + row[w, at], at]
                if found > 0:
                    length, busiest, uses = _look_up(known_link, found, use, best)
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
            routes += 1
            room, at = begin[routes], came
        if came < 0:
            return Sent(edge[:0], after[:0], start[:1], link[:0]), False
        if top + routes > len(edge):
            edge, after = longer(edge, top, routes), longer(after, top, routes)
            start = longer(start, top + 1, routes + 1)
        if end + room > len(link):
            link = longer(link, end, room)
        by = _place_in(holder, held, source[n])
        for k in range(routes - 1, -1, -1):
            to = dst[way[begin[k + 1] - 1]]
            there = _place_in(holder, held, to)
            if _occupy(load, use, times, group, way, begin[k], begin[k + 1], share[n]):
                _use_all(load, use, times, group)
            if there < 0:
                for p in range(begin[k], begin[k + 1]):
                    link[end] = way[p]
                    end += 1
                edge[top], after[top], start[top + 1] = n, brought[by], end
                holder[held], brought[held], there = to, top, held
                top, held = top + 1, held + 1
            by = there
    return Sent(edge[:top], after[:top], start[: top + 1], link[:end]), True


@jit(inlined=True)
def _look_up(known: IntArray, found: int, use: FloatArray, best: IntArray) -> tuple[int, float, float]:
    """The known route there into ``best``: its number of links, the use of its busiest link, and of all."""
    length, busiest, uses = known[found], -np.inf, 0.0
    for p in range(length):
        e = known[found + 1 + p]
        best[p] = e
        busiest, uses = max(busiest, use[e]), uses + use[e]
    return length, busiest, uses


@jit(inlined=True)
def _occupy(
    load: FloatArray, use: FloatArray, times: FloatArray, group: IntArray, link: IntArray, first: int, last: int,
    share: float,
) -> bool:  # fmt: skip
    """Let a piece, of which ``share`` is that of the search, go over the links ``link[first:last]``; whether one is of
    a group."""
    grouped = False
    for p in range(first, last):
        e = link[p]
        load[e] += share * times[e]
        use[e] = load[e] + times[e]
        if group[e] >= 0:
            grouped = True
            load[len(use) + group[e]] += share * times[e]
    return grouped


@jit
def _use_all(load: FloatArray, use: FloatArray, times: FloatArray, group: IntArray) -> None:
    """Compute ``use`` from ``load``, as :class:`_Busy` says."""
    for e in range(len(use)):
        used = load[e]
        if group[e] >= 0:
            used = max(used, load[len(use) + group[e]])
        use[e] = used + times[e]


@jit(inlined=True)
def _place_in(holder: IntArray, held: int, rank: int) -> int:
    """Where a rank is among the first ``held``, -1 where it is not."""
    found = -1
    for k in range(held):
        if holder[k] == rank:
            found = k
    return found
