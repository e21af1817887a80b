"""The replay's answers by whole arrays, where a process would load numba for nothing else: loading takes longer.

Each function says what the kernel of its room would, of a schedule in which it finds nothing odd; else None, and the
kernel says what is wrong. None of them accepts what a kernel refuses.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray, WordArray
from synth.kernels import numba_is_loaded

FEWEST, MOST = 2**12, 2**21  # links of routes: fewer are quick as plain Python, more quicker compiled
MOST_HELD = 2**23  # pieces times nodes
LONGEST_ROUTE = 8
BITS = 64
PLACE_BITS = 31
KINDS = 3  # of events at one moment: what spreads arrives, then what adds, then something leaves
LATEST = 2**61  # tick whose multiple by these fits


def wanted(hops: int) -> bool:
    """Whether so many links of routes are to be replayed by whole arrays."""
    return FEWEST <= hops <= MOST and not numba_is_loaded()


def rows_by(key: Int32Array, rows: int, time: IntArray, late: BoolArray) -> tuple[IntArray, Int32Array]:
    """:func:`synth_models.fabric.check.rows.rows_by`."""
    there = np.flatnonzero(key >= 0)
    start = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(key[there], minlength=rows), out=start[1:])
    if len(late):
        there = there[np.argsort(late[there], kind="stable")]
    order = there[_in_order(time[there])]
    return start, order[np.argsort(_short(key[order], rows), kind="stable")].astype(np.int32)


def _in_order(values: IntArray) -> IntArray:
    """As a stable argsort, in half the time: equal values are told apart by their places."""
    order = np.argsort(values)
    risen = np.cumsum(np.diff(values[order], prepend=values[order[:1]]) > 0)
    place = np.sort(risen << PLACE_BITS | order)
    found: IntArray = place & ((1 << PLACE_BITS) - 1)
    return found


def _short(values: Any, end: int) -> Any:
    """Numbers below ``end`` as numbers of 16 bits, if they fit: those are sorted by their digits."""
    return values.astype(np.uint16) if end <= 2**16 else values


def nothing_overlaps(start: IntArray, order: Int32Array, begin: IntArray, end: IntArray) -> bool:
    """Whether in every row, in order of time, each item begins when the one before has ended."""
    before, after = order[:-1], order[1:]
    same = np.ones(len(before), dtype=bool)
    edges = start[1:-1]
    same[edges[(edges > 0) & (edges < len(order))] - 1] = False
    return not np.any(same & (begin[after] < end[before]))


class HopRows(NamedTuple):
    """``start`` (ticks): shape (transfers,). ``route_start``: as in a schedule. ``tail``, ``head``, ``latency``,
    ``duration`` (ticks): of every link of a route."""

    start: IntArray
    route_start: IntArray
    tail: Int32Array
    head: Int32Array
    latency: IntArray
    duration: IntArray


def paths(routes: HopRows, is_switch: BoolArray, longest: int) -> tuple[IntArray, IntArray] | None:
    """``begin`` and ``arrive`` of every link of routes that cut through; None unless all are paths from rank to rank
    over switches, none met twice."""
    start, route_start, tail, head, latency, duration = routes
    lengths, first, last = np.diff(route_start), route_start[:-1], route_start[1:] - 1
    if lengths.max() > LONGEST_ROUTE or latency.max() > longest // LONGEST_ROUTE or duration.max() > longest:
        return None
    inner = np.ones(len(tail), dtype=bool)
    inner[first] = False
    if np.any(is_switch[tail] != inner) or np.any(head[:-1][inner[1:]] != tail[1:][inner[1:]]):
        return None
    outer = np.ones(len(tail), dtype=bool)
    outer[last] = False
    if np.any(is_switch[head] != outer):
        return None
    begin, arrive = np.empty_like(latency), np.full_like(latency, -1)
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        some = np.flatnonzero(lengths == length)
        row = first[some][:, None] + np.arange(length)
        gone = np.cumsum(latency[row], axis=1)
        begin[row[:, 0]] = start[some]
        begin[row[:, 1:]] = start[some][:, None] + gone[:, :-1]
        arrive[row[:, -1]] = start[some] + gone[:, -1] + duration[row].max(axis=1)
        nodes = [*tail[row].T, head[row[:, -1]]]
        if any(np.any(one == other) for one, other in combinations(nodes, 2)):
            return None
    return begin, arrive


class Events(NamedTuple):
    """Departures (``leaves``) and arrivals: the ``piece``, the tick, the transfer (``of``) and the node of each,
    shape (events,)."""

    piece: IntArray
    tick: IntArray
    leaves: BoolArray
    of: IntArray
    node: IntArray


def everything_held(
    has: WordArray, full: int, wanted_at: BoolArray, adds: BoolArray, events: Events
) -> tuple[int, int] | None:
    """Transfers in the longest row of which each brings what the next one sends, and arrivals of what was there; None
    unless all send what they hold, no contribution comes twice, and everything is where it is ``wanted_at``.

    ``has[p, v]``: the contributions to piece p that node v has at first, a bit each, ``full`` all of them.
    """
    piece, tick, leaves, of, node = events
    if int(tick.max(initial=0)) > LATEST:
        return None
    moment = tick * KINDS + np.where(leaves, KINDS - 1, adds[of])
    order = _in_order(moment)
    order = order[np.argsort(_short(piece, len(has))[order], kind="stable")]
    piece, leaves, of, node = piece[order], leaves[order], of[order], node[order]
    count = np.bincount(piece, minlength=len(has))
    place = np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count)
    by_place = np.argsort(_short(place, int(count.max(initial=0))), kind="stable")
    ends = np.cumsum(np.bincount(place))
    at = piece * has.shape[1] + node
    held, depth = has.reshape(-1), np.zeros(has.size, dtype=np.int32)
    carried, chain = np.zeros(len(adds), dtype=np.uint64), np.zeros(len(adds), dtype=np.int32)
    redundant, whole = 0, np.uint64(full)
    for step in np.split(by_place, ends[:-1]):
        go, come = step[leaves[step]], step[~leaves[step]]
        value, i = held[at[go]], of[go]
        if np.any(value == 0) or np.any((value != whole) & ~adds[i]):
            return None
        carried[i], chain[i] = value, depth[at[go]] + 1
        i, to = of[come], at[come]
        before, sums = held[to], adds[i]
        if np.any(before[sums] & carried[i[sums]]):
            return None
        had = ~sums & (before == whole)
        redundant += int(np.count_nonzero(had))
        held[to] = np.where(sums, before | carried[i], whole)
        deep = np.where(sums, np.maximum(depth[to], chain[i]), chain[i])
        depth[to] = np.where(had, depth[to], deep)
    if np.any(wanted_at & (has != whole)):
        return None
    return int(chain.max(initial=0)), redundant
