"""``synth run``: a schedule run by real processes with real data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from synth.cli import complete
from synth.cli.common import EXIT_FAILED, bad_option, checked
from synth.cli.options import grouped
from synth.cli.output import console, errors, table

if TYPE_CHECKING:
    from synth.ranks.outcome import Outcome
    from synth.ranks.report import Report
    from synth.ranks.source import Task


@dataclass(frozen=True)
class Running:
    """How a schedule is run."""

    backend: Annotated[
        str,
        Option(
            "--with",
            help="processes: on this machine, by shared memory; mpi: under mpirun or srun, by mpi4py.",
            autocompletion=complete.backends,
        ),
    ] = "processes"
    ranks: Annotated[int | None, Option(min=1, help="Processes, at least the schedule's ranks. Default: those.")] = None
    size: Annotated[
        str | None,
        Option(
            "--bytes",
            help="At most so many bytes of the collective: pieces are scaled down, to 8 bytes each at least. "
            "Default: 64MiB, of XML and plans 4MiB.",
        ),
    ] = None
    repeat: Annotated[int, Option(min=1, max=10_000, help="Runs, each on new buffers; the median counts.")] = 5
    seed: Annotated[int, Option(min=0, max=2**31, help="Seed of the data.")] = 0
    real: Annotated[
        bool,
        Option(
            "--float",
            help="Floats in place of integers: sums may be off by 2 ranks^2 2^-53, all else must agree in every bit.",
        ),
    ] = False
    patience: Annotated[str, Option(help="Ranks that wait while none has gone on for so long are stuck: 10s, 2m.")] = (
        "10s"
    )


@grouped
def run(
    path: Path = typer.Argument(
        ..., metavar="FILE", help="A record, a table of `synth export -f csv`, MSCCL XML, a plan of MSCCL++."
    ),
    collective: str = typer.Option(
        None,
        "--collective",
        help="What a table does, or an algorithm whatever its file says.",
        autocompletion=complete.collectives,
    ),
    root: int = typer.Option(None, "--root", min=0, help="The root of a table's collective, if it has one."),
    in_place: bool = typer.Option(
        None, "--in-place/--out-of-place", help="One buffer for input and output, or two. Default: as the file is for."
    ),
    running: Running = Running(),
    as_json: bool = typer.Option(False, "--json", help="One JSON text on standard output, times in seconds."),
) -> None:
    """Run a schedule: every rank a process, real data in its buffers, messages in the schedule's order (XML and plans:
    thread blocks side by side, in the file's buffers). Compares every
    rank's final buffer with what the collective promises, names who waits for whom where ranks wait for each other, and
    shows the time beside the model's. Exit code 0 only if all is correct."""
    from synth.ranks.report import BACKENDS
    from synth.ranks.source import Sizes, Stated, read
    from synth.text.amounts import size

    if running.backend not in BACKENDS:
        raise bad_option("--with", f"must be one of {', '.join(BACKENDS)}", running.backend)
    how = _Given(running)
    limit = None if running.size is None else checked("--bytes", size, running.size)
    stated = Stated(collective, root, in_place)
    report = (_by_processes if running.backend == "processes" else _by_mpi)(
        lambda: read(path, stated, Sizes(limit)), how
    )
    if report is None:  # a process of MPI that is not the first
        return
    _print(report, as_json)
    if not report.correct:
        raise typer.Exit(EXIT_FAILED)


class _Given:
    """The options as the ranks take them. Raises :class:`InputError` in words."""

    def __init__(self, running: Running) -> None:
        from synth.text.amounts import wall_time

        self.seed, self.real, self.repeat, self.ranks = running.seed, running.real, running.repeat, running.ranks
        self.patience_s = checked("--patience", wall_time, running.patience)


def _by_processes(read: Callable[[], Task], given: _Given) -> Report:
    from synth.ranks.crew import Crew
    from synth.ranks.launcher import Job

    task = read()
    ranks = task.program.ranks
    if given.ranks is not None and given.ranks < ranks:
        raise bad_option("--ranks", f"the schedule has {ranks} ranks, a process each", str(given.ranks))
    with Crew() as crew:
        outcome = crew.run(Job(task.program, given.seed, given.real, given.repeat, given.patience_s))
    return _report(task, "processes", outcome, given)


def _by_mpi(read: Callable[[], Task], given: _Given) -> Report | None:
    from synth.ranks import mpi

    if given.ranks is not None:
        raise bad_option("--ranks", "is for processes; mpirun and srun say it themselves", str(given.ranks))
    done = mpi.run(read, given)
    return None if done is None else _report(done[0], "mpi", done[1], given)


def _report(task: Task, by: str, outcome: Outcome, given: _Given) -> Report:
    from synth.ranks.data import Data
    from synth.ranks.report import Report
    from synth.ranks.words import faults

    data = Data(given.seed, task.program.ranks, given.real)
    return Report(task, by, outcome, faults(task.program, outcome, task.names, data))


def _print(report: Report, as_json: bool) -> None:
    if as_json:
        print(json.dumps(report.as_json()))
        return
    for fault in report.faults:
        console.print(fault)
    row = report.row()
    console.print(table(*row, rows=[list(row.values())], right=("ranks", "transfers", "moved")))
    if note := report.note():
        errors.print(note)
