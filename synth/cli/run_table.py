"""The table of runs that ``synth solve`` and ``synth batch collect`` end with, and what it does not say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from synth.cli.output import console, errors, number, percent, table

if TYPE_CHECKING:
    from synth.execution.runs import Run
    from synth.record import Record

COLUMNS = ("instance", "method", "value", "bound", "gap", "seconds", "verified", "ended")


def _rows(done: Sequence[tuple[Run, Record]], results: Path) -> list[Sequence[str]]:
    from synth.record import gap

    bounds = _best_bounds(done, results)
    rows: list[Sequence[str]] = []
    for run, record in done:
        bound = bounds.get((run.instance.family, run.instance.name))
        solver = run.options.solver
        method = run.method.name + (f" ({solver})" if solver and solver != run.method.name else "")
        something = record.value is not None or "certificate" in record["verified"]["facts"]
        done_how = "yes" if record["verified"]["facts"].get("replayed") or record.value is None else "counted"
        verified = "FAILED" if not record.ok else done_how if something else "–"
        ended = record["termination"]
        value = number(record.value) if record.value is not None else ended
        if run.method.kind == "bound" and record.bound is not None:
            value = f"(bound {number(record.bound)})"
        seconds = f"{record['seconds']['build'] + record['seconds']['solve']:.2f}"
        shown_gap = percent(gap(record.value, bound))
        rows.append((run.instance.name, method, value, number(bound), shown_gap, seconds, verified, ended))
    return rows


def print_table(done: Sequence[tuple[Run, Record]], results: Path) -> None:
    """Value, best proven bound, gap, seconds and end of each run."""
    rows = _rows(done, results)
    right = ("value", "bound", "gap", "seconds")
    console.print(table(*COLUMNS, rows=rows, right=right))


def write_table(done: Sequence[tuple[Run, Record]], results: Path, path: Path) -> None:
    """The columns of the table with plain numbers, as a CSV file; empty cells where there is nothing."""
    import csv

    from synth.record import gap

    bounds = _best_bounds(done, results)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("instance", "method", "solver", *COLUMNS[2:]))
        for run, record in done:
            bound = bounds.get((run.instance.family, run.instance.name))
            seconds = record["seconds"]["build"] + record["seconds"]["solve"]
            writer.writerow((
                run.instance.name, run.method.name, run.options.solver, record.value, bound, gap(record.value, bound),
                seconds, record.ok, record["termination"],
            ))  # fmt: skip


def _best_bounds(done: Sequence[tuple[Run, Record]], results: Path) -> dict[tuple[str, str], float]:
    """The best proven bound per instance, over these runs and earlier records of the same instance file."""
    from synth import record as records
    from synth.errors import InputError

    best: dict[tuple[str, str], float] = {}
    for run, _ in done:
        key = (run.instance.family, run.instance.name)
        if key in best:
            continue
        for path in (results / run.instance.family / run.instance.name).glob("*.json"):
            try:
                record = records.read(path)
            except InputError:
                continue
            if record["instance_sha256"] == run.instance.sha256 and record.bound is not None and record.ok:
                best[key] = max(best.get(key, record.bound), record.bound)
    return best


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
