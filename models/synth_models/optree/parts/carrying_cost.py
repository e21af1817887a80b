"""What it costs to carry one item round the ring: a dynamic program over gaps, and prices of the steps.

Seen from one item, the nodes that hold it cut the ring into *gaps*; before the first step there is a single gap of
``N`` links from its origin round to its origin. A circuit that brings the item to a new node inside a gap enters it
at one of its two ends and runs at least to the node, so it uses as many wavelength-hops inside the gap as the node is
away from that end, and new holders cut the gap into smaller ones that are filled independently of each other.

With prices ``y[t]`` per wavelength-hop in step ``t``, the cheapest way to fill a gap of ``g`` links in steps ``t..T``
(arrays below, one row per step, ``T`` rows and a last one after the end)::

    rest[t, g] = min over s of  two[t, s] + rest[t+1, g-s]          (the middle gap of g-s links is left over)
    two[t, s]  = min over a+b=s of one[t, a] + one[t, b]            (new holders up to a from one end, b from the other)
    one[t, x]  = y[t]*x + min over p<x of one[t, p] + rest[t+1, x-p], one[t, 0] = 0
    rest[T, g] = 0 for g <= 1, else infinite

Only circuits of at most ``longest`` hops are priced. Time O(T * (longest^2 + N * longest)), memory O(T * N).
"""

from __future__ import annotations

import numpy as np

from synth.arrays import FloatArray
from synth.kernels import jit
from synth_models.optree.parts.cutting_planes import INFINITE, CuttingPlanes


@jit
def _lower(values: FloatArray, cost: float, others: FloatArray) -> None:
    """``values[k] = min(values[k], cost + others[k])`` for all ``k``: a plain loop, of which the compiler makes vector
    code. Most of the time of all searches for prices is spent here."""
    for k in range(len(values)):
        least = cost + others[k]
        values[k] = least if least < values[k] else values[k]


@jit
def price(gap: int, prices: FloatArray, longest: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``rest`` (shape (T+1, gap+1)), ``one`` (shape (T, longest+1)) and ``two`` (shape (T, 2*longest+1))."""
    horizon = len(prices)
    reach = max(0, min(longest, gap - 1))
    rest = np.full((horizon + 1, gap + 1), INFINITE)
    one = np.full((horizon, reach + 1), INFINITE)
    two = np.full((horizon, 2 * reach + 1), INFINITE)
    rest[horizon, : min(2, gap + 1)] = 0.0
    for t in range(horizon - 1, -1, -1):
        later = rest[t + 1]
        first, both, filled = one[t], two[t], rest[t]
        first[0] = 0.0
        for p in range(reach):
            if p > 0:
                first[p] = min(INFINITE, first[p] + prices[t] * p)
            _lower(first[p + 1 :], first[p], later[1:])
        if reach > 0:
            first[reach] = min(INFINITE, first[reach] + prices[t] * reach)
        for a in range(reach + 1):
            _lower(both[2 * a : a + reach + 1], first[a], first[a:])
        for s in range(min(2 * reach, gap - 1) + 1):
            _lower(filled[s + 1 :], both[s], later[1:])  # a link at least is left over
        filled[: min(2, gap + 1)] = 0.0
    return rest, one, two


@jit
def hops_used(gap: int, prices: FloatArray, rest: FloatArray, one: FloatArray, two: FloatArray) -> FloatArray:
    """Wavelength-hops per step, shape (T,), of a cheapest way to fill the gap."""
    horizon = len(prices)
    hops = np.zeros(horizon)
    todo = np.empty(2 * gap + 2, np.int64)
    when = np.empty(2 * gap + 2, np.int64)
    todo[0], when[0], count = gap, 0, 1
    while count > 0:
        count -= 1
        g, t = todo[count], when[count]
        if g <= 1 or t == horizon:
            continue
        later = rest[t + 1]
        both, least = 0, INFINITE * 2
        for s in range(min(two.shape[1], g)):
            cost = two[t, s] + later[g - s]
            if cost < least:
                both, least = s, cost
        left, least = 0, INFINITE * 2
        for a in range(max(0, both - one.shape[1] + 1), both // 2 + 1):
            cost = one[t, a] + one[t, both - a]
            if cost < least:
                left, least = a, cost
        todo[count], when[count] = g - both, t + 1
        count += 1
        for far in (left, both - left):
            x = far
            while x > 0:
                hops[t] += x
                before, least = 0, INFINITE * 2
                for p in range(x):
                    cost = one[t, p] + later[x - p]
                    if cost < least:
                        before, least = p, cost
                todo[count], when[count] = x - before, t + 1
                count += 1
                x = before
    return hops


class Prices(CuttingPlanes):
    """Find prices of ``horizon`` steps at which filling ``gaps`` is as dear as possible.

    ``gaps`` maps a gap's length to how many of them there are. The maximum over prices that sum to 1 of the least
    cost is, by linear-programming duality, the least capacity per step with which a mixture of ways fills the gaps.
    """

    def __init__(self, gaps: dict[int, int], horizon: int, longest: int) -> None:
        super().__init__(np.ones(horizon))
        self.gaps, self.horizon, self.longest = gaps, horizon, longest

    def cheapest(self, prices: FloatArray) -> tuple[float, FloatArray | None]:
        """Least cost at these prices, and the wavelength-hops per step of a cheapest way."""
        rest, one, two = price(max(self.gaps), prices, self.longest)
        cost = sum(count * float(rest[0, gap]) for gap, count in self.gaps.items())
        if cost >= INFINITE / 2:
            return cost, None
        ways = [count * hops_used(gap, prices, rest, one, two) for gap, count in self.gaps.items()]
        return cost, np.sum(ways, axis=0)
