"""TACCL on two NDv2 chassis, as TE-CCL recorded it, beside ours on all 16 GPUs of the same links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from synth.reproduction.collect import Reproduction
from synth.reproduction.printed import below
from synth.text.quantities import percent
from synth_models.fabric.instance import FabricInstance
from synth_papers.fabric.grid import made
from synth_papers.peers.runs import positive, read_rows, solved
from synth_papers.peers.teccl import QUICK, SIZES

RESULTS = "peers/taccl-ndv2-2chassis.csv"
MACHINE = "teccl-ndv2-2-16"
GPUS, SHARES = 16, 16  # a chunk is a sixteenth of the size


@dataclass(frozen=True)
class Result:
    """A recorded run; None where it has no time."""

    collective: str
    size: str
    finish_us: float | None
    solver_s: float | None


TITLE = "TACCL on two NDv2, all 16 GPUs"


def instance_of(collective: str, size: str) -> FabricInstance:
    """All 16 GPUs, each with a chunk, a sixteenth of the size."""
    return made(machine=MACHINE, collective=collective, bytes=str(GPUS * -(-SIZES[size] // SHARES)))


def _result(row: Mapping[str, str]) -> Result:
    if row["size"] not in SIZES:
        raise KeyError(row["size"])
    times = (positive(row[key]) if row[key] else None for key in ("finish_us", "solver_s"))
    return Result(row["collective"].lower(), row["size"], *times)


def results(page: Reproduction) -> None:
    """Put TACCL's recorded times beside ours; skip, and say so, where the file is not."""
    path = page.real_data(RESULTS, "TACCL's results")
    if path is None:
        return
    rows, no_more, timed = [], 0, 0
    for one in read_rows(path, "TACCL", _result):
        if page.quick and one.size not in QUICK:
            continue
        ours, printed = solved(page, instance_of(one.collective, one.size), "ndv2-2-16"), one.finish_us
        if printed is not None:
            timed += 1
            no_more += not below(printed, ours.value * 1e6)
        rows.append(
            {
                "collective": one.collective,
                "size": one.size,
                "TACCL [us]": printed,
                "its solver [s]": None if one.solver_s is None else round(one.solver_s, 1),
                "ours [us]": float(f"{ours.value * 1e6:.7g}"),
                "by": ours.by,
                "all our methods [s]": round(ours.seconds, 1),
                "ours / theirs": None if printed is None else round(ours.value * 1e6 / printed, 4),
                "bound [us]": float(f"{ours.bound * 1e6:.7g}"),
                "gap": percent(ours.gap),
            }
        )
    page.table(TITLE, pd.DataFrame(rows), "taccl")
    page.note(f"TACCL: ours takes at most its time in {no_more} of {timed} results that have one.")
