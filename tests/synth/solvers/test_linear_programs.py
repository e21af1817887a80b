"""scipy's linear programs under the limit now in force: no method of HiGHS goes on where no time is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from synth.clock.deadline import OutOfTime
from synth.solvers import lp

METHODS = ("highs", "highs-ds", "highs-ipm")


def program(size: int) -> dict[str, Any]:
    """Random rows, four entries each; at 20,000 rows it takes a second and a half."""
    draw, entries = np.random.default_rng(0), 4 * size
    rows = csr_array((draw.random(entries), draw.integers(0, size, (2, entries))), shape=(size, size))
    return {"c": -draw.random(size), "A_ub": rows, "b_ub": draw.random(size) + 1, "bounds": (0, 1)}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("left", [0.0, 1e-4, 1e-2, 0.1])
def test_what_takes_longer_than_is_left_is_out_of_time(
    method: str, left: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the limit passes before the method has taken its first step."""
    monkeypatch.setattr(lp, "left", lambda: left)
    words = program(20_000)
    with pytest.raises(OutOfTime):
        lp.linprog(words.pop("c"), **words, method=method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("left", [5.0, float("inf")])
def test_what_fits_is_solved(method: str, left: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lp, "left", lambda: left)
    words = program(50)
    assert lp.linprog(words.pop("c"), **words, method=method).status == 0
