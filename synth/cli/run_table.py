"""The tables that ``synth solve`` and ``synth batch collect`` end with, and what they do not say."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TextIO

from synth.cli.output import console, errors, table
from synth.text.quantities import percent, shown

if TYPE_CHECKING:
    from synth.execution.runs import Run
    from synth.records.contradictions import Standing
    from synth.records.record import Record

COLUMNS = ("instance", "method", "value", "bound", "gap", "proof", "seconds", "verified", "ended")
Done = Sequence[tuple["Run", "Record"]]


def print_tables(done: Done, every: bool | None = False) -> None:
    """One row per instance, by family with a closing line each; before it, with ``every`` or where there is only one
    instance, one row per run (None: the command has no ``--all``)."""
    from synth.records.summary import COLUMNS as BY_INSTANCE
    from synth.records.summary import closing_line, rows_by_instance

    keys = list(dict.fromkeys((run.instance.family, run.instance.sha256) for run, _ in done))
    if every or len(keys) == 1:
        print_runs(done)
    held = _held(done)
    rows = rows_by_instance([record for key in sorted(keys, key=lambda key: key[0]) for record in held[key]])
    for family, group in groupby(rows, key=lambda row: row.family):
        of_family = list(group)
        cells = [row.cells() for row in of_family]
        out = table(*BY_INSTANCE, rows=cells, right=("best", "bound", "gap"))
        out.title, out.caption = family, f"{family}: {closing_line(of_family)}"
        console.print(out)
        if not (every or len(keys) == 1):  # the table of runs says it
            for row in (row for row in of_family if row.reasons):
                console.print(f"{row.instance}: {row.reasons}")
    if every is False and len(keys) > 1:
        console.print(f"{len(done)} runs; --all lists them")


def print_runs(done: Done) -> None:
    """Value, best proven bound and what proves it, gap, seconds and end of each run."""
    from synth.family import get_family
    from synth.records.optimality import gap

    found = _standings(done)
    rows: list[Sequence[str]] = []
    for run, record in done:
        best, unit = found[run.instance.family, run.instance.sha256], get_family(run.instance.family).objective.unit
        value = shown(record.value, unit)
        if run.method.kind == "bound" and record.bound is not None:
            value = f"(bound {shown(record.bound, unit)})"
        proven = shown(best.bound, unit), percent(gap(record.value, best.bound)), best.proof
        rows.append(
            (
                run.instance.name,
                record.title,
                value,
                *proven,
                f"{record.run_s:.2f}",
                record.words_of_check,
                record.words_of_end if record.value is not None else record.words_without_value,
            )
        )
    console.print(table(*COLUMNS, rows=rows, right=("value", "bound", "gap", "seconds")))


def print_contradictions(done: Done) -> int:
    """Schedules below certified bounds (alarms) and below solvers' bounds, on standard error; how many there are."""
    found = _standings(done)
    texts = [text for standing in found.values() for text in standing.messages()]
    for text in texts:
        errors.print(f"synth: {text}", style="red")
    return len(texts)


def write_csv(done: Done, stream: TextIO) -> None:
    """The columns of the table of runs with exact numbers (SI units); empty cells where there is nothing."""
    from synth.records.optimality import gap

    found = _standings(done)
    writer = csv.writer(stream)
    writer.writerow(("instance", "method", "solver", *COLUMNS[2:]))
    for run, record in done:
        best = found[run.instance.family, run.instance.sha256]
        proven = best.bound, gap(record.value, best.bound), best.proof if best.best else None
        what = run.instance.name, run.method.name, run.options.solver
        writer.writerow((*what, record.value, *proven, record.run_s, record.ok, record["termination"]))


def _held(done: Done) -> Mapping[tuple[str, str], list[Record]]:
    """These runs' records and those of earlier runs on the same files beside them, by family and hash of the file."""
    from synth.records.contradictions import by_instance
    from synth.records.folder import beside

    held = {run.path: record for run, record in done}
    for folder in {run.path.parent for run, _ in done}:
        held |= {
            record.path: record for record in beside(folder) if record.path is not None and record.path not in held
        }
    return by_instance(held.values())


def _standings(done: Done) -> Mapping[tuple[str, str], Standing]:
    """What is proven per instance, by these runs and earlier records."""
    from synth.records.contradictions import standing

    keys = {(run.instance.family, run.instance.sha256) for run, _ in done}
    return {key: standing(group) for key, group in _held(done).items() if key in keys}


def print_messages(done: Done) -> None:
    """What a person must know and the table does not say, on standard error."""
    from synth.records.record import DIED

    for run, record in done:
        where = f"{run.instance.name}, {run.method.name}"
        empty = record["termination"] == "finished" and record.value is None and record["kind"] != "bound"
        if record["message"] and (
            empty or record["termination"] in (*DIED, "size_limit", "unsupported", "infeasible", "time_limit")
        ):
            if len(done) > 4 and record["termination"] in ("unsupported", "time_limit"):
                continue  # the tables say it; the records have the words
            errors.print(f"{where}: {record['termination']}: {record['message']}")
        for fault in record["verified"]["faults"]:
            errors.print(f"{where}: check failed: {fault}", style="red")
