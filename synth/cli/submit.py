"""``synth submit``: a schedule or a bound from outside, checked and made a record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synth.cli.common import EXIT_FAILED, demand_folder
from synth.cli.options import grouped
from synth.cli.output import command, console, errors

if TYPE_CHECKING:
    from synth.instance import Instance
    from synth.library.submission import Sender
    from synth.records.record import Record

LIBRARY = typer.Option(None, "--library", help="Its table. Default: results/published/library.csv, here or above.")


@dataclass(frozen=True)
class HandedIn:
    """What is handed in: one of them."""

    schedule: Annotated[Path | None, typer.Option(help="A schedule: the flat table of `show --csv`.")] = None
    flows: Annotated[Path | None, typer.Option(help="Beside it, harvest: the table of `show --csv --flows`.")] = None
    xml: Annotated[Path | None, typer.Option(help="A schedule: MSCCL XML, or a plan of MSCCL++.")] = None
    bound: Annotated[
        Path | None, typer.Option(help="A bound: JSON with bound and certificate, or a record that has both.")
    ] = None

    def record(self, instance: Instance, sender: Sender) -> Record:
        """The checked record. Raises :class:`InputError` and :class:`RefusedError`."""
        from synth.errors import InputError
        from synth.library import submission
        from synth.text.input_file import InputFile

        if sum(one is not None for one in (self.schedule, self.xml, self.bound)) != 1:
            raise InputError("give one of --schedule, --xml and --bound")
        if self.flows is not None and self.schedule is None:
            raise InputError("--flows goes with --schedule")
        if self.schedule is not None:
            files = [InputFile(path) for path in (self.schedule, self.flows) if path is not None]
            return submission.schedule(instance, files, sender)
        if self.xml is not None:
            return submission.algorithm(instance, self.xml, sender)
        assert self.bound is not None
        return submission.bound(instance, self.bound, sender)


@grouped
def submit(
    path: Path = typer.Argument(..., metavar="INSTANCE", help="The instance file."),
    what: HandedIn = HandedIn(),
    by: str = typer.Option(..., "--by", help="Who hands it in."),
    doi: str = typer.Option(None, "--doi", help="Where it is published: 10.1145/…"),
    results: Path = typer.Option(Path("results"), "--results", help="Folder for the record."),
    library: Path = LIBRARY,
) -> None:
    """Hand in a schedule or a bound for an instance. It is checked, made a record of kind `submitted`, which every
    command knows, and compared with what is known. Exit code 1 if it is refused: the first fault is named with its
    place. What the tables and certificates hold: models/formats."""
    from synth.instance import read
    from synth.library.submission import RefusedError, Sender

    instance, sender = read(path), Sender(by, doi)
    try:
        keep(what.record(instance, sender), results, library)
    except RefusedError as error:
        errors.print(f"refused: {error}")
        raise typer.Exit(EXIT_FAILED) from None


def keep(record: Record, results: Path, library: Path | None) -> None:
    """Compare a submitted record with what is known, write it and say both. Raises :class:`RefusedError`.

    Known is what the library has, and what lies below ``results``, in studies too; where that is better, both are
    said."""
    from synth.library.best_known import in_library
    from synth.library.submission import compared
    from synth.records import record as records
    from synth.records.folder import beside

    demand_folder("--results", results)
    folders = [results, *results.glob("studies/*/records/*")]
    own = [one for folder in folders for one in beside(folder / record["family"] / record["instance"])]
    listed = in_library(record, library)
    said = compared(record, [*listed, *own])
    if listed and said != compared(record, listed):
        said += compared(record, listed, "in the library")
    where = record["family"], record["instance"], record["method"], None, record.question
    written = records.write(record, records.record_path(results, *where))
    for line in said:
        console.print(line)
    console.print(f"{written.path} written; {command('check', written.path)}")
