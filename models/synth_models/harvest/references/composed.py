"""Method ``composed`` (ours): the library's solutions of other instances, as they are.

Topologies and routes that are good for one delay, size or overlap do for others, where the steps' pairs are the same.
"""

from __future__ import annotations

from synth.library import as_they_are
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.instance import HarvestInstance


def solve(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """Method ``composed``: :func:`synth.library.as_they_are.best`."""
    return as_they_are.best(instance, options, check_schedule)
