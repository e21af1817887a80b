"""Prices at which the cheapest way is as dear as possible, by Kelley's cutting planes."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from synth.arrays import FloatArray
from synth.solvers.lp import linprog

INFINITE = 1e18


class CuttingPlanes(ABC):
    """Maximise over prices ``y >= 0`` with ``weights . y = 1`` the least cost of all ways.

    A way is a vector ``u`` of what it uses (of wavelength-hops per step, say) and costs ``u . y``.
    """

    def __init__(self, weights: FloatArray) -> None:
        self.weights = weights
        self.best: FloatArray = np.full(len(weights), 1 / weights.sum())
        self.cost = -1.0  # least cost at the best prices found: a lower bound of the maximum
        self.upper = INFINITE  # of the cutting-plane model: an upper bound of the maximum
        self._ways: list[FloatArray] = []

    @abstractmethod
    def cheapest(self, prices: FloatArray) -> tuple[float, FloatArray | None]:
        """Least cost at these prices and what a cheapest way uses; ``INFINITE`` or so and None if there is no way."""

    def evaluate(self, prices: FloatArray) -> float:
        """Least cost at these prices; a cheapest way is added to the model."""
        cost, way = self.cheapest(prices)
        if cost > self.cost:
            self.cost, self.best = cost, prices
        if way is not None:
            self._ways.append(way)
        return cost

    def next_prices(self) -> FloatArray:
        """Between the model's optimum and the best prices so far (plain cutting planes would oscillate)."""
        ways = np.array(self._ways)
        count, size = ways.shape
        result = linprog(
            np.r_[np.zeros(size), -1.0],
            A_ub=np.c_[-ways, np.ones(count)],
            b_ub=np.zeros(count),
            A_eq=np.r_[self.weights, 0.0][None, :],
            b_eq=[1.0],
            bounds=[(0, None)] * size + [(None, None)],
        )
        assert result.x is not None  # bounded and feasible: prices form a simplex
        self.upper = float(result.x[-1])
        weight = 0.5 if count % 2 else 0.3
        mixed: FloatArray = weight * result.x[:-1] + (1 - weight) * self.best
        return mixed

    def search(self, enough: float, rounds: int, tolerance: float = 1e-9) -> bool | None:
        """True when prices with a cost above ``enough`` are found, False when there are none, None when undecided."""
        prices = self.best
        for _ in range(rounds):
            if self.evaluate(prices) > enough + tolerance:
                return True
            prices = self.next_prices()
            if self.upper <= enough + tolerance:
                return False
        return None

    def settle(self, rounds: int, tolerance: float) -> None:
        """Search until the best prices are within ``tolerance`` (relative) of the maximum, or rounds run out."""
        prices = self.best
        for _ in range(rounds):
            if self.evaluate(prices) > INFINITE / 2:
                return
            prices = self.next_prices()
            if self.upper - self.cost <= tolerance * self.upper:
                return
