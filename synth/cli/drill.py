"""``synth drill``: what every single failure of a machine costs, and the schedules to have ready for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from synth.cli import common
from synth.cli.common import bad_option, checked, demand_folder
from synth.cli.machine_import import MachineFile
from synth.cli.options import AT_ONCE, Costing, grouped
from synth.cli.output import console, errors, table
from synth.text.quantities import shown

if TYPE_CHECKING:
    from synth.drill.drawer import Contents
    from synth.drill.search import Drill, Question

EVERY = "allreduce, allgather, reduce_scatter, alltoall, broadcast, reduce, gather, scatter"
DRAWER = "drawer"


@dataclass(frozen=True)
class Where:
    """What is written, or looked up."""

    out: Annotated[Path | None, Option("-o", "--out", help="The folder to write; with --answer: a record.")] = None
    answer: Annotated[
        str | None, Option(metavar="FAILURE", help="What the drawer has for it: 'link 0/gpu3 ib1', 'node ib0'.")
    ] = None


@dataclass(frozen=True)
class Aim(Costing):
    """What fails, and what is to be done all the same."""

    collective: Annotated[str, Option(help=f"{EVERY}.")] = "allreduce"
    size: Annotated[str, Option(help="Bytes as nccl-tests counts them: 64MiB.")] = "64MiB"
    degraded: Annotated[
        str | None, Option(metavar="SHARE", help="Links do not fail but keep this share of their rate: 0.5.")
    ] = None
    pairs: Annotated[
        int | None, Option(min=1, metavar="MOST", help="All pairs of failures too, unless there are more than MOST.")
    ] = None
    methods: Annotated[list[str] | None, Option("-m", "--method", help="Only these. Default: all that suit.")] = None
    form: Annotated[
        str, Option("--for", metavar="FORM", help="What will run: scheduled, msccl:azure, msccl, mscclpp.")
    ] = "scheduled"


@dataclass(frozen=True)
class Effort:
    """How long, and from where on."""

    time_limit: Annotated[str, Option(help="Per run: 20s, 5m or none.")] = "1m"
    gap: Annotated[float, Option(min=0.0, max=1.0, help="No further method runs once the gap is at most this.")] = 0.02
    jobs: Annotated[int | None, AT_ONCE] = None
    resume: Annotated[bool, Option("--resume", help="Take over what an earlier call left in the folder.")] = False
    seed: Annotated[int, Option(min=0, help="Of every random choice.")] = 0


@grouped
def drill(
    machine: str = typer.Argument(
        ..., help="A machine by name, a machine file, or one that `synth import` reads; with --answer: a drawer."
    ),
    parameters: list[str] = typer.Argument(None, metavar="key=value…", help="As `synth make` takes them: boxes=2."),
    where: Where = Where(),
    aim: Aim = Aim(),
    effort: Effort = Effort(),
    file: MachineFile = MachineFile(),
) -> None:
    """Let every link, NIC, GPU port and switch of a machine fail, one at a time.

    One failure of each kind that symmetry tells apart is solved: its time,
    a certified bound, the loss against the whole machine, who is cut off.

    The folder gets the table, a picture, all records, which `synth check`
    takes, and a drawer: the fewest schedules of which one is within 2 % of
    the best for every failure. `--answer` looks one up. With `--for` times
    are those of exported algorithms, and the drawer has their files.
    """
    out = where.out
    if where.answer is not None:
        _answer(Path(machine), parameters or [], where.answer, out)
        return
    if out is None:
        raise bad_option("--out", "is missing: the folder to write", "")
    from synth.drill import cover, drawer, page, search
    from synth.exchange.block_costs import words_of
    from synth.execution.pool import slots
    from synth.options import RunOptions

    prepared = search.prepared(_question(machine, parameters or [], out, aim, effort, file))
    _run(prepared, slots(effort.jobs, 1), effort.resume)
    title = f"{' '.join([machine, *(parameters or [])])}, {aim.collective} of {aim.size}"
    title += "" if aim.form == "scheduled" else f", as {aim.form} runs it"
    title += "" if aim.degraded is None else f", links at {aim.degraded} of their rate"
    rows, files = page.write(prepared, out, title)
    names = page.head(prepared)
    console.print(table(*names, rows=page.cells(rows), right=(*names[1:6], *page.EXPORTED)))
    if prepared.question.exports:
        console.print(words_of(prepared.question.costs))
    for words in (*page.parted(rows), *page.limits(rows)):
        console.print(words)
    found = cover.cover(prepared, RunOptions(60.0, solver="highs"))
    contents = drawer.write(prepared, found, out / DRAWER)
    console.print(_covered(contents))
    written = ", ".join(file.name for file in files)
    console.print(f"{out}: {written}, records, {DRAWER}/{drawer.INDEX}")
    if prepared.whole.seconds is None or contents.unanswered:
        raise typer.Exit(common.EXIT_NO_SOLUTION)


def _question(machine: str, parameters: list[str], out: Path, aim: Aim, effort: Effort, file: MachineFile) -> Question:
    """The question. Raises :class:`InputError` for everything that is wrong with it."""
    from fractions import Fraction

    from synth.cli.tune import maker
    from synth.drill.search import Question
    from synth.exchange.forms import FORMS, SCHEDULED
    from synth.exchange.program_files import LOADED
    from synth.family import get_family
    from synth.options import read_limit
    from synth.text import amounts

    checked("--time-limit", read_limit, effort.time_limit)
    share = None if aim.degraded is None else Fraction(checked("--degraded", amounts.share, aim.degraded))
    if share is not None and share.denominator > 10**9:
        raise bad_option("--degraded", "must be a simpler share, such as 0.5 or 11/12", aim.degraded or "")
    known = (SCHEDULED, *(name for name in LOADED if name in FORMS))
    if aim.form not in known:
        raise bad_option("--for", f"must be one of {', '.join(known)}", aim.form)
    whole = maker("synth drill", machine, parameters, file)(aim.collective, aim.size)
    for name in aim.methods or []:
        get_family(whole.family).method(name)
    costs = aim.model(whole, aim.form)
    demand_folder("--out", out)
    text = None if share is None else f"{share.numerator}/{share.denominator}"
    return Question(whole, out, text, aim.pairs, tuple(aim.methods or ()), effort.time_limit, effort.seed,
                    effort.gap, aim.form, costs)  # fmt: skip


def _run(prepared: Drill, jobs: int, resume: bool) -> None:
    """All runs, and how far they are."""
    from synth.cli.progress import Progress
    from synth.drill import search

    runs = search.runs_of(prepared)
    errors.print(f"{len(prepared.cases)} failures that symmetry tells apart, at most {len(runs)} runs")
    with common.ending_early(), Progress(len(runs)) as progress:
        search.solve(prepared, jobs, resume, progress.done, progress.start)


def _covered(contents: Contents) -> str:
    """What the drawer holds, in a sentence."""
    least = "the least that do" if contents.proven else "not proven the least"
    words = f"{len(contents.failures)} failures are covered within {contents.within:.0%} by {contents.renumbered} "
    words += f"schedules ({least}), renumberings of {len(contents.schedules)} files"
    if contents.parted:
        words += f"; {len(contents.parted)} part the ranks"
    return words + (f"; {len(contents.unanswered)} have no schedule" if contents.unanswered else "")


def _answer(folder: Path, parameters: list[str], text: str, out: Path | None) -> None:
    """Say what is in the drawer for a failure, and write it if asked for."""
    from synth.drill import drawer
    from synth.errors import InputError
    from synth.exchange.file_kinds import beside

    if parameters:
        raise InputError(f"{parameters[0]}: --answer takes a drawer and nothing else")
    found = drawer.answer(folder, text)
    if found.row is None:
        cut = found.breakable.cut(found.breakable.find(found.failure, found.contents.share))
        assert cut is not None
        console.print(f"{found.failure}: {cut}")
        raise typer.Exit(common.EXIT_INFEASIBLE)
    words = f"{found.failure}: {found.file}, {shown(found.row.seconds, 's')}"
    if found.row.bound_seconds is not None:
        words += f" (no schedule takes less than {shown(found.row.bound_seconds, 's')})"
    console.print(words)
    if found.program is not None:
        console.print(f"as {found.contents.form} runs it: {found.program}")
        if (one := beside(found.program)).is_file():
            console.print(f"for calls in place: {one}")
    if found.moves:
        moves = ", ".join(f"{old} is {new}" for old, new in found.moves.items())
        console.print(f"renumbered: {moves}")
    if out is None:
        found.solution()  # it uses nothing that failed
        return
    from synth.records import record as records

    made = found.record()
    records.write(made, out, compressed=False)  # somebody waits for it
    console.print(f"{out} written (replayed: {shown(made.value, 's')})")
