"""TACCL on two NDv2 chassis, as TE-CCL recorded it, beside ours on all 16 GPUs of the same links."""

from __future__ import annotations

import csv

import pandas as pd

from synth.errors import InputError
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent
from synth_papers.peers.runs import Found, positive, solved
from synth_papers.peers.teccl import EQUAL, QUICK, SIZES, instance_of

RESULTS = "peers/taccl-ndv2-2chassis.csv"
MACHINE = "teccl-ndv2-2-16"
GPUS, SHARES = 16, 16  # a chunk is a sixteenth of the size


def results(page: Reproduction) -> None:
    """Put TACCL's recorded times beside ours; skip, and say so, where the file is not."""
    path = page.data / RESULTS
    if not path.is_file():
        page.skip(f"TACCL's results: no {RESULTS} in the data")
        return
    found: dict[tuple[str, str], tuple[float, Found]] = {}
    rows = []
    with path.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    for number, line in enumerate(lines, 2):
        try:
            collective, size = line["collective"].lower(), line["size"]
            chunk = -(-SIZES[size] // SHARES)
            printed = positive(line["finish_us"]) if line["finish_us"] else None
            seconds = positive(line["solver_s"]) if line["solver_s"] else None
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise InputError(f"line {number} is no result of TACCL: {error}", str(path)) from None
        if page.quick and size not in QUICK:
            continue
        ours = solved(page, instance_of(MACHINE, collective, GPUS * chunk), "ndv2-2-16")
        if printed is not None:
            found[collective, size] = printed, ours
        rows.append(
            {
                "collective": collective,
                "size": size,
                "TACCL [us]": printed,
                "its solver [s]": None if seconds is None else round(seconds, 1),
                "ours [us]": float(f"{ours.value * 1e6:.7g}"),
                "by": ours.by,
                "all our methods [s]": round(ours.seconds, 1),
                "ours / theirs": None if printed is None else round(ours.value * 1e6 / printed, 4),
                "bound [us]": float(f"{ours.bound * 1e6:.7g}"),
                "gap": percent(ours.gap),
            }
        )
    page.table("TACCL on two NDv2, all 16 GPUs", pd.DataFrame(rows), "taccl")
    ratios = [ours.value * 1e6 / printed for printed, ours in found.values()]
    least = sum(ratio <= 1 + EQUAL for ratio in ratios)
    page.note(f"TACCL: ours takes at most its time in {least} of {len(ratios)} results that have one.")
