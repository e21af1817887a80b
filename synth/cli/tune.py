"""``synth tune``: which algorithm a machine should run for which size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from synth.cli.common import EXIT_INTERRUPTED, bad_option, checked, demand_folder
from synth.cli.evaluate import VARY
from synth.cli.machine_import import MachineFile
from synth.cli.options import Costing, Drawing, grouped
from synth.cli.output import console, errors

if TYPE_CHECKING:
    from synth.instance import Instance
    from synth.tuning import Question
    from synth.tuning.robustness import Variation
    from synth.tuning.rows import Row

EVERY = "allreduce, allgather, reduce_scatter, alltoall, broadcast, reduce, gather, scatter"
OWN = {"synth tune": "--collective and --sizes", "synth drill": "--collective and --size", "synth plan": "--demands",
       "synth bounds": "--collective and --sizes", "synth explain": "--collective",
       "synth reshard": "--tensors"}  # fmt: skip
INSTEAD = {
    "boxes": ": say boxes=2",
    "bandwidth": ": say nic=12.5GB/s, nvlink=…, or bandwidth=CLASS=…",
    "latency": ": say nic_latency=1us, nvlink_latency=…, or latency=CLASS=…",
}  # of options that a key stands for
FOR = (
    "What will run: msccl:azure, msccl, mscclpp (0.10; mscclpp:0.9, mscclpp:0.8), scheduled, chakra-fifo, fair; "
    "torch: plans for synth.torch; or nccl, ompi, ucc: the file by which that library chooses among its own "
    "algorithms (its tuner plug-in's CSV, coll_tuned's rules, UCC_TL_UCP_TUNE)."
)
TORCH = "torch"

REPLAYED = {"ring": "ring", "tree": "double_tree", "NVLS": "nvls", "NVLSTree": "nvls", "PAT": "pat"}  # by our methods
REACH = (
    "Say too what NCCL or RCCL should reach by its own cost model, beside what is possible, with GPUs of volta, "
    "ampere, hopper, blackwell, mi250 or mi300x; with --for nccl the GPUs that the file is for."
)
ANY_COUNT = "Choose by time alone, also what serves only some counts. Default: what serves all of whole 8 KiB a rank."


@dataclass(frozen=True)
class Aim(Costing):
    """What is to be tuned."""

    collective: Annotated[list[str] | None, Option(help=f"Repeatable: {EVERY}. Default: allreduce.")] = None
    sizes: Annotated[str, Option(help="1KiB..4GiB (times 4), 1KiB..4GiB*2, or 64KiB,1MiB.")] = "1KiB..4GiB"
    methods: Annotated[list[str] | None, Option("-m", "--method", help="Of ours only these. Default: all.")] = None
    form: Annotated[str, Option("--for", help=FOR)] = "msccl:azure"
    reach: Annotated[str | None, Option(help=REACH)] = None
    robust: Annotated[bool, Option("--robust", help="Choose by the worst regret on machines drawn.")] = False
    vary: Annotated[list[str] | None, Option(help=f"{VARY} Default: ±10% and ±30%.")] = None
    samples: Annotated[int, Option(min=1, help="Machines to draw.")] = 10
    any_count: Annotated[bool, Option("--any-count", help=ANY_COUNT)] = False


@dataclass(frozen=True)
class Effort:
    """How long, and from where on."""

    time_limit: Annotated[str, Option(help="Of it all: 90, 5m, 2h or none.")] = "10m"
    resume: Annotated[bool, Option("--resume", help="Take over what an earlier call left in the folder.")] = False
    seed: Annotated[int, Option(min=0, help="Of every random choice.")] = 0


@grouped
def tune(
    machine: str = typer.Argument(
        ..., help="A machine by name, a machine file, or a file that `synth import` reads (topo.txt); or key=value."
    ),
    parameters: list[str] = typer.Argument(None, metavar="key=value…", help="As `synth make` takes them: boxes=2."),
    out: Path = typer.Option(..., "--out", "-o", help="The folder to write."),
    aim: Aim = Aim(),
    effort: Effort = Effort(),
    file: MachineFile = MachineFile(),
    drawn: Drawing = Drawing(),
) -> None:
    """Find the quickest algorithm of every size in the form that will run, and write one a size range, and the table.

    Nothing slower than the best of ring, double tree, … in that form is ever chosen."""
    from synth.exchange.selection import FORMATS
    from synth.options import read_limit
    from synth.tuning import folder, library_files, torch_folder
    from synth.tuning import tune as search
    from synth.tuning.reach import in_switches, put_in
    from synth.tuning.sizes import read_sizes
    from synth.tuning.table import left_out

    _demand_gpu(aim.reach)
    seconds, style = checked("--time-limit", read_limit, effort.time_limit), drawn.figure_style
    make = maker("synth tune", machine, parameters or [], file)
    names = tuple(dict.fromkeys(aim.collective or ["allreduce"]))
    sizes = tuple(read_sizes(aim.sizes))
    if aim.form in FORMATS:
        _variation(aim, effort.seed)
        _demand_tables(aim)
        _for_library(aim, make, names, sizes, out, " ".join([machine, *(parameters or [])]))
        return
    asked, form = _asked(make, names, sizes, aim, effort, out, seconds), _form(aim.form)
    demand_folder("--out", out)
    stopped: list[bool] = []
    rows = search(asked, lambda words: errors.print(words), lambda: _tell_interrupted(stopped))
    reach = aim.reach or in_switches(rows, asked)
    put_in(rows, asked, reach)
    title = f"{' '.join([machine, *(parameters or [])])}, as {form} runs it"
    table, files, notes = folder.write(rows, form, out, title, style, asked.version)
    files += library_files.write_every(asked)
    if aim.form == TORCH:
        made, said = torch_folder.write_rounds(rows, out, " ".join([machine, *(parameters or [])]))
        files, notes = files + made, notes + said
    _print(table)
    for row in rows:
        _tell_row(row, aim.reach is not None)
    for words in left_out(rows):
        console.print(words)
    _tell(table, files, form, out, asked)
    _tell_calls(rows, notes)
    if stopped:
        raise typer.Exit(EXIT_INTERRUPTED)


def _form(word: str) -> str:
    """The form that a word names, of MSCCL++ without its version. Raises :class:`InputError`."""
    from synth.exchange.forms import FORMS, SCHEDULED
    from synth.exchange.selection import FORMATS

    if word == TORCH:  # its rounds are chosen by the time of the schedule
        return SCHEDULED
    form = word.partition(":")[0] if word.startswith("mscclpp:") else word
    if form not in FORMS:
        raise bad_option("--for", f"must be one of {', '.join((*FORMS, TORCH, *FORMATS))}", word)
    return form


def _asked(
    make: Callable[[str, int], Instance], names: tuple[str, ...], sizes: tuple[int, ...], aim: Aim, effort: Effort,
    out: Path, seconds: float | None,
) -> Question:  # fmt: skip
    """The question; what cannot be asked is said before anything runs. Raises :class:`InputError`."""
    from synth.exchange.forms import SERVICES
    from synth.exchange.mscclpp.versions import NEWEST, version_of
    from synth.family import get_family
    from synth.tuning import Question

    version = checked("--for", version_of, aim.form) or NEWEST
    form, variation = _form(aim.form), _variation(aim, effort.seed)
    if variation is not None and form in SERVICES:
        raise bad_option("--robust", "is for scheduled and for what an executor runs", aim.form)
    tried, costs = tuple(aim.methods or ()), aim.model(make(names[0], sizes[-1]), form)
    for name in tried:
        get_family(make(names[0], sizes[-1]).family).method(name)
    for name in names:
        make(name, sizes[-1])
    return Question(make, names, sizes, form, out, seconds, effort.resume, effort.seed, tried, variation,
                    aim.any_count, version, costs)  # fmt: skip


def _tell_interrupted(stopped: list[bool]) -> None:
    """Say that the search ends here, once."""
    errors.print("synth: interrupted; the table of what was found is written, --resume goes on from it")
    stopped.append(True)


def _demand_tables(aim: Aim) -> None:
    """Refuse what is said of tables of exported algorithms where a library chooses among its own."""
    for option, value in (("--robust", aim.robust), ("--reach", aim.reach if aim.form != "nccl" else None)):
        if value:
            raise bad_option(option, "is for tables of exported algorithms, not of a library's own", aim.form)


def _demand_gpu(name: str | None) -> None:
    """Refuse an unknown kind of GPU."""
    from synth.tuning.reach import gpus

    if name is not None and name not in gpus():
        raise bad_option("--reach", f"must be one of {', '.join(gpus())}", name)


def _tell_row(row: Row, all_reach: bool) -> None:
    """What is known of a row beside its table: its interval on a fitted machine, what the library should reach where
    that is asked for, and that it is left to it."""
    from synth.text.quantities import shown

    size, factor = row.instance_bytes, row.bus_factor
    where = f"{row.collective} {shown(size, 'bytes')}"
    if row.within is not None:
        words = f"within the fit's intervals of 95 %, {where}: {row.within.words}"
        console.print(words)
    if all_reach and row.reach is not None and factor is not None:
        one = row.reach
        seconds = [one.seconds, row.references.get(REPLAYED[one.algorithm]), row.bound]
        model, replayed, most = (shown(size * factor / each if each else None, "bytes/s") for each in seconds)
        words = f"{where}: {row.library}'s {one.algorithm}, {one.protocol}, should reach busbw {model}"
        console.print(words + f"; as replayed {replayed}, no algorithm more than {most}")
    if row.left:
        console.print(f"{where}: {row.why_left}: no file is written, this size is left to {row.library}")


def _tell(table: Any, files: Sequence[Path], form: str, out: Path, asked: Question) -> None:
    """What the table's columns mean, what was written, and what a cluster needs of it."""
    from synth.exchange.block_costs import words_of
    from synth.exchange.forms import FORMS
    from synth.exchange.program_files import LOADED

    if form in LOADED:
        console.print(words_of(asked.costs))
    names = [file.name for file in files]
    console.print(f"time: {FORMS[form]}; as scheduled: before export; gap = (time − bound) / time")
    console.print(f"{len(files)} files in {out}: {', '.join(names)}")
    written = [name for name in names if name in {*table["algorithm"], *table["in_place"], "mscclpp_plans.py"}]
    if form in LOADED and written:
        how = (LOADED[form] if form != "mscclpp" else asked.version.told).format(
            folder="FOLDER", files=":".join(written)
        )
        words = f"to run them: copy {' '.join(written)} to the cluster, into a FOLDER that holds nothing else; {how}"
        console.print(words)


def _tell_calls(rows: Sequence[Row], notes: Sequence[str]) -> None:
    """Which calls the files serve, and what serving all even sizes costs."""
    from synth.text.quantities import percent, shown

    for note in notes:
        console.print(note)
    for row in rows:
        if row.best is not None and (other := row.forgone) is not None:
            where = f"{row.collective} {shown(row.instance_bytes, 'bytes')}"
            more = percent(row.best.seconds / other.seconds - 1)
            words = f"to serve this and all sizes of whole 8 KiB a rank costs {more}"
            console.print(f"{where}: {words} (--any-count: {other.method})")


def _variation(aim: Aim, seed: int) -> Variation | None:
    """The machines to draw, None where the machine itself decides."""
    from synth.tuning.robustness import read_variation

    if not aim.robust:
        if aim.vary is not None:
            raise bad_option("--vary", "says what --robust draws, which is not asked for", str(aim.vary))
        return None
    words = aim.vary or ["bandwidth=10%", "latency=30%"]
    return checked("--vary", lambda _: read_variation(words, aim.samples, seed), str(words))


def _for_library(
    aim: Aim, make: Callable[[str, int], Instance], names: tuple[str, ...], sizes: tuple[int, ...], out: Path,
    machine: str,
) -> None:  # fmt: skip
    """The library's file and its table, written and shown."""
    from synth.cli.output import table as drawn
    from synth.tuning import library_files

    demand_folder("--out", out)
    found, beside = library_files.found_for(aim.form, make, names, sizes, aim.reach)
    out.mkdir(parents=True, exist_ok=True)
    _, files = library_files.write(aim.form, found, beside, out, machine)
    console.print(drawn(*library_files.HEAD, rows=library_files.cells(found), right=("time", "algbw", "bound", "gap")))
    console.print(f"{len(files)} files in {out}: {', '.join(file.name for file in files)}")


def maker(command: str, machine: str, parameters: list[str], file: MachineFile) -> Callable[[str, int | str], Instance]:
    """From a collective and bytes to an instance on the machine. Raises :class:`InputError`."""
    from synth.errors import InputError
    from synth.exchange.machines import completion
    from synth.exchange.machines.file import as_raw
    from synth.family import families
    from synth.making import asked_by, make
    from synth.options import split_pairs

    family = next(family for family in families() if family.can("timing"))
    words = [machine, *parameters] if "=" in machine else parameters
    keys: dict[str, Any] = dict(split_pairs(words, command))
    if taken := sorted({"collective", "bytes"} & set(keys)):
        raise InputError(f"{', '.join(taken)}: say {OWN[command]} instead")
    path = Path(machine)
    if "=" in machine:
        _demand_defaults(file)
    else:
        keys["machine"] = machine
        if path.is_file() and not _is_ours(path, file.format_name):
            from synth.exchange.machines.formats import read

            read_in = file.completed(read(path, file.format_name, file.hints()))
            if unknown := completion.missing(read_in):
                raise InputError(unknown, machine)
            keys["machine"] = as_raw(read_in)
        else:
            _demand_defaults(file)

    told: set[str] = set()

    def made(collective: str, size: int | str) -> Instance:
        with asked_by(command):
            instance = make(family, {**keys, "collective": collective, "bytes": str(size)})
        for note in instance.notes:
            if note not in told and not note.startswith("bytes="):
                told.add(note)
                errors.print(f"note: {note}")
        return instance

    return made


def _is_ours(path: Path, format_name: str | None) -> bool:
    """Whether the file holds a machine as ``synth make`` takes it: a machine file, or one box as data."""
    from synth.exchange.machines.file import FORMAT
    from synth.exchange.machines.formats import recognised, text_of

    text = text_of(path)
    return FORMAT in text[:4096] or (format_name is None and path.suffix == ".json" and recognised(text) is None)


def _demand_defaults(file: MachineFile) -> None:
    """Refuse what only another tool's file needs, where the machine is none."""
    for one in fields(file):
        value = getattr(file, one.name)
        if value != one.default:
            option = "--format" if one.name == "format_name" else f"--{one.name.replace('_', '-')}"
            instead = INSTEAD.get(one.name, "")
            raise bad_option(option, f"is for another tool's file of a machine{instead}", str(value))


def _print(table: Any) -> None:
    """The table, without what only files need."""
    from synth.cli.output import table as drawn
    from synth.tuning.table import cells

    head, rows = cells(table)
    console.print(drawn(*head, rows=rows, right=head[3:]))
