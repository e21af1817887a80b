"""One typed way to compile a hot loop with numba, cached on disk where a cache directory can be written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])
_CACHED: dict[tuple[str, str], Any] = {}  # (module, name) -> compiled function with a cache on disk


def jit(function: F) -> F:
    """Compile ``function`` in nopython mode; fall back to no cache when no cache directory is writable."""
    try:
        compiled = numba.njit(cache=True)(function)
        _CACHED[function.__module__, function.__qualname__] = compiled
        return cast(F, compiled)
    except RuntimeError:  # numba: "no locator available", e.g. read-only install without a home directory
        return cast(F, numba.njit(function))


def in_use() -> list[tuple[tuple[str, str], Any]]:
    """The kernels this process has compiled or loaded, by module and name, each with one of its signatures."""
    return [(key, signature) for key, kernel in _CACHED.items() for signature in kernel.signatures]


def load(kernels: Iterable[tuple[tuple[str, str], Any]]) -> None:
    """Load kernels (as :func:`in_use` names them) from the cache on disk, where another process has put them."""
    for key, signature in kernels:
        if key in _CACHED:
            _CACHED[key].compile(signature)
