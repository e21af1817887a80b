"""Prices of links out of a solver's point."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from synth_models.fabric.bounds import link_prices


def test_no_price_is_below_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver's 0 may be -1e-9; over a small capacity that is a length on which no search for paths would end."""

    def point(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(x=np.array([0.5, -1e-9, 1.0]))

    monkeypatch.setattr(link_prices, "linprog", point)
    _, prices = link_prices._master([np.array([[1.0, 1.0]])], np.array([1e-12, 1.0]))
    assert prices is not None
    assert prices.tolist() == [0.0, 1.0]
