"""A plan as rounds by a timetable: the same transfers every period, then closed up as far as the order allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from synth.arrays import FloatArray, IntArray
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.programs.forest.tree_plan import Table, pieces_of, transfers_of
from synth_models.fabric.programs.forest.tuned import STRETCHES
from synth_models.fabric.scheduling.list_scheduling import waiting_for
from synth_models.fabric.scheduling.periodic import MOST_CELLS, Order, cells_of, timetable
from synth_models.fabric.scheduling.reservations import Uses
from synth_models.fabric.scheduling.transfers import Transfers

SAME = 2**40  # nominal bytes of a block, far more than any number of pieces


@dataclass
class Round:
    """One round of a plan: a piece or more of every tree. ``pieces``: in all. ``period_s``: seconds that a whole
    block's round keeps the busiest link."""

    table: Table
    tree: IntArray
    number: IntArray
    count: IntArray
    transfers: Transfers
    uses: Uses
    longest: IntArray
    resources: int
    period: int
    cell_s: float
    latency_s: FloatArray
    order: IntArray
    by_height: IntArray
    after_start: IntArray
    after: IntArray
    stretch: int = 0

    @property
    def size(self) -> int:
        """Transfers of a round."""
        return len(self.transfers.piece)


def round_of(table: Table, machine: Machine, block_bytes: IntArray, per_block: float) -> Round:
    """The round with about ``per_block`` pieces of every block, its resources and durations."""
    nominal = np.full(len(block_bytes), SAME, dtype=np.int64)
    tree, _, number, count = pieces_of(table, nominal, per_block)
    transfers, _ = transfers_of(table, nominal, per_block, 1e9, 0.0)
    net = machine.network
    total: dict[int, Fraction] = {}
    for t, block in enumerate(table.block.tolist()):
        total[block] = total.get(block, Fraction(0)) + table.weight[t]
    # ticks: a whole number that is in proportion to bytes over bandwidth
    share = [
        int(block_bytes[table.block[t]]) * table.weight[t] / total[int(table.block[t])] / n
        for t, n in zip(tree.tolist(), count.tolist(), strict=True)
    ]
    sizes = sorted(set(share))
    bands, band = np.unique(net.bandwidth, return_inverse=True)
    times = [[size / exact(float(b)) for b in bands] for size in sizes]
    place = {size: i for i, size in enumerate(sizes)}
    piece_size = np.array([place[s] for s in share], dtype=np.int64)
    lengths = np.diff(transfers.route_start)
    owner = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    size_at = piece_size[transfers.piece][owner]
    ticks_table, tick = _whole(times)
    ticks = ticks_table[size_at, band.reshape(-1)[transfers.link]]
    load = np.bincount(transfers.link, weights=ticks, minlength=machine.links)
    group = machine.group[transfers.link]
    group_load = np.bincount(group[group >= 0], weights=ticks[group >= 0])
    busiest = int(max(load.max(initial=1), group_load.max(initial=1)))
    cells, cell = cells_of(ticks, busiest)
    resources = machine.links + len(machine.group_names)
    uses = _uses(machine, owner, transfers.link, cells, len(lengths))
    load = np.bincount(uses.resource, weights=uses.duration, minlength=resources)
    latency = np.zeros(len(lengths))
    np.add.at(latency, owner, net.latency[transfers.link])
    longest = np.zeros(len(lengths), dtype=np.int64)
    np.maximum.at(longest, owner, cells)
    after_start, after = waiting_for(transfers)
    depth, height = _depth(transfers)
    order = np.lexsort((np.arange(len(depth)), depth)).astype(np.int64)
    by_height = np.lexsort((np.arange(len(depth)), depth, -height)).astype(np.int64)
    return Round(
        table, tree, number, count, transfers, uses, longest, resources,
        int(load.max(initial=1)), float(cell * tick), latency, order, by_height, after_start, after,
    )  # fmt: skip


def _whole(times: list[list[Fraction]]) -> tuple[IntArray, Fraction]:
    """Times as whole numbers of a tick, exactly where the numbers stay small, and the tick in seconds."""
    flat = [value for row in times for value in row]
    denominator = math.lcm(*(value.denominator for value in flat))
    divisor = math.gcd(*(int(value * denominator) for value in flat))
    tick = Fraction(divisor, denominator)
    if max(flat) / tick > MOST_CELLS * 64:
        tick = max(flat) / (MOST_CELLS * 64)
    return np.array([[math.ceil(value / tick) for value in row] for row in times], dtype=np.int64), tick


def _uses(machine: Machine, owner: IntArray, link: IntArray, cells: IntArray, count: int) -> Uses:
    """What every transfer holds, without links that are only held together with another for at least as long; all of
    it from its start on."""
    group = machine.group[link]
    member = group >= 0
    who = np.concatenate([owner, owner[member]])
    what = np.concatenate([link, machine.links + group[member]])
    long = np.concatenate([cells, cells[member]])
    resources = machine.links + len(machine.group_names)
    incidence = csr_array((np.ones(len(who)), (who, what)), shape=(count, resources))
    incidence.data[:] = 1
    together = (incidence.T @ incidence).tocoo()
    alone: FloatArray = np.asarray(incidence.sum(axis=0)).reshape(-1)
    most, least = np.zeros(resources), np.full(resources, np.inf)
    np.maximum.at(most, what, long)
    np.minimum.at(least, what, long)
    uniform = most == least
    implied = np.zeros(resources, dtype=bool)
    for a, b, n in sorted(zip(together.row.tolist(), together.col.tolist(), together.data.tolist(), strict=True)):
        if a == b or n < alone[a] or not (uniform[a] and uniform[b]) or most[b] < most[a] or implied[b]:
            continue
        if n == alone[b] and most[a] == most[b] and a < b:
            continue  # of two that are always held together the first stays
        implied[a] = True
    keep = ~implied[what]
    who, what, long = who[keep], what[keep], long[keep]
    _, first = np.unique(np.stack([who, what]), axis=1, return_index=True)
    first = np.sort(first)
    who, what, long = who[first], what[first], long[first]
    by_owner = np.argsort(who, kind="stable")
    start = starts(np.bincount(who, minlength=count))
    return Uses(start, what[by_owner].astype(np.int64), np.zeros(len(what), dtype=np.int64), long[by_owner])


def _depth(transfers: Transfers) -> tuple[IntArray, IntArray]:
    """How many transfers lie between each one and its tree's root at most, and on its other side."""
    waiting = np.repeat(np.arange(len(transfers.piece), dtype=np.int64), np.diff(transfers.before_start))
    earlier = transfers.before
    alike = transfers.adds[waiting] == transfers.adds[earlier]
    adds = transfers.adds[waiting[alike]]
    outer = np.where(adds, earlier[alike], waiting[alike])
    inner = np.where(adds, waiting[alike], earlier[alike])
    return _levels(inner, outer, len(transfers.piece)), _levels(outer, inner, len(transfers.piece))


def _levels(first: IntArray, second: IntArray, count: int) -> IntArray:
    level = np.zeros(count, dtype=np.int64)
    while True:
        higher = level.copy()
        np.maximum.at(higher, second, level[first] + 1)
        if np.array_equal(higher, level):
            return level
        level = higher


class Placement(NamedTuple):
    """How transfers are placed in a timetable. ``by_height``: those with most to follow first, otherwise those nearest
    to their root. ``staggered``: what goes up and then down again passes its root at a moment of its own, not all
    about the same one."""

    by_height: bool
    staggered: bool


def rounds(one: Round, block_bytes: IntArray, times: int, placement: Placement) -> Transfers | None:
    """The transfers of ``times`` rounds with the timetable's order as priorities; None where there are fewer bytes than
    pieces.

    Where transfers hold more than two links the busiest link's time may be too short for a timetable; the period is
    then stretched step by step.
    """
    per_tree = _tree_bytes(one.table, block_bytes)
    total = one.count * times
    if np.any(per_tree[one.tree] < total):
        return None
    cell_s = one.cell_s / times
    wait = one.longest + np.ceil(one.latency_s / cell_s - 1e-9).astype(np.int64)
    turns = one.by_height if placement.by_height else one.order
    t, n, pieces = one.transfers, one.size, len(one.tree)
    for step in range(one.stretch, len(STRETCHES)):
        period = math.ceil(one.period * STRETCHES[step])
        pivot = t.piece * period // pieces if placement.staggered else np.zeros(n, dtype=np.int64)
        waiting = Order(t.adds, pivot, wait, t.before_start, t.before, one.after_start, one.after)
        start, homeless = timetable(period, turns, waiting, one.uses, one.resources)
        if homeless <= 0:
            one.stretch = step  # less will not do for other numbers of rounds either
            break
    turn = np.arange(times, dtype=np.int64)[:, None]
    index = turn * one.count + one.number
    whole = per_tree[one.tree]
    size = (index + 1) * whole // total - index * whole // total
    shift = turn * n
    rank = np.argsort(np.lexsort((np.arange(n), start)))
    priority = (turn * period + start) * n + rank
    routes = starts(np.tile(np.diff(t.route_start), times)), np.tile(t.link, times)
    before = starts(np.tile(np.diff(t.before_start), times)), (shift + t.before).reshape(-1)
    rows = np.tile(t.piece_block, times), size.reshape(-1), (turn * pieces + t.piece).reshape(-1), routes
    return Transfers.of_rows(*rows, before=before, priority=priority.reshape(-1), adds=np.tile(t.adds, times))


def _tree_bytes(table: Table, block_bytes: IntArray) -> IntArray:
    """Bytes of every tree's share, as :func:`pieces_of` deals them out."""
    found = np.zeros(len(table.block), dtype=np.int64)
    for block in np.unique(table.block).tolist():
        trees = np.flatnonzero(table.block == block).tolist()
        size, total = int(block_bytes[block]), sum(table.weight[t] for t in trees)
        passed, done = Fraction(0), 0
        for t in trees:
            passed += table.weight[t]
            upto = int(size * passed / total) if t != trees[-1] else size
            found[t] = upto - done
            done = upto
    return found
