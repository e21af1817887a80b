"""From a finding to what its records hold: read, verified by the library's check, judged together, and the claims
tested. Whatever is missing, refused or contradicted is a fault that names the finding and the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synth.api import check
from synth.errors import InputError
from synth.family import get_family
from synth.findings.finding import Case, Claim, Finding
from synth.instance import Instance
from synth.method import Verdict
from synth.records import optimality
from synth.records.contradictions import Standing, standing, value_stands
from synth.records.folder import beside
from synth.records.record import Record
from synth.records.repetition import name_stands
from synth.reproduction.printed import below
from synth.text.quantities import SCALES, named, percent, scaled, times

if TYPE_CHECKING:
    from synth.reproduction.collect import Source

CERTIFIED = "certified"
PATIENT_S = 5.0  # of a published algorithm's run that is made again


class UnfoundedError(RuntimeError):
    """Findings that the records do not carry, one line a fault."""


@dataclass(frozen=True)
class Held:
    """What the records hold of one case, all of it verified.

    ``record`` carries the value (or the measured fact), ``bounded`` the bound, ``published`` the published algorithm's
    figure where nothing is printed. ``facts`` are those that the check computed from ``record``.
    """

    case: Case
    unit: str
    record: Record
    value: float | None
    bounded: Record | None
    least: float | None
    proof: str  # of the bound: certified, a solver with its version, or empty
    published: Record | None
    printed: float | None
    facts: Mapping[str, Any]
    stated: bool = False  # whether the published record only states its method

    @cached_property
    def instance(self) -> Instance:
        """The instance of the records."""
        return self.record.find_instance()

    @property
    def ratio(self) -> float | None:
        """The published figure over ours."""
        return self.printed / self.value if self.printed is not None and self.value else None

    @property
    def gap(self) -> float | None:
        """(value - bound) / value."""
        return optimality.gap(self.value, self.least)

    @property
    def met(self) -> bool:
        """Whether the value meets its bound."""
        return self.gap == 0

    @property
    def below(self) -> bool:
        """Whether ours is below the published figure."""
        return self.value is not None and self.printed is not None and below(self.value, self.printed)

    @property
    def ours_text(self) -> str:
        """The value with its unit."""
        return exactly(self.value, self.unit)

    @property
    def printed_text(self) -> str:
        """The published figure with its unit."""
        return exactly(self.printed, self.unit)

    @property
    def least_text(self) -> str:
        """The bound with its unit; a measured fact's proof in its own words."""
        proven = self.facts.get(self.case.proof) if self.case.proof else None
        return "; ".join(map(str, proven)) if isinstance(proven, list) else exactly(self.least, self.unit)

    @property
    def grade(self) -> str:
        """What is proven of it: ``certified``, the solver that alone proves the bound, ``replayed`` or ``counted``."""
        return self.proof or self.evidence

    @property
    def evidence(self) -> str:
        """``replayed`` where the value is of a schedule, ``counted`` where it is of a formula."""
        return self.record.evidence or "certified"

    @property
    def carriers(self) -> tuple[Record, ...]:
        """The records it rests on, each once."""
        held = [self.record, self.bounded, self.published]
        return tuple({record.path: record for record in held if record is not None}.values())


@dataclass
class Shown:
    """A finding with what its records hold, its statement filled in and the faults found; errata are (where, printed,
    corrected, computed) of a finding that is a computation."""

    finding: Finding
    held: Sequence[Held] = ()
    statement: str = ""
    faults: list[str] = field(default_factory=list)
    errata: Sequence[Any] = ()
    skipped: Sequence[str] = ()

    @property
    def on_bound(self) -> bool:
        """Whether what it claims rests on bounds."""
        return any(claim.on_bound for claim in self.finding.claims)

    @property
    def sources(self) -> Sequence[Source]:
        """Where the authors state what this stands beside, each once."""
        return list(dict.fromkeys([*self.finding.sources, *(item.source for item in self.errata)]))

    @property
    def grades(self) -> Counter[str]:
        """Cases by what is proven of them: of bounds where a claim rests on them, of values else."""
        grades = [held.grade if self.on_bound else held.evidence for held in self.held]
        recomputed = f"recomputed, by {self.finding.word} alone" if self.finding.word else "recomputed"
        return Counter([*grades, *(recomputed for _ in self.errata)])

    @property
    def grade(self) -> str:
        """The grades in words; the number of cases where there is more than one."""
        count = self.grades
        return ", ".join(grade if len(count) == 1 else f"{grade} ({n})" for grade, n in sorted(count.items()))

    @property
    def by_word(self) -> str:
        """A sentence on what rests on a solver alone; empty where nothing does."""
        words = Counter(held.proof for held in self.held if self.on_bound and held.proof not in ("", CERTIFIED))
        return " ".join(
            f"The bound of {n} of {len(self.held)} cases rests on a solver alone: {grade}."
            if len(self.held) > 1
            else f"The bound rests on a solver alone: {grade}."
            for grade, n in sorted(words.items())
        )


@dataclass
class Evidence:
    """Reads and verifies records below ``root`` (``results/published``), each once."""

    root: Path
    verdicts: dict[Path, Verdict] = field(default_factory=dict)
    folders: dict[str, tuple[list[Record], Standing]] = field(default_factory=dict)

    def shown(self, finding: Finding) -> Shown:
        """The finding with its records; what is wrong is among its faults."""
        found = Shown(finding)
        try:
            cases = finding.cases(self.root) if callable(finding.cases) else finding.cases
            if not cases and finding.errata is None:
                found.faults.append(f"{finding.name}: has no cases")
        except (InputError, OSError, ValueError, KeyError) as error:
            found.faults.append(f"{finding.name}: its cases cannot be made: {error}")
            return found
        held = []
        for case in cases:
            try:
                held.append(self.held(case, finding.unit, found.on_bound))
            except (UnfoundedError, InputError) as error:
                found.faults += [f"{finding.name}, {case.what}: {line}" for line in str(error).splitlines()]
        found.held = held
        found.faults += [fault for claim in finding.claims for fault in _unheld(finding, claim, held)]
        if not cases:
            found.statement = finding.statement
        elif not found.faults:
            try:
                own = finding.numbers(held) if finding.numbers else {}
                found.statement = finding.statement.format(**{**numbers(held), **own})
            except ValueError as error:
                found.faults.append(f"{finding.name}: does not hold: {error}")
        return found

    def held(self, case: Case, unit: str, on_bound: bool) -> Held:
        """What the records of a case hold. Raises :class:`UnfoundedError` and :class:`InputError`."""
        group, judged = self._folder(case.folder)
        record = self._named(case, case.ours, group) if case.ours else _best(case, group)
        verdict = self._verified(record)
        published = self._published(case, group)
        printed = case.printed if published is None or case.printed is not None else published.value
        bounded, least, proof = None, None, ""
        value: float | None
        if case.measure:
            value = _fact(record, verdict, case.measure)
            if case.proof:
                proven = verdict.facts.get(case.proof)
                least, proof = (proven if isinstance(proven, int | float) else None), CERTIFIED if proven else ""
        else:
            value, bounded = record.value, judged.best if on_bound and record["kind"] != "bound" else None
            bounded = record if record["kind"] == "bound" else bounded
            if bounded is not None:
                self._verified(bounded)
                least, proof = bounded.bound, bounded.words_of_grade
        unit = unit or get_family(record["family"]).objective.unit
        stated = published is not None and not name_stands(published, PATIENT_S)
        return Held(case, unit, record, value, bounded, least, proof, published, printed, verdict.facts, stated)

    def _published(self, case: Case, group: Sequence[Record]) -> Record | None:
        """The record of the published algorithm, verified, where the case names one."""
        if not case.published:
            return None
        found = self._named(case, case.published, group)
        self._verified(found)
        return found

    def _folder(self, folder: str) -> tuple[list[Record], Standing]:
        if folder not in self.folders:
            group = list(beside(self.root / folder))
            if not group:
                raise UnfoundedError(f"no records at {self.root / folder}")
            if len({record["instance_sha256"] for record in group}) > 1:
                raise UnfoundedError(f"records of several instances at {self.root / folder}")
            self.folders[folder] = group, standing(group)
        group, judged = self.folders[folder]
        if judged.alarms:
            raise UnfoundedError("\n".join(judged.messages()))
        return group, judged

    def _named(self, case: Case, label: str, group: Sequence[Record]) -> Record:
        """The record of that label in the case's folder, or at that address below the root."""
        folder, _, stem = label.rpartition("/")
        held = self._folder(folder)[0] if folder else group
        found = next((record for record in held if record.path is not None and record.path.stem == stem), None)
        if found is None:
            raise UnfoundedError(f"no record {self.root / (folder or case.folder) / stem}.json")
        if found["instance_sha256"] != group[0]["instance_sha256"]:
            raise UnfoundedError(f"{found.path} is a record of another instance than those at {case.folder}")
        return found

    def _verified(self, record: Record) -> Verdict:
        assert record.path is not None
        if record.path not in self.verdicts:
            self.verdicts[record.path] = check(record)
        verdict = self.verdicts[record.path]
        if verdict.faults:
            raise UnfoundedError("\n".join(f"{record.path} is refused: {fault}" for fault in verdict.faults))
        return verdict


def _best(case: Case, group: Sequence[Record]) -> Record:
    """The best replayed schedule that answers no other question; of equal ones the one with a certified bound."""
    able = [r for r in group if value_stands(r) and r.evidence == "replayed" and not r.question]
    if not able:
        raise UnfoundedError(f"no replayed schedule at {case.folder}")
    return min(able, key=lambda r: (r.value, r.grade != "certified", bool(r["solver"]), str(r.path)))


def _fact(record: Record, verdict: Verdict, name: str) -> float:
    value = verdict.facts.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise UnfoundedError(f"{record.path}: the check finds no number {name}")
    return value


def _unheld(finding: Finding, claim: Claim, held: Sequence[Held]) -> list[str]:
    """The cases of which the claim does not hold, in words."""
    return [
        f"{finding.name}, {one.case.what}: does not hold: {claim.words} (ours {one.ours_text}, bound {one.least_text}"
        f"{f' by {one.proof}' if one.proof else ''}, published {one.printed_text})"
        for one in held
        if not claim.holds(one)
    ]


def numbers(held: Sequence[Held]) -> dict[str, Any]:
    """What every statement may say: ``cases`` (their number), ``met``, ``lower``, ``higher`` (cases whose value meets
    its bound, is below, above the published figure), ``beyond`` (published figures below the bound), ``ours``,
    ``printed``, ``least`` of the first case with units, ``most_times``, ``least_times`` (published over ours),
    ``largest_gap``, and ``c``, the cases themselves."""
    first = held[0]
    ratios = [one.ratio for one in held if one.ratio is not None]
    gaps = [one.gap for one in held if one.gap is not None]
    return {
        "c": held,
        "cases": len(held),
        "met": sum(one.met for one in held),
        "lower": sum(one.below for one in held),
        "higher": _count(held, lambda one: not one.below and one.printed != one.value),
        "beyond": _count(held, lambda one: optimality.exceeds(one.least, one.printed)),
        "ours": first.ours_text,
        "printed": first.printed_text,
        "least": first.least_text,
        "most_times": times(max(ratios, default=None)),
        "least_times": times(min(ratios, default=None)),
        "largest_gap": percent(max(gaps, default=None)),
    }


def exactly(value: float | None, unit: str) -> str:
    """The number with its unit to six digits, for pages that are cited."""
    if value is None or unit not in SCALES:
        return named(value, unit)
    factor, name = scaled(unit, abs(value))
    return f"{value / factor:.6g} {name}"


def _count(held: Sequence[Held], test: Callable[[Held], bool]) -> int:
    return sum(map(test, held))
