"""From column routes in groups to flows of servers: the shift of layers, the sending server, the receiver's first slot.

All layers do the same, so a flow from column a to column b stands for n flows, one a layer. Of the n m flows of a pair
any m get the shift 0, any m the shift 1, and so on. For each a join every group to the pairs (b, shift) of its flows:
degrees are at most m in groups and exactly m in pairs, so by König m colours, the servers of a leaf, suffice, and every
server meets each pair once. In a group the flows that end at column b, at most m, begin at different slots.
"""

from __future__ import annotations

import numpy as np

from synth.schedule.edge_colouring import edge_colours
from synth_models.mlfm.instance import IntArray, MLFMInstance
from synth_models.mlfm.programs.columns.model import ColumnProblem
from synth_models.mlfm.solution import ColumnPhases

Pattern = tuple[int, IntArray, IntArray]
"""In how many groups, flows per column route (R,), flows inside a leaf of every column (l,)."""


def named_flows(instance: MLFMInstance, problem: ColumnProblem, patterns: list[Pattern], groups: int) -> ColumnPhases:
    """The schedule of the patterns, one after the other. Inside a leaf goes what is needed and no more."""
    block, number = problem.block, instance.spine_number
    group, source, target, between = _expanded(problem, patterns)
    inside = between < 0
    shift = _count((source * block.columns + target) * 2 + inside) // block.servers
    shift += (source == target) & ~inside
    kept = ~(inside & (shift > 0))
    group, source, target, between, shift = (part[kept] for part in (group, source, target, between, shift))
    slot = np.empty(len(group), dtype=np.int64)
    for column in range(block.columns):
        mine = np.flatnonzero(source == column)
        ends = (group[mine], target[mine] * block.layers + shift[mine])
        slot[mine] = edge_colours(*ends, groups, block.columns * block.layers, block.servers)
    first = _count(group * block.columns + target)
    two = (between >= 0) & (source != target) & (between != target)
    spine = np.where(between < 0, -1, number[source, between])
    middle, second = np.where(two, between, -1), np.where(two, number[between, target], -1)
    columns = (group, source, slot, target, first, shift, spine, middle, second)
    size = (block.layers, block.columns, block.servers, groups, instance.columns)
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


def _count(key: IntArray) -> IntArray:
    """How many earlier entries have the same key, shape (entries,)."""
    order = np.argsort(key, kind="stable")
    fresh = np.append(True, np.diff(key[order]) != 0)
    begin = np.maximum.accumulate(np.where(fresh, np.arange(len(key)), 0))
    earlier = np.empty(len(key), dtype=np.int64)
    earlier[order] = np.arange(len(key)) - begin
    return earlier
