"""Pyomo, imported so that it leaves scipy's statistics, integration and geometry alone.

Pyomo defers its import of scipy, and of what it calls scipy for, unless scipy is there already: then it imports
``scipy.stats``, ``scipy.integrate`` and ``scipy.spatial`` at once, which takes longer than Pyomo itself. It does the
same when anybody imports scipy for the first time after it; so the package itself, without its parts, comes before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import scipy  # noqa: F401


@contextmanager
def _out_of_sight(package: str) -> Iterator[None]:
    """Hide an imported package and its modules meanwhile."""
    hidden = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == package}
    for name in hidden:
        del sys.modules[name]
    try:
        yield
    finally:
        sys.modules.update(hidden)


with _out_of_sight("scipy"):
    import pyomo.environ as pyo

__all__ = ["pyo"]
