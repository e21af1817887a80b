"""``synth plan``: schedules of demands that change from call to call, in milliseconds, each with a certified bound."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer
from typer import Option

from synth.cli.common import EXIT_FAILED, EXIT_INPUT, bad_option, checked, demand_folder
from synth.cli.machine_import import MachineFile
from synth.cli.options import grouped
from synth.cli.plan_tokens import Tokens, machine_meant, name_of, plan_tokens
from synth.text.visible import visible

if TYPE_CHECKING:
    from fractions import Fraction

    from synth.instance import Instance
    from synth.planning import OnePlanned, PlannedDemand, Planning
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
NEAR = (
    "With --one-plan: also for all matrices of which every number differs from a given one by this share at most, such "
    "as 0.1. Seconds are then the most that any of them takes, and the bound holds for all of them."
)
HEAD = ("line", "seconds", "bound", "gap", "by", "transfers", "plan_ms")


@dataclass(frozen=True)
class Wanted:
    """What is to be done with each demand."""

    out: Annotated[Path | None, Option("--out", "-o", help=OUT)] = None
    flow: Annotated[bool, Option("--flow", help=BETTER)] = False
    time_limit: Annotated[str, Option(help="Of --flow, for each demand: 90, 60s, 5m.")] = "60s"
    one_plan: Annotated[bool, Option("--one-plan", help=ONE)] = False
    near: Annotated[str | None, Option(metavar="SHARE", help=NEAR)] = None
    check: Annotated[bool, Option(help="Replay every schedule and verify every bound.")] = True
    as_json: Annotated[bool, Option("--json", help="One JSON object a line, exact numbers.")] = False


@grouped
def plan(
    machine: str = typer.Argument(
        ..., help="A machine by name, a machine or instance file, or a file that `synth import` reads."
    ),
    parameters: list[str] = typer.Argument(None, metavar="key=value…", help="As `synth make` takes them: boxes=8."),
    demands: str | None = typer.Option(None, "--demands", metavar="FILE|-", help=DEMANDS),
    wanted: Wanted = Wanted(),
    experts: Tokens = Tokens(),
    file: MachineFile = MachineFile(),
) -> None:
    """Plan demands that change from call to call, as those of mixtures of experts: for every matrix a schedule with
    exact times and a certified lower bound, printed as soon as the matrix has been read.

    A matrix that is wrong is refused with its line, and the next one is planned; the exit code is then 2. Ranks are in
    the machine's order, box after box. plan_ms is processor time without reading, check and printing."""
    from synth.options import read_limit
    from synth.planning import Planner
    from synth.text.matrices import matrices

    seconds = checked("--time-limit", read_limit, wanted.time_limit)
    near = _near(wanted)
    experts.demand_either(demands)
    meant = machine_meant("synth plan", machine, parameters or [], file)
    if wanted.out is not None:
        demand_folder("--out", wanted.out)
    if demands is None:
        _tokens(meant, experts, wanted)
        return
    planner = Planner(meant)
    if wanted.one_plan:
        with _opened(demands) as stream:
            _one_plan(planner, _at_least_one(matrices(stream), demands), demands, near, wanted.as_json)
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
                _write(found, wanted.out, f"line{block.line}")
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


def _near(wanted: Wanted) -> Fraction:
    """The share that --near names."""
    from fractions import Fraction

    from synth.text import amounts

    if wanted.near is None:
        return Fraction(0)
    if not wanted.one_plan:
        raise bad_option("--near", "needs --one-plan", wanted.near)
    return Fraction(checked("--near", amounts.share, wanted.near))


def _one_plan(planner: Planning, blocks: Iterator[Block], demands: str, near: Fraction, as_json: bool) -> None:
    """Print the regret of every matrix, and of all that are near it, under one plan."""
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
        made = planner.one_plan([block.rows for block in read], near)
    except (InputError, UnsupportedError) as error:
        raise InputError(str(error), demands) from None
    _print_regrets([block.line for block in read], made, as_json)
    faults = [*made.verdict.faults, *(words for corner in made.corners for words in corner.verdict.faults)]
    for words in faults:
        print(visible(f"synth: {demands}: {words}"), file=sys.stderr, flush=True)
    if faults or refused:
        raise typer.Exit(EXIT_FAILED if faults else EXIT_INPUT)


def _print_regrets(lines: list[int], made: OnePlanned, as_json: bool) -> None:
    """A row a matrix, and what holds for all of them."""
    if as_json:
        for line, corner in zip(lines, made.corners, strict=True):
            row = {"line": line, "seconds": corner.seconds, "bound": corner.bound, "regret": _finite(corner.regret)}
            _say(json.dumps(row))
        whole = {"seconds": made.seconds, "worst_regret": made.worst_regret,
                 "average_bound": made.average_bound, "average_regret": made.average_regret}  # fmt: skip
        _say(json.dumps({"one_plan": {key: _finite(value) for key, value in whole.items()}}))
        return
    _say(f"{'line':>8} {'seconds':>14} {'bound':>14} {'regret':>8}")
    for line, corner in zip(lines, made.corners, strict=True):
        _say(f"{line:>8} {corner.seconds:>14.9g} {corner.bound:>14.9g} {_regret(corner.regret):>8}")
    _say(f"one plan of {made.seconds:.9g} s at most; worst regret {_regret(made.worst_regret)}; "
         f"of every average at most {_regret(made.average_regret)}")  # fmt: skip


def _regret(value: float) -> str:
    """As a percentage, or that none is known."""
    return f"{value:.2%}" if math.isfinite(value) else "unknown"


def _finite(value: float) -> float | None:
    """The number, None for an infinite one, which JSON has no word for."""
    return value if math.isfinite(value) else None


def _tokens(machine: Instance, experts: Tokens, wanted: Wanted) -> None:
    """Plan tokens, and write a record of each way."""
    from synth.errors import InputError, UnsupportedError
    from synth.planning import TokenPlanner

    if wanted.flow or wanted.one_plan:
        raise bad_option("--tokens", "takes neither --flow nor --one-plan", experts.tokens or "")
    try:
        planner = TokenPlanner(machine)
        ways = plan_tokens(planner, experts, wanted.check, wanted.as_json)
    except UnsupportedError as error:
        raise InputError(f"no plan of tokens on this machine: {error}") from None
    if wanted.out is not None:
        for way in ways:
            _write(way, wanted.out, name_of(way, experts.tokens or ""))


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


def _write(found: PlannedDemand, folder: Path, name: str) -> None:
    """The demand's instance file and its record."""
    from synth import api
    from synth.family import get_family
    from synth.instance import read
    from synth.method import Outcome
    from synth.options import RunOptions
    from synth.records import record as records

    data = json.loads(found.instance.to_json())
    if not (data.get("demand") or data.get("traffic")):
        return  # nothing has to move: no instance says so
    data["name"] = f"{data['name']}-{name}"
    file = folder / "instances" / f"{data['name']}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data, indent=2) + "\n")
    instance, proven = read(file), found.proven
    outcome = Outcome("finished", found.schedule, found.bound, str(proven), proven.certificate(), found.by)
    method = get_family(instance.family).method("flow" if found.by == "flow" else "plan")
    record = api.execute(instance, method, RunOptions(None), lambda instance, options: outcome)
    place = records.record_path(folder, instance.family, instance.name, method.name, None)
    records.write(record, place)
