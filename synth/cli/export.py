"""``synth export``: a record's schedule, or its program's model, in a format that others read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synth.cli.options import Costing, grouped
from synth.cli.output import console, errors
from synth.exchange.formats import FORMATS
from synth.text.quantities import count

if TYPE_CHECKING:
    from synth.exchange.formats import Format
    from synth.records.record import Record

PLACE = typer.Option("--in-place/--out-of-place", help="One buffer for input and output, or two. Default: both.")


@dataclass(frozen=True)
class Running:
    """How an executor is to run a schedule."""

    executor: Annotated[
        str | None, typer.Option(help="azure, msccl (XML), mscclpp, mscclpp:0.8. Default: the format's.")
    ] = None
    in_place: Annotated[bool | None, PLACE] = None
    channels: Annotated[int, typer.Option(min=1, help="Channels that two ranks' moves are spread over.")] = 1
    instances: Annotated[int, typer.Option(min=1, help="Copies side by side, each on its share of the data.")] = 1
    slices: Annotated[int, typer.Option(min=1, help="Slices of a piece, one behind the other: more overlap.")] = 1
    chunks: Annotated[int | None, typer.Option(min=1, help="Equal chunks a part. Default: as the pieces ask.")] = None
    protocol: Annotated[str, typer.Option(help="XML: Simple, LL or LL128.")] = "Simple"
    fuse: Annotated[bool, typer.Option("--fuse", help="Receive and send on in one step where that can be.")] = False
    join: Annotated[bool, typer.Option("--join", help="Pieces side by side in one step: less overlap.")] = False
    check: Annotated[bool, typer.Option("--check/--no-check", help="Check what is written (slow for huge ones).")] = (
        True
    )


@dataclass(frozen=True)
class Modelling:
    """Which model of a program is to be written."""

    number: Annotated[int, typer.Option("--nth", min=1, help="Models: the n-th that the method hands its solver.")] = 1
    solver: Annotated[str | None, typer.Option(help="Models: for this solver. Default: the record's.")] = None
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="Models: of a method in a file, package.module:function.")
    ] = None
    own: Annotated[
        list[str] | None, typer.Option("--option", "-O", metavar="key=value", help="Models: a method's parameter.")
    ] = None


@grouped
def export(
    path: Path = typer.Argument(..., metavar="RECORD", help="A record."),
    out: Path = typer.Option(..., "--out", "-o", help="The file to write."),
    form: str = typer.Option(None, "--format", "-f", help=f"{', '.join(FORMATS)}. Default: by the file's suffix."),
    running: Running = Running(),
    modelling: Modelling = Modelling(),
    costing: Costing = Costing(),
) -> None:
    """Write a record's schedule for an executor or simulator, or its program's model for a solver."""
    from synth.exchange.record_export import format_of
    from synth.records import record as records

    chosen = format_of(form, out)
    record = records.read(path)
    if chosen.of == "model":
        _demand_plain(running, chosen)
        _model(record, chosen, out, modelling)
    else:
        _demand_plain(modelling, chosen)
        _schedule(record, chosen, out, running, costing)
    console.print(f"{out} written ({chosen.name}: {chosen.summary})")


def _demand_plain(group: Running | Modelling, chosen: Format) -> None:
    """Raises :class:`InputError` for options of a group that says nothing about the format."""
    from synth.errors import Fault, InputError

    names = {"number": "nth", "own": "option"}
    given = [names.get(one.name, one.name).replace("_", "-") for one in fields(group)
             if getattr(group, one.name) != one.default]  # fmt: skip
    if given:
        raise InputError([Fault(f"--{name}", f"has no meaning for {chosen.name}") for name in given])


def _model(record: Record, chosen: Format, out: Path, which: Modelling) -> None:
    from synth.exchange.record_export import write_model
    from synth.options import split_pairs

    parameters = split_pairs(which.own or [], "-O")
    notes = write_model(
        record,
        chosen.form,
        out,
        number=which.number,
        solver=which.solver,
        parameters=parameters,
        method_name=which.method,
    )
    for note in notes:
        errors.print(note)


def _schedule(record: Record, chosen: Format, out: Path, how: Running, costing: Costing) -> None:
    from synth.exchange.lowering import Wish
    from synth.exchange.record_export import moves_of, write_schedule
    from synth.family import get_family

    family = get_family(record["family"])
    if chosen.name == "chakra" and family.can("traces"):
        family.capability("traces")(record.find_instance(), record.solution(), out)
        return
    transfers = moves_of(record)
    moves = count(len(transfers.piece))
    errors.print(f"{transfers.collective} over {transfers.ranks} ranks, {moves} moves")
    wish = Wish(bool(how.in_place), how.chunks, how.channels, how.instances, how.fuse, how.join, how.protocol,
                slices=how.slices)  # fmt: skip
    both = how.in_place is None
    for note in write_schedule(transfers, chosen, out, how.executor, wish, how.check, both):
        errors.print(note)
    if how.check and chosen.of in ("algorithm", "plan"):
        from synth.exchange.block_costs import words_of
        from synth.exchange.imported_algorithm import compared, compared_padded

        costs = costing.model(record.find_instance(), "mscclpp" if chosen.of == "plan" else "msccl")
        if words := (compared if transfers.demand is None else compared_padded)(out, record, costs):
            errors.print(words)
            errors.print(words_of(costs))
