"""One row per instance: what the runs on it found together, and how far that is from the published algorithms."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from synth.arrays import SAME
from synth.family import get_family
from synth.options import RELATIVE_GAP
from synth.records.contradictions import Standing, by_instance, standing, value_stands
from synth.records.optimality import gap
from synth.records.record import Record
from synth.records.repetition import name_stands
from synth.text.quantities import NOTHING, percent, shown, times, with_unit
from synth.text.untrusted import equal

STATED = "*"  # behind a published value whose method is only stated in its record
FOOTNOTE = "* the record names this method, which was not run again to confirm it"


@dataclass(frozen=True)
class InstanceRow:
    """One instance. ``best`` has the least value of a replayed schedule (of a count where none was replayed) that no
    proven bound contradicts; ``published`` that made by an opponent (:meth:`synth.family.Family.opponents`). Both may
    be None. ``named`` is who has the best value, of several an opponent before ours. ``refuted`` are the records of
    questions without an answer, ``stated`` says that the published record only states its method; ``without`` are the
    runs that should have found a value and did not."""

    family: str
    instance: str
    standing: Standing
    best: Record | None
    named: Record | None
    published: Record | None
    seconds: float
    refuted: tuple[Record, ...] = ()
    stated: bool = False
    without: tuple[Record, ...] = ()

    @property
    def gap(self) -> float | None:
        """Relative gap of the best value to the best bound that stands."""
        return None if self.best is None else gap(self.best.value, self.standing.bound)

    @property
    def solved(self) -> bool:
        """Whether the best value meets the best bound (:func:`synth.records.optimality.meets`)."""
        return self.gap == 0

    @property
    def ended(self) -> str:
        """What stands in place of a value where there is none: ``infeasible, certified``, or how the runs ended:
        ``unsupported``; every end once."""
        if self.refuted:
            return self._refuted_first()[0].words_of_end
        found = list(dict.fromkeys(record.words_of_end for record in self.without))
        return ", ".join(end for end in found if end != "finished") or NO_VALUE

    @property
    def reasons(self) -> str:
        """Why no run has a value, by method: ``bfb: unsupported: the machine has switches``; each reason once, after
        :data:`MOST_REASONS` only how many more. Empty where there is a value, or no more to say than in the table."""
        if self.best is not None or self.refuted:
            return ""
        found: dict[str, list[str]] = {}
        for record in self.without:
            if record.words_without_value != record.words_of_end:
                found.setdefault(record.words_without_value, []).append(record.label)
        told = [f"{', '.join(methods)}: {why}" for why, methods in found.items()]
        more = len(told) - MOST_REASONS
        return "; ".join(told[:MOST_REASONS]) + (f"; and {more} more" if more > 0 else "")

    @property
    def label(self) -> str:
        """Who has the best value; where there is none, whose question has no answer."""
        first = self.named or next(iter(self._refuted_first()), None)
        return NOTHING if first is None else first.credit

    def _refuted_first(self) -> list[Record]:
        return sorted(self.refuted, key=lambda record: record.infeasible_by != "certified")

    @property
    def ratio(self) -> float | None:
        """The best published algorithm's value over the best one: above 1 the best is better."""
        if self.best is None or self.published is None or not self.best.value or self.published.value is None:
            return None
        return self.published.value / self.best.value

    def cells(self) -> list[str]:
        """The row for a person, as :data:`COLUMNS`."""
        best, unit = self.best, get_family(self.family).objective.unit
        value = self.ended if best is None else f"{with_unit(best.value, unit)}{counted(best)}"
        published = NOTHING
        if self.published is not None:
            published = f"{with_unit(self.published.value, unit)}{counted(self.published)} by {self.published.credit}"
            published += f" ({times(self.ratio)})" if self.ratio is not None and abs(self.ratio - 1) > SAME else ""
            published += STATED if self.stated else ""
        return [self.instance, value, with_unit(self.standing.bound, unit), self.standing.proof, percent(self.gap),
                self.label, published]  # fmt: skip


def counted(record: Record) -> str:
    """What stands behind a value that no replayed schedule has."""
    return " (counted)" if record.evidence == "counted" else ""


COLUMNS = ("instance", "best", "bound", "proof", "gap", "by", "published (ratio to best)")
NO_VALUE = "none"
ROUNDED = 1e-9  # gaps that sums in another order leave between equal numbers
MOST_REASONS = 3


def rows_by_instance(records: Iterable[Record], baselines: Sequence[str] = ()) -> list[InstanceRow]:
    """A row for every instance (family and hash of its file), in the order of the records; ``baselines``: methods that
    take the place of the published ones."""
    rows = []
    for (family, _), group in by_instance(records).items():
        found = standing(group)
        usable = [record for record in group if _usable(record, found)]
        opponents = get_family(family).opponents(baselines)
        seconds = sum(record.run_s for record in group)
        published = first_of_least([record for record in usable if _maker(record) in opponents], opponents)
        refuted = tuple(record for record in group if record.ok and record.infeasible_by)
        stated = published is not None and not name_stands(published)
        without = tuple(record for record in group if record.value is None and record["kind"] != "bound")
        usable = [record for record in usable if record.evidence == "replayed"] or usable
        named, of = first_of_least(usable, opponents), group[0]["instance"]
        best = min(usable, key=lambda record: (_value(record), record is not named), default=None)
        rows.append(InstanceRow(family, of, found, best, named, published, seconds, refuted, stated, without))
    return rows


def _usable(record: Record, found: Standing) -> bool:
    """Whether its value may be the best: nothing contradicts it, and a count is not below the bound that stands."""
    if not value_stands(record) or any(record is value for value, _ in found.alarms):
        return False
    return record.evidence == "replayed" or found.bound is None or gap(record.value, found.bound) is not None


def first_of_least(records: Sequence[Record], opponents: Sequence[str]) -> Record | None:
    """Of the records whose values are the least up to rounding: a replayed schedule before a count, what an opponent
    made before ours, in their order, then the method that the family lists first; its own record before a borrower's.
    """
    least = min(map(_value, records), default=0.0)

    def place(record: Record) -> tuple[bool, int, bool]:
        names = list(dict.fromkeys([*opponents, *get_family(record["family"]).methods]))
        known = names.index(maker) if (maker := _maker(record)) in names else len(names)
        return record.evidence != "replayed", known, maker != record["method"]

    return min((one for one in records if equal(_value(one), least, SAME)), key=place, default=None)


def _maker(record: Record) -> str:
    """The method that made the solution: the one that ran, unless it took the solution from another."""
    return str((record.data.get("made_by") or [record["method"]])[0])


def _value(record: Record) -> float:
    return record.value or 0.0


def closing_line(rows: Sequence[InstanceRow]) -> str:
    """One line on a family's rows, each of which is counted once: proven best and by what, up to rounding, within
    :data:`RELATIVE_GAP`, with a larger gap, with a bound missing, without a schedule; and the time of all runs."""
    solved = [row for row in rows if row.solved]
    refuted, larger = [row for row in rows if row.best is None and row.refuted], _between(rows, RELATIVE_GAP, math.inf)
    counts = {
        f"proven best{_by_grade(solved)}": len(solved),
        f"within {ROUNDED:g} of the bound, which is rounding": len(_between(rows, 0.0, ROUNDED)),
        f"within {percent(RELATIVE_GAP)} of the bound": len(_between(rows, ROUNDED, RELATIVE_GAP)),
        f"open ({_gaps(larger)})": len(larger),
        "without a bound": sum(row.best is not None and row.gap is None for row in rows),
        "infeasible": len(refuted),
        "without a schedule": sum(row.best is None for row in rows) - len(refuted),
    }
    told = [f"{number} {words}" if len(rows) > 1 else words for words, number in counts.items() if number]
    text = f"{len(rows)} instance{'s' if len(rows) != 1 else ''}: {', '.join(told)}"
    text += f"; {shown(sum(row.seconds for row in rows), 's')} of solving"
    return text + (f". {FOOTNOTE}" if any(row.stated for row in rows) else "")


def _between(rows: Sequence[InstanceRow], least: float, most: float) -> list[float]:
    """The gaps of more than ``least``, up to ``most``."""
    return [row.gap for row in rows if row.gap is not None and least < row.gap <= most]


def _gaps(gaps: Sequence[float]) -> str:
    """The gap, or the largest and the median of several."""
    if len(gaps) < 2:
        return "".join(f"gap {percent(one)}" for one in gaps)
    return f"gaps up to {percent(max(gaps))}, median {percent(statistics.median(gaps))}"


def _by_grade(solved: Sequence[InstanceRow]) -> str:
    """By what these are proven best, in brackets; empty where there are none."""
    certified = sum(row.standing.proof == "certified" for row in solved)
    count = {"by certificate": certified, "by a solver alone": len(solved) - certified}
    grades = {words: number for words, number in count.items() if number}
    words = [name if len(grades) == 1 else f"{number} {name}" for name, number in grades.items()]
    return f" ({', '.join(words)})" if words else ""
