"""Solutions of the mlfm family as text."""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.column_phases import Rows
from synth_models.mlfm.solution import Phases, via

MAX_PHASES = 40  # phases described
MAX_FLOWS = 30  # transfers described in each


def describe(instance: MLFMInstance, solution: Phases) -> str:
    """Per phase its worst link load and its transfers as ``src->dst`` with the leaves and spines between."""
    lines = [
        f"{instance.ranks} servers on MLFM({instance.d}); "
        "servers are layer.column.slot, leaves layer.column, spines column-column"
    ]
    for rows in solution.rows(1):
        if rows.first >= MAX_PHASES:
            lines.append(f"… {solution.phases - MAX_PHASES} more phases (--csv prints all)")
            break
        dest = rows.dest[0]
        busy = np.flatnonzero(dest >= 0)
        shown = []
        for x in busy[:MAX_FLOWS]:
            ends = int(instance.server_leaf[x]), int(instance.server_leaf[dest[x]])
            spine, middle, second = (int(part[0, x]) for part in (rows.spine, rows.middle, rows.second))
            route = via(instance, ends[0], spine, middle, second, ends[1])
            between = f" ({route})" if rows.spine[0, x] >= 0 else ""
            shown.append(f"{instance.server_name(x)}->{instance.server_name(int(dest[x]))}{between}")
        more = f" … {len(busy) - MAX_FLOWS} more" if len(busy) > MAX_FLOWS else ""
        load = int(link_loads(instance, rows).max(initial=0))
        lines.append(f"phase {rows.first:>3} ({len(busy)} transfers, worst link {load}): {', '.join(shown)}{more}")
    return "\n".join(lines)


def link_loads(instance: MLFMInstance, rows: Rows) -> IntArray:
    """Flows on every link in every phase, up-links then down-links, shape (phases, 2 * leaves * (d + 1))."""
    columns, half = instance.columns, instance.leaves * instance.columns
    phase, src = np.nonzero((rows.dest >= 0) & (rows.spine >= 0))
    start, end = instance.server_leaf[src], instance.server_leaf[rows.dest[phase, src]]
    one, middle, two = (part[phase, src].astype(np.int64) for part in (rows.spine, rows.middle, rows.second))
    sums = instance.spine_columns.sum(axis=1)
    halfway = np.where(middle >= 0, middle, end)
    hops = [(start, one, halfway, np.ones(len(src), bool)), (middle, two, end, middle >= 0)]
    loads = np.zeros((len(rows.dest), 2 * half), dtype=np.int64)
    for tail, spine, head, real in hops:
        up = tail * columns + sums[spine] - tail % columns
        down = half + head * columns + sums[spine] - head % columns
        for link in (up, down):
            np.add.at(loads, (phase[real], link[real]), 1)
    return loads
