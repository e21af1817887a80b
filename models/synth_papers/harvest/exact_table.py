"""Markdown page of the records of ``misocp``: ``python -m synth_papers.harvest.exact_table FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

from synth.errors import InputError
from synth.options import RELATIVE_GAP
from synth.records.folder import read_all
from synth.records.record import Record
from synth.text.quantities import percent


def page(folder: Path) -> str:
    """Title, answer and table of the records ``*/misocp-<solver>.json`` in ``folder``."""
    found = records(folder)
    gaps = {f"`{record['instance']}` by {record['solver']}": record.gap for record in found if record.gap is not None}
    widest = max(gaps, key=lambda name: gaps[name])
    settled = [record for record in found if record["termination"] == "optimal"]
    instances, runs = len({record["instance"] for record in found}), f"{len(settled)} of {len(found)} runs"
    return f"""\
# Harvest over all topologies: the program of appendix A

`misocp` searches all topologies of {instances} small workloads. In {runs} the solver proves
the schedule optimal within {percent(RELATIVE_GAP)}. The largest gap is {percent(gaps[widest])} ({widest}).

Made by `harvest/exact.sh`. Seconds are those of a machine beside other work.

{table(found)}
"""


def records(folder: Path) -> list[Record]:
    """The records of ``misocp`` that lie one folder below ``folder``."""
    found = []
    for record in read_all([folder]):
        if isinstance(record, InputError):
            raise record
        if record["method"] == "misocp" and record.path is not None and record.path.parents[1] == folder:
            found.append(record)
    return found


def table(found: list[Record]) -> str:
    """One row for every instance and solver.

    Times in microseconds, seconds on the machine of the record (loaded or not, so compare them with care).
    """
    lines = [
        "| instance | solver | time (us) | proven bound (us) | gap | ended | seconds |",
        "|---|---|---:|---:|---:|---|---:|",
    ]
    for record in found:
        value, bound = record.value, record.bound
        gap = f"{100 * (value - bound) / value:.4f} %" if value is not None and bound is not None else "-"
        shown = ["-" if number is None else f"{number * 1e6:.4f}" for number in (value, bound)]
        lines.append(
            f"| {record['instance']} | {record['solver']} | {shown[0]} | {shown[1]} | {gap} | {record['termination']} "
            f"| {record.run_s:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(Path(sys.argv[1])), end="")
