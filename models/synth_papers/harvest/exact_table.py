"""Markdown table of the records of ``misocp``: ``python -m synth_papers.harvest.exact_table FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

from synth.errors import InputError
from synth.records.folder import read_all


def table(folder: Path) -> str:
    """One row for every instance and solver with a record ``*/misocp-<solver>.json`` in ``folder``.

    Times in microseconds, seconds on the machine of the record (loaded or not, so compare them with care).
    """
    lines = [
        "| instance | solver | time (us) | proven bound (us) | gap | ended | seconds |",
        "|---|---|---:|---:|---:|---|---:|",
    ]
    for record in read_all([folder]):
        if isinstance(record, InputError):
            raise record
        if record["method"] != "misocp" or record.path is None or record.path.parents[1] != folder:
            continue
        value, bound = record.value, record.bound
        gap = f"{100 * (value - bound) / value:.4f} %" if value is not None and bound is not None else "-"
        shown = ["-" if number is None else f"{number * 1e6:.4f}" for number in (value, bound)]
        lines.append(
            f"| {record['instance']} | {record['solver']} | {shown[0]} | {shown[1]} | {gap} | {record['termination']} "
            f"| {record.run_s:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(Path(sys.argv[1])))
