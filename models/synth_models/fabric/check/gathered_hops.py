"""Routes of several sources: streams of one piece that switches add up (in-trees), and copy behind that (hubs).

The links of such a route stand in the order in which the data takes them: those into a node before the one out of it.
Where all streams have become one, the *hub*, the sum goes on.

* If it goes to one rank, the route is an *in-tree*: an out-tree run backwards, so its links serve as late as its end
  allows. With H the tick at which all of it has come to the end, a link from which it takes d ticks of latency there,
  its own included, is occupied in ``[H - d - s/b, H - d)``, and a source must hold its part ``d`` ticks and the longest
  ``s/b`` of its way before H.
* Else it parts behind the hub. H is then the tick at which all of the sum is there; its first byte is there no sooner
  than that of the source which sends fastest, ``s/b`` of the slowest link on that one's way before H, and from then on
  the sum leaves like any out-tree. This may pass the nodes again that the streams came through, not the same links, and
  its goals may be sources.

Out of a switch that adds what it sends there, a sum takes ``s / add_rate`` if that is longer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.kernels import jit

LONGEST = 2**60 - 1  # ticks of latency, and of a link's service: a start up to 2^62 plus four of these fit
NO_TREE, NO_ADDING, NO_COPYING, FROM_SWITCH, TO_SWITCH, TOO_LONG = range(11, 17)


class Nodes(NamedTuple):
    """Of every node, shape (nodes,) each: whether it is a switch, adds, copies."""

    is_switch: BoolArray
    adds: BoolArray
    copies: BoolArray


class LinkRows(NamedTuple):
    """``start`` (ticks): shape (transfers,). ``link[route_start[i]:route_start[i + 1]]``: the route of transfer i.
    ``src``, ``dst``, ``latency`` (ticks): of every link of the machine."""

    start: IntArray
    route_start: IntArray
    link: IntArray
    src: Int32Array
    dst: Int32Array
    latency: IntArray


class Shape(NamedTuple):
    """Of every link of a route, shape (links of routes,) each. ``onward``: where the link stands that the stream takes
    next, for links before the end of the in-tree (-1: it ends there, -2: the link is behind the hub). ``before``: the
    one that the sum has taken before, behind the hub (-1: it comes from the hub). ``is_sum``: the switch that it leaves
    adds what it sends there."""

    onward: IntArray
    before: IntArray
    is_sum: BoolArray


class Filled(NamedTuple):
    """What is computed of every link of a route, in ticks: ``begin`` of its occupation; ``arrive`` behind it, -1 where
    it only passes; ``leaves``, when its tail must hold what it sends, -1 where that is no source. Shape (links of
    routes,) each."""

    begin: IntArray
    arrive: IntArray
    leaves: IntArray


class _Marks(NamedTuple):
    """By node, the last transfer that came there in the in-tree (``come``; minus 2 less the transfer for several links
    of it), that left it there (``gone``), that came behind the hub (``again``), and that left it there (``parted``);
    where the links stand by which it left in the in-tree (``left_at``), and came behind the hub (``came_at``)."""

    come: IntArray
    gone: IntArray
    again: IntArray
    parted: IntArray
    left_at: IntArray
    came_at: IntArray


@jit
def shapes(routes: LinkRows, nodes: Nodes, chosen: IntArray, shape: Shape, wrong: IntArray) -> int:
    """Fill ``shape`` of the ``chosen`` transfers. ``wrong`` (rows of transfer, link of a route, what): the first routes
    that are none; returns how many there are."""
    count = len(nodes.is_switch)
    never = np.full(count, -1, dtype=np.int64)
    marks = _Marks(never, never.copy(), never.copy(), never.copy(), never.copy(), never.copy())
    found = 0
    for i in chosen:
        what, where = _shape_of(routes, nodes, i, shape, marks)
        if what:
            if found < len(wrong):
                wrong[found, 0], wrong[found, 1], wrong[found, 2] = i, where, what
            found += 1
    return found


@jit
def _shape_of(routes: LinkRows, nodes: Nodes, i: int, shape: Shape, marks: _Marks) -> tuple[int, int]:
    """What forbids a route (0: nothing), at which of its links."""
    first, end = routes.route_start[i], routes.route_start[i + 1]
    what, behind = _streams_of(routes, nodes, i, shape, marks)
    if what:
        return what, behind
    hub = routes.dst[routes.link[behind - 1]]
    what, where, forks = _sum_of(routes, nodes, i, behind, shape, marks)
    if what:
        return what, where
    for k in range(first, behind):
        v = routes.dst[routes.link[k]]
        shape.onward[k] = -1 if v == hub else marks.left_at[v]
    for k in range(behind, end):
        v = routes.dst[routes.link[k]]
        if nodes.is_switch[v] and marks.parted[v] != i:
            return TO_SWITCH, k
    if not forks:  # an in-tree: the rest is its stem
        for k in range(first, behind):
            if shape.onward[k] == -1:
                shape.onward[k] = behind
        for k in range(behind, end):
            shape.onward[k] = k + 1 if k + 1 < end else -1
    return 0, first


@jit
def _streams_of(routes: LinkRows, nodes: Nodes, i: int, shape: Shape, marks: _Marks) -> tuple[int, int]:
    """Follow the streams until they are one, with all sources among them: 0 and the first link behind that, or what
    forbids the route and at which link."""
    first, end = routes.route_start[i], routes.route_start[i + 1]
    src, dst, link = routes.src, routes.dst, routes.link
    last, streams, several = first, 0, -2 - i
    for k in range(first, end):
        if not nodes.is_switch[src[link[k]]]:
            last = k
    for k in range(first, end):
        u, v = src[link[k]], dst[link[k]]
        if marks.gone[u] == i or marks.gone[v] == i or not nodes.is_switch[v]:
            return NO_TREE, k
        if nodes.is_switch[u]:
            if marks.come[u] != i and marks.come[u] != several:
                return FROM_SWITCH, k
            streams -= 1
        shape.is_sum[k] = marks.come[u] == several
        marks.gone[u], marks.left_at[u] = i, k
        if marks.come[v] != i and marks.come[v] != several:
            marks.come[v] = i
            streams += 1
        elif nodes.adds[v]:
            marks.come[v] = several
        else:
            return NO_ADDING, k
        if streams == 1 and k >= last:
            return (TO_SWITCH, k) if k + 1 == end else (0, k + 1)
    return NO_TREE, end - 1


@jit
def _sum_of(routes: LinkRows, nodes: Nodes, i: int, behind: int, shape: Shape, marks: _Marks) -> tuple[int, int, bool]:
    """Follow the sum from the hub: what forbids the route (0: nothing), at which link, and whether it parts."""
    src, dst, link = routes.src, routes.dst, routes.link
    hub, forks = dst[link[behind - 1]], False
    marks.again[hub] = i
    for k in range(behind, routes.route_start[i + 1]):
        u, v = src[link[k]], dst[link[k]]
        if marks.again[u] != i or marks.again[v] == i or not nodes.is_switch[u]:
            return NO_TREE, k, forks
        if marks.gone[u] == i and link[marks.left_at[u]] == link[k]:
            return NO_TREE, k, forks
        if marks.parted[u] == i:
            if not nodes.copies[u]:
                return NO_COPYING, k, forks
            forks = True
        marks.parted[u], marks.again[v] = i, i
        shape.onward[k], shape.is_sum[k] = -2, u == hub
        shape.before[k] = -1 if u == hub else marks.came_at[u]
        marks.came_at[v] = k
    return 0, behind, forks


@jit
def times(
    routes: LinkRows, nodes: Nodes, shape: Shape, lasts: IntArray, chosen: IntArray, filled: Filled, wrong: IntArray
) -> int:
    """Fill in the times of the ``chosen`` transfers, whose ``shape`` is known; ``lasts``: ticks for which every link of
    the routes is occupied, shape (links of routes,). ``wrong``, and what is returned, as :func:`shapes`."""
    far, slow = np.zeros(len(routes.link), dtype=np.int64), np.zeros(len(routes.link), dtype=np.int64)
    found = 0
    for i in chosen:
        where = _timed(routes, nodes, shape, lasts, i, far, slow, filled)
        if where >= 0:
            if found < len(wrong):
                wrong[found, 0], wrong[found, 1], wrong[found, 2] = i, where, TOO_LONG
            found += 1
    return found


@jit
def _timed(
    routes: LinkRows,
    nodes: Nodes,
    shape: Shape,
    lasts: IntArray,
    i: int,
    far: IntArray,
    slow: IntArray,
    filled: Filled,
) -> int:
    """Times of one route; the link at which they leave their range, or -1."""
    first, end = routes.route_start[i], routes.route_start[i + 1]
    longest, quickest = np.int64(0), np.int64(LONGEST)
    for k in range(end - 1, first - 1, -1):
        filled.leaves[k] = -1
        if shape.onward[k] == -2:
            continue
        e, then = routes.link[k], shape.onward[k]
        far[k], slow[k] = routes.latency[e], lasts[k]
        if far[k] > LONGEST or slow[k] > LONGEST:
            return k
        if then >= 0:
            far[k], slow[k] = far[k] + far[then], max(slow[k], slow[then])
        if far[k] > LONGEST:
            return k
        if not nodes.is_switch[routes.src[e]]:
            longest, quickest = max(longest, far[k] + slow[k]), min(quickest, slow[k])
    whole = routes.start[i] + longest
    for k in range(first, end):
        e = routes.link[k]
        passes = nodes.is_switch[routes.dst[e]]
        if shape.onward[k] != -2:
            filled.begin[k], filled.arrive[k] = whole - far[k] - lasts[k], -1 if passes else whole
            if not nodes.is_switch[routes.src[e]]:
                filled.leaves[k] = whole - far[k] - slow[k]
            continue
        front, slowest = np.int64(0), quickest
        if shape.before[k] >= 0:
            front, slowest = far[shape.before[k]], slow[shape.before[k]]
        far[k], slow[k] = front + min(routes.latency[e], np.int64(LONGEST + 1)), max(slowest, lasts[k])
        if far[k] > LONGEST or slow[k] > LONGEST:
            return k
        filled.begin[k] = whole - quickest + front
        filled.arrive[k] = -1 if passes else whole - quickest + far[k] + slow[k]
    return -1
