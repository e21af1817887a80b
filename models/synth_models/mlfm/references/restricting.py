"""An order of all N x N transfers for those that are asked for: the others are left out, and phases that become empty.

A pair that is asked for several times takes the phase again as often. This is what a library does that runs its
all-to-all with empty messages, except that it would not notice when a phase is empty everywhere.
"""

from __future__ import annotations

import numpy as np

from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.solution import NOTHING, Phases, PhaseTable, Rows


def restricted(instance: MLFMInstance, whole: Phases) -> PhaseTable:
    """The asked transfers in the order and on the routes of ``whole``, a schedule of all pairs of the job."""
    owed = np.zeros((instance.ranks, instance.ranks), dtype=np.int64)
    source, target, count = instance.pairs.T
    owed[source, target] = count
    everyone, kept = np.arange(instance.ranks), list[Rows]()
    for rows in whole.rows(1):
        times = np.where(rows.dest[0] >= 0, owed[everyone, rows.dest[0]], 0)
        for turn in range(int(times.max(initial=0))):
            now = times[None] > turn
            parts = (np.where(now, part, NOTHING) for part in (rows.dest, rows.spine, rows.middle, rows.second))
            kept.append(Rows(len(kept), *parts))
    empty = np.zeros((0, instance.ranks), np.int32)
    dest, spine, middle, second = (
        np.concatenate([empty, *(getattr(rows, key) for rows in kept)]).astype(np.int32)
        for key in ("dest", "spine", "middle", "second")
    )
    return PhaseTable(dest, spine) if (middle < 0).all() else PhaseTable(dest, spine, middle, second)
