"""One row per instance: what the runs on it found together, and how far that is from the published algorithm."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from synth.family import get_family
from synth.quantities import percent, shown, times
from synth.record import Record, gap
from synth.standing import Standing, by_instance, standing, value_stands

MEETS = 1e-9  # relative difference up to which two values are the same
SOLVED = 1e-4 * (1 + 1e-6)  # relative gap up to which an instance counts as proven best: that at which solvers stop


@dataclass(frozen=True)
class InstanceRow:
    """One instance. ``best`` has the least value of a replayed schedule (of a count where none was replayed) that no
    proven bound contradicts; ``published`` the least value of the paper's own algorithm. Both may be None."""

    family: str
    instance: str
    standing: Standing
    best: Record | None
    published: Record | None
    seconds: float

    @property
    def gap(self) -> float | None:
        """Relative gap of the best value to the best bound that stands."""
        return None if self.best is None else gap(self.best.value, self.standing.bound)

    @property
    def solved(self) -> bool:
        """Whether the best value is proven best."""
        return self.gap is not None and self.gap <= SOLVED

    @property
    def ratio(self) -> float | None:
        """The published algorithm's value over the best one: above 1 the best is better."""
        if self.best is None or self.published is None or not self.best.value or self.published.value is None:
            return None
        return self.published.value / self.best.value

    def cells(self) -> list[str]:
        """The row for a person, as :data:`COLUMNS`."""
        best, unit = self.best, get_family(self.family).objective.unit
        value = NO_VALUE if best is None else shown(best.value, unit)
        if best is not None and best.evidence == "counted":
            value += " (counted)"
        published = "–"
        if self.published is not None:
            published = shown(self.published.value, unit)
            published += f" ({times(self.ratio)})" if self.ratio is not None and abs(self.ratio - 1) > MEETS else ""
        label = "–" if best is None else best.label
        return [self.instance, value, shown(self.standing.bound, unit), self.standing.proof, percent(self.gap), label,
                published]  # fmt: skip


COLUMNS = ("instance", "best", "bound", "proof", "gap", "by", "published (ratio to best)")
NO_VALUE = "none"


def rows_by_instance(records: Iterable[Record]) -> list[InstanceRow]:
    """A row for every instance (family and hash of its file), in the order of the records."""
    rows = []
    for (family, _), group in by_instance(records).items():
        found = standing(group)
        alarming = [value for value, _ in found.alarms]
        usable = [
            record for record in group
            if value_stands(record) and not any(record is other for other in alarming)
            and (record.evidence == "replayed" or gap(record.value, found.bound) is not None or found.bound is None)
        ]  # fmt: skip
        theirs = [record for record in usable if record["method"] in get_family(family).published]
        seconds = sum(record.run_s for record in group)
        rows.append(
            InstanceRow(family, group[0]["instance"], found, _least(usable), _least_value(theirs), seconds)
        )  # fmt: skip
    return rows


def _least(records: Sequence[Record]) -> Record | None:
    """Replayed schedules come before counts; among equal values the method that the family lists first."""

    def place(record: Record) -> tuple[bool, float, int]:
        names = list(get_family(record["family"]).methods)
        known = names.index(record["method"]) if record["method"] in names else len(names)
        return record.evidence != "replayed", record.value or 0.0, known

    return min(records, key=place, default=None)


def _least_value(records: Sequence[Record]) -> Record | None:
    return min(records, key=lambda record: record.value or 0.0, default=None)


def closing_line(rows: Sequence[InstanceRow]) -> str:
    """One line on a family's rows: solved of instances, how many by certificate, median gap of the open ones, time."""
    solved = [row for row in rows if row.solved]
    certified = sum(row.standing.proof == "certified" for row in solved)
    text = f"{len(solved)} of {len(rows)} proven best"
    if solved:
        others = len(solved) - certified
        grades = ["by certificate" if not others else f"{certified} by certificate"] if certified else []
        grades += ["by a solver's word" if not certified else f"{others} by a solver's word"] if others else []
        text += f" ({', '.join(grades)})"
    gaps = [row.gap for row in rows if row.gap is not None and not row.solved]
    if gaps:
        text += f", median gap of the others {percent(statistics.median(gaps))}"
    return text + f", {shown(sum(row.seconds for row in rows), 's')} of solving"
