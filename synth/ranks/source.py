"""What is to be run, from a file of any kind that holds a schedule or an algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from synth.errors import Fault, InputError, UnsupportedError, one_of
from synth.exchange import msccl_xml, mscclpp, transfers_csv
from synth.exchange.file_kinds import is_plan
from synth.exchange.mscclpp.loops import has_loops
from synth.exchange.transfers import parts_of
from synth.ranks import from_algorithm, from_plan
from synth.ranks.from_algorithm import StepNames
from synth.ranks.from_transfers import pieces_of, program_of
from synth.ranks.program import WORD, Program
from synth.ranks.words import Names, TransferNames
from synth.records import packed
from synth.schedule.collective import NAMES, ROOTED
from synth.text.quantities import named, shown


@dataclass(frozen=True)
class Stated:
    """What a file does not say of itself and the command does: the ``collective`` and the ``root``; ``in_place``: with
    one buffer or two, where it is for calls of both kinds."""

    collective: str | None = None
    root: int | None = None
    in_place: bool | None = None

    def demand_known(self) -> None:
        """Raises :class:`InputError` for a collective that there is not, and for a root of one that has none."""
        known = (*NAMES, transfers_csv.DEMAND)
        if self.collective is not None and self.collective not in known:
            raise InputError([Fault("--collective", one_of(self.collective, known), self.collective, True)])
        if self.root is not None and self.collective is not None and self.collective not in ROOTED:
            raise InputError([Fault("--root", f"{self.collective} has no root", self.root, True)])


@dataclass(frozen=True)
class Task:
    """A program, the names of what is in it, and how long it takes by its model (``model_s`` seconds, None where it has
    no clock; ``model`` in words). ``whole``: bytes of the collective as the file has it, ``size``: as it is run."""

    program: Program
    names: Names
    whole: int
    size: int
    model_s: float | None = None
    model: str = ""


@dataclass(frozen=True)
class Sizes:
    """Bytes that a collective may have: ``asked`` for, else ``usual`` for what has a size of its own, and ``free`` for
    what has none."""

    asked: int | None = None
    usual: int = 64 * 2**20
    free: int = 4 * 2**20


def read(path: Path, stated: Stated, sizes: Sizes) -> Task:
    """The file's schedule as a task: pieces larger than ``sizes`` allow are scaled down alike, to a word each at least.
    Raises :class:`InputError`."""
    stated.demand_known()
    if path.suffix and not path.exists() and packed.holding(packed.plain(path)) is None:
        raise InputError("no such file", str(path))
    try:
        if path.suffix.lower() == ".csv":
            return _of_table(path, stated, sizes)
        if stated.collective == transfers_csv.DEMAND:
            raise InputError([Fault("--collective", "of demands there are tables and records", "demand", True)])
        if path.suffix.lower() == ".xml":
            return _of_xml(path, stated, sizes)
        if is_plan(path):
            return _of_plan(path, stated, sizes)
        return _of_record(path, stated, sizes)
    except InputError as error:
        if error.source is not None or any(fault.path.startswith("--") for fault in error.faults):
            raise
        raise InputError(error.faults, str(path)) from None


def _of_table(path: Path, stated: Stated, sizes: Sizes) -> Task:
    if stated.in_place is not None:
        raise InputError([Fault("--in-place", "has no meaning for a table")])
    if stated.collective is None:
        raise InputError("a table does not say of which collective it is: name it with --collective")
    transfers, pieces = transfers_csv.read(path, stated.collective, stated.root)
    return _of_transfers(TransferNames(transfers, pieces), sizes, float(transfers.end_s.max()))


def _of_xml(path: Path, stated: Stated, sizes: Sizes) -> Task:
    """An algorithm, which has no size of its own: as many whole words a chunk as fit, at least one."""
    file = msccl_xml.read(path, stated.collective)
    algorithm = replace(file.algorithm, in_place=_place(stated, file.modes))
    shares = algorithm.ranks if parts_of(algorithm.collective, 2) > 1 else 1
    chunks = shares * algorithm.chunks
    if sizes.asked is not None and sizes.asked < WORD * chunks:
        raise _too_few(sizes.asked, chunks, "chunks")
    words = max(1, (sizes.asked or sizes.free) // (WORD * chunks))
    program, step = from_algorithm.program_of(algorithm, words)
    program = _named(program, algorithm.in_place)
    return Task(program, StepNames(algorithm, step), words * WORD * chunks, words * WORD * chunks)


def _place(stated: Stated, modes: Sequence[bool]) -> bool:
    """Whether it is run with one buffer: as asked, else in the first way that the file is for. Raises
    :class:`InputError`."""
    if stated.in_place is None or stated.in_place in modes:
        return modes[0] if stated.in_place is None else stated.in_place
    asked, other = ("--in-place", "out of place") if stated.in_place else ("--out-of-place", "in place")
    raise InputError([Fault(asked, f"the file is for calls {other} alone")])


def _named(program: Program, in_place: bool) -> Program:
    return replace(program, name=f"{program.name.removesuffix(', in place')}{', in place' if in_place else ''}")


def _of_plan(path: Path, stated: Stated, sizes: Sizes) -> Task:
    """A plan that its replay finds right: every thread block on its own in the plan's buffers, or with operations that
    are not run so, by the moves of the replay, one order of the operations that it allows."""
    plan = mscclpp.read(path)
    _place(stated, (plan.in_place,))
    try:
        found = mscclpp.replayed(plan, stated.collective, stated.root)
    except UnsupportedError as error:
        raise InputError(f"cannot be run, as it cannot be replayed: {error}") from None
    goal = found.replay.goal
    units = (
        goal.each
        * (from_plan.PASSES if has_loops(plan) else 1)
        * (len(plan.gpus) if parts_of(goal.collective, 2) > 1 else 1)
    )
    if sizes.asked is not None and sizes.asked < WORD * units:
        raise _too_few(sizes.asked, units, "chunks")
    words = max(1, (sizes.asked or sizes.free) // (WORD * units))
    try:
        program, names = from_plan.program_of(plan, goal.collective, goal.root, words)
        return Task(_named(program, plan.in_place), names, words * WORD * units, words * WORD * units)
    except UnsupportedError:
        t = mscclpp.raised_of(found).transfers
    whole = t.part_bytes * (1 if t.parts == 1 else t.ranks)
    scale = max(1, (sizes.asked or sizes.free) // whole)
    return _of_transfers(TransferNames(t.scaled(scale)), sizes, None)


def _of_record(path: Path, stated: Stated, sizes: Sizes) -> Task:
    from synth.exchange.record_export import moves_of
    from synth.records import record as records

    if (stated.collective, stated.root, stated.in_place) != (None, None, None):
        words = "--collective, --root and --in-place go with a table or an algorithm; a record says this itself"
        raise InputError(words)
    record = records.read(path)
    value, unit = record.value, record["objective"]["unit"]
    task = _of_transfers(TransferNames(moves_of(record)), sizes, value if unit == "s" else None)
    return task if unit == "s" or value is None else replace(task, model=named(value, unit))


def _too_few(asked: int, count: int, what: str) -> InputError:
    words = f"{asked:,} bytes are too few for {count:,} {what} of at least {WORD} bytes: {count * WORD:,}"
    return InputError([Fault("--bytes", words)])


def _of_transfers(names: TransferNames, sizes: Sizes, model_s: float | None) -> Task:
    t = names.transfers
    shares = t.parts if t.demand is not None else 1 if t.parts == 1 else t.ranks
    whole = int(t.sizes.sum()) * shares // t.parts
    pieces = max(1, len(pieces_of(t).part) * shares // t.parts)
    if sizes.asked is not None and sizes.asked < pieces * WORD:
        raise _too_few(sizes.asked, pieces, "pieces")
    scale = min(1.0, (sizes.asked or sizes.usual) / whole)
    model = "" if model_s is None else shown(model_s, "s")
    return Task(program_of(t, scale), names, whole, min(whole, round(whole * scale)), model_s, model)
