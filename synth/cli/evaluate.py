"""``synth evaluate``: what a schedule, or a table of ``synth tune``, loses on machines it was not made for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from typer import Option

from synth.cli.common import bad_option, checked
from synth.cli.options import Costing, grouped
from synth.cli.output import console, table
from synth.text.visible import visible

if TYPE_CHECKING:
    from synth.errors import Fault
    from synth.instance import Instance
    from synth.tuning.robustness import Moves

VARY = "By how much links may be faster and slower: bandwidth=±10%, latency=±30% (repeatable)."
RIVALS = "Methods that make a schedule for every machine drawn, to compare with. Default: what libraries run today."


@dataclass(frozen=True)
class Drawing(Costing):
    """Which machines are drawn, who is run on them, and what an algorithm's thread blocks cost there."""

    vary: Annotated[list[str] | None, Option(help=VARY)] = None
    samples: Annotated[int, Option(min=1, help="Machines to draw.")] = 10
    seed: Annotated[int, Option(min=0, help="Of the factors of all links.")] = 0
    methods: Annotated[list[str] | None, Option("-m", "--method", help=RIVALS)] = None


class Asked(NamedTuple):
    """Schedules by name that answer the same instance, and the form of a table's files, empty for a record."""

    instance: Instance
    schedules: dict[str, Moves]
    form: str = ""


@grouped
def evaluate(
    path: Path = typer.Argument(..., metavar="SCHEDULE|TABLE", help="A record, or the table.csv of `synth tune`."),
    drawing: Drawing = Drawing(),
    as_csv: bool = typer.Option(False, "--csv", help="Every machine a row, exact numbers."),
) -> None:
    """Say what schedules lose on machines whose links differ from those they were made for: the regret, their time over
    the best that is known there − 1. Of a table every algorithm is tried at every size."""
    from synth.exchange.block_costs import words_of
    from synth.text.quantities import percent, shown
    from synth.tuning.robustness import read_variation, regrets

    variation = checked(
        "--vary", lambda _: read_variation(drawing.vary or [], drawing.samples, drawing.seed), str(drawing.vary)
    )
    if not (variation.bandwidth or variation.latency):
        raise bad_option("--vary", "must say what is varied: bandwidth=±10%, latency=±30%", "")
    rows: list[tuple[str, ...]] = []
    if as_csv:
        typer.echo("collective,bytes,schedule,machine,seconds,best_s,by,regret")
    told: dict[str, None] = {}
    for asked in _table(path) if path.suffix.lower() == ".csv" else _record(path):
        costs = drawing.model(asked.instance, asked.form)
        told[words_of(costs) if asked.form else ""] = None
        found = regrets(asked.schedules, asked.instance, variation, drawing.methods, costs)
        what, size = str(getattr(asked.instance, "collective", "")), int(getattr(asked.instance, "bytes", 0))
        for name, regret in found.regret.items():
            columns = (found.seconds[name].tolist(), found.best.tolist(), found.by, regret.tolist())
            for k, (seconds, best, by, loss) in enumerate(zip(*columns, strict=True) if as_csv else ()):
                typer.echo(f"{what},{size},{visible(name)},{variation.seed + k},{seconds!r},{best!r},{by},{loss!r}")
            worst = int(regret.argmax())
            mark = "least worst" if name == found.robust and len(found.regret) > 1 else ""
            rows.append((what, shown(size, "bytes"), name, shown(found.nominal[name], "s"), percent(regret.mean()),
                         percent(regret[worst]), str(variation.seed + worst), found.by[worst], mark))  # fmt: skip
    if not as_csv:
        head = ("collective", "size", "schedule", "time", "mean regret", "worst", "machine", "best there", "")
        console.print(table(*head, rows=rows, right=("time", "mean regret", "worst")))
        console.lines("\n".join(filter(None, told)))


def _record(path: Path) -> Iterator[Asked]:
    from synth.exchange.record_export import transfers_of
    from synth.records import record as records

    record = records.read(path)
    moves = transfers_of(record)
    yield Asked(record.find_instance(), {record["method"]: lambda _: moves})


def _table(path: Path) -> Iterator[Asked]:
    """A group a row: its instance, and every algorithm of its collective. Raises :class:`InputError`."""
    import csv
    import io

    from synth.errors import InputError
    from synth.text.input_file import InputFile

    rows = list(csv.DictReader(io.StringIO(InputFile(path).text)))
    needed = ("collective", "bytes", "algorithm")
    if not rows or any(row.get(name) is None for row in rows for name in needed):
        raise InputError(f"must be a table of `synth tune` with the columns {', '.join(needed)}", str(path))
    instances = _instances(path.parent / "instances")
    if wrong := list(_table_faults(path, rows, instances)):
        raise InputError(wrong, str(path))
    rows = [row for row in rows if not row.get("left")]  # what is left to the library has no file
    if not rows:
        raise InputError("leaves every size to the library: no algorithm is there to be tried", str(path))
    for row in rows:
        files = dict.fromkeys(Path(one["algorithm"]).name for one in rows if one["collective"] == row["collective"])
        instance = instances[row["collective"], row["bytes"]]
        form = "msccl" if all(name.endswith(".xml") for name in files) else "mscclpp"
        yield Asked(instance, {name: _moves(path.parent / name, instance) for name in files}, form)


def _table_faults(path: Path, rows: list[dict[str, str]], instances: Collection[tuple[str, str]]) -> Iterator[Fault]:
    """What is missing beside a table."""
    from synth.errors import Fault

    for line, row in enumerate(rows, 2):
        file = path.parent / Path(row["algorithm"]).name
        if not row.get("left") and not (row["algorithm"] and file.is_file()):
            yield Fault(f"line {line}, algorithm", "no such file beside the table", row["algorithm"], True)
        if (row["collective"], row["bytes"]) not in instances:
            yield Fault(f"line {line}, bytes", "instances/ beside the table has no such instance", row["bytes"], True)


def _instances(folder: Path) -> dict[tuple[str, str], Instance]:
    """Instances by collective and bytes, as a table writes them."""
    from synth.instance import read

    found = {}
    for file in sorted(folder.glob("*.json")):
        instance = read(file)
        found[str(getattr(instance, "collective", "")), str(getattr(instance, "bytes", ""))] = instance
    return found


def _moves(path: Path, instance: Instance) -> Moves:
    """What an algorithm's file runs. Raises :class:`InputError`."""
    from synth.errors import InputError
    from synth.exchange import msccl_xml, mscclpp
    from synth.exchange.file_check import check_file

    faults = check_file(path, str(getattr(instance, "collective", ""))).faults
    if faults:
        raise InputError(faults, str(path))
    if path.suffix.lower() == ".xml":
        return msccl_xml.read(path).algorithm
    plan, collective = mscclpp.read(path), str(getattr(instance, "collective", ""))
    return lambda size: mscclpp.raised(plan, collective, part_bytes=size)
