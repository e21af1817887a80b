"""Studies: many runs turned into one table, statistics, figures and a report.

The package may be called: ``synth.study("xtree")`` is :func:`synth.study.run.study`.
"""

from __future__ import annotations

from synth import callable_package
from synth.study.definition import PreparedStudy, Study, load
from synth.study.run import study

__all__ = ["PreparedStudy", "Study", "load", "study"]
callable_package.call(__name__, "synth.study.run:study")
