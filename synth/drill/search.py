"""The drill: the whole machine and one representative of every orbit of failures, each solved by ordinary runs.

First the bounds, then one method after the other, for cases whose best schedule still takes more than ``gap`` longer
than their bound. Failures that leave the same links between ranks (an NIC, or either of its cables) are solved once:
the others take over that schedule. For an executor's form every schedule counts with the time of what is exported of it
(:mod:`synth.drill.in_form`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synth.drill.breakable import Breakable, Cut, Orbit
from synth.drill.in_form import CHUNKS, Exported, exported, is_hopeless, transfers_in, variants
from synth.errors import InputError
from synth.exchange.block_costs import CostModel
from synth.exchange.forms import SCHEDULED, Program
from synth.execution.pool import run_all
from synth.execution.runs import Request, Run, expand
from synth.family import Family, defaults_for, get_family
from synth.instance import Instance
from synth.method import load
from synth.records.record import Record
from synth.tuning.runs import kept
from synth.tuning.search import FEW, INNER, LAST, LEFT_OUT

ENOUGH = 0.02  # a gap


@dataclass(frozen=True)
class Question:
    """What is asked: the ``whole`` instance; ``share`` of the bandwidth that is left of links (None: nothing is),
    ``most_pairs`` of failures at once (None: single ones only), ``methods`` (empty: all that suit), the
    ``limit`` of a run's time, the ``gap`` that is good enough, the ``folder`` for instances and records, the
    ``form`` in which schedules count, and its ``costs`` (None: of an ideal executor)."""

    whole: Instance
    folder: Path
    share: str | None = None
    most_pairs: int | None = None
    methods: tuple[str, ...] = ()
    limit: str = "1m"
    seed: int = 0
    gap: float = ENOUGH
    form: str = SCHEDULED
    costs: CostModel | None = None

    @property
    def exports(self) -> bool:
        """Whether schedules count as an executor runs them."""
        return self.form != SCHEDULED


@dataclass
class Case:
    """The whole machine (``orbit`` None) or a representative failure: its ``instance`` or, where the ranks are parted,
    the ``cut``; the ``best`` record, the greatest certified ``bound`` [s], and why there is none.

    ``borrowed``: the name of the case whose schedule, avoiding what failed here, is quicker than all made for it;
    ``seconds`` is then that one's. ``lender``: that case, and the number of the orbit's member that it avoids.
    ``quickest``: the best program, where schedules count as an executor runs them (``exports``).
    """

    orbit: Orbit | None
    instance: Instance | None
    cut: Cut | None = None
    records: list[Record] = field(default_factory=list)
    borrowed: str = ""
    borrowed_seconds: float | None = None
    lender: tuple[Case, int] | None = field(default=None, repr=False)
    used: tuple[Record, frozenset[tuple[int, int]]] | None = field(default=None, repr=False)  # of a best record
    exports: bool = False
    quickest: Exported | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """What failed."""
        return "nothing" if self.orbit is None else self.orbit.representative.name

    @property
    def best(self) -> Record | None:
        """The record of the best program, or the best schedule."""
        return self.scheduled if not self.exports else None if self.quickest is None else self.quickest.record

    @property
    def scheduled(self) -> Record | None:
        """The verified record of least value, of several the one with the fewest bytes to read."""
        held = [record for record in self.records if record.value is not None and record.ok]
        return min(held, key=lambda record: (record.value, transfers_in(record)), default=None)

    @property
    def best_seconds(self) -> float | None:
        """The least time of what was made for this case."""
        if self.exports:
            return None if self.quickest is None else self.quickest.seconds
        return None if self.best is None else self.best.value

    @property
    def seconds(self) -> float | None:
        """The least time that is known."""
        known = [value for value in (self.best_seconds, self.borrowed_seconds) if value is not None]
        return min(known, default=None)

    @property
    def scheduled_seconds(self) -> float | None:
        """The least time of the schedules themselves, taken over or made for this case."""
        lent = None if self.lender is None else self.lender[0].scheduled
        held = [one.value for one in (self.scheduled, lent) if one is not None and one.value is not None]
        return min(held, default=None)

    def within(self, share: float) -> bool:
        """Whether the best schedule takes at most this share of its time more than the bound; as exported, more than a
        schedule that does."""
        if self.seconds is None or self.bound is None:
            return False
        least, scheduled = self.bound, self.scheduled_seconds
        if self.exports and scheduled is not None and scheduled * (1 - share) <= least:
            least = max(least, scheduled)
        return self.seconds * (1 - share) <= least

    @property
    def bound(self) -> float | None:
        """The greatest certified bound."""
        return max((r.bound for r in self.records if r.bound is not None and r.grade == "certified"), default=None)


@dataclass
class Drill:
    """The whole machine, every representative, and what may fail. ``timed``: of a case (by ``id``) its best program and
    the seconds of that by the failure it ran with."""

    question: Question
    breakable: Breakable
    whole: Case
    cases: list[Case]
    timed: dict[int, tuple[Program, dict[str, float]]] = field(default_factory=dict, repr=False)

    def loss(self, case: Case) -> float | None:
        """How much longer than on the whole machine, as a share; infinite where the ranks are parted."""
        if case.cut is not None:
            return float("inf")
        if case.seconds is None or not self.whole.seconds:
            return None
        return case.seconds / self.whole.seconds - 1

    def ordered(self) -> list[Case]:
        """The cases, the worst first; what is not known at the end."""
        return sorted(self.cases, key=lambda case: (self.loss(case) is None, -(self.loss(case) or 0.0)))


def prepared(question: Question) -> Drill:
    """The drill before any run. Raises :class:`InputError` for families whose machines do not break, and for more pairs
    than allowed."""
    family = get_family(question.whole.family)
    if not family.can("failures"):
        raise InputError(f"machines of family {family.name} do not fail")
    breakable: Breakable = family.capability("failures")(question.whole)
    folder = question.folder / "instances"
    cases = []
    for orbit in breakable.orbits(question.share, question.most_pairs):
        cut = None if question.share is not None else breakable.cut(orbit.representative)
        instance = None if cut is not None else kept(breakable.broken(orbit.representative, question.share), folder)
        cases.append(Case(orbit, instance, cut, exports=question.exports))
    whole = Case(None, kept(question.whole, folder), exports=question.exports)
    return Drill(question, breakable, whole, cases)


def runs_of(drill: Drill) -> list[Run]:
    """All runs that may be needed, those of the whole machine first. Raises :class:`InputError`."""
    cases = (drill.whole, *drill.cases)
    return [run for case in cases if case.instance is not None for run in _runs(drill.question, case.instance)]


def _runs(question: Question, instance: Instance) -> list[Run]:
    """All that may be run on an instance; of a method with parameters the records have a folder of their own."""
    family, found = get_family(instance.family), []
    ranks = len(getattr(instance, "members", ()))
    for name in methods_of(family, instance, question.methods):
        for given in variants(question.form, family.method(name), ranks, question.costs) if question.exports else ({},):
            request = Request([name], seeds=[question.seed], limits=[question.limit], gap=question.gap,
                              parameters=given)  # fmt: skip
            folder = "-".join(f"{key}{value}" for key, value in given.items())
            found += expand([instance], request, question.folder / "records" / folder).runs()
    return found


def methods_of(family: Family, instance: Instance, named: Sequence[str]) -> list[str]:
    """The family's bound and those named, or all that suit: ours, what libraries run, the slow ones."""
    bound = [name for name, method in family.methods.items() if method.kind == "bound"]
    suited = [name for name in defaults_for(family, instance) if name not in LEFT_OUT]
    suited.sort(key=lambda name: (name in LAST, name in family.today))
    return list(dict.fromkeys([*bound, *(named or suited)]))


def solve(
    drill: Drill,
    jobs: int,
    resume: bool = False,
    on_end: Callable[[Run, Record, bool], None] = lambda *_: None,
    on_start: Callable[[Run], None] | None = None,
) -> None:
    """Run what is needed, so many at a time, and put the records into the cases."""
    cases = {case.instance.sha256: case for case in (drill.whole, *drill.cases) if case.instance is not None}
    waiting = {sha: _runs(drill.question, case.instance) for sha, case in cases.items() if case.instance is not None}
    while chosen := _next(drill, cases, waiting):
        for run, record, reused in run_all(chosen, jobs, resume, on_start=on_start):
            case = cases[run.instance.sha256]
            take(drill, case, record)
            on_end(run, record, reused)
        if drill.question.share is None:
            borrow(drill)


def take(drill: Drill, case: Case, record: Record) -> None:
    """Put a record into its case, and lower its schedule where it counts as an executor runs it."""
    case.records.append(record)
    case.records.sort(key=lambda record: str(record["method"]))  # and those of one method in their turn
    if case.exports and record.value is not None and record.ok:
        made = exported(record, drill.question.form, case.best_seconds, drill.question.costs)
        if made is not None and (case.quickest is None or made.seconds < case.quickest.seconds):
            case.quickest = made


def _next(drill: Drill, cases: Mapping[str, Case], waiting: dict[str, list[Run]]) -> list[Run]:
    """The next run of every case that needs one, taken from those ``waiting``. Where cases have the same core only the
    first one's: the others take over its schedule."""
    found: list[Run] = []
    cores: set[frozenset[tuple[int, int]]] = set()
    busy: set[frozenset[tuple[int, int]]] = set()
    for sha, case in cases.items():
        if case.records and case.orbit is not None and drill.question.share is None:
            core = drill.breakable.core(case.orbit.representative)
            if core in cores and (core in busy or case.seconds is not None):
                continue
            cores.add(core)
            busy |= set() if case.within(drill.question.gap) else {core}
        if case.within(drill.question.gap):
            continue
        waiting[sha] = [run for run in waiting[sha] if not _is_useless(run, case)]
        if waiting[sha]:
            found.append(waiting[sha].pop(0))
    return found


def _is_useless(run: Run, case: Case) -> bool:
    """Whether a run with fewer transfers or chunks need not be made: the method's own schedule is too slow, or one has
    no more transfers than asked for."""
    few, chunks = _asked(run.options.method)
    own = [one for one in case.records if one["method"] == run.method.name]
    if few is chunks is None:
        return False
    plain = next((one for one in own if _asked(one["options"]["method"]) == (None, None)), None)
    if plain is not None and is_hopeless(plain.value, case.seconds):
        return True
    if run.options.method.get(INNER):  # another schedule, however few transfers that of the whole links has
        return False
    return few is not None and any(transfers_in(one) <= few for one in own)


def _asked(options: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The transfers and the chunks that a run is asked for."""
    return options.get(FEW), options.get(CHUNKS)


def borrow(drill: Drill) -> None:
    """Take over schedules of other cases that avoid what failed, where they are quicker. What was taken over before is
    forgotten: a case's best schedule may have become one that uses more."""
    for case in drill.cases:
        case.borrowed, case.borrowed_seconds, case.lender = "", None, None
        if case.orbit is None or case.instance is None:
            continue
        for other in (drill.whole, *drill.cases):
            value = None if other is case else other.best_seconds
            if value is None or (case.seconds is not None and value >= case.seconds):
                continue
            used = used_by(drill, other)
            avoided = [k for k, member in enumerate(case.orbit.members) if not member.pairs & used]
            if avoided and drill.question.exports:
                value = seconds_there(drill, other, case.orbit.members[avoided[0]])
            if avoided and (case.seconds is None or value < case.seconds):
                case.borrowed, case.borrowed_seconds, case.lender = other.name, value, (other, avoided[0])


def seconds_there(drill: Drill, case: Case, failure: Any) -> float:
    """Seconds of a case's best program on the machine with a failure; infinite where it cannot run there."""
    assert case.quickest is not None
    found = drill.timed.setdefault(id(case), (case.quickest.program, {}))
    if found[0] is not case.quickest.program:  # a better one has been found since
        found = drill.timed[id(case)] = case.quickest.program, {}
    if failure.name not in found[1]:
        try:
            there = found[0].seconds(drill.breakable.broken(failure, drill.question.share))
        except InputError:
            there = math.inf
        found[1][failure.name] = there
    return found[1][failure.name]


def used_by(drill: Drill, case: Case) -> frozenset[tuple[int, int]]:
    """The directions from node to node that a case's best schedule uses."""
    best = case.best
    if case.used is None or case.used[0] is not best:
        assert best is not None
        case.used = best, drill.breakable.used(solution_of(case), case.instance)
    return case.used[1]


def solution_of(case: Case) -> Any:
    """The best schedule of a case."""
    assert case.instance is not None
    best = case.best
    assert best is not None
    return load(get_family(case.instance.family).unpack)(case.instance, best.packed)
