"""``synth solve``: run methods on instance files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synth.cli import common, complete
from synth.cli.common import checked
from synth.cli.options import Asked, Processes, Resuming, grouped
from synth.cli.output import command, console, errors
from synth.cli.run_table import print_contradictions, print_messages, print_tables, write_csv
from synth.text.quantities import shown

if TYPE_CHECKING:
    from synth.execution.runs import Run
    from synth.execution.settled import Settled
    from synth.records.record import Record


MANY = 20  # runs from which on it is said beforehand how long they can take


@dataclass(frozen=True)
class Shown:
    """What is printed of the runs."""

    every: Annotated[bool, typer.Option("--all", help="The table of all runs too, not only one row per instance.")] = (
        False
    )
    as_csv: Annotated[
        bool, typer.Option("--csv", help="The runs as CSV with exact numbers on standard output instead.")
    ] = False
    json_lines: Annotated[
        bool, typer.Option("--json", help="One record a line on standard output, nothing else there.")
    ] = False


@grouped
def solve(
    paths: list[Path] = typer.Argument(
        ...,
        metavar="INSTANCE…",
        help="Instance files, folders of them, or records, whose instances are solved.",
        autocompletion=complete.instances,
    ),
    asked: Asked = Asked(),
    results: Path = typer.Option(Path("results"), "--results", help="Folder for the records."),
    resuming: Resuming = Resuming(),
    processes: Processes = Processes(),
    grace: str = typer.Option(
        "60s", "--grace", help="From a run's time limit to its end by force, for model and check."
    ),
    how: Shown = Shown(),
) -> None:
    """Solve instance files; ends with one row per instance: best value, proven bound, gap = (value − bound) / value, by
    which method."""
    from synth.execution.pool import slots
    from synth.execution.runs import plan
    from synth.execution.settled import Settled
    from synth.options import read_duration

    memory_mb = processes.memory_mb
    grace_s = checked("--grace", read_duration, grace)
    resume, retry_failed = resuming.resume, resuming.retry_failed
    if how.as_csv and how.json_lines:
        raise common.bad_option("--csv", "goes without --json", "on")
    runs = plan(paths, asked.request(), results)
    common.demand_records("--results", (run for run in runs if not (resume and run.finished_record(retry_failed))))
    at_once = slots(processes.jobs, asked.threads)
    _announce(runs, at_once)
    settled = Settled() if asked.nothing_named else None
    done, reused = _run_all(runs, at_once, resuming, memory_mb, grace_s, how.json_lines, settled)
    contradictions = print_contradictions(done)
    if how.as_csv:
        write_csv(done, sys.stdout)
    elif not how.json_lines:
        print_tables(done, how.every)
        if reused:
            console.print(f"{reused} of {len(done)} runs were done before and skipped (--resume)")
        if settled is not None and settled.spared:
            names = ", ".join(dict.fromkeys(run.method.name for run in settled.spared))
            console.print(f"not run, for a schedule met the bound: {names}")
        if not asked.methods:
            _tell_not_run(runs)
        _tell_loose(done)
        _tell_intervals(done)
        _tell_where(done)
    print_messages(done)
    code = common.EXIT_FAILED if contradictions else exit_code(done)
    if code:
        raise typer.Exit(code)


def _run_all(
    runs: Sequence[Run],
    at_once: int,
    resuming: Resuming,
    memory_mb: float | None,
    grace_s: float,
    json_lines: bool,
    settled: Settled | None,
) -> tuple[list[tuple[Run, Record]], int]:
    """Run them and show how far they are, with ``json_lines`` each record in the order of the runs as soon as those
    before it have ended. What ``settled`` finds needless is not run. The runs that ended with their records, and how
    many were done before."""
    from synth.cli.progress import Progress
    from synth.execution.pool import run_all
    from synth.text.files import dumps

    ended: dict[int, Record] = {}
    place = {id(run): i for i, run in enumerate(runs)}
    printed = reused = 0

    def started(run: Run) -> bool:
        needed = settled is None or not settled.needless(run)
        if needed:
            progress.start(run)
        return needed

    with common.ending_early(), Progress(len(runs), json_lines, log=runs[0].results if runs else None) as progress:
        for run, record, was_there in run_all(
            runs,
            at_once,
            resuming.resume,
            resuming.retry_failed,
            started,
            memory_mb=memory_mb,
            grace_s=grace_s,
        ):
            ended[place[id(run)]] = record
            if settled:
                settled.add(run, record)
            reused += was_there
            progress.done(run, record, was_there)
            left_out = {id(spared) for spared in settled.spared} if settled else set()
            while json_lines and printed < len(runs) and (printed in ended or id(runs[printed]) in left_out):
                if printed in ended:
                    print(dumps(ended[printed].data, one_line=True), flush=True)
                printed += 1
    return [(runs[i], ended[i]) for i in sorted(ended)], reused


def _tell_not_run(runs: Sequence[Run]) -> None:
    """The methods of each family that none of its runs has, by the reason."""
    from synth.family import defaults_for, get_family, not_run

    for name in dict.fromkeys(run.instance.family for run in runs):
        of_family = {run.instance.sha256: run.instance for run in runs if run.instance.family == name}
        tried = {run.method.name for run in runs if run.instance.family == name}
        why: dict[str, dict[str, None]] = {}
        for instance in of_family.values():
            family = get_family(name)
            others = dict.fromkeys(defaults_for(family, instance), "not with the solver that is asked for")
            for method, words in (others | not_run(family, instance)).items():
                if method not in tried:
                    why.setdefault(method, {})[words] = None
        groups: dict[str, list[str]] = {}
        for method, reasons in why.items():
            groups.setdefault(" or ".join(reasons), []).append(method)
        for words, methods in groups.items():
            console.print(f"not run, {words}: {', '.join(methods)}")
        if groups:
            console.print(f"-m NAME runs one all the same; what each does: {command('families', name)}")


def _tell_loose(done: Sequence[tuple[Run, Record]]) -> None:
    """Of each instance that is left open, whether its schedule or its bound is loose, where the library knows."""
    from synth.library.best_known import find, loose_parts, read
    from synth.records.summary import rows_by_instance

    file = find(None)
    known = {row.sha256: row for row in read(file)} if file is not None else {}
    for row in rows_by_instance([record for _, record in done]):
        there = known.get(row.best["instance_sha256"]) if row.best is not None and row.gap else None
        if there is not None and (told := loose_parts(row, there)):
            console.print(f"{row.instance}: {told}")


def _tell_intervals(done: Sequence[tuple[Run, Record]]) -> None:
    """On a fitted machine the interval of each best schedule's time, and whether it stays the best."""
    from synth.exchange.record_export import transfers_of
    from synth.tuning.intervals import has_intervals, within
    from synth.tuning.robustness import as_moves

    by_instance: dict[str, list[tuple[Run, Record]]] = {}
    for run, record in done:
        if record.ok and record.evidence == "replayed" and has_intervals(run.instance):
            by_instance.setdefault(run.instance.sha256, []).append((run, record))
    for pairs in by_instance.values():
        moves = {record.label: as_moves(transfers_of(record)) for _, record in pairs}
        run, best = min(pairs, key=lambda pair: pair[1].value or 0.0)
        found = within(moves, best.label, run.instance)
        if found is not None:
            words = f"{run.instance.name}, {best.label}: within the fit's intervals of 95 %, {found.words}"
            console.print(words)


def _tell_where(done: Sequence[tuple[Run, Record]]) -> None:
    """A run whose schedule can be looked at, and how; on standard error."""
    best = best_schedule(done)
    if best is not None:
        words = f"the best schedule: {command('show', best.path)}; all records: {best.results}"
        errors.print(words)


def best_schedule(done: Sequence[tuple[Run, Record]]) -> Run | None:
    """The run with the least replayed value of the last instance that has one; of several the first. None without."""
    held = [(run, record) for run, record in done if record.ok and record.evidence == "replayed"]
    held = [(run, record) for run, record in held if run.instance.sha256 == held[-1][0].instance.sha256]
    return min(held, key=lambda pair: pair[1].value or 0.0)[0] if held else None


def _announce(runs: Sequence[Run], at_once: int) -> None:
    """How long many runs can take, before they start; on standard error."""
    if len(runs) < MANY:
        return
    limits = [run.options.time_limit_s for run in runs]
    text = f"{len(runs):,} runs, {at_once} at a time"
    if None not in limits:
        most = sum(limit or 0.0 for limit in limits) / at_once
        text += f", each stopped after {shown(max(limits, key=lambda limit: limit or 0.0), 's')}: "
        text += f"{shown(most, 's')} at the very most (bounds and references take a moment each)"
    errors.print(text)


def exit_code(done: Sequence[tuple[Run, Record]]) -> int:
    """The command's exit code for these runs (see the README)."""
    if any(record.failed for _, record in done):
        return common.EXIT_FAILED
    if all(record["termination"] in ("size_limit", "unsupported") for _, record in done):
        return common.EXIT_INPUT
    if any(record["termination"] == "infeasible" for _, record in done):
        return common.EXIT_INFEASIBLE
    problems = {(run.instance.family, run.instance.sha256) for run, _ in done}
    solved = {
        (run.instance.family, run.instance.sha256)
        for run, record in done
        if record.value is not None or run.method.kind == "bound"
    }
    return common.EXIT_NO_SOLUTION if problems - solved else 0
