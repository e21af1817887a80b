"""Runs that make a library better within a time budget, the widest gaps first; killed at any moment, they go on.

An instance's turn comes by its gap, halved for every turn that it has had; what has no value or no bound counts as a
gap of 1, what is closed by a solver's word as 0. In turn ``t`` run the family's default methods, ``composed`` and
whatever made the best value and bound, with 2^t times the first time limit and seed + t. A line for every run that
ended goes into ``improved/tried.csv`` below the library's folder, so that whoever starts again goes on behind it. A
record that is better lies below ``improved/values`` or ``improved/bounds`` the moment its check has ended;
:func:`collect` packs these and makes the library again. A shard has its instances by their hashes, and a list
``tried-I-of-N.csv``; every list counts for all.
"""

from __future__ import annotations

import csv
import hashlib
import heapq
import io
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from synth import api
from synth.errors import InputError
from synth.execution.pool import run_all
from synth.execution.runs import Request, Run, expand, instance_file
from synth.family import Family, defaults_for, get_family
from synth.instance import read as read_instance
from synth.library import best_known
from synth.library.best_known import Row
from synth.library.compositions import METHOD as COMPOSED
from synth.options import as_text
from synth.records import lock, packed
from synth.records import record as records
from synth.records.contradictions import standing
from synth.records.folder import pack
from synth.records.optimality import gap, meets
from synth.records.record import Record

FOLDER, TRIED = "improved", "tried"
VALUES, BOUNDS = "values", "bounds"
MOST_TURNS = 10  # of an instance
LEAST_S = 0.5  # of the budget: with less no run starts
COLLECT_S = 600.0  # how long another process's packing is waited for


class Tried(NamedTuple):
    """A line of the list: the first five cells say which run, the others how it ended."""

    family: str
    instance: str
    sha256: str
    run: str
    asked: str
    termination: str
    value: str
    bound: str
    seconds: str
    better: str


@dataclass(frozen=True)
class Shard:
    """Which part of the library is tried: of ``count`` equal ones the ``number``-th, from 1."""

    number: int = 1
    count: int = 1

    def has(self, row: Row) -> bool:
        """Whether the row's instance is in this part."""
        return int(hashlib.sha256(row.sha256.encode()).hexdigest()[:8], 16) % self.count == self.number - 1

    @property
    def file(self) -> str:
        """The name of its list."""
        return f"{TRIED}.csv" if self.count == 1 else f"{TRIED}-{self.number}-of-{self.count}.csv"


def read_shard(text: str) -> Shard:
    """``3/16`` as the third of sixteen. Raises ``ValueError`` in words."""
    number, slash, count = text.partition("/")
    if not (slash and all(part.isascii() and part.isdigit() and len(part) < 7 for part in (number, count))):
        raise ValueError("must be I/N, such as 3/16")
    if not 1 <= int(number) <= int(count):
        raise ValueError("must be I/N with I from 1 to N")
    return Shard(int(number), int(count))


@dataclass(frozen=True)
class Plan:
    """What is asked: seconds in all (``budget_s``) and of a first run (``limit_s``), the seed, and the part."""

    budget_s: float
    limit_s: float = 60.0
    seed: int = 0
    shard: Shard = Shard()

    def asked(self, turn: int) -> str:
        """What tells the runs of a turn from those of others."""
        return f"{self.limit_s * 2**turn:g}s seed {self.seed + turn}"


class Step(NamedTuple):
    """A run that ended: the row before it, its record, what of it is better, and words where it is refused."""

    row: Row
    record: Record
    better: tuple[str, ...]
    refused: str = ""


def better(rows: Iterable[Row], library: Path, plan: Plan) -> Iterator[Step]:
    """Run what is open, or closed by a solver's word, until the budget is spent or nothing is left to try; a
    :class:`Step` for every run. Raises :class:`InputError` and ``OSError``; whatever ended before is kept."""
    started = time.monotonic()
    state = _Library(library, plan)
    queue = [(-gap_of(row), _tie(plan.seed, row), row, 0) for row in rows if not settled(row)]
    queue = [entry for entry in queue if plan.shard.has(entry[2]) and (entry[2].record or entry[2].bound_record)]
    heapq.heapify(queue)
    with tempfile.TemporaryDirectory(prefix="synth-library-") as scratch:
        while queue and plan.budget_s - (time.monotonic() - started) >= LEAST_S:
            _, tie, row, turn = heapq.heappop(queue)
            try:
                runs = state.untried(row, turn, Path(scratch))
            except InputError:  # its instance, or a method of its records, is not to be had here
                continue
            for run in runs:
                left = plan.budget_s - (time.monotonic() - started)
                if left < LEAST_S:
                    return
                step = state.step(row, run, turn, left)
                row = state.current(row, step)
                yield step
                if settled(row):
                    break
            if not settled(row) and turn + 1 < MOST_TURNS:
                heapq.heappush(queue, (-gap_of(row) / 2 ** (turn + 1), tie, row, turn + 1))


def settled(row: Row) -> bool:
    """Whether nothing can be better: value and bound meet, and the bound needs nobody's word."""
    return row.status == "closed" and row.grade == "certified"


def gap_of(row: Row) -> float:
    """The gap, 1 where value or bound is missing. Raises :class:`InputError`."""
    try:
        return float(row.gap) if row.gap else 1.0
    except ValueError:
        raise InputError(f"{row.instance}: gap must be a number, not {row.gap!r}") from None


def _tie(seed: int, row: Row) -> str:
    """The order of rows of one gap."""
    return hashlib.sha256(f"{seed} {row.sha256}".encode()).hexdigest()


@dataclass
class _Library:
    """The library while its runs go on."""

    file: Path
    plan: Plan
    tried: set[tuple[str, str, str]] = field(init=False)
    names: Counter[tuple[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        self.home = self.file.parent / FOLDER
        self.home.mkdir(exist_ok=True)
        self.list = self.home / self.plan.shard.file
        _cut(self.list)
        self.tried = {
            (one.sha256, one.run, one.asked) for path in self.home.glob(f"{TRIED}*.csv") for one in read_tried(path)
        }
        self.names = Counter((row.family, row.instance) for row in best_known.read(self.file))

    def untried(self, row: Row, turn: int, scratch: Path) -> list[Run]:
        """The runs of a turn that no list names. Raises :class:`InputError`."""
        place = self.file.parent / (row.record or row.bound_record)
        instance = read_instance(instance_file(place, scratch / row.sha256))
        family = get_family(row.family)
        library = {} if best_known.find(None) == self.file else {"library": str(self.file.resolve())}
        requests = [Request([name]) for name in defaults_for(family, instance)]
        requests += [Request([COMPOSED], parameters=library)] if COMPOSED in family.methods else []
        requests += self._makers(row, family)
        runs: dict[str, Run] = {}
        for one in requests:
            asked = replace(one, seeds=[self.plan.seed + turn], limits=[self.plan.limit_s * 2**turn])
            with suppress(InputError):  # of a record made where there are other solvers
                for run in expand([instance], asked, scratch / row.sha256).runs():
                    runs.setdefault(_label(run), run)
        return [run for name, run in runs.items() if (row.sha256, name, self.plan.asked(turn)) not in self.tried]

    def _makers(self, row: Row, family: Family) -> Iterator[Request]:
        """What made the best value and the best bound, by the parameters that the methods still have."""
        for address in dict.fromkeys(filter(None, (row.record, row.bound_record))):
            made = records.read(self.file.parent / address)
            if made["method"] in family.methods and made["method"] != COMPOSED:
                known = {one.name: one.default for one in family.methods[made["method"]].parameters}
                given = made["options"].get("method", {}).items()
                other = {key: as_text(value) for key, value in given if key in known and value != known[key]}
                yield Request([made["method"]], [made["solver"]] if made["solver"] else [], parameters=other)

    def step(self, row: Row, run: Run, turn: int, left: float) -> Step:
        """Do a run, keep its record where it is better, and note the run unless the budget cut it."""
        whole = self.plan.limit_s * 2**turn
        cut = replace(run, options=replace(run.options, time_limit_s=min(whole, left)))
        [(_, record, _)] = list(run_all([cut]))
        known = [records.read(self.file.parent / one) for one in (row.record, row.bound_record) if one]
        known = [one for one in known if one["instance_sha256"] == row.sha256]
        alarms = [pair for pair in standing([*known, record]).alarms if any(one is record for one in pair)]
        what = tuple(filter(None, (_value_better(record, row), _bound_better(record, row))))
        refused = "it contradicts the library" if alarms else ""
        if what and not refused:
            verdict = api.check(record, run.instance)
            refused = "; ".join(map(str, verdict.faults[:1]))
        what = () if refused else what
        for one in what:
            self._write(record, row, one, known[0])
        if left >= whole or record.data.get("stopped_by") is None:
            cells = (record["termination"], record.value, record.bound, f"{record.run_s:.3g}", " ".join(what))
            key = row.sha256, _label(run), self.plan.asked(turn)
            self._note(Tried(row.family, row.instance, *key, *("" if one is None else str(one) for one in cells)))
        return Step(row, record, what, refused)

    def current(self, row: Row, step: Step) -> Row:
        """The row as the step leaves it."""
        cells: dict[str, str] = {}
        if VALUES in step.better:
            cells["value"] = repr(step.record.value)
        if BOUNDS in step.better:
            cells |= {"bound": repr(step.record.bound), "grade": step.record.proof}
        row = replace(row, **cells)
        if not (cells and row.value and row.bound):
            return row
        left = gap(float(row.value), float(row.bound))
        return replace(row, gap="" if left is None else f"{left:.6g}", status="closed" if left == 0 else "open")

    def _write(self, record: Record, row: Row, what: str, before: Record) -> None:
        """Keep a record as the better value or bound; it names its instance as the one ``before`` does."""
        named = {key: before.data[key] for key in ("instance_file", "instance_text") if before.data.get(key)}
        data = {key: value for key, value in record.data.items() if key not in ("instance_file", "instance_text")}
        below = self.home / what
        if self.names[row.family, row.instance] > 1:
            below /= row.sha256[:8]
        place = records.record_path(
            below, row.family, row.instance, record["method"], record["solver"], record.question
        )
        records.write(replace(record, data={**data, **named}), place)

    def _note(self, line: Tried) -> None:
        """Add a line to the list, on the disk before anything else is done."""
        is_new = not self.list.is_file() or self.list.stat().st_size == 0
        text = best_known.as_csv(Tried._fields if is_new else line, [line] if is_new else [])
        with self.list.open("ab") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        self.tried.add((line.sha256, line.run, line.asked))


def _label(run: Run) -> str:
    """What names a run beside others of its instance: its record, and the parameters that are not at their defaults."""
    default = {one.name: one.default for one in run.method.parameters}
    given = {key: value for key, value in run.options.method.items() if value != default[key] and key != "library"}
    return " ".join([run.path.stem, *(f"{key}={as_text(value)}" for key, value in sorted(given.items()))])


def _value_better(record: Record, row: Row) -> str:
    value = record.value if record.ok and record.evidence == "replayed" else None
    known = float(row.value) if row.value else None
    return VALUES if value is not None and (known is None or (value < known and not meets(known, value))) else ""


def _bound_better(record: Record, row: Row) -> str:
    """Of bounds that are the same, one with a certificate is better than one without."""
    bound, known = record.bound if record.ok else None, float(row.bound) if row.bound else None
    if bound is None:
        return ""
    proven = record.grade == "certified" and row.grade != "certified"
    higher = known is None or (bound > known and not meets(bound, known))
    return BOUNDS if higher or (proven and known is not None and bound >= known) else ""


def _cut(path: Path) -> None:
    """Cut off the last line where a process was killed in the middle of it."""
    if path.is_file() and not (data := path.read_bytes()).endswith(b"\n"):
        os.truncate(path, data.rfind(b"\n") + 1)


def read_tried(path: Path) -> list[Tried]:
    """The lines of a list; one that another process is writing is left out. Raises :class:`InputError`."""
    text = path.read_bytes().decode(errors="replace")
    lines = list(csv.reader(io.StringIO(text[: text.rfind("\n") + 1])))
    if lines and (tuple(lines[0]) != Tried._fields or any(len(line) != len(lines[0]) for line in lines)):
        raise InputError(f"is no list of runs: each line must have {','.join(Tried._fields)}", str(path))
    return [Tried(*line) for line in lines[1:]]


def collect(folder: Path, make: Callable[[Path], None]) -> bool:
    """Pack what was found below ``folder`` and ``make`` its library again, one process at a time; whether there was
    anything. Raises :class:`InputError` and ``OSError``, among these :class:`synth.records.lock.LockedError` where
    another process collects for too long."""
    home = folder / FOLDER

    def loose() -> bool:
        return any(True for part in (VALUES, BOUNDS) for _ in (home / part).rglob("*.json"))

    def stale() -> bool:
        held, table = home / packed.NAME, folder / best_known.NAME
        return held.is_file() and held.stat().st_mtime_ns > table.stat().st_mtime_ns

    if not (loose() or stale()):
        return False
    with lock.held(home, "page", most_s=COLLECT_S):
        if loose():
            pack(home, own_page=True)
        if stale():
            make(folder)
    return True
