"""Links and groups that would carry two transfers at a time."""

from __future__ import annotations

import numpy as np

from synth.arrays import Int32Array, IntArray
from synth.kernels import jit
from synth_models.fabric.check.route_hops import Hops
from synth_models.fabric.check.rows import rows_by
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.solution import Schedule

MOST_KEPT = 20


def clashes(machine: Machine, schedule: Schedule, hops: Hops) -> tuple[int, list[tuple[int, int, bool]]]:
    """How many hops begin while their link, or a group of theirs, is occupied by another transfer; of the first ones
    (hop, hop that is still under way, whether it is the group)."""
    none = np.zeros(0, dtype=bool)
    total, found = 0, []
    keys = [(schedule.link.astype(np.int32), machine.links, False)]
    if np.any(machine.group >= 0):
        group = machine.group.astype(np.int32)
        keys.append((group[schedule.link], int(group.max()) + 1, True))
    for key, rows, is_group in keys:
        row_start, order = rows_by(key, rows, hops.begin, none)
        kept = np.zeros((MOST_KEPT, 2), dtype=np.int64)
        count = _overlaps(row_start, order, hops.begin, hops.span, hops.ticks, hops.owner, kept)
        total += int(count)
        found += [(int(now), int(before), is_group) for now, before in kept[: min(count, MOST_KEPT)]]
    return total, found


@jit
def _overlaps(
    row_start: IntArray,
    order: Int32Array,
    begin: IntArray,
    span: Int32Array,
    ticks: IntArray,
    owner: Int32Array,
    kept: IntArray,
) -> int:
    """Per row, in order of time: a hop must not begin before all hops of *other* transfers have ended. It is enough to
    remember the hop that ends last, and the one that ends last among those of other transfers than that."""
    count = 0
    for r in range(len(row_start) - 1):
        last, last_end, second, second_end = -1, np.int64(-1), -1, np.int64(-1)
        for n in range(row_start[r], row_start[r + 1]):
            k = order[n]
            end = begin[k] + ticks[span[k]]
            other, other_end = last, last_end
            if last >= 0 and owner[last] == owner[k]:
                other, other_end = second, second_end
            if other >= 0 and other_end > begin[k]:
                if count < len(kept):
                    kept[count, 0], kept[count, 1] = k, other
                count += 1
            if last < 0 or owner[last] == owner[k]:
                if end > last_end:
                    last, last_end = k, end
            elif end > last_end:
                second, second_end = last, last_end
                last, last_end = k, end
            elif end > second_end:
                second, second_end = k, end
    return count
