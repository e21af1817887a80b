"""The race between an instance's methods: which of them need not run, for a schedule has met the bound."""

from __future__ import annotations

from collections import defaultdict

from synth.execution.runs import Run
from synth.family import get_family
from synth.options import RELATIVE_GAP
from synth.records.contradictions import Key, standing, value_stands
from synth.records.optimality import gap
from synth.records.record import Record
from synth.records.summary import ROUNDED


class Settled:
    """The records of this command so far, by instance. ``spared``: the runs that were found needless."""

    def __init__(self) -> None:
        self._records: dict[Key, list[Record]] = defaultdict(list)
        self.spared: list[Run] = []

    def add(self, run: Run, record: Record) -> None:
        """A run has ended."""
        self._records[run.instance.family, run.instance.sha256].append(record)

    def needless(self, run: Run) -> bool:
        """Whether the run's method takes part in a race (the family's ``raced``) that is over: a replayed value is as
        good as a certified bound, or within the run's gap of it where that is more than usual."""
        family = get_family(run.instance.family)
        if not (family.can("raced") and family.capability("raced")(run.method.name)):
            return False
        records = self._records[run.instance.family, run.instance.sha256]
        values = [one.value for one in records if value_stands(one) and one.evidence == "replayed"]
        found, allowed = standing(records), run.options.relative_gap
        if not values or found.best is None or found.best.grade != "certified" or found.alarms:
            return False
        left = gap(min(value for value in values if value is not None), found.bound)
        over = left is not None and left <= (allowed if allowed > RELATIVE_GAP else ROUNDED)
        self.spared += [run] if over else []
        return over
