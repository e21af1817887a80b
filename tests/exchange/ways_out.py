"""Whatever leaves a schedule is judged here by what is no part of the writers: the readers and their checks, the tests'
own interpreters, and ranks that move real data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np
from exchange import goal_reader, plan_runner
from exchange.given_parts import right_as_plan, right_in_xml
from exchange.possession import Run
from exchange.test_goal import arrives

from synth.errors import InputError
from synth.exchange import chakra, msccl_xml, transfers_csv
from synth.exchange.file_check import check_file
from synth.exchange.formats import FORMATS
from synth.exchange.imported_algorithm import run as imported
from synth.exchange.lowering import Wish
from synth.exchange.record_export import write_schedule
from synth.exchange.transfers import Transfers
from synth.instance import Instance
from synth.ranks.crew import Crew
from synth.ranks.data import Data
from synth.ranks.from_transfers import program_of
from synth.ranks.launcher import Job
from synth.ranks.source import Sizes, Stated, Task
from synth.ranks.source import read as read_task
from synth.ranks.words import TransferNames, faults

WAYS = ("azure", "msccl", "mscclpp", "chakra", "goal", "csv")
FEW = 400  # moves up to which plain Python replays an algorithm or a plan
RUN_BYTES, SCALE = 2**14, 1e-6  # of the collective, at most; words for 8 bytes


class Refused(Exception):
    """The writer says in words why it cannot say the schedule."""


def leaves(way: str, t: Transfers, instance: Instance | None, folder: Path, chance: Random) -> Path:
    """Export the moves and read them back: the file. Raises :class:`Refused`; whatever is wrong is another error."""
    form = FORMATS[{"azure": "msccl-xml", "msccl": "msccl-xml"}.get(way, way)]
    executor = way if way in ("azure", "msccl", "mscclpp") else None
    wish = _wish(chance, form.of) if chance.random() < 0.6 else Wish()
    path = folder / f"{way}{form.suffix}"
    try:
        write_schedule(t, form, path, executor, wish)
    except InputError as error:
        raise Refused(str(error)) from None
    _CHECKS[form.of if way != "goal" else way](way, t, path)
    if executor is not None and instance is not None:
        _imports(path, instance)
    return path


def _wish(chance: Random, of: str) -> Wish:
    """Some of what can be asked of an export."""
    wish = Wish(chance.random() < 0.4, chance.choice([None, None, 1, 6]), instances=chance.choice([1, 1, 2]))
    if of == "plan":
        return wish
    if of != "algorithm":
        return Wish()
    flags = [chance.random() < 0.3 for _ in range(2)]
    return Wish(wish.in_place, wish.chunks, chance.choice([1, 2]), wish.instances, *flags)


def _algorithm(way: str, t: Transfers, path: Path) -> None:
    checked = check_file(path, executor=way)
    assert checked.faults == ()
    if len(t.piece) <= FEW and t.demand is not None:
        right_in_xml(t, path, 0)
    elif len(t.piece) <= FEW:
        Run(msccl_xml.read(path).algorithm, Random(0)).run()


def _plan(way: str, t: Transfers, path: Path) -> None:
    assert check_file(path).faults == ()
    if len(t.piece) <= FEW and t.demand is not None:
        right_as_plan(t, path, 0)
    elif len(t.piece) <= FEW:
        assert plan_runner.outcome(json.loads(path.read_text()), t.collective, 0, t.root or 0)


def _traces(way: str, t: Transfers, path: Path) -> None:
    trace = chakra.read(path.with_suffix(""))
    assert chakra.faults(trace) == []
    assert _moves(chakra.transfers(trace)) == _moves(t)


def _table(way: str, t: Transfers, path: Path) -> None:
    if len(t.piece):
        assert _moves(transfers_csv.read(path, t.collective, t.root).transfers) == _moves(t)


def _goal(way: str, t: Transfers, path: Path) -> None:
    arrives(goal_reader.read(path.read_text()), t)


_CHECKS: dict[str, Callable[[str, Transfers, Path], None]] = {
    "algorithm": _algorithm, "plan": _plan, "traces": _traces, "transfers": _table, "goal": _goal,
}  # fmt: skip


def _moves(t: Transfers) -> list[tuple[int, ...]]:
    columns = t.piece_part[t.piece], t.piece_offset[t.piece], t.piece_bytes[t.piece], t.src, t.dst, t.adds
    return sorted(map(tuple, np.stack(columns, axis=1).astype(int).tolist()))


def _imports(path: Path, instance: Instance) -> None:
    """Method ``imported`` makes a schedule of it that the check takes, or says why not."""
    try:
        record = imported(path, instance)
    except InputError:  # told in words
        return
    assert record.value is not None or (record["termination"] == "unsupported" and record["message"])


def wrong_data(t: Transfers, crew: Crew, seed: int) -> list[str]:
    """What is wrong after real ranks have made the moves, in words."""
    return list(_ran(Task(program_of(t, SCALE), TransferNames(t), 0, 0), crew, seed))


def wrong_data_of(path: Path, t: Transfers, crew: Crew, seed: int) -> list[str]:
    """The same of a file that has left."""
    stated = Stated(t.collective, t.root) if path.suffix == ".csv" else Stated(None, None)
    try:
        task = read_task(path, stated, Sizes(RUN_BYTES))
    except InputError as error:
        if all(fault.path == "--bytes" for fault in error.faults):
            return []  # too small for its pieces
        raise
    return list(_ran(task, crew, seed))


def _ran(task: Task, crew: Crew, seed: int) -> Iterator[str]:
    program = task.program
    yield from faults(program, crew.run(Job(program, seed, patience_s=5)), task.names, Data(seed, program.ranks))
