"""``synth solve``: run methods on instance files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from synth.cli.common import (
    EXIT_FAILED,
    EXIT_INFEASIBLE,
    EXIT_INPUT,
    EXIT_NO_SOLUTION,
    checked,
    ending_early,
    retries_failed,
)
from synth.cli.output import console, errors, number, percent, table

if TYPE_CHECKING:
    from synth.execution.runs import Run
    from synth.record import Record
    from synth.standing import Standing


def solve(
    paths: list[Path] = typer.Argument(..., metavar="INSTANCE…", help="Instance files or folders of them."),
    methods: list[str] = typer.Option(None, "-m", "--method", help="A method (repeatable). Default: the family's."),
    solver: str = typer.Option(None, "--solver", help="highs, cpsat, scip or gurobi; for methods that can use it."),
    time_limit: str = typer.Option("60s", "--time-limit", help="Per run: 90, 60s, 5m, 2h or none."),
    gap: float = typer.Option(1e-4, "--gap", min=0.0, help="Relative gap at which a solver may stop."),
    threads: int = typer.Option(1, "--threads", min=1, help="Threads of each run."),
    seed: int = typer.Option(0, "--seed", min=0, help="Seed of solvers and of every random choice."),
    options: list[str] = typer.Option(None, "-O", "--option", metavar="key=value", help="A method's own parameter."),
    results: Path = typer.Option(Path("results"), "--results", help="Folder for the records."),
    resume: bool = typer.Option(False, "--resume", help="Skip runs whose good record is there already."),
    retry: str = typer.Option(None, "--retry", help="With --resume: failed (out of memory, no result in time)."),
    jobs: int = typer.Option(None, "--jobs", "-j", min=1, help="Runs at once. Default: processors / threads."),
    memory: str = typer.Option(None, "--memory", help="Each run's memory limit, such as 4G or 500M. Default: none."),
    grace: str = typer.Option(
        "60s", "--grace", help="From a run's time limit to its end by force, for model and check."
    ),
    json_lines: bool = typer.Option(False, "--json", help="One record a line on standard output, nothing else there."),
) -> None:
    """Solve instance files; ends with a table of values, proven bounds and gaps."""
    from synth.cli.progress import Progress
    from synth.execution.pool import run_all, slots
    from synth.execution.runs import Request, plan
    from synth.options import read_duration, read_megabytes, split_pairs
    from synth.record import dumps

    memory_mb = None if memory is None else checked("--memory", read_megabytes, memory)
    grace_s = checked("--grace", read_duration, grace)
    retry_failed = retries_failed(retry, resume)
    solvers, parameters = [solver] if solver else [], split_pairs(options or [], "-O")
    runs = plan(paths, Request(methods, solvers, [seed], [time_limit], gap, threads, parameters), results)
    ended: dict[int, Record] = {}
    place = {id(run): i for i, run in enumerate(runs)}
    printed = reused = 0
    with ending_early(), Progress(len(runs), json_lines) as progress:
        for run, record, was_there in run_all(
            runs, slots(jobs, threads), resume, retry_failed, progress.start, memory_mb=memory_mb, grace_s=grace_s
        ):
            ended[place[id(run)]] = record
            reused += was_there
            progress.done(run, record)
            while json_lines and printed in ended:  # in the order asked for, each as soon as those before it
                print(dumps(ended[printed].data, one_line=True), flush=True)
                printed += 1
    done = [(runs[i], ended[i]) for i in sorted(ended)]
    contradictions = print_contradictions(done, results)
    if not json_lines:
        print_table(done, results)
        if reused:
            console.print(f"{reused} of {len(done)} runs were done before and skipped (--resume)")
    print_messages(done)
    code = EXIT_FAILED if contradictions else exit_code(done)
    if code:
        raise typer.Exit(code)


COLUMNS = ("instance", "method", "value", "bound", "gap", "proof", "seconds", "verified", "ended")


def _rows(done: Sequence[tuple[Run, Record]], results: Path) -> list[Sequence[str]]:
    from synth.record import gap

    found = _standings(done, results)
    rows: list[Sequence[str]] = []
    for run, record in done:
        best = found[run.instance.family, run.instance.sha256]
        bound = best.bound
        solver = run.options.solver
        method = run.method.name + (f" ({solver})" if solver and solver != run.method.name else "")
        something = record.value is not None or "certificate" in record["verified"]["facts"]
        done_how = "counted" if record.evidence == "counted" else "yes"
        verified = "FAILED" if not record.ok else done_how if something else "–"
        ended = record["termination"]
        value = number(record.value) if record.value is not None else ended
        if run.method.kind == "bound" and record.bound is not None:
            value = f"(bound {number(record.bound)})"
        elif record.bound_disproved:
            verified = "bound FALSE"
        seconds = f"{record['seconds']['build'] + record['seconds']['solve']:.2f}"
        shown_gap = percent(gap(record.value, bound))
        rows.append((run.instance.name, method, value, number(bound), shown_gap, best.proof, seconds, verified, ended))
    return rows


def print_table(done: Sequence[tuple[Run, Record]], results: Path) -> None:
    """Value, best proven bound and what proves it, gap, seconds and end of each run."""
    rows = _rows(done, results)
    right = ("value", "bound", "gap", "seconds")
    console.print(table(*COLUMNS, rows=rows, right=right))


def print_contradictions(done: Sequence[tuple[Run, Record]], results: Path) -> int:
    """Schedules below certified bounds (alarms) and below solvers' bounds, on standard error; how many there are."""
    found = _standings(done, results)
    texts = [text for standing in found.values() for text in standing.messages()]
    for text in texts:
        errors.print(f"synth: {text}", style="red", markup=False)
    return len(texts)


def write_table(done: Sequence[tuple[Run, Record]], results: Path, path: Path) -> None:
    """The columns of the table with plain numbers, as a CSV file; empty cells where there is nothing."""
    import csv

    from synth.record import gap

    found = _standings(done, results)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("instance", "method", "solver", *COLUMNS[2:]))
        for run, record in done:
            best = found[run.instance.family, run.instance.sha256]
            seconds = record["seconds"]["build"] + record["seconds"]["solve"]
            writer.writerow((
                run.instance.name, run.method.name, run.options.solver, record.value, best.bound,
                gap(record.value, best.bound), best.proof if best.best else None, seconds, record.ok,
                record["termination"],
            ))  # fmt: skip


def _standings(done: Sequence[tuple[Run, Record]], results: Path) -> Mapping[tuple[str, str], Standing]:
    """What is proven per instance (family and hash of its file), by these runs and earlier records of the same file."""
    from synth import record as records
    from synth.errors import InputError
    from synth.standing import by_instance, standing

    held = {run.path.resolve(): record for run, record in done}
    for folder in {run.path.parent.resolve() for run, _ in done}:
        for path in sorted(folder.glob("*.json")):
            if path not in held:
                try:
                    held[path] = records.read(path)
                except InputError:
                    continue
    groups = by_instance(held.values())
    keys = {(run.instance.family, run.instance.sha256) for run, _ in done}
    return {key: standing(groups.get(key, ())) for key in keys}


def print_messages(done: Sequence[tuple[Run, Record]]) -> None:
    """What a person must know and the table does not say, on standard error."""
    from synth.execution.runs import FAILED

    for run, record in done:
        where = f"{run.instance.name}, {run.method.name}"
        if (
            record["termination"] in (*FAILED, "size_limit", "unsupported", "infeasible", "time_limit")
            and record["message"]
        ):
            if len(done) > 4 and record["termination"] in ("unsupported", "time_limit"):
                continue  # the table's last column says it; the records have the words
            errors.print(f"{where}: {record['termination']}: {record['message']}", markup=False)
        for fault in record["verified"]["faults"]:
            errors.print(f"{where}: check failed: {fault}", style="red", markup=False)


def exit_code(done: Sequence[tuple[Run, Record]]) -> int:
    """The command's exit code for these runs (see the README)."""
    from synth.execution.runs import FAILED

    if any(record["termination"] in FAILED or not record.ok for _, record in done):
        return EXIT_FAILED
    if all(record["termination"] in ("size_limit", "unsupported") for _, record in done):
        return EXIT_INPUT
    if any(record["termination"] == "infeasible" for _, record in done):
        return EXIT_INFEASIBLE
    problems = {(run.instance.family, run.instance.sha256) for run, _ in done}
    solved = {
        (run.instance.family, run.instance.sha256)
        for run, record in done
        if record.value is not None or run.method.kind == "bound"
    }
    return EXIT_NO_SOLUTION if problems - solved else 0
