"""Time limits do not count compilation: a first run finds what a later one finds."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from synth import compiling
from synth.kernels import jit, mode
from synth.options import RunOptions


@jit
def below(x: Any) -> Any:
    return np.sort(x)[: len(x) // 2]


@jit
def above(x: Any) -> Any:
    return below(x).sum()


def test_compiling_is_not_counted() -> None:
    began, before = time.monotonic(), compiling.seconds
    options = RunOptions(5.0)
    with mode("compiled"):
        assert above(np.arange(4.0)) == 1.0
    grown = compiling.seconds - before
    left = options.remaining()
    passed = time.monotonic() - began
    assert left is not None
    assert 0 < grown <= passed  # what one compilation causes is part of it, not counted twice
    assert left >= 5.0 - (passed - grown)
    assert options.started_now().compiled == compiling.seconds
    with mode("compiled"):
        above(np.arange(5.0))
    assert compiling.seconds == before + grown
