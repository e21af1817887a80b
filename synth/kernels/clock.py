"""A clock that kernels can read, compiled or not, so that one that may run for seconds ends when the limit passes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from synth.clock import start_up_costs


def now() -> float:
    """Seconds of the monotonic clock, in kernels and outside. About a tenth of a microsecond. What a kernel takes as
    plain Python instead does not count, so that none ends by this clock before its limit."""
    return time.monotonic() - start_up_costs.plain_now()


def register() -> None:
    """Tell numba, once it is imported, how compiled kernels read it."""
    from numba import types
    from numba.extending import overload

    clock = time.CLOCK_MONOTONIC
    clock_gettime: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))

    @overload(now)  # type: ignore[untyped-decorator]  # numba has no types
    def compiled() -> Any:
        def read() -> float:
            parts = np.empty(2, np.int64)
            clock_gettime(clock, parts.ctypes)
            return float(parts[0] + 1e-9 * parts[1])

        return read
