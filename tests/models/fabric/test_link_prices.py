"""Prices of links out of a solver's point."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from synth_models.fabric.bounds import link_prices
from synth_models.fabric.check.arrivals import MOST_WINDOWS
from synth_models.fabric.check.windows import HIGHEST_PRICE


def test_no_price_is_below_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver's 0 may be -1e-9; over a small capacity that is a length on which no search for paths would end."""

    def point(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(x=np.array([0.5, -1e-9, 1.0]))

    monkeypatch.setattr(link_prices, "linprog", point)
    _, prices = link_prices._master([np.array([[1.0, 1.0]])], np.array([1e-12, 1.0]))
    assert prices is not None
    assert prices.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("windows", [1, 2, 4])
def test_whole_prices_are_such_as_certificates_may_state(windows: int) -> None:
    """Those of several windows add up on a link."""
    most = HIGHEST_PRICE if windows == 1 else HIGHEST_PRICE // MOST_WINDOWS
    generator = np.random.default_rng(windows)
    one: Any = SimpleNamespace(kinds=5, lengths=lambda x: x)
    for _ in range(200):
        x = 1 / generator.integers(1, 400, 5 * windows)
        for prices in link_prices.whole_prices([one] * windows, x):
            assert max(int(part.max()) for part in prices) <= most
