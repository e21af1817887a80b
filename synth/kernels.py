"""One typed way to compile a hot loop with numba, cached on disk where a cache directory can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile ``function`` in nopython mode; fall back to no cache when no cache directory is writable."""
    try:
        return cast(F, numba.njit(cache=True)(function))
    except RuntimeError:  # numba: "no locator available", e.g. read-only install without a home directory
        return cast(F, numba.njit(function))
