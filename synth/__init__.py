"""synth: collective-communication synthesis by mathematical programming, with proven gaps and an independent replay.

>>> import synth
>>> instance = synth.read("instances/xtree/equimesh-2x3-c4.json")
>>> record = synth.solve(instance, method="pull")
>>> synth.check(record).ok
True

Imports are lazy: solvers, numba and plotting load only when a call needs them.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.api import check, make, solve
    from synth.comparison import compare
    from synth.errors import InputError
    from synth.instance import read
    from synth.network import Network
    from synth.planning import Planner
    from synth.plugins.returned import from_table
    from synth.schedule import Schedule
    from synth.schedule.moves import Moves
    from synth.study import study

try:
    __version__ = version("collective-synth")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0+unknown"

__all__ = [
    "InputError",
    "Moves",
    "Network",
    "Planner",
    "Schedule",
    "__version__",
    "check",
    "compare",
    "from_table",
    "make",
    "read",
    "solve",
    "study",
]
_TARGETS = {
    "read": "synth.instance:read",
    "make": "synth.api:make",
    "solve": "synth.api:solve",
    "check": "synth.api:check",
    "compare": "synth.comparison:compare",
    "InputError": "synth.errors:InputError",
    "Moves": "synth.schedule.moves:Moves",
    "Network": "synth.network:Network",
    "from_table": "synth.plugins.returned:from_table",
    "Planner": "synth.planning:Planner",
    "Schedule": "synth.schedule:Schedule",
}


if not TYPE_CHECKING:  # a checker is to tell a name that does not exist

    def __getattr__(name: str) -> Any:
        if name == "study":  # a package that may be called
            from importlib import import_module

            return import_module("synth.study")
        if name in _TARGETS:
            from synth.method import load

            return load(_TARGETS[name])
        raise AttributeError(f"module 'synth' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
