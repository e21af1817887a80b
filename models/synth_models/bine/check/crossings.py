"""Crossings that prices of rounds prove, in whole numbers; the proof stands in ``bounds/round_prices.py``. Imports no
method."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth.text.untrusted import whole, whole_numbers
from synth_models.bine.instance import BineInstance

MOST_SCALE, MOST_PRICE = 2**24, 2**31 - 1
MOST_PART, MOST_ROUNDS = 4096, 64  # sums of costs stay below 2^12 * (2^24 + 2^31) * 2^6 < 2^62


def priced(instance: BineInstance, certificate: Mapping[str, Any]) -> float:
    """Bytes proven over all jobs by ``prices`` (for every job and each of its partitions one a round, in that order)
    and ``scale``. Raises ``ValueError`` on prices that prove nothing, in words."""
    if instance.problem != "tree" or instance.collective not in ("broadcast", "reduce") or instance.torus is not None:
        raise ValueError("prices of rounds are for trees that broadcast or reduce")
    scale = whole(certificate, "scale", 1, MOST_SCALE)
    prices = whole_numbers(certificate, "prices", -MOST_PRICE, MOST_PRICE)
    total, at = Fraction(0), 0
    for job, groups in enumerate(instance.allocations):
        ranks = len(groups)
        if instance.blocks(ranks) != 1:
            raise ValueError("prices of rounds are for vectors that are sent whole")
        rounds = instance.round_limit(ranks)
        for weight, part in instance.partitions(job):
            own, at = prices[at : at + rounds], at + rounds
            if len(own) != rounds:
                raise ValueError(f"prices holds {len(prices)} numbers, too few for every job, partition and round")
            total += weight * _crossings(np.bincount(part), int(part[instance.root]), own, scale)
    if at != len(prices):
        raise ValueError(f"prices holds {len(prices)} numbers, {at} are needed")
    return float(total * Fraction(instance.bytes))


def _crossings(sizes: Any, root: int, prices: Any, scale: int) -> int:
    """Whole crossings between parts of these sizes."""
    entered = len(sizes) - 1  # every part but the root's
    if int(sizes.max()) > MOST_PART or len(prices) > MOST_ROUNDS:
        if not prices.any():
            return entered
        raise ValueError(f"prices of rounds are for parts of {MOST_PART} ranks and {MOST_ROUNDS} rounds at most")
    if prices.min() < 0 and int(sizes.sum()) != 1 << len(prices):
        raise ValueError("a price below 0 proves nothing where ranks may be idle")
    total = sum(int(_least(int(size), int(part == root), prices, scale)) for part, size in enumerate(sizes))
    return max(entered, -(-total // scale))


@jit
def _least(size: int, informed: int, prices: IntArray, scale: int) -> int:
    """Least of ``sum max(0, d) scale + price d`` over paths to ``size`` informed ranks, backwards over rounds:
    ``rest[x]`` is what x informed ranks still have to pay."""
    never = 2**62
    rest = np.full(size + 1, never)
    rest[size] = 0
    for t in range(len(prices) - 1, -1, -1):
        before = np.full(size + 1, never)
        for x in range(size + 1):
            for more in range(size + 1 - x):
                if rest[x + more] < never:
                    d = more - x
                    pay = rest[x + more] + prices[t] * d + (d * scale if d > 0 else 0)
                    before[x] = min(before[x], pay)
        rest = before
    return int(rest[informed])
