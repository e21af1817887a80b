"""``synth import``: machines that other tools describe, as machine files and instances of ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer import Option
from typer.core import TyperCommand

from synth.cli.common import EXIT_FAILED, bad_option, checked
from synth.cli.export import Modelling
from synth.cli.options import grouped
from synth.cli.output import command, console, errors, table, write_examples

if TYPE_CHECKING:
    from synth.exchange.machines.machine import Hints, Machine

T = TypeVar("T")
STDOUT = Path("-")


class WithFormats(TyperCommand):
    """The help ends with the formats."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The command's help, then the formats, then examples."""
        from synth.exchange.machines.formats import FORMATS

        super().format_help(ctx, formatter)
        with formatter.section("Formats"):
            formatter.write_dl([(one.name, one.summary) for one in FORMATS])
        write_examples([f"synth import {example}" for example in EXAMPLES], formatter)


EXAMPLES = (
    "topo.txt    # what is in it, and what it does not say",
    "topo.txt --only NV --bandwidth NV=25GB/s --latency 0.7us \\\n    collective=allgather bytes=1GiB -o dgx1.json",
    "topo.xml --boxes 2 --latency 1us -o machine.json\n    # then: synth make fabric machine=machine.json …",
)


RATES = "What the file does not say: 25GB/s, or by class of link NV=25GB/s,PIX=12GB/s (NV: of one NVLink)."
NVLINKS = "How NVLinks join GPUs: direct or switch (default: as the counts say)."


BOX = "For a network of hosts: the file of the box in each host's place, or HOSTS=FILE (n[01-04]=topo.txt; repeatable)."


@dataclass(frozen=True)
class Reading:
    """How the file is to be read."""

    format_name: Annotated[str | None, Option("--format", help="Instead of telling the format by the content.")] = None
    switches: Annotated[str | None, Option(help="Nodes that are switches, by name or number, such as 8,9.")] = None
    nvlinks: Annotated[str | None, Option(help=NVLINKS)] = None
    chunk: Annotated[str | None, Option(help="taccl: the size that beta is the time of, such as 1MB.")] = None
    time_unit: Annotated[str | None, Option(help="taccl: what alpha and beta count in, such as 1us.")] = None
    name: Annotated[str | None, Option(help="The machine's name (default: the file's).")] = None
    box: Annotated[list[str] | None, Option(help=BOX)] = None

    def hints(self) -> Hints:
        """The same for the readers. Raises :class:`InputError` in words."""
        from synth.exchange.machines.machine import Hints
        from synth.text import amounts

        if self.nvlinks not in (None, "direct", "switch"):
            raise bad_option("--nvlinks", "must be direct or switch", self.nvlinks or "")
        return Hints(
            tuple(word.strip() for word in self.switches.split(",")) if self.switches else (),
            "direct" if self.nvlinks == "direct" else "switch" if self.nvlinks == "switch" else None,
            None if self.chunk is None else checked("--chunk", amounts.size, self.chunk),
            None if self.time_unit is None else checked("--time-unit", amounts.duration, self.time_unit),
        )


@dataclass(frozen=True)
class Completing:
    """What the file does not say, and what of it is wanted."""

    bandwidth: Annotated[str | None, Option(help=RATES)] = None
    latency: Annotated[str | None, Option(help="Likewise: 0.7us, or NV=0.7us,PCI=1us; of one link.")] = None
    only: Annotated[str | None, Option(help="Classes of links to keep, such as NV.")] = None
    boxes: Annotated[int, Option(min=1, help="So many such boxes, their NICs joined by one switch (class NET).")] = 1
    family: Annotated[str | None, Option(help="Whose instance to make. Default: the first that takes machines.")] = None

    def completed(self, machine: Machine) -> Machine:
        """The machine with all this. Raises :class:`InputError` in words."""
        from synth.exchange.machines import completion

        rates = _by_class("--bandwidth", self.bandwidth, "rate")
        waits = _by_class("--latency", self.latency, "duration")
        kinds = [kind.strip() for kind in self.only.split(",")] if self.only else []
        typed = (("--bandwidth", self.bandwidth), ("--latency", self.latency))
        words = tuple(f"{option} {text}" for option, text in typed if text is not None)
        return completion.completed(machine, completion.Supplied(rates, waits, words), self.boxes, kinds)


@dataclass(frozen=True)
class MachineFile(Completing, Reading):
    """How another tool's file of the machine is read, and what is added that it leaves out."""


@dataclass(frozen=True)
class Otherwise(Modelling):
    """What goes with a file that is no machine: an algorithm, or a record whose exported model was solved."""

    machine: Annotated[
        str | None, Option(help="For an algorithm (MSCCL XML): an instance, or a machine with key=value.")
    ] = None
    results: Annotated[
        Path | None, Option(help="For an algorithm: where its record and the bound's go; for a solution: its record's.")
    ] = None
    solution: Annotated[
        Path | None, Option(help="For a record: a solution of its exported model (HiGHS, SCIP, Gurobi, CPLEX).")
    ] = None
    by: Annotated[str | None, Option(help="Who solved it. Default: the solver, by its file.")] = None


@grouped
def import_(
    file: Path = typer.Argument(..., help="The file; - for standard input."),
    parameters: list[str] = typer.Argument(
        None, metavar="key=value…", help="Make an instance at once: collective=…, bytes=…, as `synth make` takes them."
    ),
    output: Path = typer.Option(
        None, "-o", "--output", help="Where to write the machine file, or with key=value the instance; - for stdout."
    ),
    what: Completing = Completing(),
    how: Reading = Reading(),
    otherwise: Otherwise = Otherwise(),
) -> None:
    """Read a machine from a file of another tool: say what is in it, write it as a machine file or an instance. Or read
    an algorithm (MSCCL XML): check it and say how long it takes on a machine, beside its lower bound. Or bring back a
    solver's solution of a record's exported model: it becomes a record of its own."""
    from synth.errors import InputError
    from synth.exchange.file_kinds import holds_algorithm

    if otherwise.solution is not None:
        _bring_back(file, otherwise.solution, otherwise)
        return
    if holds_algorithm(file):
        from synth.cli.algorithms import import_algorithm
        from synth.options import split_pairs

        given = split_pairs(parameters or [], "synth import")
        import_algorithm(file, otherwise.machine, given, output, otherwise.results)
        return
    if otherwise != Otherwise():
        if file != STDOUT and not file.is_file():
            raise InputError("no such file", str(file))
        words = "--machine and --results go with an algorithm (MSCCL XML), --results, --by, --nth, --solver, --method"
        raise InputError(f"{words} and --option with --solution", str(file))
    from synth.exchange.machines import completion

    machine = what.completed(_read(file, how))
    _describe(machine, to_errors=output == STDOUT)
    unknown = completion.missing(machine)
    if output is None and not parameters:
        for fault in unknown:
            console.print(f"needed: {fault}")
        console.print(f"next: {'with these, ' if unknown else ''}-o MACHINE.json writes it")
        return
    if unknown:
        error = InputError(unknown, str(file))
        error.hint = "nothing is written: a schedule needs every number; what they are: synth import --help"
        raise error
    _write(machine, parameters or [], what.family, output)


def _bring_back(file: Path, solution: Path, how: Otherwise) -> None:
    """Make a record of a solver's solution, compare it with what is known, and write it."""
    from synth.cli.submit import keep
    from synth.exchange.solution_import import record_of
    from synth.exchange.solver_solutions import read as read_point
    from synth.library.submission import RefusedError, Sender
    from synth.options import split_pairs
    from synth.records import record as records
    from synth.text.input_file import InputFile

    record, given = records.read(file), InputFile(solution)
    sender, own = Sender(how.by or read_point(given).form), split_pairs(how.own or [], "-O")
    try:
        made, said = record_of(
            record, given, sender, number=how.number, solver=how.solver, parameters=own, method_name=how.method
        )
        console.print(said)
        keep(made, how.results or Path("results"), None)
    except RefusedError as error:
        errors.print(f"refused: {error}")
        raise typer.Exit(EXIT_FAILED) from None


def _read(file: Path, how: Reading) -> Machine:
    import shlex
    import sys
    from dataclasses import replace

    from synth.exchange.machines.formats import read, read_text, text_in

    hints, form = how.hints(), how.format_name
    if file == STDOUT:
        machine = read_text(text_in(sys.stdin.buffer, "standard input"), "stdin", form, hints, "standard input")
    else:
        machine = read(file, form, hints)
    if how.box:
        machine = _with_boxes(machine, how.box, hints)
    shown = "standard input" if file == STDOUT else shlex.quote(file.name)
    machine = replace(machine, source=" ".join(["synth import", shown, f"({machine.source})"]))
    return machine if how.name is None else replace(machine, name=how.name)


def _with_boxes(network: Machine, words: list[str], hints: Hints) -> Machine:
    """The network with the boxes of these files in its hosts' place."""
    from synth.exchange.machines.formats import read
    from synth.exchange.machines.joined import files_by_host, joined

    files = files_by_host(words, network)
    boxes = {path: read(path, hints=hints) for path in dict.fromkeys(files.values())}
    return joined(network, {host: boxes[path] for host, path in files.items()})


def _by_class(option: str, text: str | None, unit: str) -> dict[str, float]:
    from synth.exchange.machines.completion import by_class
    from synth.text import amounts

    reader: Callable[[str], float] = getattr(amounts, unit)
    return {} if text is None else checked(option, lambda words: by_class(words, reader), text)


def _describe(machine: Machine, to_errors: bool) -> None:
    """What was read: nodes, links by class, what is unknown, what is assumed."""
    from synth.exchange.machines.completion import described, parted
    from synth.exchange.machines.machine import listed
    from synth.text.quantities import counted, shown

    out = errors if to_errors else console
    out.print(f"{machine.name}: {machine.source}")
    sizes = (("rank", len(machine.ranks)), ("switch", len(machine.switches)), ("link", len(machine.links)))
    counts = ", ".join(counted(number, what) for what, number in sizes)
    out.print(counts)
    rows = [(kind, f"{count:,}", rate, wait) for kind, count, rate, wait in described(machine)]
    out.print(table("class", "links", "bandwidth", "latency", rows=rows, right=("links",)))
    for title in ("given", "assumed", "unknown", "left_out"):
        for word in getattr(machine, title):
            out.print(f"{title.replace('_', ' ')}: {word}")
    if machine.box is not None:
        ports = machine.box.ports
        known = {"unknown" if one.bandwidth is None else shown(one.bandwidth, "bytes/s"): 0 for one in ports}
        words = f"box: {counted(len(ports), 'way')} out of it (NET), {listed(known)}: boxes=N joins N such boxes"
        out.print(words)
    parts = parted(machine)
    if parts:
        out.print(f"note: {parts}")


def _write(machine: Machine, parameters: list[str], family: str | None, output: Path | None) -> None:
    from synth.exchange.machines.file import as_raw, to_text
    from synth.options import split_pairs

    if not parameters:
        assert output is not None
        _put(to_text(machine), output, "machine file")
        if output != STDOUT:
            then = command("tune", output, "--collective", "allgather", "-o", "tuned")
            console.print(f"next: {then}")
        return
    from synth.family import get_family
    from synth.making import asked_by, make
    from synth.method import load

    chosen = get_family(family or _families()[0])
    key = load(chosen.keys).machine_key
    if key is None:
        raise bad_option("--family", f"takes no machines; one of {', '.join(_families())}", chosen.name)
    with asked_by("synth import"):
        instance = make(chosen, {key: as_raw(machine), **split_pairs(parameters, "synth import")})
    for note in instance.notes:
        errors.print(f"note: {note}")
    path = output or Path(f"{instance.name}.json")
    _put(instance.to_json(), path, f"{instance.family} instance {instance.name}")


def _families() -> list[str]:
    """Families whose instances hold machines."""
    from synth.family import families
    from synth.method import load

    return [family.name for family in families() if load(family.keys).machine_key]


def _put(text: str, path: Path, what: str) -> None:
    from synth.errors import InputError

    if path == STDOUT:
        typer.echo(text, nl=False)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None
    console.print(f"{path}: {what}")
