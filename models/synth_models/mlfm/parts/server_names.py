"""Which servers of its leaves a flow joins, by König: senders first, then runs of slots that it goes to."""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.graph.edge_colouring import edge_colours
from synth_models.mlfm.instance import Block


def sending_slots(
    block: Block, length: int, groups: int, group: IntArray, source: IntArray, triple: IntArray
) -> IntArray:
    """The slot of every flow's sender, groups being of ``length`` phases."""
    slot = np.empty(len(group), dtype=np.int64)
    triples = block.columns * block.layers * (block.servers // length)
    for mine in _by_column(source, block.columns):
        slot[mine] = edge_colours(group[mine], triple[mine], groups, triples, block.servers)
    return slot


def receiving_runs(
    block: Block, length: int, groups: int, group: IntArray, target: IntArray, triple: IntArray
) -> IntArray:
    """The run of slots that every flow goes to, groups being of ``length`` phases."""
    run, runs = np.empty(len(group), dtype=np.int64), block.servers // length
    triples = block.columns * block.layers * block.servers
    for mine in _by_column(target, block.columns):
        vertex = group[mine] * length + counted_before(group[mine]) // runs
        run[mine] = edge_colours(vertex, triple[mine], groups * length, triples, runs)
    return run


def _by_column(column: IntArray, columns: int) -> list[IntArray]:
    """The flows of every column."""
    ends = np.cumsum(np.bincount(column, minlength=columns))
    return np.split(np.argsort(column, kind="stable"), ends[:-1])


def counted_before(key: IntArray) -> IntArray:
    """How many earlier entries have the same key, shape (entries,)."""
    order = np.argsort(key, kind="stable")
    fresh = np.append(True, np.diff(key[order]) != 0)
    begin = np.maximum.accumulate(np.where(fresh, np.arange(len(key)), 0))
    earlier = np.empty(len(key), dtype=np.int64)
    earlier[order] = np.arange(len(key)) - begin
    return earlier
