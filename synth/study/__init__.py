"""Studies: many runs turned into one table, statistics, figures and a report.

The package may be called: ``synth.study("xtree")`` is :func:`synth.study.run.study`, whether it was imported before or
not.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from synth.study.definition import PreparedStudy, Study, load
from synth.study.run import study

__all__ = ["PreparedStudy", "Study", "load", "study"]


class _Callable(ModuleType):
    __signature__ = inspect.signature(study)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return study(*arguments, **named)


_Callable.__call__.__doc__ = study.__doc__
sys.modules[__name__].__class__ = _Callable
