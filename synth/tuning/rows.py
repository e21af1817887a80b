"""Rows of ``synth tune``: one size of one collective, and the candidates for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from synth.exchange.block_costs import CostModel
from synth.exchange.forms import Program
from synth.exchange.record_export import transfers_of
from synth.exchange.selection.nccl_reach import Reach
from synth.exchange.transfers import parts_of
from synth.instance import Instance
from synth.records.record import Record
from synth.text.quantities import shown
from synth.tuning.intervals import Within, has_intervals, within
from synth.tuning.robustness import Moves, Variation, as_moves, regrets
from synth.tuning.runs import whole

MOST_COMPARED = 8  # candidates at the corners of a fitted machine's intervals, the quickest
MOST_DRAWN = 12  # candidates on machines drawn, the quickest
CARRIED = 1.3  # times the best of its size: programs up to that are tried at the sizes between two anchors


@dataclass(frozen=True)
class Candidate:
    """A schedule's program (None as scheduled) at one size: by whom, how, and its time in seconds in the form."""

    method: str
    seconds: float
    program: Program | None
    record: Record | None = None

    @property
    def moves(self) -> Moves:
        """What runs, on any machine."""
        if self.program is not None:
            return self.program.moves
        assert self.record is not None
        return as_moves(transfers_of(whole(self.record)))


@dataclass(frozen=True, order=True)
class Scheduled:
    """A schedule that was found: its transfers, its seconds, by whom."""

    transfers: int
    seconds: float
    name: str
    options: tuple[tuple[str, int], ...]


@dataclass
class Row:
    """One size of one collective: the best candidate in the form, the best schedule (``scheduled`` and by whom), the
    bound, and beside it the best of every reference in the form (``exported``: whatever counts it serves);
    ``refused``: limits of the executor by method;
    ``without``: what the form leaves to ranks that switches do in the schedule, by method; ``regret``: the most that
    the best loses on machines drawn, to the other candidates there; ``within``: its time and its rival within the
    intervals of a fitted machine; ``reach``: what NCCL or RCCL should reach. ``known``: methods that do the collective
    on the machine; ``untried``: those of them that did not run or found no schedule in time, and why. ``uneven``: the
    best of the candidates that do not serve all sizes of whole 8 KiB a rank, the best only where no others are."""

    instance: Instance
    collective: str
    size: int
    best: Candidate | None = None
    uneven: Candidate | None = None
    scheduled: float | None = None
    scheduled_by: str = ""
    bound: float | None = None
    bus_factor: float | None = None
    references: dict[str, float] = field(default_factory=dict)
    exported: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    rounded: set[str] = field(default_factory=set)  # methods of which no program came without rounding
    without: dict[str, str] = field(default_factory=dict)
    offered: list[Candidate] = field(default_factory=list)
    schedules: list[Scheduled] = field(default_factory=list)
    regret: float | None = None
    within: Within | None = None
    reach: Reach | None = None
    library: str = "NCCL"  # of which ``reach`` is
    known: frozenset[str] = frozenset()
    untried: dict[str, str] = field(default_factory=dict)
    limit: str = ""  # of the executor, that costs more than is tolerated
    any_count: bool = False  # take what serves only some counts, if it is quicker

    @property
    def instance_bytes(self) -> int:
        """Bytes of the instance, which may be a size rounded down to what divides among the ranks."""
        return int(getattr(self.instance, "bytes", self.size))

    @property
    def ranks(self) -> int:
        """Number of ranks of the process group."""
        members: Any = getattr(self.instance, "members", ())
        return len(members)

    @property
    def why_none(self) -> str:
        """Why there is no schedule."""
        return "; ".join(f"{method}: {words}" for method, words in (*self.refused.items(), *self.untried.items()))

    def ran(self, name: str, record: Record) -> None:
        """A method has run: what is left to be said is that its time was too short."""
        self.untried.pop(name, None)
        if record.empty and record["stopped_by"] == "clock":
            self.untried[name] = "nothing found in the time"
        elif record["termination"] == "unsupported":
            self.known -= {name}

    def beside(self, name: str) -> str:
        """Why there is no time of a reference, in a word; empty where it does not do the collective on the machine."""
        if name not in self.known:
            return ""
        if name in self.untried:
            return "not tried" if self.untried[name].startswith("not tried") else "not in time"
        return "refused" if name in self.refused else "not lowered"

    @property
    def left(self) -> bool:
        """Whether the library itself should be quicker than the file, so that none is written for this size."""
        best, reach = self.best, self.reach
        return best is not None and best.program is not None and reach is not None and reach.seconds < best.seconds

    @property
    def why_left(self) -> str:
        """That it is left to the library, in words; empty where it is not."""
        if not self.left:
            return ""
        assert self.best is not None
        assert self.reach is not None
        own, file = shown(self.reach.seconds, "s"), shown(self.best.seconds, "s")
        return f"{self.library}'s own ({self.reach.algorithm}) {own}; a file would take {file}"

    @property
    def forgone(self) -> Candidate | None:
        """What is quicker than the best and does not serve all even sizes, None where nothing is."""
        assert self.best is not None
        return self.uneven if self.uneven is not None and self.uneven.seconds < self.best.seconds else None

    def serves(self, one: Candidate) -> bool:
        """Whether a candidate serves this size and all of whole 8 KiB a rank, if that is asked for."""
        part = self.instance_bytes // (1 if parts_of(self.collective, 2) == 1 else self.ranks)
        return one.program is None or self.any_count or one.program.even(part)

    def offer(self, one: Candidate, reference: bool) -> None:
        """A candidate. What takes more than :data:`CARRIED` times the best is not kept: programs are large."""
        name = one.method.split()[0]  # without its parameters
        if reference:
            self.exported[name] = min(one.seconds, self.exported.get(name, one.seconds))
        if not self.serves(one):
            if self.uneven is None or one.seconds < self.uneven.seconds:
                self.uneven = one
            return
        if self.best is None or one.seconds < self.best.seconds:
            self.best = one
        most = self.best.seconds * CARRIED
        self.offered = [other for other in (*self.offered, one) if other.seconds <= most]
        if reference:
            self.references[name] = min(one.seconds, self.references.get(name, one.seconds))

    def has(self, name: str, transfers: int, seconds: float) -> bool:
        """Whether a method has found a schedule of so many transfers and seconds before, with other parameters."""
        return any((one.name, one.transfers, one.seconds) == (name, transfers, seconds) for one in self.schedules)

    def good(self) -> list[Candidate]:
        """The quickest candidate of every method that takes at most :data:`CARRIED` times the best."""
        best = self.best.seconds if self.best is not None else 0.0
        by_title: dict[str, Candidate] = {}
        for one in sorted(self.offered, key=lambda one: one.seconds):
            if one.seconds <= best * CARRIED:
                by_title.setdefault(one.method, one)
        return list(by_title.values())

    def reckon_within(self) -> None:
        """Time the best and its nearest rivals within the intervals of the machine, where it has any."""
        if self.best is None or not has_intervals(self.instance):  # nothing is read again for those without
            return
        near = sorted((one for one in self.offered if one is not self.best), key=lambda one: one.seconds)
        names = {"": self.best.moves} | {one.method: one.moves for one in near[: MOST_COMPARED - 1][::-1]}
        costs = None if self.best.program is None else self.best.program.costs
        self.within = within(names, "", self.instance, costs)


def choose_robust(row: Row, variation: Variation, costs: CostModel | None) -> None:
    """Make the candidate of the least worst regret the row's best, of those that are no slower on the machine itself
    than the best reference (or than the best candidate times :data:`CARRIED`)."""
    assert row.best is not None
    most = min([row.best.seconds * CARRIED, *row.references.values()])
    fit = sorted((one for one in row.offered if one.seconds <= most), key=lambda one: one.seconds)[:MOST_DRAWN]
    by_name = {str(k): one for k, one in enumerate(fit)}
    found = regrets({name: one.moves for name, one in by_name.items()}, row.instance, variation, (), costs)
    row.best = by_name[found.robust]
    row.regret = float(found.regret[found.robust].max())


def bus_factor(record: Record) -> float | None:
    """busbw over algbw of nccl-tests, from the check's facts."""
    facts: Any = record["verified"]["facts"]
    alg, bus = facts.get("algbw_bytes_per_s"), facts.get("busbw_bytes_per_s")
    return float(bus) / float(alg) if alg and bus else None
