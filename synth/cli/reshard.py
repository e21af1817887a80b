"""``synth reshard``: weights from the ranks of one mesh to those of another, with a certified bound."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from synth.cli.common import EXIT_FAILED, demand_folder
from synth.cli.machine_import import MachineFile
from synth.cli.options import grouped

if TYPE_CHECKING:
    from synth.records.record import Record
    from synth.resharding.classes import Class
    from synth.resharding.tensors import Tensor

METHOD, RULES = "class_trees", ("trees", "direct", "balanced", "box_copy", "gather")
INSTEAD = "pull"  # the method where ranks are joined without switches
MESH = 'TOML: axes = { pp = 4, tp = 8 }, the last one fastest, and ranks = "0-31", nodes of the machine.'
TENSORS = (
    "CSV name,shape,dtype,from,to: 8x4096,bf16,pp=2 tp:0,tp:1. Axes not named replicate; tp:0(3,5), tp:0/up and "
    "tp:0[4096,512*2] state uneven and fused parts, - that no rank has it."
)
OUT = "A folder for the instance, the records, and CSV files of ranges and transfers with offsets."


@dataclass(frozen=True)
class Resharding:
    """What moves, and what is written."""

    source: Annotated[Path, Option("--from", metavar="FILE", help=f"The mesh that holds. {MESH}")]
    target: Annotated[Path, Option("--to", metavar="FILE", help="The mesh that wants, likewise.")]
    tensors: Annotated[Path, Option("--tensors", metavar="FILE", help=TENSORS)]
    out: Annotated[Path | None, Option("--out", "-o", help=OUT)] = None
    alone: Annotated[bool, Option("--no-references", help="Leave out what is done today.")] = False
    as_json: Annotated[bool, Option("--json", help="One JSON object, exact numbers.")] = False


@grouped
def reshard(
    resharding: Resharding,
    machine: str = typer.Argument(..., help="A machine by name, or a file that `synth import` reads."),
    parameters: list[str] = typer.Argument(None, metavar="key=value…", help="As `synth make` takes them: boxes=8."),
    file: MachineFile = MachineFile(),
) -> None:
    """Plan how tensors get from the ranks of one mesh to those of another: every range of bytes from some of its
    holders to all its wanters. Prints seconds, a certified lower bound, and what four ways of today take; the quickest
    of all is kept. All times are replayed by the check. plan_s is processor time for plan and bound, loading of kernels
    included, replay not."""
    from synth.cli.tune import maker
    from synth.family import get_family
    from synth.resharding.question import read_question
    from synth.text.input_file import InputFile

    plain: Any = maker("synth reshard", machine, parameters or [], file)("broadcast", "1")
    began = time.process_time()
    files = InputFile(resharding.source), InputFile(resharding.target), InputFile(resharding.tensors)
    question = read_question(files, frozenset(plain.members))
    classes, tensors = question.classes, question.tensors
    if resharding.out is not None:
        demand_folder("--out", resharding.out)
    if not classes:
        _say("nothing has to move: every wanter holds all that it wants")
        return
    read_s = time.process_time() - began
    began = time.process_time()
    name = f"{plain.name.removesuffix('-broadcast-1B')[:60]}-reshard"
    instance = get_family(plain.family).capability("with_traffic")(plain, name, "synth reshard", question.rows)
    read_s += time.process_time() - began
    if resharding.out is not None:
        instance = _kept(instance, resharding.out)
    runs = [_run(instance, rule) for rule in (RULES[:1] if resharding.alone else RULES)]
    if runs[0][1].value is None:
        runs.insert(0, _run(instance, INSTEAD))
    kept = min(runs, key=lambda run: math.inf if run[1].value is None else run[1].value)
    if resharding.out is not None:
        _write(instance, runs, kept, resharding.out, (classes, tensors))
    _print(classes, runs, kept[0], read_s, resharding.as_json)
    if any(record.failed for _, record, _ in runs):
        raise typer.Exit(EXIT_FAILED)


Run = tuple[str, "Record", float]


def _run(instance: Any, rule: str) -> Run:
    """The record of a rule, or of the method :data:`INSTEAD`, and the processor time of its plan and bound."""
    from synth import api
    from synth.family import function_of, get_family
    from synth.options import RunOptions

    family = get_family(instance.family)
    method = family.method(INSTEAD if rule == INSTEAD else METHOD)
    own = {parameter.name: parameter.default for parameter in method.parameters}
    options = RunOptions(None, method=own | ({} if rule == INSTEAD else {"rule": rule}))
    function = function_of(family, method)
    spent = 0.0

    def timed(instance: Any, options: RunOptions) -> Any:
        nonlocal spent
        began = time.process_time()
        try:
            return function(instance, options)
        finally:
            spent = time.process_time() - began

    record = api.execute(instance, method, options, timed)
    return rule, record, spent


def _kept(instance: Any, folder: Path) -> Any:
    """The instance as read from the file that is written here."""
    from synth.instance import read

    place = folder / "instances" / f"{instance.name}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(instance.to_json() + "\n", encoding="utf-8")
    return read(place)


def _write(instance: Any, runs: list[Run], kept: Run, folder: Path, moved: tuple[list[Class], list[Tensor]]) -> None:
    """Write a record of every rule, and the tables of the one kept."""
    from synth.errors import InputError
    from synth.family import get_family
    from synth.method import load
    from synth.options import asked
    from synth.records import record as records
    from synth.resharding.moves import ranges, with_offsets

    family = get_family(instance.family)
    for rule, record, _ in runs:
        name = record.data["method"]
        question = asked(family.method(name).parameters, {"rule": rule})
        records.write(record, records.record_path(folder, instance.family, instance.name, name, None, question))
    (folder / f"{instance.name}-ranges.csv").write_text("\n".join(ranges(*moved)) + "\n", encoding="utf-8")
    try:
        table = load(family.table)(instance, kept[1].solution())
    except InputError:
        return  # no plan: its row says why
    with_offsets(table).to_csv(folder / f"{instance.name}-transfers.csv", index=False)


def _print(classes: list[Class], runs: list[Run], kept: str, read_s: float, as_json: bool) -> None:
    """What moves, a row a rule, and which is kept."""
    moved = sum(one.bytes * len(one.lacking) for one in classes)
    size = sum(one.bytes for one in classes)
    if as_json:
        rows = [
            {"rule": rule, "seconds": record.value, "bound": record.bound, "gap": record.gap, "plan_s": spent,
             "message": record.data["message"]}
            for rule, record, spent in runs
        ]  # fmt: skip
        known = {"bytes": size, "delivered": moved, "classes": len(classes), "read_s": read_s, "kept": kept}
        _say(json.dumps(known | {"plans": rows}))
        return
    _say(f"{size:,} bytes in {len(classes)} classes, {moved:,} delivered; tables and instance {read_s:.2f} s")
    _say(f"{'rule':>10} {'seconds':>12} {'bound':>12} {'gap':>8} {'plan_s':>7}")
    for rule, record, spent in runs:
        if record.value is None:
            _say(f"{rule:>10} {record.data['message'] or record.data['termination']}")
            continue
        bound = "none" if record.bound is None else f"{record.bound:.6g}"
        share = "" if record.gap is None else f"{record.gap:.2%}"
        last = " kept" if rule == kept and len(runs) > 1 else ""
        _say(f"{rule:>10} {record.value:>12.6g} {bound:>12} {share:>8} {spent:>7.2f}{last}")


def _say(text: str) -> None:
    typer.echo(text)
