"""Time limits do not count compilation: a first run finds what a later one finds."""

from __future__ import annotations

import time

import numba
import numpy as np

from synth import kernels
from synth.clock import start_up_costs
from synth.options import RunOptions


def test_compiling_is_not_counted() -> None:
    kernels._compiler()  # its listener is there
    began, before = time.monotonic(), start_up_costs.seconds
    options = RunOptions(5.0)

    def below(x):  # type: ignore[no-untyped-def]
        return np.sort(x)[: len(x) // 2]

    inner = numba.njit(below)

    def above(x):  # type: ignore[no-untyped-def]
        return inner(x).sum()

    assert numba.njit(above)(np.arange(4.0)) == 1.0
    grown = start_up_costs.seconds - before
    left = options.remaining()
    passed = time.monotonic() - began
    assert left is not None
    assert 0 < grown <= passed  # what one compilation causes is part of it, not counted twice
    assert left >= 5.0 - (passed - grown)
    assert options.started_now().not_counted == start_up_costs.not_counted()
    numba.njit(above)
    assert start_up_costs.seconds == before + grown
