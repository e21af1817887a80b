"""``synth tour``: two small instances of every paper, solved, in one table and one page."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from synth.cli.common import EXIT_FAILED, demand_folder, demand_records
from synth.cli.output import command, console
from synth.cli.run_table import print_contradictions, print_tables
from synth.cli.solve import best_schedule
from synth.errors import InputError

if TYPE_CHECKING:
    from synth.execution.runs import Run
    from synth.records.record import Record


def tour(
    results: Path = typer.Option(Path("results/tour"), "--results", help="Folder for records, figures and the page."),
    jobs: int = typer.Option(None, "--jobs", "-j", min=1, help="Runs at once. Default: processors."),
    resume: bool = typer.Option(False, "--resume", help="Skip runs whose good record is there already."),
) -> None:
    """Solve two small instances of every paper (under a minute on two cores): a table per family, and a page."""
    from synth.cli.study import run_study
    from synth.study import load
    from synth.study.collect import Look, collect

    demand_folder("--results", results)
    own = results / "instances"  # a copy, so that the records name files beside them
    shutil.copytree(folder(), own, dirs_exist_ok=True)
    study = load(own / "tour.toml").prepare(results)
    study = replace(study, runs=tuple(sorted(study.runs, key=lambda run: run.instance.family)))
    demand_records("--results", study.runs)
    done = run_study(study, jobs, resume, on_end=FamilyTables(study.runs).ended)
    contradictions = print_contradictions(done)
    collect(study, "synth tour", Look(formats=()))  # figures for print would take longer than half the runs
    console.print(f"the same with pictures, one page: {results / 'report.html'}")
    best = best_schedule(done)
    shown = "RECORD" if best is None else best.path
    console.print(f"the best schedule of an instance: {command('show', shown)}")
    console.print(f"check all of them: {command('check', results / 'records')}")
    if contradictions or any(not record.ok for _, record in done):
        raise typer.Exit(EXIT_FAILED)


class FamilyTables:
    """Prints each family's table as soon as its runs, and those of the families before it, have ended.

    ``runs`` are all runs there will be, those of a family together.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self._waiting = {family: list(group) for family, group in groupby(runs, lambda run: run.instance.family)}
        self._records: dict[Path, Record] = {}

    def ended(self, run: Run, record: Record) -> None:
        """A run has ended."""
        self._records[run.path] = record
        for family, runs in list(self._waiting.items()):
            if any(run.path not in self._records for run in runs):
                return
            print_tables([(run, self._records[run.path]) for run in runs], None)
            del self._waiting[family]


def folder() -> Path:
    """Where the tour's instances are: in the installed package, or in the checkout. Raises :class:`InputError`."""
    import synth

    package = Path(synth.__file__).parent
    for place in (package / "tour", package.parent / "instances" / "tour"):
        if (place / "tour.toml").is_file():
            return place
    raise InputError("the tour's instances are not installed with this copy of synth")
