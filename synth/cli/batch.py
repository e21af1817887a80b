"""``synth batch``: many runs in one folder, here or as Slurm job arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from synth.cli import batch_run
from synth.cli.common import EXIT_FAILED, bad_option, checked, demand_folder, demand_records, ending_early
from synth.cli.options import Asked, Jobs, grouped
from synth.cli.output import command, console, errors, table
from synth.cli.run_table import print_contradictions, print_messages, print_tables, write_csv

if TYPE_CHECKING:
    from synth.batch.plan import Batch, Engine, Resources, Submission, Task
    from synth.batch.repeat import Had
    from synth.batch.status import BatchStatus
    from synth.execution.runs import Run
    from synth.records.record import Record
    from synth.study import Study

app = typer.Typer(
    no_args_is_help=True, help="Many runs in one folder: on this machine or as Slurm job arrays.", rich_markup_mode=None
)
LISTED = 20  # failed and lost runs that status names

app.command("run", context_settings={"allow_extra_args": True})(batch_run.run)

FOLDER = typer.Argument(..., metavar="FOLDER", help="The batch's folder.")


@app.command("submit")
@grouped
def submit(
    targets: list[str] = typer.Argument(
        ..., metavar="STUDY.toml|INSTANCE…", help="A study (file or family), or instances and folders of them."
    ),
    engine: str = typer.Option("local", "--engine", help="slurm, or local: here and now, without a cluster."),
    folder: Path = typer.Option(None, "--folder", help="The batch's folder. Default: results/batches/<name>."),
    asked: Asked = Asked(),
    wanted: Jobs = Jobs(),
) -> None:
    """Expand the runs of a study or of instances and send them off. A study says itself what is to run and how long."""
    from synth.batch import plan
    from synth.execution.runs import plan as expand_all
    from synth.records import lock

    chosen = _engine(engine)
    resources = _resources(plan.Resources(), wanted)
    study = _study(targets)
    if study is None:
        name = f"{datetime.now():%Y%m%d-%H%M%S}"
        folder = folder or Path("results/batches") / name
        demand_folder("--folder", folder)
        runs = expand_all([Path(target) for target in targets], asked.request(), folder / "records")
    else:
        if asked.methods or asked.solver or asked.options:
            raise bad_option("-m, --solver and -O", "go with instances; a study says this itself", targets[0])
        folder = folder or Path("results/batches") / study.name
        demand_folder("--folder", folder)
        prepared = study.prepare(folder)
        runs = list(prepared.runs)
        for text in prepared.left_out:
            errors.print(f"left out: {text}")
    demand_records("--folder", runs)
    with nullcontext() if wanted.dry_run else lock.held(folder, "batch"):
        if (folder / plan.FILE).exists():
            raise bad_option("--folder", "there is a batch already; see `synth batch resubmit`", str(folder))
        entries = tuple(plan.Entry.of(run, folder) for run in runs)
        batch = plan.Batch(folder, os.getcwd(), entries, None if study is None else targets[0])
        submission = plan.submission(batch, chosen, range(len(entries)), resources)
        sent = _send(batch, submission, wanted.dry_run)
    if sent is not None:
        _run_here(sent, wanted.jobs)


@app.command("resubmit")
@grouped
def resubmit(
    folder: Path = FOLDER,
    engine: str = typer.Option(None, "--engine", help="slurm or local. Default: as before."),
    time_limit: str = typer.Option(
        None, "--time-limit", help="A new time limit for the runs that are sent again: 5m, or 2x their own."
    ),
    wanted: Jobs = Jobs(),
) -> None:
    """Send what is missing again: runs that failed or were lost. What is not named stays as it was; --mem, --time and
    --time-limit also take a multiple of what these runs had: 2x."""
    from synth.batch import plan
    from synth.records import lock

    plan.read(folder)
    with nullcontext() if wanted.dry_run else lock.held(folder, "batch"):
        sent = _sent_again(plan.read(folder), engine, time_limit, wanted)
    if sent is not None:
        _run_here(sent, wanted.jobs)


def _sent_again(batch: Batch, engine: str | None, time_limit: str | None, wanted: Jobs) -> Batch | None:
    """Send the missing runs again; what :func:`_send` returns."""
    from dataclasses import replace

    from synth.batch import plan, repeat, status
    from synth.options import read_duration

    last = batch.submissions[-1] if batch.submissions else None
    chosen = _engine(engine or (last.engine if last else "local"))
    found = status.of(batch)
    _warn_of_queue(found)
    missing = found.missing()
    if not missing:
        console.print(_counted(found) + "; nothing to send again")
        return None
    resources = _resources(last.resources if last else plan.Resources(), wanted, repeat.had(missing))
    before = batch
    if time_limit is not None:
        entries = list(batch.entries)
        for index in (run.index for run in missing):
            limit = _amount("--time-limit", read_duration, time_limit, entries[index].limit_s)
            entries[index] = replace(entries[index], options={**entries[index].options, "time_limit_s": limit})
        batch = replace(batch, entries=tuple(entries))
    submission = plan.submission(batch, chosen, [run.index for run in missing], resources)
    for text in repeat.the_same_again(before, batch, missing, submission):
        errors.print(text)
    return _send(batch, submission, wanted.dry_run)


@app.command("status")
def show_status(
    folder: Path = FOLDER,
    as_json: bool = typer.Option(False, "--json", help="Counts and every run's state as one JSON text."),
) -> None:
    """How many runs are done, running, queued, failed and lost, and why the last two."""
    from synth.batch import plan, status

    batch = plan.read(folder)
    found = status.of(batch)
    status.prune(batch, found)
    if as_json:
        runs = [
            {"run": str(batch.entries[run.index]), "state": run.state, "kind": run.kind, "why": run.why}
            for run in found.runs
        ]
        print(json.dumps({"counts": found.counts, "runs": runs}))
        return
    _warn_of_queue(found)
    console.print(_counted(found))
    for why, number in found.stuck().items():
        text = f"{number} of the queued: {why}; `scontrol release` or `scancel` the job"
        console.print(text)
    bad = found.missing()
    if bad:
        rows = [(str(batch.entries[run.index]), run.state, run.kind, run.why) for run in bad[:LISTED]]
        console.print(table("run", "", "kind", "why", rows=rows))
        if len(bad) > LISTED:
            console.print(f"and {len(bad) - LISTED} more (--json names all)")
        console.print(f"send these again: {command('batch', 'resubmit', folder)}")


@app.command("collect")
def collect(folder: Path = FOLDER) -> None:
    """Make the study's table and report (for instances: a table) from the records that are there."""
    from synth.batch import plan, status

    batch = plan.read(folder)
    found = status.of(batch)
    status.prune(batch, found)
    _warn_of_queue(found)
    console.print(_counted(found))
    if batch.study is not None:
        _collect_study(batch, batch.study)
    done = [(batch.entries[run.index].run(folder), run.record) for run in found.runs if run.record is not None]
    if batch.study is None and done:
        print_contradictions(done)
        print_tables(done)
        with (folder / "table.csv").open("w", newline="") as stream:
            write_csv(done, stream)
        console.print(f"{folder / 'table.csv'} written")
    print_messages(done)


def _study(targets: Sequence[str]) -> Study | None:
    """The study named (a file, or a family's), or None when the targets are instance files."""
    from synth.family import family_names
    from synth.study import load

    families = family_names()
    if not any(t.endswith(".toml") or (t in families and not Path(t).exists()) for t in targets):
        return None
    if len(targets) > 1:
        raise bad_option("STUDY", "takes one study, and no instances beside it", " ".join(targets))
    return load(targets[0])


def _collect_study(batch: Batch, target: str) -> None:
    from contextlib import chdir

    from synth.study import load
    from synth.study.collect import collect

    folder = batch.folder.resolve()
    with chdir(batch.directory):
        made = collect(load(target).prepare(folder))
    for path in made.files:
        console.print(f"{batch.folder / path.relative_to(folder)} written")


def _engine(name: str) -> Engine:
    if name == "slurm":
        return "slurm"
    if name == "local":
        return "local"
    raise bad_option("--engine", "must be slurm or local", name)


def _resources(before: Resources, wanted: Jobs, had: Had | None = None) -> Resources:
    """Options over what held before; ``had`` is what multiples are of. Raises :class:`InputError` in words."""
    from dataclasses import replace

    from synth.options import read_duration, read_megabytes

    words: dict[str, Any] = {
        "partition": wanted.partition,
        "account": wanted.account,
        "time_s": None
        if wanted.time is None
        else _amount("--time", read_duration, wanted.time, had.job_s if had else None),
        "mem_mb": None
        if wanted.mem is None
        else _amount("--mem", read_megabytes, wanted.mem, had.mem_mb if had else None),
        "cpus": wanted.cpus,
        "array_parallelism": wanted.array_parallelism,
        "chunk": wanted.chunk,
        "grace_s": None if wanted.grace is None else checked("--grace", read_duration, wanted.grace),
    }
    return replace(before, **{key: value for key, value in words.items() if value is not None})


def _amount(name: str, read: Callable[[str], float], text: str, had: float | None) -> float:
    """An amount as read, or a multiple of what there was."""
    from synth.options import read_factor

    factor = checked(name, read_factor, text)
    if factor is None:
        return checked(name, read, text)
    if had is None:
        raise bad_option(name, "is a multiple of what nobody knows here; name the amount", text)
    return factor * had


def _send(batch: Batch, submission: Submission, dry_run: bool) -> Batch | None:
    """Write the batch with this submission and send it to Slurm. Returns it where its runs are to be done here."""
    from synth.batch import plan, slurm

    most = slurm.max_array_size() if submission.engine == "slurm" else len(submission.tasks)
    groups = plan.parts(submission.tasks, most)
    _print_groups(batch, submission, groups)
    whole = batch.with_submission(submission)
    if dry_run:
        for group in groups if submission.engine == "slurm" else []:
            console.print()
            console.lines(slurm.script(batch, group, submission.resources), end="")
        return None
    try:
        whole.write()
        if submission.engine == "slurm":
            for group in groups:
                whole = whole.with_jobs(slurm.submit(whole, group, submission.resources))
                whole.write()
    except OSError as error:
        errors.print(f"synth: cannot write {batch.folder / plan.FILE}: {error.strerror}", style="red")
        raise typer.Exit(EXIT_FAILED) from None
    if submission.engine == "slurm":
        ids = sorted({(task.job or "").partition("_")[0] for task in whole.submissions[-1].tasks})
        console.print(f"submitted: {'job' if len(ids) == 1 else 'jobs'} {', '.join(ids)}")
        console.print(f"how far: {command('batch', 'status', batch.folder)}")
        return None
    return whole


def _print_groups(batch: Batch, submission: Submission, groups: Sequence[Sequence[Task]]) -> None:
    """A row for the jobs of one array whose runs have the same limit and threads."""
    rows = []
    for group in groups:
        alike: dict[tuple[float | None, int], list[Task]] = {}
        for task in group:
            entry = batch.entries[task.runs[0]]
            alike.setdefault((entry.limit_s, entry.threads), []).append(task)
        for (limit_s, threads), tasks in alike.items():
            sizes = [len(task.runs) for task in tasks]
            several = f"{max(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
            limit = "none" if limit_s is None else f"{limit_s:g} s"
            job_time = "–" if submission.engine == "local" else f"{tasks[0].time_min} min"
            rows.append((str(len(tasks)), several, limit, str(threads), str(tasks[0].cpus), job_time))
    heads = ("jobs", "runs of each", "limit of a run", "threads", "cpus", "time of a job")
    shown = table(*heads, rows=rows, right=heads)
    shown.title = f"{sum(len(task.runs) for task in submission.tasks)} runs, engine {submission.engine}"
    shown.title += f", folder {batch.folder}"
    console.print(shown)


def _run_here(batch: Batch, jobs: int | None) -> None:
    from synth.batch import local, status
    from synth.cli.progress import Progress

    last = batch.submissions[-1]
    ended: list[tuple[Run, Record]] = []
    with (
        ending_early(f"`{command('batch', 'resubmit', batch.folder)}`"),
        Progress(sum(len(task.runs) for task in last.tasks)) as progress,
    ):

        def on_end(run: Run, record: Record) -> None:
            progress.done(run, record)
            ended.append((run, record))

        local.run(batch, jobs, progress.start, on_end)
    found = status.of(batch)
    console.print(_counted(found))
    print_messages(ended)
    if found.missing():
        raise typer.Exit(EXIT_FAILED)


def _counted(found: BatchStatus) -> str:
    return f"{len(found.runs)} runs: " + ", ".join(f"{number} {state}" for state, number in found.counts.items())


def _warn_of_queue(found: BatchStatus) -> None:
    if not found.queue_known:
        errors.print("squeue does not answer here: what is shown as running or queued may be lost")
