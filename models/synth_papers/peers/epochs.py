"""TE-CCL's own count: the fewest epochs of its lengths, with a proof for one less, beside the numbers it prints."""

from __future__ import annotations

import pandas as pd

from synth.records.record import Record
from synth.reproduction.collect import Reproduction
from synth_papers.peers.teccl import Results, Row

METHOD = "epochs"
MODES = ("Fast", "Slow")
SIZES = ("256KB", "1MB", "4MB", "1GB")  # above 16 MB the counts are those of 1 GB
LIMIT = 30.0
OF_PAIRS = 240.0  # for the linear program of two DGX2


def counted(page: Reproduction, found: Results) -> None:
    """Fewest epochs at some sizes; below, an epoch is a thousandth of the whole and the count says nothing new. The
    schedules count among ours from here on."""
    rows, within, proven = [], 0, 0
    for row in found.rows:
        printed = row.printed
        if printed.mode not in (MODES[-1:] if page.quick else MODES):
            continue
        if printed.size not in (SIZES[-1:] if page.quick else SIZES):
            continue
        record = _record(page, row)
        facts = record["verified"]["facts"]
        epochs, least = facts.get("epochs"), facts.get("epochs_least")
        within += epochs is not None and epochs <= printed.epochs
        proven += epochs is not None and epochs == least
        rows.append(
            {
                **printed.cells,
                "printed": printed.epochs,
                "Gurobi [s]": round(printed.gurobi_s, 1),
                "ours": epochs,
                "proven at least": least,
                "ours [s]": round(record.run_s, 1),
                "in continuous time [us]": None if record.value is None else float(f"{record.value * 1e6:.7g}"),
                "theirs [us]": printed.finish_us,
            }
        )
    page.table("TE-CCL: epochs, counted as it counts", pd.DataFrame(rows), "epochs", linked=True)
    page.note(
        f"Epochs: at most the printed number in {within} of {len(rows)} results of {', '.join(SIZES)}, proven fewest "
        f"in {proven}."
    )
    page.say(f"epochs: {len(rows)} counts")


def _record(page: Reproduction, row: Row) -> Record:
    part = f"epochs-{row.printed.mode.lower()}"
    kept = page.keep(row.ours.instance, part)
    given = {METHOD: {"tau": f"{row.printed.epoch_s!r}"}}
    pairs = row.printed.collective == "alltoall" and not page.quick
    [(_, record)] = page.solve([kept], given, time_limit=OF_PAIRS if pairs else LIMIT, part=part)
    row.ours.records[part] = record
    return record
