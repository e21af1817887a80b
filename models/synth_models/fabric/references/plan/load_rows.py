"""The longest row of loads: how long a link is occupied by all that goes over it, or by what goes farthest.

It bounds every schedule over given routes from below, whatever the order and the number of chunks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit

SETS = 3  # of what a link carries
APART = 1e-12  # seconds by which a way is farther than another


class Carried(NamedTuple):
    """``amount`` bytes over the links ``link[start[i]:start[i + 1]]``, which begin ``head`` seconds after the beginning
    at the earliest, and from then on have ``left`` seconds to go at least, bytes aside; shape (transfers,) each."""

    amount: IntArray
    start: IntArray
    link: IntArray
    head: FloatArray
    left: FloatArray


@jit
def heads_and_tails(
    start: IntArray, link: IntArray, after: IntArray, latency: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``head`` and ``left`` of transfers which stand behind those ``after`` which they come (-1: none)."""
    span = _spans(start, link, latency)
    head, tail = np.zeros(len(span)), np.zeros(len(span))
    for i in range(len(span)):
        if after[i] >= 0:
            head[i] = head[after[i]] + span[after[i]]
    for i in range(len(span) - 1, -1, -1):
        if after[i] >= 0:
            tail[after[i]] = max(tail[after[i]], span[i] + tail[i])
    return head, span + tail


@jit
def _spans(start: IntArray, link: IntArray, latency: FloatArray) -> FloatArray:
    """Latency of the whole of every route, shape (routes,)."""
    span = np.zeros(len(start) - 1)
    for i in range(len(span)):
        for p in range(start[i], start[i + 1]):
            span[i] += latency[link[p]]
    return span


@jit
def over_own_rails(
    boxed: IntArray, rail_start: IntArray, rail_link: IntArray, hop_start: IntArray, hop_link: IntArray,
    latency: FloatArray, boxes: int, size: int,
) -> Carried:  # fmt: skip
    """What goes over its own rail, and on from there, of blocks ``boxed``, shape (ranks, ranks): from rank g of
    box b to box c over the route ``(b * size + g) * boxes + c``, to where it stays and to where it goes on; then from
    rank g to rank h of box c over the route ``(c * size + g) * size + h``, beside what begins there. Left out is what
    goes over routes without links."""
    rail_span, hop_span = _spans(rail_start, rail_link, latency), _spans(hop_start, hop_link, latency)
    rails, hops = len(rail_span), len(hop_span)
    amount, head, left = (
        np.zeros(2 * (rails + hops), np.int64),
        np.zeros(2 * (rails + hops)),
        np.zeros(2 * (rails + hops)),
    )
    handed, first = np.zeros(hops, np.int64), np.full(hops, np.inf)
    for r in range(rails):
        if rail_start[r] == rail_start[r + 1]:
            continue
        i, c = r // boxes, r % boxes
        g, least = i % size, np.inf
        for h in range(size):
            much = boxed[i, c * size + h]
            if much > 0 and h != g:
                hop = (c * size + g) * size + h
                handed[hop] += much
                first[hop] = min(first[hop], rail_span[r])
                least = min(least, hop_span[hop])
                amount[2 * r] += much
        amount[2 * r + 1] = boxed[i, c * size + g]
        left[2 * r], left[2 * r + 1] = rail_span[r] + least, rail_span[r]
    for k in range(hops):
        r, i = rails + k, k // size
        amount[2 * r], head[2 * r], left[2 * r] = handed[k], first[k], hop_span[k]
        amount[2 * r + 1], left[2 * r + 1] = boxed[i, i // size * size + k % size], hop_span[k]
    start, link = np.zeros(len(amount) + 1, np.int64), np.zeros(2 * (len(rail_link) + len(hop_link)), np.int64)
    top = 0
    for n in range(len(amount)):
        r = n // 2
        if amount[n] > 0 and r < rails:
            for p in range(rail_start[r], rail_start[r + 1]):
                link[top] = rail_link[p]
                top += 1
        elif amount[n] > 0:
            for p in range(hop_start[r - rails], hop_start[r - rails + 1]):
                link[top] = hop_link[p]
                top += 1
        start[n + 1] = top
    return Carried(amount, start, link[:top], head, left)


@jit
def longest_row(
    carried: Carried, bandwidth: FloatArray, latency: FloatArray, group: IntArray, groups: int, enough: float
) -> float:
    """The most seconds from the beginning until a link or a group is done and what it carried last has arrived, by all
    that it carries, by what goes farther than the nearest of that, and so on, and the same by where it comes from.
    Nothing more is looked for than ``enough``."""
    size, start, link, head, remaining = carried
    count, links = len(size), len(bandwidth)
    most = 0.0
    for by_head in range(2):
        above = np.full(links + groups, -np.inf)
        for _ in range(SETS):
            amount, held = np.zeros(links, np.int64), np.zeros(groups)
            first, last = np.full(links + groups, np.inf), np.full(links + groups, np.inf)
            for i in range(count):
                begin, left = head[i], remaining[i]
                for p in range(start[i], start[i + 1]):
                    e = link[p]
                    g = group[e]
                    far = begin if by_head else left
                    if far > above[e]:
                        amount[e] += size[i]
                        first[e], last[e] = min(first[e], begin), min(last[e], left)
                    if g >= 0 and far > above[links + g]:
                        again, longest = False, size[i] / bandwidth[e]
                        for q in range(start[i], start[i + 1]):
                            if group[link[q]] == g:
                                again = again or q < p
                                longest = max(longest, size[i] / bandwidth[link[q]])
                        held[g] += 0.0 if again else longest
                        first[links + g], last[links + g] = min(first[links + g], begin), min(last[links + g], left)
                    begin += latency[e]
                    left -= latency[e]
            for e in range(links):
                if amount[e] > 0:
                    most = max(most, first[e] + amount[e] / bandwidth[e] + last[e])
            for g in range(groups):
                if held[g] > 0:
                    most = max(most, first[links + g] + held[g] + last[links + g])
            if most >= enough:
                return most
            for x in range(links + groups):
                above[x] = (first[x] if by_head else last[x]) + APART
    return most
