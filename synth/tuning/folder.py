"""What tuning writes: an algorithm a size range, the table as CSV and Markdown, the figure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pandas as pd

from synth.errors import InputError
from synth.exchange import program_files
from synth.exchange.counts import told
from synth.exchange.file_check import check_file
from synth.exchange.forms import Program, executor_of
from synth.exchange.mscclpp import registering
from synth.exchange.mscclpp.versions import NEWEST, Version
from synth.text.files import write_atomically
from synth.tuning import table as tables
from synth.tuning.rows import Row
from synth.views.figure_style import SCREEN_STYLE, FigureStyle, drawing, save

SUFFIX = {"mscclpp": ".json"}


def write(
    rows: Sequence[Row],
    form: str,
    folder: Path,
    title: str,
    style: FigureStyle | None = SCREEN_STYLE,
    version: Version = NEWEST,
) -> tuple[pd.DataFrame, list[Path], list[str]]:
    """Write all into the folder (no figure without a ``style``), plans for a ``version`` of MSCCL++, rows without a
    schedule as words below the table, and no file of a size that is left to the library; the table, the files, and
    which calls these serve, in words. Raises :class:`InputError` where an algorithm does not pass the check of its
    executor, and ``OSError``."""
    made = _Made(form, folder, version)
    chosen = []
    found = [row for row in rows if row.best is not None]
    nodes = int(getattr(rows[0].instance, "hosts", 1))  # of machines that are made of boxes
    for collective, some in groupby(found, key=lambda row: row.collective):
        for one in tables.ranges(list(some)):
            program = None if one.rows[0].left else one.best.program
            names = ("", "") if program is None else made.of(one, program, collective)
            chosen.append((one, *names))
    made.register(rows[0].ranks)
    files = made.files
    table = tables.frame(chosen, form, nodes)
    for path, text in (
        (folder / "table.csv", table.to_csv(index=False)),
        (folder / "table.md", tables.markdown(table, title, tables.left_out(rows))),
    ):
        write_atomically(path, text.encode())
        files.append(path)
    if style is None:
        return table, files, list(made.notes)
    with drawing(style):
        pictures = [folder / f"bandwidth.{suffix}" for suffix in ("svg", "pdf")]
        save(tables.figure(table, title), *pictures)
    return table, files + pictures, list(made.notes)


class _Made:
    """The files of algorithms, as they are written; ``notes``: which calls they serve, in words."""

    def __init__(self, form: str, folder: Path, version: Version) -> None:
        self.form, self.folder, self.version = form, folder, version
        self.files: list[Path] = []
        self.plans: list[registering.Plan] = []
        self.notes: dict[str, None] = {}

    def of(self, one: tables.Chosen, program: Program, collective: str) -> tuple[str, str]:
        """Write and check a range's program; the names of its file and of that for calls in place, or empty. Raises
        :class:`InputError`."""
        name = f"{collective}-{one.least_bytes}-{one.most_bytes}{SUFFIX.get(self.form, '.xml')}"
        made = program_files.write(program, self.folder / name, one.least_bytes, one.most_bytes, self.version)
        root = (program.plan or {}).get("root")
        for path in dict.fromkeys(path for path in (made.path, made.one) if path is not None):
            if wrong := check_file(path, collective, executor_of(self.form)).faults:
                raise InputError(wrong, str(path))
            self.files.append(path)
            sizes = one.least_bytes, one.most_bytes, program.chunks
            self.plans.append(registering.Plan(path.name, collective, path == made.one, *sizes, root))
        self.notes[f"{collective}: {told(self.form, collective, program.chunks, self.version)}"] = None
        if made.one is None:
            self.notes[f"{collective}: {made.told}"] = None
        return name, made.one.name if made.one is not None else ""

    def register(self, ranks: int) -> None:
        """Write the text that registers plans, if there are any and programs register them."""
        if self.plans and self.form == "mscclpp" and self.version.registers:
            self.files.append(self.folder / registering.FILE)
            write_atomically(self.files[-1], registering.text(self.plans, ranks, self.version).encode())
