"""From records on disk to a study's table, figures and report."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from synth.errors import InputError
from synth.records import lock
from synth.records.record import Record
from synth.study import figures, latex, print_table, report, sizes, solvers_page
from synth.study.definition import PreparedStudy
from synth.study.measures import summary
from synth.study.names import named
from synth.study.run_frame import frame_of
from synth.study.table import build, place, read_records
from synth.tables.frame import Frame, maker_of
from synth.text.files import write_atomically
from synth.views.figure_style import SCREEN_STYLE, FigureStyle, drawing, save
from synth.views.notebook_html import card


@dataclass(frozen=True)
class Look:
    """How a study is shown: the ``style`` of its figures, whether each seed has a row and a line of its own, in which
    ``formats`` a figure is a file too (the report holds all of them), and the ``form`` (:mod:`synth.exchange.forms`) in
    which methods are ranked by size too."""

    style: FigureStyle = SCREEN_STYLE
    each_seed: bool = False
    formats: tuple[str, ...] = ("pdf", "svg", "png")
    form: str | None = None


LOOK = Look()


@dataclass(frozen=True)
class Collected:
    """What a study wrote into its ``folder``: the ``files``, among them the ``report`` page; ``rows`` is its
    ``table.csv``, ``makers`` who made the schedule of each record."""

    folder: Path
    rows: pd.DataFrame
    files: tuple[Path, ...]
    makers: Mapping[str, str | None] = field(default_factory=dict)

    @cached_property
    def table(self) -> Frame:
        """A row a run: the columns of ``table.csv`` and those that all frames share
        (``synth.tables.frame.COLUMNS``); missing texts are missing there."""
        return frame_of(self.rows, self.makers)

    @property
    def report(self) -> Path:
        """The page: figures, tables, schedules; one file that needs no network."""
        return self.folder / "report.html"

    def summary(self) -> Frame:
        """A row per family and method: how many runs ended how, and how well (``synth study`` prints it)."""
        return Frame.of(summary(self.rows))

    def _repr_html_(self) -> str:
        """A short form for notebooks: where the page is, and the summary."""
        return card({"runs": str(len(self.rows)), "report": str(self.report)}) + self.summary()._repr_html_()


def write_page(prepared: PreparedStudy, collected: Collected, path: Path) -> list[Path]:
    """Write the comparison of a study's solvers as a page in Markdown, with a folder of its name; return the files.

    Raises :class:`InputError` where no two solvers were given the same instance."""
    command = f"synth study {shlex.quote(str(prepared.study.source or prepared.study.name))} --page {path}"
    records = read_records(prepared.folder)
    try:
        return solvers_page.write(path, prepared.study.title, command, collected.rows, records)
    except ValueError as wrong:
        raise InputError(str(wrong), str(path)) from None


def collect(prepared: PreparedStudy, command: str | None = None, look: Look = LOOK) -> Collected:
    """Write ``table.csv``, ``summary.csv`` and ``summary-methods.tex`` (a row per method), ``summary.tex`` (for print:
    a row a size, a column a method), ``figures/*.pdf|svg|png`` with this look, ``report.html``, where pyarrow is
    installed ``table.parquet``, and, where instances differ in size only, ``best_by_size.csv`` (and the same by the
    times in the look's form) into the study's folder, from the records there.

    Raises :class:`InputError` when there is none or one is damaged, ``OSError`` when another process collects here for
    too long."""
    records = read_records(prepared.folder)
    if not records:
        raise InputError("no records of this study are here yet", str(prepared.folder / "records"))
    with lock.held(prepared.folder, "page"):
        return _collected(prepared, records, command, look)


def _collected(prepared: PreparedStudy, records: list[Record], command: str | None, look: Look) -> Collected:
    study, folder = prepared.study, prepared.folder
    table = build(study.name, folder, records, study.baselines, prepared.instances)
    files = [folder / "table.csv"]
    table.to_csv(files[0], index=False)
    parquet = folder / "table.parquet"
    parquet.unlink(missing_ok=True)  # an older table's
    if find_spec("pyarrow") is not None:
        files.append(parquet)
        table.to_parquet(parquet, index=False)
    by_size = sizes.best_by_size(table)
    if not by_size.empty:
        files.append(folder / "best_by_size.csv")
        by_size.to_csv(files[-1], index=False)
    if look.form is not None:
        by_place = {place(record, folder): record for record in records}
        by_form = sizes.best_by_size(sizes.in_form(table, by_place, look.form))
        if not by_form.empty:
            files.append(folder / f"best_by_size-{look.form.replace(':', '-')}.csv")
            by_form.to_csv(files[-1], index=False)
    told = table.assign(group=table["label"]) if look.each_seed else table
    files += latex.write(told, folder, study.labels)
    for_print = named(told, study.labels)
    files.append(folder / "summary.tex")
    write_atomically(files[-1], print_table.as_latex(for_print).encode())
    drawn = []
    for name in study.figures:
        with drawing(look.style):
            printed = figures.draw(name, for_print, records)
            if printed is None:
                continue
            files += _written(printed, folder / "figures", name, look.formats)
        figure = figures.draw(name, for_print, records) if look.style != SCREEN_STYLE else printed
        assert figure is not None
        drawn.append((name, figure))
    files.append(folder / "report.html")
    ran = report.Ran(
        study.title,
        command or f"synth study {shlex.quote(str(study.source or study.name))}",
        [*_differences(prepared, records), *(f"left out: {text}" for text in prepared.left_out)],
        study.text,
    )
    report.write(files[-1], ran, told, drawn, records, prepared.instances)
    return Collected(folder, table, tuple(files), {place(record, folder): maker_of(record) for record in records})


def _written(figure: Figure, folder: Path, name: str, formats: tuple[str, ...]) -> list[Path]:
    """The files of a figure, one for each format."""
    found = [folder / f"{name}.{suffix}" for suffix in formats]
    if found:
        folder.mkdir(exist_ok=True)
        save(figure, *found)
    return found


def _differences(prepared: PreparedStudy, records: list[Record]) -> Iterator[str]:
    """Where the records are not exactly the study's runs."""
    planned = {run.path.resolve() for run in prepared.runs}
    there = {record.path.resolve() for record in records if record.path is not None}
    if planned - there:
        yield f"{len(planned - there)} of the study's {len(planned)} runs have no record yet"
    if there - planned:
        yield f"{len(there - planned)} records are of runs with other limits, seeds or options than these"
