"""``synth study``: many runs turned into gap tables, figures and a report."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synth.cli.common import (
    EXIT_FAILED,
    bad_option,
    checked,
    demand_folder,
    demand_records,
    ending_early,
)
from synth.cli.options import Drawing, Processes, Resuming, grouped
from synth.cli.output import console, errors, number, table
from synth.text.quantities import percent, shown

if TYPE_CHECKING:
    import pandas as pd

    from synth.execution.runs import Run
    from synth.records.record import Record
    from synth.study import PreparedStudy
    from synth.study.collect import Look

LISTED = 30  # regressions that are printed


@dataclass(frozen=True)
class InPlace:
    """What stands in place of what the study's file says."""

    time_limit: Annotated[str | None, typer.Option(help="In place of the study's own limits: 60s, 5m or none.")] = None
    seed: Annotated[int | None, typer.Option(min=0, help="In place of the study's own seeds.")] = None
    threads: Annotated[int | None, typer.Option(min=1, help="In place of the study's own number of threads.")] = None


@dataclass(frozen=True)
class Shown(Drawing):
    """How the study is shown."""

    each_seed: Annotated[
        bool, typer.Option("--each-seed", help="A row for each seed, instead of their mean, spread and wins.")
    ] = False
    page: Annotated[
        Path | None,
        typer.Option(
            "--page", help="Also write the comparison of one study's solvers as this Markdown file, PNGs beside."
        ),
    ] = None

    form: Annotated[
        str | None,
        typer.Option(
            "--form",
            help="Also rank by the time in this form (msccl:azure, mscclpp, …), not as scheduled: "
            "best_by_size-FORM.csv.",
        ),
    ] = None

    @property
    def look(self) -> Look:
        """The same for the collector. Raises :class:`InputError` in words."""
        from synth.exchange.forms import form_of
        from synth.study.collect import Look

        if self.form is not None:
            form_of(self.form)
        return Look(self.figure_style, self.each_seed, form=self.form)


@dataclass(frozen=True)
class NoRuns:
    """What is done with runs that there are, instead of running."""

    collect: Annotated[bool, typer.Option("--collect", help="Run nothing: report what is there.")] = False
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare two studies, given by their folders (or names).")
    ] = False
    as_json: Annotated[bool, typer.Option("--json", help="With --compare: every compared run as one JSON text.")] = (
        False
    )


@grouped
def study(
    targets: list[str] = typer.Argument(..., metavar="FAMILY|STUDY.toml…", help="Families or study files."),
    results: Path = typer.Option(Path("results/studies"), "--results", help="Folder of the studies' folders."),
    instead: InPlace = InPlace(),
    processes: Processes = Processes(),
    resuming: Resuming = Resuming(),
    no_runs: NoRuns = NoRuns(),
    shown_as: Shown = Shown(),
) -> None:
    """Run studies: records, table.csv, a summary as CSV and LaTeX, figures as PDF, SVG and PNG, report.html and, with
    the extra `parquet`, table.parquet below results/studies/<name>/."""
    from synth.options import read_limit
    from synth.study import load

    if no_runs.compare:
        _compare(targets, results, no_runs.as_json)
        return
    if no_runs.as_json:
        raise bad_option("--json", "goes with --compare; a study writes table.csv", "on")
    if instead.time_limit is not None:
        checked("--time-limit", read_limit, instead.time_limit)
    retry_failed, look = resuming.retry_failed, shown_as.look
    demand_folder("--results", results)
    memory_mb = processes.memory_mb
    studies = [load(target).with_options(instead.time_limit, instead.seed, instead.threads) for target in targets]
    prepared = [one.prepare(results / one.name) for one in studies]  # every fault before any run
    page = shown_as.page
    if page is not None and (len(studies) > 1 or page.suffix != ".md"):
        raise bad_option("--page", "takes a file .md, and one study", str(page))
    if not no_runs.collect:
        demand_records("--results", (run for one in prepared for run in one.runs))
    failed = 0
    for one in prepared:
        if not no_runs.collect:
            run_study(one, processes.jobs, resuming.resume, retry_failed, memory_mb)
        failed += _collect(one, look, page)
    if failed:
        raise typer.Exit(EXIT_FAILED)


def run_study(
    one: PreparedStudy,
    jobs: int | None,
    resume: bool = False,
    retry_failed: bool = False,
    memory_mb: float | None = None,
    on_end: Callable[[Run, Record], None] | None = None,
) -> list[tuple[Run, Record]]:
    """Run the study, a line on standard error as each run ends, then ``on_end(run, record)``; the records in the order
    of the runs."""
    from synth.cli.progress import Progress
    from synth.study.run import run_study as run_all

    for text in one.left_out:
        errors.print(f"left out: {text}")
    errors.print(f"study {one.study.name}: {len(one.runs)} runs into {one.folder}")
    with ending_early(), Progress(len(one.runs), lines=True, log=one.folder) as progress:
        kept: list[Run] = []

        def ended(run: Run, record: Record, reused: bool) -> None:
            progress.done(run, record, reused)
            kept.extend([run] if reused else [])
            if on_end is not None:
                on_end(run, record)

        done = run_all(one, jobs, resume, retry_failed, memory_mb=memory_mb, on_start=progress.start, on_end=ended)
    if resume:
        errors.print(f"kept {len(kept)} of {len(one.runs)} runs as they were")
    return done


def _collect(one: PreparedStudy, look: Look, page: Path | None) -> int:
    """Write and print what the study shows; the number of rows that failed or contradict others."""
    from synth.study.collect import collect, write_page
    from synth.study.measures import options_in_common, stated_baselines, summary
    from synth.study.report import alarms

    command = "synth " + shlex.join(sys.argv[1:]) if sys.argv[1:2] == ["study"] else None
    made = collect(one, command, look)
    told = made.rows.assign(group=made.rows["label"]) if look.each_seed else made.rows
    _print(summary(told), "family", "label", "kind")
    if common := options_in_common(made.rows):
        console.print(f"all runs: {common}")
    for text in stated_baselines(made.rows):
        console.print(text)
    for text in alarms(made.rows):
        errors.print(text, style="red")
    failed = made.rows[made.rows["status"] == "failed"]
    for row in failed.to_dict("records"):
        why = row["faults"] or row["message"]
        errors.print(f"FAILED {row['instance']} {row['label']}: {row['termination']}: {why}")
    for row in made.rows[made.rows["status"] == "disproved"].to_dict("records"):
        errors.print(f"disproved: {row['instance']} {row['label']}: {row['faults']}")
    files = ", ".join(path.relative_to(one.folder).as_posix() for path in made.files)
    console.print(f"{one.folder}: {files}")
    if page is not None:
        console.print(f"{page}: {len(write_page(one, made, page)) - 1} files beside it")
    if all(path.suffix != ".parquet" for path in made.files):
        errors.print("no table.parquet: pip install 'collective-synth[parquet]'")
    return int(made.rows["status"].isin(("failed", "alarm", "bound disproved")).sum())


_SECONDS = re.compile(r"_s(?=_|$)")  # in the name of a column


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if value != value:
        return "–"
    if _SECONDS.search(name):
        return shown(float(value), "s")
    return percent(float(value)) if name in ("mean_gap", "spread") else number(float(value), 5)


def _compare(targets: Sequence[str], results: Path, as_json: bool) -> None:
    from synth.study.compare import SLOWER, compare

    if len(targets) != 2:
        raise bad_option("--compare", "takes two study folders", " ".join(targets))
    folders = [Path(target) if Path(target).is_dir() else results / target for target in targets]
    found = compare(folders[0], folders[1])
    if as_json:
        sys.stdout.write(found.rows.to_json(orient="records", indent=1) + "\n")
        return
    console.print(f"A: {folders[0]}", f"B: {folders[1]}", sep="\n")
    _print(found.summary, "family", "method")
    if found.only != (0, 0):
        console.print(f"only in A: {found.only[0]} runs; only in B: {found.only[1]} runs")
    if len(found.regressions):
        count = f"{len(found.regressions)} of {len(found.rows)}"
        console.print(f"{count} runs are worse in B (slower: from {SLOWER:g} times)")
        columns = ["value_a", "value_b", "bound_a", "bound_b", "total_s_a", "total_s_b", "why"]
        worse = found.regressions[["instance", "method", "solver", *_varied(found.rows), *columns]]
        _print(worse.head(LISTED), "instance", "method", "solver", "why")
        if len(worse) > LISTED:
            console.print(f"… {len(worse) - LISTED} more (--json prints all)")
    else:
        console.print(f"none of {len(found.rows)} runs is worse in B")


def _varied(rows: pd.DataFrame) -> list[str]:
    """The seed, and the other options in which the compared runs differ."""
    names = ("time_limit_s", "relative_gap", "threads", "options")
    return ["seed", *(name for name in names if rows[name].nunique(dropna=False) > 1)]


def _print(rows: pd.DataFrame, *left: str) -> None:
    headings = {str(name): _SECONDS.sub("", str(name)).replace("_", " ") for name in rows.columns}
    console.print(
        table(
            *headings.values(),
            rows=[[_cell(name, row[name]) for name in headings] for row in rows.to_dict("records")],
            right=[heading for name, heading in headings.items() if name not in left],
        )
    )
