"""From column routes in groups to flows of servers: the shift of layers, the sending server, the receiver's first slot.

All layers do the same, so a flow from column a to column b stands for n flows, one a layer. With u phases a group a
server sends m / u flows to a leaf, one for every *run* of u slots there. Of the flows of a pair of columns any m get
the first shift and the first copy, any m the first shift and the second copy, and so on for m / u copies and all
shifts.

* *Who sends.* For each a join every group to the triples (b, shift, copy) of its flows: degrees are at most m in groups
  and exactly m in triples, so by König m colours, the servers of a leaf, suffice; each meets every triple once.
* *Who receives.* For each b split every group into u vertices of at most m / u flows that end at b, and join them to
  the triples (a, shift, server) of their flows, which have m / u each. By König m / u colours suffice, the runs of
  slots: a server meets each run of a leaf once, and at most u flows of a group go to the same run, where they begin at
  different slots and go round.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.column_phases import ColumnPhases
from synth_models.mlfm.parts.server_names import counted_before, receiving_runs, sending_slots
from synth_models.mlfm.programs.columns.model import ColumnProblem

Pattern = tuple[int, IntArray, IntArray]
"""In how many groups, flows per column route (R,), flows inside a leaf of every column (l,)."""


def named_flows(instance: MLFMInstance, problem: ColumnProblem, patterns: list[Pattern], groups: int) -> ColumnPhases:
    """The schedule of the patterns, one after the other. Inside a leaf goes what is needed and no more."""
    block, number = problem.block, instance.spine_number
    group, source, target, between = _expanded(problem, patterns)
    inside = between < 0
    shift, copy = np.divmod(
        counted_before((source * block.columns + target) * 2 + inside) // block.servers, problem.runs
    )
    shift += (source == target) & ~inside
    kept = ~(inside & (shift > 0))
    group, source, target, between = (part[kept] for part in (group, source, target, between))
    shift, copy = shift[kept], copy[kept]
    length = problem.length
    slot = sending_slots(block, length, groups, group, source, (target * block.layers + shift) * problem.runs + copy)
    run = receiving_runs(block, length, groups, group, target, (source * block.layers + shift) * block.servers + slot)
    first = run * problem.length + counted_before((group * block.columns + target) * problem.runs + run)
    two = (between >= 0) & (source != target) & (between != target)
    spine = np.where(between < 0, -1, number[source, between])
    middle, second = np.where(two, between, -1), np.where(two, number[between, target], -1)
    columns = (group, source, slot, target, first, shift, spine, middle, second)
    size = (block.layers, block.columns, block.servers, problem.length, groups, instance.columns)
    return ColumnPhases(*size, *(values.astype(np.int32) for values in columns))


def _expanded(problem: ColumnProblem, patterns: list[Pattern]) -> tuple[IntArray, ...]:
    """Group, source, target and column between (-1 inside a leaf) of every flow, group by group."""
    parts, begin = [], 0
    for times, now, stay in patterns:
        route, home = np.flatnonzero(now), np.repeat(np.arange(len(stay)), stay)
        ends = [np.concatenate([values[route], home]) for values in (problem.source, problem.target)]
        between = np.concatenate([problem.between[route], np.full(len(home), -1)])
        number = np.repeat(np.arange(begin, begin + times), len(between))
        parts.append((number, *(np.tile(values, times) for values in (*ends, between))))
        begin += times
    group, source, target, between = (np.concatenate(column) for column in zip(*parts, strict=True))
    return group, source, target, between
