"""``synth library``: the best values and bounds known, how they were reached, and what is open."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synth.cli.options import grouped
from synth.cli.output import command, console, errors, table
from synth.cli.submit import LIBRARY
from synth.text.quantities import counted, named, percent, shown
from synth.text.visible import visible

if TYPE_CHECKING:
    from synth.library.best_known import Row
    from synth.records.record import Record


@dataclass(frozen=True)
class Into:
    """Which folder is written into, and what."""

    write: Annotated[Path | None, typer.Option(help="Write the instances' files into this folder.")] = None
    make: Annotated[Path | None, typer.Option(help="Make the library of the packed records below this folder.")] = None
    compose: Annotated[
        Path | None, typer.Option(help="Compose open instances of others' schedules; write records that are better.")
    ] = None
    time_limit: Annotated[str, typer.Option(help="Of every instance that is composed; of a first run.")] = "60s"


@dataclass(frozen=True)
class Night:
    """A library is made better within a budget of time."""

    improve: Annotated[
        Path | None, typer.Option(help="Make the library in this folder better: run what is open, widest gaps first.")
    ] = None
    budget: Annotated[str, typer.Option(help="With --improve: time in all, 30m or 8h; a new start goes on.")] = "1h"
    shard: Annotated[str, typer.Option(help="With --improve: only part I of N, as I/N; for job arrays.")] = "1/1"
    seed: Annotated[int, typer.Option(min=0, help="With --improve: of runs, and of the order of equal gaps.")] = 0


@grouped
def library(
    what: str = typer.Argument(
        None, metavar="[FAMILY|INSTANCE]", help="A family, or an instance: its name, hash or file."
    ),
    only_open: bool = typer.Option(False, "--open", help="Only instances whose best value and bound do not meet."),
    selection: str = typer.Option(None, "--selection", help="Only those of synth-lib of this version, such as 1.0."),
    as_csv: bool = typer.Option(False, "--csv", help="The rows as CSV with exact numbers."),
    into: Into = Into(),
    night: Night = Night(),
    file: Path = LIBRARY,
) -> None:
    """The best values and bounds known: a row an instance. Of one instance: what is known, how it was reached, and how
    to beat it."""
    from synth.errors import InputError
    from synth.family import family_names
    from synth.library import best_known

    if into.make is not None:
        _make(into.make)
        return
    if night.improve is not None:
        _improve(night, into.time_limit, lambda rows: _chosen(rows, what, only_open, selection))
        return
    found = best_known.demand(file)
    one = what is not None and what not in family_names()
    rows = _chosen(best_known.read(found), what, only_open, selection)
    if not rows:
        raise InputError(f"holds nothing of {what or 'these'}", str(found))
    if into.compose is not None:
        _compose(rows, found, into.compose, into.time_limit)
    elif into.write is not None:
        _write(rows, found.parent, into.write)
    elif as_csv:
        sys.stdout.write(
            best_known.as_csv(best_known.COLUMNS, ([visible(str(cell)) for cell in astuple(row)] for row in rows))
        )
    elif one:
        for row in rows:
            _show(row, found.parent)
    else:
        _table(rows)


def _chosen(rows: list[Row], what: str | None, only_open: bool, selection: str | None) -> list[Row]:
    """The rows of a family or an instance, only open ones, only those of a selection."""
    from synth.family import family_names
    from synth.library.best_known import rows_for

    if what is not None:
        own = [row for row in rows if row.family == what]
        rows = own if what in family_names() else rows_for(rows, what)
    if only_open:
        rows = [row for row in rows if row.status == "open"]
    return [row for row in rows if selection is None or selection in row.selection.split()]


def _make(folder: Path) -> None:
    from synth.errors import InputError
    from synth.library import best_known, figure, page
    from synth.text.files import write_atomically
    from synth.views.figure_style import save

    if not folder.is_dir():
        raise InputError("no such folder", str(folder))
    rows = best_known.make(folder)
    write_atomically(folder / page.NAME, page.text(rows, best_known.read_history(folder)).encode())
    (folder / figure.NAME).parent.mkdir(exist_ok=True)
    save(figure.draw(rows), folder / figure.NAME, bbox_inches="tight", dpi=110)
    closed = sum(row.status == "closed" for row in rows)
    words = f"{folder / best_known.NAME}: {len(rows)} instances, {closed} closed"
    console.print(words)


def _compose(rows: list[Row], file: Path, results: Path, time_limit: str) -> None:
    """A line an instance that is better, and how many were tried."""
    from synth.cli.common import demand_folder
    from synth.library import compositions
    from synth.options import given_limit

    demand_folder("--compose", results)
    tried = better = 0
    for row, record in compositions.better(rows, file, results, given_limit(time_limit) or math.inf):
        tried += 1
        if record is not None:
            better += 1
            before, after = shown(_number(row.value), row.unit), shown(record.value, row.unit)
            console.print(f"{row.family} {row.instance}: {after} instead of {before}: {record['message']}")
    console.print(f"{counted(tried, 'open instance')} tried, {better} better")


def _improve(night: Night, time_limit: str, chosen: Callable[[list[Row]], list[Row]]) -> None:
    """A line a run on standard error, one for each that is better, and how many there were."""
    from synth.cli.common import checked, demand_folder, ending_early
    from synth.library import best_known, improvement
    from synth.options import read_duration

    folder = night.improve
    assert folder is not None
    limits = (checked("--budget", read_duration, night.budget), checked("--time-limit", read_duration, time_limit))
    plan = improvement.Plan(*limits, night.seed, checked("--shard", improvement.read_shard, night.shard))
    file = best_known.demand(folder / best_known.NAME)
    demand_folder("--improve", folder)
    ran = better = 0
    improvement.collect(folder, _make)
    with ending_early("the same command"):
        for step in improvement.better(chosen(best_known.read(file)), file, plan):
            ran, better = ran + 1, better + bool(step.better)
            row, record = step.row, step.record
            numbers = f"value {shown(record.value, row.unit)}, bound {shown(record.bound, row.unit)}"
            words = f"{row.family} {row.instance} {record.label}: {numbers}"
            if step.better:
                known = f"value {shown(_number(row.value), row.unit)}, bound {shown(_number(row.bound), row.unit)}"
                console.print(f"{words}; better {' and '.join(step.better)} than {known}")
            else:
                errors.print(f"{words}{'; REFUSED: ' + step.refused if step.refused else ''}")
    improvement.collect(folder, _make)
    console.print(f"{counted(ran, 'run')}, {better} better; the list of runs: {folder / improvement.FOLDER}")


def _number(text: str) -> float | None:
    return float(text) if text else None


def _table(rows: list[Row]) -> None:
    """A row an instance, its best value by the method alone: the options stand where one instance is asked for."""
    cells = [
        (
            row.family, row.instance, row.size, shown(_number(row.value), row.unit), row.by.partition(",")[0] or "–",
            shown(_number(row.bound), row.unit), row.grade or "–", percent(_number(row.gap)), row.status,
        )
        for row in rows
    ]  # fmt: skip
    columns = ("family", "instance", "size", "best", "by", "bound", "proof", "gap", "status")
    console.print(table(*columns, rows=cells, right=("size", "best", "bound", "gap")))
    closed = sum(row.status == "closed" for row in rows)
    console.print(f"{len(rows)} instances, {closed} closed")


def _show(row: Row, folder: Path) -> None:
    """What is known of one instance."""
    from synth.library import best_known
    from synth.records import record as records

    lines = [f"{row.family} {row.instance}: {row.size} ranks, {row.status}, hash {row.sha256[:16]}…"]
    if row.selection:
        lines.append(f"in synth-lib {row.selection}; its data: {row.data}")
    if row.value:
        held = records.read(folder / row.record)
        value = named(_number(row.value), row.unit)
        lines.append(f"best value: {value} by {row.by}, {row.when}; gap {percent(_number(row.gap))}")
        lines.append(f"  how: {_how(held)}")
        lines.append(f"  the schedule: {command('show', _near(folder / row.record), '--csv')}")
    if row.bound:
        held = records.read(folder / row.bound_record)
        lines.append(
            f"best bound: {named(_number(row.bound), row.unit)} by {row.bound_by} ({row.grade}), {row.bound_when}"
        )
        lines.append(f"  because: {held['bound_proof'] or 'its certificate says so'}")
        lines.append(f"  its certificate: {command('show', _near(folder / row.bound_record), '--certificate')}")
    for one in best_known.read_history(folder):
        if one.sha256 == row.sha256:
            lines.append(f"before: {one.what} {named(float(one.number), row.unit)} by {one.by}, {one.when}")
    lines.append(f"the instance: {command('library', row.sha256[:16], '--write', '.')}")
    lines.append(f"to beat it: {command('submit', f'{row.instance}.json', '--schedule', 'FILE.csv', '--by', 'NAME')}")
    console.print(*lines, sep="\n")


def _near(path: Path) -> Path:
    """The path from here, where it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if here in path.parents else path


def _how(record: Record) -> str:
    """What the run said and was asked for; of what somebody handed in, who."""
    said = [record["message"]] if record["message"] else []
    submitted = record.data.get("submitted")
    if isinstance(submitted, dict):
        return "; ".join([*said, f"handed in by {submitted.get('by')}"])
    options = record["options"]
    limit = options.get("time_limit_s")
    asked = ["no limit" if limit is None else f"limit {limit} s", f"seed {options.get('seed')}"]
    given = options.get("method")
    own = given.items() if isinstance(given, dict) else ()
    asked += [f"{key}={value}" for key, value in own if value is not None]
    return "; ".join([*said, ", ".join(asked)])


def _write(rows: list[Row], folder: Path, out: Path) -> None:
    """Write the files of instances, those of one name with their hash behind it."""
    from synth.library.best_known import instance_of
    from synth.text.files import write_atomically

    out.mkdir(parents=True, exist_ok=True)
    for row in rows:
        instance = instance_of(row, folder)
        twice = sum(other.instance == row.instance for other in rows) > 1
        name = f"{row.instance}-{row.sha256[:8]}.json" if twice else f"{row.instance}.json"
        write_atomically(out / name, instance_bytes(instance, folder / (row.record or row.bound_record)))
    console.print(f"{out}: {counted(len(rows), 'instance')} written")


def instance_bytes(instance: object, record: Path) -> bytes:
    """The very bytes of the instance's file, which its hash is of: the text in the record, or the file."""
    from synth.instance import Instance
    from synth.records import record as records

    assert isinstance(instance, Instance)
    text = records.read(record).data.get("instance_text")
    if text is not None:
        return str(text).encode()
    return instance.to_json().encode() if instance.file is None else instance.file.read_bytes()
