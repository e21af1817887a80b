"""``synth reproduce``: a paper's printed numbers beside ours, as a page."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synth.cli.common import demand_folder
from synth.cli.options import Drawing, grouped
from synth.cli.output import console, errors
from synth.errors import Fault, InputError, one_of
from synth.text.visible import visible

if TYPE_CHECKING:
    from synth.family import Page
    from synth.findings.evidence import Shown
    from synth.reproduction.collect import Reproduction
    from synth.reproduction.page import Answer, Pictures

EVERY, FINDINGS = "all", "findings"
PUBLISHED = Path("results/published")
DATA = "Folder of real data (optional; what needs it is skipped visibly); bine-jobs: a file job,nodes,groups."
PAGE_WAIT_S = 5.0  # for another process that makes the same page: it can take hours


@dataclass(frozen=True)
class Sources:
    """Where what a page is made from lies."""

    instances: Annotated[Path, typer.Option(help="Where the instance files are.")] = Path("instances")
    records: Annotated[Path, typer.Option(help="Where findings reads the records that it quotes.")] = PUBLISHED
    data: Annotated[Path, typer.Option(help=DATA)] = Path("../shared/data")


@dataclass(frozen=True)
class Parts:
    """What of a page is made now."""

    only: Annotated[
        list[str] | None, typer.Option(help="tuned: a machine, collective, or several (repeat): no other row.")
    ] = None
    again: Annotated[bool, typer.Option("--again", help="tuned: rows that another state of the code made, too.")] = (
        False
    )
    stored: Annotated[
        bool,
        typer.Option("--from-stored", help="Solve nothing: answer and pictures again, from the page's own tables."),
    ] = False

    def demand_known(self, page: Page) -> None:
        """Raises :class:`InputError` where a page has no parts."""
        asked = {"only": self.only, "again": self.again}
        given = [f"--{name}" for name, value in asked.items() if value]
        if given and not page.in_parts:
            raise InputError([Fault(name, f"page {page.name} is not made in parts") for name in given])


@grouped
def reproduce(
    paper: str = typer.Argument(
        ..., help="A family (see `synth families`), another page of one (peers), findings, or all."
    ),
    quick: bool = typer.Option(False, "--quick", help="The short form: small sizes, no long solves."),
    out: Path = typer.Option(
        None,
        "--results",
        "--out",
        help="Where pages, figures and records go. Default: results/published; with --quick results/quick.",
    ),
    jobs: int = typer.Option(1, "--jobs", "-j", min=1, help="Programs that run at once."),
    sources: Sources = Sources(),
    drawn: Drawing = Drawing(),
    parts: Parts = Parts(),
) -> None:
    """Write PAPER.md: every printed number our models can compute beside ours, errata with proof, figures. Records that
    lie below --results already are taken as they are: another folder makes everything again.

    `findings` is one page of all that our records improve, settle, qualify or correct of published results: it verifies
    the records that it quotes and ends with exit code 1 where one is missing, refused or does not show what is
    stated."""
    from synth.family import reproduced
    from synth.reproduction.collect import Reproduction

    style = drawn.figure_style
    folder = out or (Path("results/quick") if quick else PUBLISHED)
    known = reproduced()
    names = _names(paper, known, parts)
    demand_folder("--results", folder, *(folder / name for name in names))
    for name in names:
        started = time.monotonic()

        def say(line: str, name: str = name, started: float = started) -> None:
            errors.print(f"{name} {time.monotonic() - started:6.1f} s  {line}")

        page, path = (
            Reproduction(
                folder / name,
                quick,
                sources.instances,
                sources.data,
                say,
                jobs,
                style,
                tuple(parts.only or ()),
                parts.again,
            ),
            folder / f"{name}.md",
        )
        _make(page, known[name], path, parts.stored)
        done = f"{visible(str(path))}: laid out again"
        console.lines(done if parts.stored else _summary(page, path, time.monotonic() - started))
    if paper in (EVERY, FINDINGS) and not parts.stored:
        _findings(folder, sources.records, quick, sources.instances, sources.data)


def _make(page: Reproduction, known: Page, path: Path, stored: bool) -> None:
    """Write the page, or lay the ``stored`` one out again. Ends the command where a check fails or a disk is full."""
    from synth.execution.pool import WriteFailedError
    from synth.records import lock
    from synth.reproduction.collect import plain_figures
    from synth.reproduction.page import again, write_page
    from synth.views.figure_style import drawing

    fill = _load_page(known.target)
    module = sys.modules[fill.__module__]
    opening: Answer | None = getattr(module, "opening", None)
    redrawn: Pictures | None = getattr(module, "redrawn", None)
    if stored and opening is None and redrawn is None:
        raise InputError(f"{known.name} cannot be laid out again: leave --from-stored out")
    try:
        with lock.held(page.folder, "page", most_s=PAGE_WAIT_S), plain_figures(), drawing(page.style):
            if stored:
                again(path, opening, redrawn, page.style)
                return
            fill(page)
            write_page(page, known, path, opening)
            page.pack()
    except (RuntimeError, WriteFailedError, OSError) as error:  # a failed check; a full disk
        errors.print(f"synth: {known.name}: {error}", style="red")
        raise typer.Exit(1) from None


def _names(paper: str, known: dict[str, Page], parts: Parts) -> list[str]:
    """The pages of a paper, all of which can be loaded. Raises :class:`InputError`."""
    from synth.family import family_names

    if paper not in (EVERY, FINDINGS, *known):
        if paper in family_names():
            raise InputError(f"family {paper} has no reproduction of its paper")
        raise InputError(f"unknown page {paper!r}; {one_of(paper, [EVERY, FINDINGS, *known])}")
    for name in known if paper in (EVERY, FINDINGS) else [paper]:
        _load_page(known[name].target)
    names = list(known) if paper == EVERY else [paper] if paper in known else []
    for name in names:
        parts.demand_known(known[name])
    return names


def _load_page(target: str) -> Callable[[Reproduction], None]:
    """The function that fills a page. Raises :class:`InputError` where the package of the papers' pages is missing."""
    from synth.method import load

    try:
        function: Callable[[Reproduction], None] = load(target)
    except ModuleNotFoundError as error:
        package = target.partition(".")[0]
        if error.name != package:
            raise
        raise InputError(
            f"{package} is not installed: the pages of the papers are in the source of synth, in models/{package}, "
            "not in its wheel; run the command from a checkout that was installed with pip install -e ."
        ) from None
    return function


def _findings(folder: Path, records: Path, quick: bool, instances: Path, data: Path) -> None:
    """The page of findings. Ends the command where the records do not carry them."""
    from tempfile import TemporaryDirectory

    from synth.findings.page import make
    from synth.reproduction.collect import Reproduction

    started = time.monotonic()

    def say(line: str) -> None:
        errors.print(f"{FINDINGS} {time.monotonic() - started:6.1f} s  {line}")

    with TemporaryDirectory() as scratch:
        page = Reproduction(Path(scratch) / FINDINGS, quick, instances, data, say)
        try:
            path, shown = make(folder, records, page)
        except (RuntimeError, OSError) as error:
            errors.print(f"synth: {FINDINGS}: {error}", style="red")
            raise typer.Exit(1) from None
    console.lines(_count(path, [one for group in shown.values() for one in group], time.monotonic() - started))


def _count(path: Path, shown: list[Shown], seconds: float) -> str:
    cases, errata = sum(len(one.held) for one in shown), sum(len(one.errata) for one in shown)
    line = f"{visible(str(path))}: {len(shown)} findings, {cases} cases, {errata} errata recomputed, {seconds:.0f} s"
    return line + "".join(f"\n  left out: {visible(text)}" for one in shown for text in one.skipped)


def _summary(page: Reproduction, path: Path, seconds: float) -> str:
    differing = sum(1 for item in page.comparisons if item.difference is not None and abs(item.difference) > 1e-3)
    line = (
        f"{visible(str(path))}: {len(page.comparisons)} printed numbers ({differing} differ by over 0.1 %), "
        f"{len(page.errata)} errata, {len(page.figures)} figures, {seconds:.0f} s"
    )
    return line + "".join(f"\n  left out: {visible(text)}" for text in page.skipped)
