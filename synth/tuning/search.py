"""The search: methods run over sizes, their schedules lowered for a form, and the quickest program of every size.

Every reference (what libraries run) is run and lowered at every size, so that nothing slower than the best of them in
that form is ever chosen. For plans, and where steps cost something, those are left out whose schedule takes more than
:data:`SLOWEST` times the best program and has too many moves for a loop. Ours run at some sizes (*anchors*), from which
their programs are carried to the sizes between: an algorithm is a shape, and its time at another size is one replay.
Where steps cost something, so are those of references but the :data:`QUICKEST` of each anchor. Whichever wins at a size
is run there once more. Of every program the time is a replay of what is written (:mod:`synth.exchange.forms`).

All rows take turns (:mod:`synth.tuning.turns`), phase by phase (:mod:`synth.tuning.phases`). What is left out is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial

from synth.clock.deadline import Clock, stopping
from synth.clock.start_up_costs import counted_now
from synth.errors import InputError
from synth.exchange.collector import collecting_seldom
from synth.exchange.forms import LOOPED, SCHEDULED, SERVICES, Lowered, in_form, in_seconds, most_moves, refusal
from synth.exchange.mscclpp.versions import unknown_to
from synth.exchange.record_export import transfers_of
from synth.exchange.transfers import Transfers, parts_of
from synth.family import Family, defaults_for, get_family
from synth.records.record import Record
from synth.tuning.explained import limit_of, title_of
from synth.tuning.phases import Act, Phase, not_slower, phases
from synth.tuning.question import Question
from synth.tuning.rows import Candidate, Row, Scheduled, bus_factor, choose_robust
from synth.tuning.runs import RUN_S, kept, recorded, small, taken_over, whole
from synth.tuning.turns import Share, Turn, in_turn

ANCHORS = 4  # sizes at which all methods run
ENOUGH = 0.005  # a gap: of what is as near to its bound no other schedule of ours is looked for
LONGER_S, MUCH = 60.0, 1.5  # of a run that is made once more, and how many times the time it had
NO_TIME, NEAR_BOUND = "not tried in the time", f"not tried, {ENOUGH:.1%} above the bound at most"
VARIANTS: Mapping[str, tuple[Mapping[str, int], ...]] = {  # few rounds: an executor's loop repeats them
    "forest": ({}, *({"chunks": count} for count in (1, 2, 4, 8, 16, 64))),
    "flow": ({}, {"chunks": 1}, {"chunks": 4}),
}
FEW = "transfers"  # the parameter of methods that cuts a schedule into so few chunks that it has no more transfers
HOPELESS = 1.1  # times the best program: schedules of ours that take longer are not lowered unless a loop may help, and
# where pieces had to be rounded, moves of rounded pieces that do
SLOWEST = 2.0  # the same of references in plans, and where steps cost something
QUICKEST = 2  # references of an anchor that are lowered again at the sizes beside it, where steps cost something
SLOW_AROUND = f"not tried again, not among the {QUICKEST} quickest references at a size around"
TRANSFERS_A_RANK = (1900, 1400, 1000, 600, 250)  # that are tried for it where a schedule is too large for the executor
FEW_A_RANK = (LOOPED, 1)  # and where steps cost something
INNER = "inner_rate"  # the parameter of methods that plan with slower links within boxes, as executors leave them
PLANNED_A_RANK = (900, 350, LOOPED)  # and for one of plans
LAST = ("pull",)  # searches that take all the time that they are given
LEFT_OUT = ("tacos", "epochs", "continuous", "steps", "imported")
Say = Callable[[str], None]


def tune(question: Question, say: Say = lambda _: None, interrupted: Callable[[], None] | None = None) -> list[Row]:
    """The rows of all collectives and sizes; one of which no schedule ended in time has no ``best``. After a
    ``KeyboardInterrupt`` those that there are, and ``interrupted`` is called (None: it is raised). Raises
    :class:`InputError` where no schedule at all can be run in the form, and as the making of instances does."""
    until = None if question.seconds is None or question.patient else counted_now() + question.seconds
    with collecting_seldom():
        searches = [_Search(question, collective, until, say) for collective in question.collectives]
        try:
            _run(searches, question)
            for search in searches:
                search.finish()
        except KeyboardInterrupt:
            if interrupted is None:
                raise
            interrupted()
            for search in searches:
                search.finish(stopped=True)
    rows = [row for search in searches for row in search.rows]
    if all(row.best is None for row in rows):
        none = [f"no schedule of {row.instance.name} can be run as {question.form}: {row.why_none}" for row in rows]
        raise InputError("\n".join(none))
    return rows


def _run(searches: Sequence[_Search], question: Question) -> None:
    """All that is to be done, within the limit, which counts from the end of the first phase on if that is asked."""
    turns = [turn for search in searches for turn in search.turns()]
    if question.patient and question.seconds is not None:
        in_turn([turn for turn in turns if turn.yields], None)
        turns, until = [turn for turn in turns if not turn.yields], counted_now() + question.seconds
        for search in searches:
            search.until = until
    in_turn(turns, searches[0].until)


class _Search:
    """One collective over all sizes."""

    def __init__(self, question: Question, collective: str, until: float | None, say: Say) -> None:
        self.question, self.until, self.say = question, until, say
        self.rows: list[Row] = []
        for size in question.sizes:
            instance = kept(question.make(collective, size), question.folder / "instances")
            if all(instance.sha256 != row.instance.sha256 for row in self.rows):
                self.rows.append(Row(instance, collective, size, any_count=question.any_count))
        self.family: Family = get_family(self.rows[0].instance.family)
        self.spreads: dict[str, set[int]] = {}
        self.records: dict[tuple[str, str, tuple[tuple[str, int], ...]], Record] = {}
        self._lowers = question.form not in (SCHEDULED, *SERVICES)  # for an executor
        self._carried_over = False
        self.share, self.runs = Share(until), 1  # of the turn, and how many runs share what is left of it
        self.most_s = RUN_S  # of a run
        self._told: dict[int, Candidate] = {}  # of every size, what was said last

    def turns(self) -> list[Turn]:
        """What is to be done, row by row, with the number of the phase in which it is."""
        anchors, found = self._anchors(), list[Turn]()

        def act(row: Row, phase: Phase, wide: bool, share: Share) -> None:
            self.share, self.runs = share, 1
            match phase.act:
                case Act.REFERENCES:
                    self._references(row, wide, phase.names)
                case Act.BOUND:
                    self._bound(row, phase.names)
                case Act.OURS:
                    self._ours(row, phase.names)
                case Act.LONGER:
                    self._longer(row, phase.names)
            self._said(row)

        for place, k in enumerate(self._in_turn()):
            row, methods = self.rows[k], list(self._methods(self.rows[k]))
            published = [name for name, is_published in methods if is_published]
            own = [name for name, is_published in methods if not is_published] if k in anchors else []
            own.sort(key=lambda name: name in LAST)
            bounds = self._bounds(row)
            row.known = frozenset([*published, *own, *bounds])
            row.untried.update(dict.fromkeys([*published, *own, *bounds], NO_TIME))
            for number, one in enumerate(phases(published, own, bounds, row.ranks)):
                wanted = partial(self._is_cut, row, one.names) if one.act == Act.LONGER else None
                done = partial(act, row, one, k in anchors)
                found.append(Turn(number, place, done, one.part, one.yields, wanted))
        return found

    def finish(self, stopped: bool = False) -> None:
        """Give each row what is best. ``stopped``: nothing is run or explained."""
        anchors = self._anchors()
        self.share, self.runs = Share(self.until), 1
        if self._lowers and not self._carried_over:
            self._carry(anchors)
            self._carried_over = True
        if not stopped:
            self._again(anchors)
        for row in self.rows:
            row.best = row.best or row.uneven
            if row.best is not None and self.question.variation is not None:
                choose_robust(row, self.question.variation, self.question.costs)
            if self._lowers and row.best is not None and not stopped:
                row.limit = limit_of(row, self.question, self._left())
            if self.question.form not in SERVICES and not stopped:
                row.reckon_within()

    def _in_turn(self) -> list[int]:
        """All rows, the anchors first."""
        anchors = self._anchors()
        return [*anchors, *(k for k in range(len(self.rows)) if k not in anchors)]

    def _anchors(self) -> list[int]:
        """Rows, evenly spread, the first and the last among them; without a program all of them."""
        last = len(self.rows) - 1
        count = len(self.rows) if not self._lowers else min(ANCHORS, len(self.rows))
        return sorted({round(k * last / max(count - 1, 1)) for k in range(count)})

    def _left(self) -> float | None:
        """Seconds that are left of all."""
        return None if self.until is None else self.until - counted_now()

    def _methods(self, row: Row) -> Iterator[tuple[str, bool]]:
        """The family's default methods that suit the row, and whether each is a reference that libraries run."""
        for name in defaults_for(self.family, row.instance):
            published, named = name in self.family.today, self.question.methods
            tried = published or (name in named if named else name not in LEFT_OUT)
            if tried and self.family.methods[name].kind != "bound":
                yield name, published

    def _references(self, row: Row, anchor: bool, names: list[str]) -> None:
        """Run references, and lower what came out, the quickest first: of a plan the slowest may be left out."""
        values: dict[str, float] = {}
        names = names if self._lowers else not_slower(self.family, row, names)
        for k, name in enumerate(names):
            self.runs = len(names) - k
            record = self._record(row, name, {})
            if record is not None and record.value is not None:
                values[name] = record.value
        for name in sorted(values, key=lambda name: values[name]):
            if not anchor and self.question.costs is not None and self._is_slow_around(row, name):
                row.untried[name] = SLOW_AROUND
                continue
            self._try(row, name, {}, True, wide=anchor)
            self._smaller(row, name, True)

    def _is_slow_around(self, row: Row, name: str) -> bool:
        """Whether a reference is not among the :data:`QUICKEST` at any of the anchors beside the row."""
        k, anchors = self.rows.index(row), self._anchors()
        near = (self.rows[max(a for a in anchors if a < k)], self.rows[min(a for a in anchors if a > k)])
        return all(name not in sorted(one.exported, key=lambda other: one.exported[other])[:QUICKEST] for one in near)

    def _ours(self, row: Row, names: list[str]) -> None:
        wanted = [(name, options) for name in names for options in self._variants(name)]
        for k, (name, options) in enumerate(wanted):
            if self._is_near_bound(row):
                row.untried.update(dict.fromkeys(names[names.index(name) :], NEAR_BOUND))
                return
            self.runs = len(wanted) - k
            self._try(row, name, options, False)
            if not options:
                self._smaller(row, name, False)
                self._balanced(row, name)

    def _longer(self, row: Row, names: list[str]) -> None:
        """Run once more what the clock cut, if much more time is left for it."""
        name = self._leading(row, names)
        before = self.records[row.instance.sha256, name, ()]
        limit = min(LONGER_S, self.share.seconds())
        if limit < MUCH * before["options"]["time_limit_s"]:
            return
        del self.records[row.instance.sha256, name, ()]
        self.most_s = LONGER_S
        if self.family.methods[name].kind == "bound":
            self._bound(row, names)
        else:
            self._try(row, name, {}, name in self.family.today)
        self.most_s = RUN_S

    def _is_cut(self, row: Row, names: list[str]) -> bool:
        """Whether the clock cut what leads and more may come of it."""
        if self.until is None or self._lowers or self._is_near_bound(row):
            return False
        before = self.records.get((row.instance.sha256, self._leading(row, names), ()))
        return before is not None and before["stopped_by"] == "clock"

    def _leading(self, row: Row, names: list[str]) -> str:
        """The bound if that is asked for, the method of the best schedule, or the first of ours where there is none."""
        asked = row.best is None or names == self._bounds(row)
        return names[0] if names and asked else row.scheduled_by.partition(" ")[0]

    def _variants(self, name: str) -> tuple[Mapping[str, int], ...]:
        """The options that a method runs with: of what no executor runs, its own choice alone."""
        return ({},) if self.question.form == SCHEDULED else VARIANTS.get(name, ({},))

    def _is_near_bound(self, row: Row) -> bool:
        """Whether no other schedule can be noticeably quicker."""
        robust = self.question.variation is not None
        return (
            not robust
            and row.best is not None
            and row.bound is not None
            and row.best.seconds * (1 - ENOUGH) <= row.bound
        )

    def _smaller(self, row: Row, name: str, reference: bool) -> None:
        """Where a schedule is too large for the executor, the same of fewer transfers: in XML until one fits as it is,
        as plans all, for fewer moves may be quicker there. What fits and is quick is tried for a loop too."""
        found = [one for one in row.schedules if (one.name, one.options) == (name, ())]
        if not found or all(one.name != FEW for one in self.family.methods[name].parameters):
            return
        planned = self.question.form == "mscclpp"
        for each in self._fewer(row, name, found[-1].seconds, reference):
            options = {FEW: each * row.ranks}
            if found[-1].transfers <= each * row.ranks:  # it is the same schedule
                continue
            self._try(row, name, options, reference, wide=False)
            if not planned and each > LOOPED and title_of(name, options) not in row.rounded:
                self._try(row, name, {FEW: LOOPED * row.ranks}, reference, wide=False)
                break

    def _balanced(self, row: Row, name: str) -> None:
        """The same of few transfers, planned with what the executor leaves of the links within boxes."""
        costs, known = self.question.costs, {one.name for one in self.family.methods[name].parameters}
        if costs is None or costs.inner_percent == 100 or not {FEW, INNER} <= known:
            return
        self._try(row, name, {FEW: LOOPED * row.ranks, INNER: costs.inner_percent}, False, wide=False)

    def _fewer(self, row: Row, name: str, seconds: float, reference: bool) -> tuple[int, ...]:
        """The numbers of transfers a rank to try of a method whose schedule takes so many seconds."""
        large, planned = name in row.rounded, self.question.form == "mscclpp"
        if self.question.costs is not None and not large:  # steps cost something
            return FEW_A_RANK if not self._is_hopeless(row, seconds, reference) else ()
        if large:
            return PLANNED_A_RANK if planned else (*TRANSFERS_A_RANK, LOOPED)
        if not planned:
            return (LOOPED,) if name in row.refused else ()
        return () if self._is_hopeless(row, seconds, reference) else (LOOPED,)

    def _is_hopeless(self, row: Row, seconds: float, reference: bool) -> bool:
        """Whether a schedule that takes so long is not worth being lowered; the tables have references in XML all."""
        ideal = self.question.costs is None
        if row.best is None or not self._lowers or (reference and ideal and self.question.form != "mscclpp"):
            return False
        return seconds > row.best.seconds * (SLOWEST if reference else HOPELESS)

    def _bounds(self, row: Row) -> list[str]:
        """The family's first bound that suits the row, if there is one."""
        suited = defaults_for(self.family, row.instance)
        return [name for name in suited if self.family.methods[name].kind == "bound"][:1]

    def _bound(self, row: Row, names: list[str]) -> None:
        for name in names:
            record = self._record(row, name, {})
            if record is not None and record.bound is not None:
                row.bound = max(record.bound, row.bound or 0.0)

    def _try(self, row: Row, name: str, options: Mapping[str, int], reference: bool, wide: bool = True) -> None:
        """Run a method, lower its schedule, and offer what comes out."""
        record = self._record(row, name, options)
        title = title_of(name, options)
        if record is None or record.value is None or not record["verified"]["ok"]:
            return
        row.bus_factor = row.bus_factor or bus_factor(record)
        count = int(record["verified"]["facts"].get("transfers", 0))
        if row.has(name, count, record.value):
            return
        row.schedules.append(Scheduled(count, record.value, name, tuple(options.items())))
        if row.scheduled is None or record.value < row.scheduled:
            row.scheduled, row.scheduled_by = record.value, title
        if count > LOOPED * row.ranks and self._is_hopeless(row, record.value, reference):
            return  # of fewer moves a loop may make it quick
        if self._lowers and count > most_moves(self.question.form, row.ranks):
            row.refused[title] = refusal(self.question.form, count, row.ranks)
            row.rounded.add(title)
            return
        try:
            if self.question.form == SCHEDULED:
                row.offer(Candidate(title, record.value, None, record), reference)
            elif not self._lowers:
                seconds = in_form(whole(record), self.question.form).seconds
                row.offer(Candidate(title, seconds, None, record), reference)
            else:
                self._lower(row, whole(record), title, reference, wide)
        except InputError as error:
            row.refused[title] = str(error).splitlines()[0]

    def _lower(self, row: Row, record: Record, title: str, reference: bool, wide: bool) -> None:
        transfers = transfers_of(record)
        if len(transfers.piece) > most_moves(self.question.form, row.ranks):
            row.refused[title] = refusal(self.question.form, len(transfers.piece), row.ranks)
            row.rounded.add(title)
            return
        most = math.inf if row.best is None else row.best.seconds * (SLOWEST if reference else HOPELESS)

        def worth(moves: Transfers) -> bool:
            """Whether moves of rounded pieces may still be as quick as the best plan."""
            with suppress(InputError):  # no bytes are left of some
                return in_seconds(row.instance, lambda _: moves) <= most
            return True

        asked = self.question
        lowered = Lowered(transfers, asked.form, worth=worth, evenly=not asked.any_count, costs=asked.costs,
                          instance=row.instance)  # fmt: skip
        known = self.spreads.get(title)
        least = {1} if self.question.form != "mscclpp" else set()
        tried = lowered.programs() if wide or not known else lowered.programs(sorted(known | least))
        made = (one for one in tried if one.plan is None or not unknown_to(self.question.version, one.plan))
        best = self._offered(
            row, (Candidate(title, lowered.seconds(one, row.instance), one, record) for one in made), reference
        )
        if lowered.refused:
            row.refused[title] = lowered.refused
        if not lowered.whole:
            row.rounded.add(title)
        if lowered.without:
            row.without[title] = lowered.without
        if best is not None and best.program is not None:
            self.spreads.setdefault(title, set()).add(best.program.spread)

    def _offered(self, row: Row, made: Iterable[Candidate], reference: bool) -> Candidate | None:
        """Offer the quickest and keep it alone, since a plan is hundreds of thousands of objects; all, where another
        may have the least regret. The quickest, None where there is none."""
        found: dict[bool, Candidate] = {}  # by whether it serves all even sizes
        robust = self.question.variation is not None
        with nullcontext() if self.until is None else stopping(self._left_or_none, Clock()):
            for one in made:
                if robust:
                    row.offer(one, reference)
                kind = row.serves(one)
                if kind not in found or one.seconds < found[kind].seconds:
                    found[kind] = one
        for one in () if robust else found.values():
            row.offer(one, reference)
        return min(found.values(), key=lambda one: one.seconds, default=None)

    def _left_or_none(self) -> float | None:
        left = self._left()
        return None if left is None else max(0.0, left)

    def _record(self, row: Row, name: str, options: Mapping[str, int]) -> Record | None:
        """The record of a run, made now or taken over; None where no time is left for it."""
        key = row.instance.sha256, name, tuple(options.items())
        if key not in self.records:
            limit = min(self.most_s, self.share.seconds(self.runs))
            found = taken_over(self.question, row.instance, name, options, limit)
            if found is None and limit <= 0:
                return None
            found = found or recorded(self.question, row.instance, name, options, limit)
            self.records[key] = small(found) if self._is_only_timed(found) else found
            if not options:
                row.ran(name, found)
        return self.records[key]

    def _is_only_timed(self, record: Record) -> bool:
        """Whether a record's schedule is not lowered, so that nobody needs it in memory."""
        if not self._lowers:
            return True
        most = most_moves(self.question.form, self.rows[0].ranks)
        return int(record["verified"]["facts"].get("transfers", 0)) > most

    def _carry(self, anchors: list[int]) -> None:
        """Try the good programs of each anchor at the sizes on both sides of it, as far as the next anchors."""
        offered = {k: self.rows[k].good() for k in anchors}
        for i, k in enumerate(anchors):
            low = anchors[i - 1] if i else 0
            high = anchors[i + 1] if i + 1 < len(anchors) else len(self.rows) - 1
            for j in range(low, high + 1):
                for one in offered[k] if j != k else ():
                    self._carried(self.rows[j], one)
        for row in self.rows:
            self._said(row, "tuned")

    def _carried(self, row: Row, one: Candidate) -> None:
        assert one.program is not None
        shares = 1 if parts_of(row.collective, 2) == 1 else max(row.ranks, 1)
        for program in one.program.by_protocol(row.instance_bytes // shares):
            with suppress(InputError):  # its chunks would have no bytes
                reference = one.method.split()[0] in self.family.today
                row.offer(Candidate(one.method, program.seconds(row.instance), program), reference)

    def _again(self, anchors: list[int]) -> None:
        """Run at its own size what won by a program of another size."""
        for k, row in enumerate(self.rows):
            if k in anchors or row.best is None or row.best.record is not None:
                continue
            name, *options = row.best.method.split()
            given = {key: int(value) for key, _, value in (word.partition("=") for word in options)}
            self._try(row, name, given, name in self.family.today)

    def _said(self, row: Row, word: str = "") -> None:
        if row.best is not None and (word or row.best is not self._told.get(row.size)):
            self._told[row.size] = row.best
            self.say(f"{row.instance.name}: {row.best.seconds * 1e6:.6g} us by {row.best.method} {word}".rstrip())
