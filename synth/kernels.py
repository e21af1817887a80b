"""One typed way to compile a hot loop with numba, cached on disk where a cache directory can be written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

from synth import compiling

F = TypeVar("F", bound=Callable[..., Any])
_CACHED: dict[tuple[str, str], Any] = {}  # (module, name) -> compiled function with a cache on disk


class _Compiling(event.Listener):  # type: ignore[misc]  # numba has no types
    """Adds the time of every compilation, those that one causes being part of it, to :mod:`synth.compiling`."""

    depth, began = 0, 0.0

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            self.began = time.monotonic()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            compiling.seconds += time.monotonic() - self.began


event.register("numba:compile", _Compiling())


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
