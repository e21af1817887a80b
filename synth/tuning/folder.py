"""What tuning writes: an algorithm a size range, the table as CSV and Markdown, the figure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pandas as pd

from synth.errors import InputError
from synth.exchange import forms
from synth.exchange.file_check import check_file
from synth.exchange.forms import executor_of
from synth.text.files import write_atomically
from synth.tuning import table as tables
from synth.tuning.rows import Row
from synth.views.figure_style import SCREEN_STYLE, FigureStyle, drawing, save

SUFFIX = {"mscclpp": ".json"}


def write(
    rows: Sequence[Row], form: str, folder: Path, title: str, style: FigureStyle | None = SCREEN_STYLE
) -> tuple[pd.DataFrame, list[Path]]:
    """Write all into the folder (no figure without a ``style``), rows without a schedule as words below the table; the
    table, and the files. Raises :class:`InputError` where an algorithm does not pass the check of its executor, and
    ``OSError``."""
    chosen, files = [], []
    found = [row for row in rows if row.best is not None]
    nodes = int(getattr(rows[0].instance, "hosts", 1))  # of machines that are made of boxes
    for collective, some in groupby(found, key=lambda row: row.collective):
        for one in tables.ranges(list(some)):
            name = ""
            if one.best.program is not None:
                name = f"{collective}-{one.least_bytes}-{one.most_bytes}{SUFFIX.get(form, '.xml')}"
                forms.write(one.best.program, folder / name, one.least_bytes, one.most_bytes)
                faults = check_file(folder / name, collective, executor_of(form)).faults
                if faults:
                    raise InputError(faults, str(folder / name))
                files.append(folder / name)
            chosen.append((one, name))
    table = tables.frame(chosen, form, nodes)
    for path, text in (
        (folder / "table.csv", table.to_csv(index=False)),
        (folder / "table.md", tables.markdown(table, title, tables.left_out(rows))),
    ):
        write_atomically(path, text.encode())
        files.append(path)
    if style is None:
        return table, files
    with drawing(style):
        pictures = [folder / f"bandwidth.{suffix}" for suffix in ("svg", "pdf")]
        save(tables.figure(table, title), *pictures)
    return table, files + pictures
