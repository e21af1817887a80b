"""The table of runs that ``synth solve`` and ``synth batch collect`` end with, and what it does not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from synth.cli.output import console, errors, number, percent, table

if TYPE_CHECKING:
    from synth.execution.runs import Run
    from synth.record import Record
    from synth.standing import Standing

COLUMNS = ("instance", "method", "value", "bound", "gap", "proof", "seconds", "verified", "ended")


def _rows(done: Sequence[tuple[Run, Record]], results: Path) -> list[Sequence[str]]:
    from synth.record import gap

    found = _standings(done, results)
    rows: list[Sequence[str]] = []
    for run, record in done:
        best = found[run.instance.family, run.instance.sha256]
        ended = record["termination"]
        value = number(record.value) if record.value is not None else ended
        if run.method.kind == "bound" and record.bound is not None:
            value = f"(bound {number(record.bound)})"
        left, seconds = percent(gap(record.value, best.bound)), f"{record.run_s:.2f}"
        judged = number(best.bound), left, best.proof, seconds, record.words_of_check, ended
        rows.append((run.instance.name, record.title, value, *judged))
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
            asked = run.instance.name, run.method.name, run.options.solver
            proven = best.bound, gap(record.value, best.bound), best.proof if best.best else None
            writer.writerow((*asked, record.value, *proven, record.run_s, record.ok, record["termination"]))


def _standings(done: Sequence[tuple[Run, Record]], results: Path) -> Mapping[tuple[str, str], Standing]:
    """What is proven per instance (family and hash of its file), by these runs and earlier records of the same file."""
    from synth.results import beside
    from synth.standing import by_instance, standing

    held = {run.path: record for run, record in done}
    for folder in {run.path.parent for run, _ in done}:
        held = {record.path: record for record in beside(folder) if record.path is not None} | held
    groups = by_instance(held.values())
    keys = {(run.instance.family, run.instance.sha256) for run, _ in done}
    return {key: standing(groups.get(key, ())) for key in keys}


def print_messages(done: Sequence[tuple[Run, Record]]) -> None:
    """What a person must know and the table does not say, on standard error."""
    from synth.record import DIED

    for run, record in done:
        where = f"{run.instance.name}, {run.method.name}"
        if (
            record["termination"] in (*DIED, "size_limit", "unsupported", "infeasible", "time_limit")
            and record["message"]
        ):
            if len(done) > 4 and record["termination"] in ("unsupported", "time_limit"):
                continue  # the table's last column says it; the records have the words
            errors.print(f"{where}: {record['termination']}: {record['message']}", markup=False)
        for fault in record["verified"]["faults"]:
            errors.print(f"{where}: check failed: {fault}", style="red", markup=False)
