"""synth: collective-communication synthesis by mathematical programming, with proven gaps and an independent replay.

>>> import synth
>>> instance = synth.read("instances/xtree/equimesh-2x3-c4.json")
>>> record = synth.solve(instance, method="pull")
>>> synth.check(record).ok
True

Imports are lazy: solvers, numba and plotting load only when a call needs them.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.api import check, make, solve
    from synth.errors import InputError
    from synth.instance import read
    from synth.network import Network
    from synth.schedule import Schedule

try:
    __version__ = version("collective-synth")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0+unknown"

_HOMES = {
    "read": "synth.instance",
    "make": "synth.api",
    "solve": "synth.api",
    "check": "synth.api",
    "InputError": "synth.errors",
    "Network": "synth.network",
    "Schedule": "synth.schedule",
}

__all__ = ["InputError", "Network", "Schedule", "__version__", "check", "make", "read", "solve"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'synth' has no attribute {name!r}")
