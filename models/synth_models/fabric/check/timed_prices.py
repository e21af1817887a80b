"""The argument ``timed_prices``: what a byte pays on its way depends on when it passes each link.

The certificate names a moment, ``end``, and prices of a byte on links from one moment to another (``link``, ``since``,
``until``, ``price``; ticks at ``ticks_per_s``), 0 at all other times. In a schedule that ends at ``end`` or before,
every byte goes from its origin to its goal over links one after the other, and passes the next one a latency later or
more. All but the last byte of a transfer have come before it ends. So a byte pays at least what the cheapest such way
does of those that end before ``end``, on which it may wait anywhere. A link of b bytes/s lets b bytes pass a second, so
all together pay at most the sum of ``b * price * (until - since)``. If they need more, nothing ends by then.

Within one transfer a byte's moment on a link is the link's own beginning and the same share of its duration. On links
of equal bandwidth these moments lie a latency apart, and the transfer arrives no earlier than a latency behind any. So
links with a price must have one bandwidth. Only blocks from one rank to one other are looked at. Waiting where nothing
can wait, and a longest transfer's duration that is left out, only make ways cheaper.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth.text import untrusted
from synth_models.fabric.check.arguments import Argument, Needed
from synth_models.fabric.check.moments import Until
from synth_models.fabric.check.windows import LONGEST, MOST_TICKS_PER_S, Fabric
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import exact

MOST_PRICES = 100_000
HIGHEST = 2**20  # price


class Tariff(NamedTuple):
    """The price of link e from moment ``at[k]`` to the next is ``price[k]``, for k in ``row[e]:row[e + 1]``; the first
    moment of every link is 0."""

    row: IntArray
    at: IntArray
    price: IntArray


def timed_prices(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What all bytes pay at least on ways that end in time, and the most that links can be paid."""
    blocks, fabric = instance.blocks, Fabric(instance)
    if np.any(blocks.origin == EVERYONE) or np.any(blocks.goal == EVERYONE):
        raise ValueError(f"timed prices prove nothing for {instance.collective}")
    ticks = untrusted.whole(certificate, "ticks_per_s", 1, MOST_TICKS_PER_S)
    end = untrusted.whole(certificate, "end", 0, LONGEST)
    link = untrusted.whole_numbers(certificate, "link", 0, len(fabric.tail) - 1)
    if len(link) > MOST_PRICES:
        raise ValueError(f"there are more than {MOST_PRICES} prices")
    since, until = (untrusted.whole_numbers(certificate, key, 0, end, link.shape) for key in ("since", "until"))
    price = untrusted.whole_numbers(certificate, "price", 1, HIGHEST, link.shape)
    if np.any(since > until):
        raise ValueError("a price ends before it begins")
    bandwidths = np.unique(instance.machine.network.bandwidth[link])
    if len(bandwidths) > 1:
        raise ValueError("links of unequal bandwidth have prices")
    rate = exact(float(bandwidths[0])) if len(bandwidths) else Fraction(0)
    paid = rate * sum(p * (v - u) for p, u, v in zip(price.tolist(), since.tolist(), until.tolist(), strict=True))
    return _needed(fabric, ticks, end, _tariff(len(fabric.tail), link, since, until, price)), Until(
        ticks, [], end, paid / ticks
    )


def _needed(fabric: Fabric, ticks: int, end: int, tariff: Tariff) -> int:
    """What all blocks pay together; nothing where no way ends in time."""
    blocks, needed = fabric.instance.blocks, 0
    delay = _delays(fabric, ticks, end)
    by_origin = np.argsort(blocks.origin, kind="stable")
    starts, first = np.unique(blocks.origin[by_origin], return_index=True)
    for u, rows in zip(starts.tolist(), np.split(by_origin, first[1:]), strict=True):
        cost = _cheapest(*fabric.leaving, fabric.head, delay, *tariff, u, end, fabric.nodes)
        needed += untrusted.exact_dot(np.maximum(cost[blocks.goal[rows]], 0), blocks.bytes[rows])
    return needed


def _delays(fabric: Fabric, ticks: int, end: int) -> IntArray:
    """Latencies in ticks, rounded down; what is longer than the whole time is a tick longer."""
    values, which = np.unique(fabric.instance.machine.network.latency, return_inverse=True)
    whole = [min(int(exact(float(value)) * ticks), end + 1) for value in values]
    found: IntArray = np.array(whole, dtype=np.int64)[which.reshape(-1)]
    return found


def _tariff(links: int, link: IntArray, since: IntArray, until: IntArray, price: IntArray) -> Tariff:
    """The sum of all prices, link by link."""
    changes: list[dict[int, int]] = [{0: 0} for _ in range(links)]
    for e, u, v, p in zip(link.tolist(), since.tolist(), until.tolist(), price.tolist(), strict=True):
        changes[e][u] = changes[e].get(u, 0) + p
        changes[e][v] = changes[e].get(v, 0) - p
    row, at, prices = [0], list[int](), list[int]()
    for change in changes:
        now = 0
        for moment in sorted(change):
            now += change[moment]
            at.append(moment)
            prices.append(now)
        row.append(len(at))
    return Tariff(*(np.array(column, dtype=np.int64) for column in (row, at, prices)))


@jit
def _cheapest(
    start: IntArray, leaving: IntArray, head: IntArray, delay: IntArray, row: IntArray, at: IntArray, price: IntArray,
    source: int, end: int, nodes: int,
) -> IntArray:  # fmt: skip
    """The least cost of a way from the source at moment 0 to every node before the ``end``, -1 where there is none.

    Ways are taken up by their cost, of equal ones by their moment; at a node only those count that are there earlier
    than all cheaper ones. A link is crossed at once, or where it becomes cheaper than at all moments before.
    """
    cost = np.full(nodes, -1, np.int64)
    earliest = np.full(nodes, end, np.int64)
    waiting: Any = [(np.int64(0), np.int64(0), np.int64(source))]
    while len(waiting):
        paid, now, v = heapq.heappop(waiting)
        if now >= earliest[v]:
            continue
        earliest[v] = now
        if cost[v] < 0:
            cost[v] = paid
        for place in range(start[v], start[v + 1]):
            e = leaving[place]
            least = np.int64(-1)
            for k in range(row[e], row[e + 1]):
                if k + 1 < row[e + 1] and at[k + 1] <= now:
                    continue
                moment = max(now, at[k]) + delay[e]
                if least >= 0 and price[k] >= least:
                    continue
                least = price[k]
                if moment < earliest[head[e]]:
                    heapq.heappush(waiting, (paid + price[k], moment, head[e]))
    return cost


ARGUMENTS: dict[str, Argument] = {"timed_prices": timed_prices}
