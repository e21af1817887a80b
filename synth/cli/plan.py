"""``synth plan``: schedules of demands that change from call to call, in milliseconds, each with a certified bound."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer
from typer import Option

from synth.cli.common import EXIT_FAILED, EXIT_INPUT, checked, demand_folder
from synth.cli.options import grouped
from synth.cli.output import visible

if TYPE_CHECKING:
    from synth.planning import PlannedDemand, Planning
    from synth.text.matrices import Block

DEMANDS = (
    "A stream of matrices, bytes from every rank (row) to every rank (column), or - for standard input. Each is a JSON "
    "line [[0,4096],[8192,0]], or a block of CSV lines with an empty line behind it."
)
OUT = "A folder for a record of each demand, for `synth check`, `show --csv` and `export`."
BETTER = "Let method flow look for a better schedule too. The prices of its linear program bound later demands."
ONE = (
    "One fixed plan, routes and orders, for all matrices and all that ask for no more of any pair than one of them: "
    "what each takes by it, its bound, and its regret, seconds / bound - 1. What is wrong is left out."
)
HEAD = ("line", "seconds", "bound", "gap", "by", "transfers", "plan_ms")


@dataclass(frozen=True)
class Wanted:
    """What is to be done with each demand."""

    out: Annotated[Path | None, Option("--out", "-o", help=OUT)] = None
    flow: Annotated[bool, Option("--flow", help=BETTER)] = False
    time_limit: Annotated[str, Option(help="Of --flow, for each demand: 90, 60s, 5m.")] = "60s"
    one_plan: Annotated[bool, Option("--one-plan", help=ONE)] = False
    check: Annotated[bool, Option(help="Replay every schedule and verify every bound.")] = True
    as_json: Annotated[bool, Option("--json", help="One JSON object a line, exact numbers.")] = False


@grouped
def plan(
    machine: str = typer.Argument(..., help="A machine by name, a machine file, or an instance file."),
    parameters: list[str] = typer.Argument(None, metavar="key=value…", help="As `synth make` takes them: boxes=8."),
    demands: str = typer.Option(..., "--demands", metavar="FILE|-", help=DEMANDS),
    wanted: Wanted = Wanted(),
) -> None:
    """Plan demands that change from call to call, as those of mixtures of experts: for every matrix a schedule with
    exact times and a certified lower bound, printed as soon as the matrix has been read.

    A matrix that is wrong is refused with its line, and the next one is planned; the exit code is then 2. Ranks are in
    the machine's order, box after box. plan_ms is processor time without reading, check and printing."""
    from synth.options import read_limit
    from synth.text.matrices import matrices

    seconds = checked("--time-limit", read_limit, wanted.time_limit)
    planner = _planner(machine, parameters or [])
    if wanted.out is not None:
        demand_folder("--out", wanted.out)
    if wanted.one_plan:
        with _opened(demands) as stream:
            _one_plan(planner, _at_least_one(matrices(stream), demands), demands, wanted)
        return
    code = 0
    if not wanted.as_json:
        _say("{:>8} {:>14} {:>14} {:>8} {:>9} {:>9} {:>8}".format(*HEAD))
    with _opened(demands) as stream:
        for block in _at_least_one(matrices(stream), demands):
            found, spent_s, fault = _planned(planner, block, wanted, seconds)
            if found is None:
                print(visible(f"synth: {demands}, {fault}"), file=sys.stderr, flush=True)
                code = max(code, EXIT_INPUT)
                continue
            _print(block, found, spent_s, wanted.as_json)
            faults = found.check().faults if wanted.check else []
            for words in faults:
                print(visible(f"synth: {demands}, line {block.line}: {words}"), file=sys.stderr, flush=True)
            if faults:
                raise typer.Exit(EXIT_FAILED)
            if wanted.out is not None:
                _write(found, wanted.out, block)
    if code:
        raise typer.Exit(code)


def _at_least_one(blocks: Iterator[Block], demands: str) -> Iterator[Block]:
    """The blocks as they come. Raises :class:`synth.errors.InputError` at the end where none came."""
    from synth.errors import InputError

    none = True
    for block in blocks:
        none = False
        yield block
    if none:
        raise InputError("holds no demand: it needs a JSON line or a block of CSV for every matrix", demands)


def _one_plan(planner: Planning, blocks: Iterator[Block], demands: str, wanted: Wanted) -> None:
    """Print the regret of every matrix under one plan."""
    from synth.errors import InputError, UnsupportedError

    read: list[Block] = []
    refused = False
    for block in blocks:
        found, _, fault = _planned(planner, block, Wanted(), None)
        refused = refused or found is None
        if found is None:
            print(visible(f"synth: {demands}, {fault}"), file=sys.stderr, flush=True)
        else:
            read.append(block)
    try:
        made = planner.one_plan([block.rows for block in read])
    except UnsupportedError as error:
        raise InputError(str(error), demands) from None
    faults = [words for corner in made.corners for words in corner.verdict.faults]
    if wanted.as_json:
        for block, corner in zip(read, made.corners, strict=True):
            row = {"line": block.line, "seconds": corner.seconds, "bound": corner.bound, "regret": corner.regret}
            _say(json.dumps(row))
    else:
        _say(f"{'line':>8} {'seconds':>14} {'bound':>14} {'regret':>8}")
        for block, corner in zip(read, made.corners, strict=True):
            _say(f"{block.line:>8} {corner.seconds:>14.9g} {corner.bound:>14.9g} {corner.regret:>8.2%}")
        _say(f"one plan of {made.seconds:.9g} s at most; worst regret {made.worst_regret:.2%}")
    for words in faults:
        print(visible(f"synth: {demands}: {words}"), file=sys.stderr, flush=True)
    if faults or refused:
        raise typer.Exit(EXIT_FAILED if faults else EXIT_INPUT)


def _planner(machine: str, parameters: list[str]) -> Planning:
    """The planner of a machine or of an instance's machine. Raises :class:`synth.errors.InputError`."""
    from synth.instance import FORMAT, read
    from synth.options import split_pairs
    from synth.planning import Planner

    path = Path(machine)
    if path.is_file() and FORMAT in path.read_bytes()[:4096].decode(errors="replace"):
        return Planner(read(path))
    return Planner(machine, **dict(split_pairs(parameters, "synth plan")))


@contextmanager
def _opened(demands: str) -> Iterator[BinaryIO]:
    """The stream of that name. Raises :class:`synth.errors.InputError`."""
    from synth.errors import InputError

    if demands == "-":
        yield sys.stdin.buffer
        return
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(Path(demands).open("rb"))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", demands) from None
        yield stream


def _planned(
    planner: Planning, block: Block, wanted: Wanted, seconds: float | None
) -> tuple[PlannedDemand | None, float, str]:
    """The plan of a matrix and the processor time that it took, or what is wrong with it and where."""
    from synth.errors import InputError, UnsupportedError

    if block.fault is not None:
        return None, 0.0, f"line {block.fault_line}: {block.fault}"
    began = time.process_time()
    try:
        return planner.plan(block.rows, wanted.flow, seconds), time.process_time() - began, ""
    except InputError as error:
        return None, 0.0, f"line {block.line}: the matrix that begins here: {'; '.join(str(error).splitlines())}"
    except UnsupportedError as error:
        return None, 0.0, f"line {block.line}: no plan on this machine: {error}"


def _say(text: str) -> None:
    typer.echo(text)
    sys.stdout.flush()


def _print(block: Block, found: PlannedDemand, spent_s: float, as_json: bool) -> None:
    """One line for a demand."""
    count = len(found.schedule.start)
    if as_json:
        row: dict[str, Any] = dict(
            zip(HEAD, (block.line, found.seconds, found.bound, found.gap, found.by, count, spent_s * 1e3), strict=True)
        )
        _say(json.dumps(row | {"proof": str(found.proven), "certificate": found.proven.certificate()}))
        return
    row_text = f"{block.line:>8} {found.seconds:>14.9g} {found.bound:>14.9g} {found.gap:>8.2%} {found.by:>9}"
    _say(f"{row_text} {count:>9} {spent_s * 1e3:>8.1f}")


def _write(found: PlannedDemand, folder: Path, block: Block) -> None:
    """The demand's instance file and its record."""
    from synth import api
    from synth.family import Outcome, get_family
    from synth.instance import read
    from synth.options import RunOptions
    from synth.records import record as records

    data = json.loads(found.instance.to_json())
    if not data.get("demand"):
        return  # nothing has to move: no instance says so
    data["name"] = f"{data['name']}-line{block.line}"
    file = folder / "instances" / f"{data['name']}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data, indent=2) + "\n")
    instance, proven = read(file), found.proven
    outcome = Outcome("finished", found.schedule, found.bound, str(proven), proven.certificate(), found.by)
    method = get_family(instance.family).method("flow" if found.by == "flow" else "plan")
    record = api.execute(instance, method, RunOptions(None), lambda instance, options: outcome)
    place = records.record_path(folder, instance.family, instance.name, method.name, None)
    records.write(record, place)
