"""From records on disk to a study's table, figures and report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from synth.errors import InputError
from synth.study import figures, report
from synth.study.plan import Study
from synth.study.table import build, read_records


@dataclass(frozen=True)
class Collected:
    """What was written: the table and the files."""

    table: pd.DataFrame
    files: tuple[Path, ...]


def collect(study: Study, folder: Path, command: str | None = None) -> Collected:
    """Write ``table.csv``, ``table.parquet``, ``figures/*.svg|png`` and ``report.html`` below ``folder`` from the
    records there. Raises :class:`InputError` when there is none or one is damaged."""
    records = read_records(folder)
    if not records:
        raise InputError("no records of this study are here yet", str(folder / "records"))
    table = build(study.name, folder, records, study.baselines)
    files = [folder / "table.csv", folder / "table.parquet"]
    table.to_csv(files[0], index=False)
    table.to_parquet(files[1], index=False)
    drawn = []
    for name in study.figures:
        figure = figures.draw(name, table, records)
        if figure is None:
            continue
        drawn.append((name, figure))
        (folder / "figures").mkdir(exist_ok=True)
        for suffix in ("svg", "png"):
            files.append(folder / "figures" / f"{name}.{suffix}")
            figure.savefig(files[-1], dpi=130)
    instances = {(instance.family, instance.name): instance for instance in study.instances(folder)}
    files.append(folder / "report.html")
    command = command or f"synth study {study.source or study.name}"
    report.write(files[-1], study.title, command, table, study.skipped, drawn, records, instances)
    return Collected(table, tuple(files))
