"""What several records of one instance prove together, and which of them contradict each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from synth.arrays import SAME
from synth.records.optimality import exceeds
from synth.records.record import DIED, Record

Status = Literal["ok", "failed", "bound disproved", "disproved", "alarm", "none"]  # of a record among the others
Key = tuple[str, str]  # family and hash of the instance file: a name may have had other contents


@dataclass(frozen=True)
class Standing:
    """The bounds on one instance, judged by each other's replayed values.

    ``best`` has the greatest proven bound that stands (a certified one where a solver's says the same). A replayed
    value below a solver's bound disproves the bound: ``disproved`` are such records, each with the record of the value.
    Below a *certified* bound it is an alarm, for replay and certificate cannot both be right: ``alarms`` are (value,
    bound).
    """

    best: Record | None
    disproved: tuple[tuple[Record, Record], ...]
    alarms: tuple[tuple[Record, Record], ...]

    @property
    def bound(self) -> float | None:
        """The greatest bound that stands, or None."""
        return None if self.best is None else self.best.bound

    @property
    def proof(self) -> str:
        """By what, for tables: ``certified``, the solver's name, or a dash."""
        return "–" if self.best is None else self.best.proof

    def status(self, record: Record) -> tuple[Status, str]:
        """What became of one of the records, and in words what contradicts it."""
        alarms = [alarm_words(value, bound) for value, bound in self.alarms if value is record]
        disproofs = [disproof_words(bound, value) for bound, value in self.disproved if bound is record]
        if alarms or disproofs:
            return "alarm" if alarms else "bound disproved", "; ".join(disproofs + alarms)
        if record.failed:
            return "failed", ""
        if record.evidence == "counted" and exceeds(self.bound, record.value):
            return "disproved", f"the counted value {record.value:g} lies below the proven bound {self.bound:g}"
        return "none" if record.empty else "ok", ""

    def messages(self) -> list[str]:
        """The contradictions in words, alarms first."""
        return [alarm_words(value, bound) for value, bound in self.alarms] + [
            disproof_words(bound, value) for bound, value in self.disproved
        ]


def alarm_words(value: Record, bound: Record) -> str:
    """A schedule below a certified bound, naming both records."""
    return (
        f"ALARM: the replayed value {value.value:g} of {_name(value)} lies below the certified bound "
        f"{bound.stated_bound:g} of {_name(bound)}; one of the checks is wrong"
    )


def disproof_words(bound: Record, value: Record) -> str:
    """A solver's bound above a schedule."""
    return (
        f"the bound {bound.stated_bound:g} of {_name(bound)} ({bound.words_of_grade}) is disproved by the replayed "
        f"value {value.value:g} of {_name(value)}"
    )


def _name(record: Record) -> str:
    return record.label if record.path is None else Path(*record.path.parts[-4:]).as_posix()


def value_stands(record: Record) -> bool:
    """Whether the record's value was found right: a fault of its own bound takes nothing away from it."""
    return record.value is not None and record["termination"] not in DIED and (record.ok or record.bound_disproved)


def by_instance(records: Iterable[Record]) -> Mapping[Key, list[Record]]:
    """Records by family and hash of their instance."""
    groups: dict[Key, list[Record]] = defaultdict(list)
    for record in records:
        groups[record["family"], record["instance_sha256"]].append(record)
    return groups


def standing(records: Iterable[Record]) -> Standing:
    """Judge the records of one instance (one family and hash)."""
    records = list(records)
    values = [record for record in records if value_stands(record) and record.evidence == "replayed"]
    certified = [record for record in records if record.ok and record.grade == "certified"]
    alarms = [(value, bound) for value in values for bound in certified if exceeds(bound.bound, value.value)]
    alarming = {id(value) for value, _ in alarms}
    sound = [value for value in values if id(value) not in alarming]
    least = min(sound, key=lambda record: record.value or 0.0, default=None)
    disproofs = [(record, _disproof(record, least)) for record in records]
    disproved = tuple((record, value) for record, value in disproofs if value is not None)
    bounds = [record for record, value in disproofs if value is None and record.ok and record.bound is not None]
    return Standing(_best(bounds), disproved, tuple(alarms))


def _disproof(record: Record, least: Record | None) -> Record | None:
    """The record whose replayed value disproves this one's bound, if it is a solver's: itself, or the ``least`` one."""
    if record.grade != "solver":
        return None
    if record.bound_disproved:
        return record
    if least is None or not record.ok or record.bound is None:
        return None
    return least if exceeds(record.bound, least.value) else None


def _best(bounds: list[Record]) -> Record | None:
    """The record with the greatest bound; among those that say the same a certified one."""
    if not bounds:
        return None
    most = max(record.bound or 0.0 for record in bounds)
    same = [record for record in bounds if most - (record.bound or 0.0) <= SAME * abs(most)]
    return next((record for record in same if record.grade == "certified"), max(same, key=lambda r: r.bound or 0.0))
