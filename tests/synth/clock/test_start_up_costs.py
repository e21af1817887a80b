"""Time limits do not count compilation: a first run finds what a later one finds."""

from __future__ import annotations

import gc
import time
from typing import Any

import numba
import numpy as np
import pytest

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


def test_compiling_looks_for_garbage_seldom_and_leaves_the_collector_as_it_was() -> None:
    """Also a compilation that fails, within another."""
    kernels._compiler()
    seen: list[int] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    def unknown(x):  # type: ignore[no-untyped-def]
        return x.nothing_of_that_name

    inner = numba.njit(unknown)
    found: Any = numba.njit(lambda x: np.sort(np.unique(x))[::-1])
    fails: Any = numba.njit(lambda x: inner(x))
    before = gc.get_threshold()
    gc.set_threshold(700, 11, 12)
    gc.callbacks.append(note)
    try:
        assert found(np.arange(4.0))[0] == 3.0
        assert len(seen) < 20
        with pytest.raises(numba.TypingError):
            fails(1)
        assert gc.get_threshold() == (700, 11, 12)
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
