"""``synth check`` and ``synth show``: records after the run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from synth.cli.output import console, errors, number, percent

if TYPE_CHECKING:
    from synth.record import Record


def check(
    paths: list[Path] = typer.Argument(..., metavar="RECORD…", help="Record files or folders of them."),
) -> None:
    """Replay stored solutions from their instance files alone. Exit code 1 if any fails."""
    from synth import record as records
    from synth.api import check as check_record
    from synth.errors import InputError
    from synth.execution.runs import expand_paths

    failed = unreadable = 0
    for path in expand_paths(paths, "records"):
        try:
            record = records.read(path)
            verdict = check_record(record)
        except InputError as error:
            unreadable += 1
            for line in str(error).splitlines():
                errors.print(f"synth: {line}", markup=False, soft_wrap=True)
            continue
        stated = [] if record.ok else [f"at the run: {fault}" for fault in record["verified"]["faults"]]
        if verdict.faults or stated:
            failed += 1
            console.print(f"FAILED {path}", markup=False, soft_wrap=True)
            for fault in [*verdict.faults, *stated]:
                console.print(f"  {fault}", markup=False, soft_wrap=True)
        elif verdict.value is not None:
            word = "replayed" if verdict.facts.get("replayed", True) else "counted"
            facts = word if record.bound is None else f"{word}; bound {number(record.bound)} as stated by the run"
            console.print(
                f"ok     {path}: {record['objective']['name']} {number(verdict.value)}, {facts}", markup=False
            )
        elif record["kind"] == "bound" and record.bound is not None:
            console.print(
                f"ok     {path}: bound {number(record.bound)} follows from its certificate",
                markup=False,
                soft_wrap=True,
            )
        else:
            console.print(
                f"ok     {path}: {record['termination']}, holds no solution to replay", markup=False, soft_wrap=True
            )
    if failed or unreadable:
        raise typer.Exit(1 if failed else 2)


def show(
    path: Path = typer.Argument(..., metavar="RECORD", help="A record file."),
    plot: Path = typer.Option(None, "--plot", help="Draw the solution into this file (.png, .svg, .pdf)."),
    csv: bool = typer.Option(False, "--csv", help="Print the solution as one flat table."),
    flows: bool = typer.Option(False, "--flows", help="With --csv: the flows over the links, where a family has any."),
) -> None:
    """Show a record and its solution to a person."""
    from synth import record as records
    from synth.api import find_instance
    from synth.errors import InputError
    from synth.family import get_family

    if flows and not csv:
        raise InputError("--flows goes with --csv")
    record = records.read(path)
    instance = find_instance(record)
    family = get_family(record["family"])
    solution = None
    if record["kind"] != "bound" and record.packed:
        try:
            solution = family.unpack(instance, record.packed)
        except (KeyError, ValueError, TypeError, OverflowError) as error:
            raise InputError(f"the stored solution cannot be read: {error!r}", str(path)) from None
    if (csv or plot is not None) and solution is None:
        raise InputError(f"holds no solution ({record['termination']})", str(path))
    if csv:
        table = family.flow_table if flows else family.table
        table(instance, solution).to_csv(sys.stdout, index=False)
        return
    if plot is not None:
        if plot.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise InputError("--plot takes a file ending in .png, .svg or .pdf", str(plot))
        title = f"{record['instance']}, {record['method']}: {number(record.value)} {family.objective.unit}"
        try:
            family.plot(instance, solution, title).savefig(plot, dpi=150)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", str(plot)) from None
        console.print(f"{plot} written", markup=False, soft_wrap=True)
        return
    _print_summary(record)
    if solution is not None:
        console.print(family.describe(instance, solution), markup=False, soft_wrap=True)


def _print_summary(record: Record) -> None:
    from synth.record import gap

    objective = record["objective"]
    solver = f" with {record['solver']} {record['solver_version']}" if record["solver"] else ""
    lines = [
        f"{record['family']} instance {record['instance']}, method {record['method']} ({record['kind']}){solver}",
        f"ended: {record['termination']}" + (f" ({record['message']})" if record["message"] else ""),
        f"{objective['name']}: {number(record.value)}, proven bound {number(record.bound)}, "
        f"gap {percent(gap(record.value, record.bound))}",
    ]
    if record.data.get("bound_proof"):
        lines.append(f"bound by: {record['bound_proof']}")
    if record["kind"] == "bound" and record.packed:
        lines.append("certificate: " + ", ".join(f"{k} {v}" for k, v in record.packed.items()))
    facts = record["verified"]["facts"]
    if record.value is not None or not record.ok:
        lines.append(
            f"verified: {'yes' if record.ok else 'FAILED'}; " + ", ".join(f"{k} {v}" for k, v in facts.items())
        )
    lines += [f"  fault: {fault}" for fault in record["verified"]["faults"]]
    seconds = record["seconds"]
    lines.append(f"seconds: build {seconds['build']:.3g}, solve {seconds['solve']:.3g}, check {seconds['check']:.3g}")
    console.print("\n".join(lines), markup=False, soft_wrap=True)
