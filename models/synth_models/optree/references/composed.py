"""Method ``composed`` (ours): the library's solutions of other instances, as they are.

A schedule for fewer wavelengths or tighter budgets is one for more.
"""

from __future__ import annotations

from synth.library import as_they_are
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.optree.check.replay import check_solution
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import refuse_unmeetable


def solve(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``composed``: :func:`synth.library.as_they_are.best`."""
    return refuse_unmeetable(instance) or as_they_are.best(instance, options, check_solution)
