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
    from synth.errors import InputError
    from synth.instance import Instance, read
    from synth.library.known_frame import library
    from synth.method import Method, Outcome, Verdict
    from synth.network import Network
    from synth.options import RunOptions
    from synth.planning import Planner, TokenPlanner
    from synth.plugins.returned import from_table
    from synth.records.record import Record
    from synth.schedule import Schedule
    from synth.schedule.moves import Moves
    from synth.study.run import study
    from synth.tables.comparison import compare
    from synth.tables.frame import Frame
    from synth.tables.installed import families, keys, methods

try:
    __version__ = version("collective-synth")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0+unknown"

__all__ = [
    "Frame",
    "InputError",
    "Instance",
    "Method",
    "Moves",
    "Network",
    "Outcome",
    "Planner",
    "Record",
    "RunOptions",
    "Schedule",
    "TokenPlanner",
    "Verdict",
    "__version__",
    "check",
    "compare",
    "families",
    "from_table",
    "keys",
    "library",
    "make",
    "methods",
    "read",
    "solve",
    "study",
]
_TARGETS = {
    "read": "synth.instance:read",
    "make": "synth.api:make",
    "solve": "synth.api:solve",
    "check": "synth.api:check",
    "compare": "synth.tables.comparison:compare",
    "families": "synth.tables.installed:families",
    "methods": "synth.tables.installed:methods",
    "keys": "synth.tables.installed:keys",
    "Frame": "synth.tables.frame:Frame",
    "InputError": "synth.errors:InputError",
    "Instance": "synth.instance:Instance",
    "Method": "synth.method:Method",
    "Moves": "synth.schedule.moves:Moves",
    "Network": "synth.network:Network",
    "from_table": "synth.plugins.returned:from_table",
    "Outcome": "synth.method:Outcome",
    "Planner": "synth.planning:Planner",
    "TokenPlanner": "synth.planning:TokenPlanner",
    "Record": "synth.records.record:Record",
    "RunOptions": "synth.options:RunOptions",
    "Schedule": "synth.schedule:Schedule",
    "Verdict": "synth.method:Verdict",
}
_PACKAGES = ("library", "study")  # that may be called


if not TYPE_CHECKING:  # a checker is to tell a name that does not exist

    def __getattr__(name: str) -> Any:
        if name in _PACKAGES:
            from importlib import import_module

            return import_module(f"synth.{name}")
        if name in _TARGETS:
            from synth.method import load

            return load(_TARGETS[name])
        raise AttributeError(f"module 'synth' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
