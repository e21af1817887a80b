"""``synth export``: a record's schedule, or its program's model, in a format that others read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from synth.cli.output import console, errors

if TYPE_CHECKING:
    from synth.exchange.formats import Format
    from synth.record import Record


def export(
    path: Path = typer.Argument(..., metavar="RECORD", help="A record."),
    out: Path = typer.Option(..., "--out", "-o", help="The file to write."),
    form: str = typer.Option(None, "--format", "-f", help="csv, mps, lp or cpsat. Default: by the file's suffix."),
    number: int = typer.Option(1, "--nth", min=1, help="Models: which of those that the method hands to its solver."),
    solver: str = typer.Option(None, "--solver", help="Models: for this solver. Default: the record's."),
    own: list[str] = typer.Option(None, "--option", "-O", metavar="key=value", help="Models: a method's parameter."),
) -> None:
    """Write a record's schedule for an executor or simulator, or its program's model for a solver."""
    from synth import record as records
    from synth.exchange.exporting import format_of

    chosen = format_of(form, out)
    record = records.read(path)
    if chosen.of == "model":
        _model(record, chosen, out, number, solver, own or [])
    else:
        _schedule(record, chosen, out)
    console.print(f"{out} written ({chosen.name}: {chosen.summary})", markup=False, soft_wrap=True)


def _model(record: Record, chosen: Format, out: Path, number: int, solver: str | None, own: list[str]) -> None:
    from synth.exchange.exporting import write_model
    from synth.options import split_pairs

    write_model(record, chosen.name, out, number=number, solver=solver, parameters=split_pairs(own, "-O"))


def _schedule(record: Record, chosen: Format, out: Path) -> None:
    from synth.exchange.exporting import transfers_of
    from synth.family import load

    transfers = transfers_of(record)
    load(chosen.target)(transfers, out)
    errors.print(f"{transfers.collective} over {transfers.ranks} ranks, {len(transfers.piece):,} moves", markup=False)
