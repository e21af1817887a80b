"""A plan of kind ``cutting``: what a solver says of schedules whose blocks are cut into so many even pieces.

``pieces`` (numbers of pieces a block) and ``least_s`` (seconds below which there is no such schedule, says the
solver). Nobody can compute that again, so it is listed as unverified; refuted it is where the schedule itself has such
pieces and ends sooner.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from synth.method import Verdict
from synth.text.quantities import SECONDS, shown
from synth.text.untrusted import whole_numbers
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import MOST_BYTES, Schedule

MOST_CUTTINGS = 64


def check_cutting(instance: FabricInstance, schedule: Schedule) -> Verdict:
    """The claims as facts, unverified; a fault where the schedule refutes one."""
    pieces = whole_numbers(schedule.plan, "pieces", 1, MOST_BYTES)
    least = np.asarray(schedule.plan["least_s"], dtype=np.float64)
    if not 1 <= len(pieces) <= MOST_CUTTINGS or least.shape != pieces.shape:
        raise ValueError(f"there are not 1..{MOST_CUTTINGS} claims, each with a time")
    if not np.all(np.isfinite(least)) or np.any(least < 0):
        raise ValueError("a time is no number of seconds")
    faults, facts, unverified = [], [], []
    for number, seconds in zip(pieces.tolist(), least.tolist(), strict=True):
        words = f"no schedule of {number} even pieces a block takes less than {shown(seconds, SECONDS)}"
        facts.append(words)
        unverified.append(f"{words}: the solver's word")
        if _is_cut(instance, schedule, number) and _seconds(instance, schedule) < Fraction(seconds):
            faults.append(f"the plan says that {words}, but this one does")
    return Verdict(None, {"cuttings": facts}, faults, unverified)


def _is_cut(instance: FabricInstance, schedule: Schedule, number: int) -> bool:
    """Whether every block is in so many pieces that differ by a byte at most (in fewer where bytes are fewer)."""
    blocks = instance.blocks.bytes
    count = np.bincount(schedule.piece_block, minlength=len(blocks))
    if not np.array_equal(count, np.minimum(blocks, number)):
        return False
    each = blocks[schedule.piece_block] // count[schedule.piece_block]
    return bool(np.all((schedule.piece_bytes == each) | (schedule.piece_bytes == each + 1)))


def _seconds(instance: FabricInstance, schedule: Schedule) -> Fraction:
    from synth_models.fabric.check.route_hops import hops_of

    hops: Any = hops_of(instance, schedule)
    return Fraction(int(hops.arrive.max(initial=0)), schedule.ticks_per_s)
