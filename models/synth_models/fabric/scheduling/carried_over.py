"""Schedules of one instance as schedules of another: other links' numbers, other sizes, backwards, less of them, two in
a row.

What is made here keeps the order in which things move, and mostly the times; whether it is a schedule of the other
instance its check says.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.blocks import EVERYONE, Blocks
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import picked
from synth_models.fabric.scheduling.back_and_forth import transfers_of
from synth_models.fabric.scheduling.from_afar import FEW
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.mirrored import opposite
from synth_models.fabric.scheduling.reversal import arrivals, ends, reversed_in_time
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import MOST_TICKS, Schedule


def links_in(source: Machine, target: Machine) -> IntArray | None:
    """Every link of ``source`` in ``target``, shape (links,): the i-th of those with the same ends, bandwidth and
    latency; None where there is none for some, or nodes are not alike."""
    if source.nodes != target.nodes or not np.array_equal(source.is_switch, target.is_switch):
        return None
    there: Mapping[tuple[float, ...], list[int]] = defaultdict(list)
    for e, kind in enumerate(_kinds(target)):
        there[kind].append(e)
    taken: dict[tuple[float, ...], int] = defaultdict(int)
    found = np.empty(source.links, dtype=np.int64)
    for e, kind in enumerate(_kinds(source)):
        if kind not in there or taken[kind] == len(there[kind]):
            return None
        found[e] = there[kind][taken[kind]]
        taken[kind] += 1
    return found


def _kinds(machine: Machine) -> list[tuple[float, ...]]:
    net = machine.network
    return list(zip(*(column.tolist() for column in (net.src, net.dst, net.bandwidth, net.latency)), strict=True))


def on_links(schedule: Schedule, links: IntArray) -> Schedule:
    """The schedule over links of other numbers, without a plan that only its own instance knows."""
    return replace(schedule, link=links[schedule.link], plan={})


def resized(schedule: Schedule, before: IntArray, after: IntArray) -> Schedule:
    """The schedule for blocks of ``after`` bytes instead of ``before``, shape (blocks,) each, cut at the same shares of
    a block. Pieces of no bytes go, with what moves them; all others start when they did."""
    order = np.argsort(schedule.piece_block, kind="stable")
    sizes, done = np.zeros(len(order), dtype=np.int64), [0] * len(before)
    for p in order.tolist():
        block, size = int(schedule.piece_block[p]), int(schedule.piece_bytes[p])
        old, new = int(before[block]), int(after[block])
        sizes[p] = (done[block] + size) * new // old - done[block] * new // old
        done[block] += size
    return _with_pieces(replace(schedule, piece_bytes=sizes), sizes > 0)


def repeated(instance: FabricInstance, schedule: Schedule, times: int) -> Schedule:
    """The schedule so many times, one after the other, for other bytes each time."""
    last = int(_arrivals(instance, schedule).max(initial=0))
    count, pieces = np.arange(times, dtype=np.int64), len(schedule.piece_block)
    return replace(
        schedule,
        piece_block=np.tile(schedule.piece_block, times),
        piece_bytes=np.tile(schedule.piece_bytes, times),
        start=(count[:, None] * last + schedule.start).ravel(),
        piece=(count[:, None] * pieces + schedule.piece).ravel(),
        adds=np.tile(schedule.adds, times),
        route_start=np.concatenate(
            [[0], (count[:, None] * len(schedule.link) + schedule.route_start[1:]).ravel()]
        ).astype(np.int64),
        link=np.tile(schedule.link, times),
    )


def backwards(instance: FabricInstance, schedule: Schedule, blocks: IntArray, adds: bool) -> Schedule:
    """The schedule with time reversed, over the links that lead back; ``blocks``: what every block is then called,
    shape (blocks,); ``adds``: every transfer adds, otherwise none does. Raises ``ValueError`` where a link has no equal
    one back, or a route branches."""
    twin = opposite(instance.machine)
    if twin is None:
        raise ValueError("a link has no equal one back")
    came = _arrivals(instance, schedule)
    link = twin[reversed_in_time(Transfers.of_schedule(schedule)).link]
    block, sums = blocks[schedule.piece_block], np.full(schedule.transfers, adds)
    return replace(schedule, piece_block=block, start=came.max(initial=0) - came, adds=sums, link=link)


def restricted(instance: FabricInstance, wanted: Blocks, schedule: Schedule, number: IntArray) -> Schedule:
    """What brings the blocks ``wanted`` of a schedule that does more; ``number``: which of them every block of the
    schedule is, -1 for none, shape (blocks,). Raises ``ValueError`` where a route branches."""
    own = number[schedule.piece_block]
    schedule = _with_pieces(replace(schedule, piece_block=np.maximum(own, 0)), own >= 0)
    source, target = ends(instance.machine, Transfers.of_schedule(schedule))
    came, goal = _arrivals(instance, schedule), wanted.goal[schedule.piece_block]
    whole: set[tuple[int, int]] = set()  # piece and node: that need it with all contributions; then any part of it
    for p, node in enumerate(goal.tolist()):
        whole |= {(p, int(v)) for v in (instance.members if node == EVERYONE else (node,))}
    part: set[tuple[int, int]] = set()
    keep = np.zeros(schedule.transfers, dtype=bool)
    for i in np.argsort(-came, kind="stable").tolist():
        p, u, v = int(schedule.piece[i]), int(source[i]), int(target[i])
        if schedule.adds[i] and ((p, v) in whole or (p, v) in part):
            part.add((p, u))
        elif not schedule.adds[i] and (p, v) in whole:
            whole.remove((p, v))
            whole.add((p, u))
        else:
            continue
        keep[i] = True
    return _taken(schedule, keep)


def in_a_row(instance: FabricInstance, up: Schedule, down: Schedule) -> Schedule:
    """An allreduce: ``up``, then ``down``, which cut the buffer into blocks of the same bytes; pieces are those of
    both. Raises ``ValueError`` where no clock has room for both."""
    ticks = math.lcm(up.ticks_per_s, down.ticks_per_s)
    halves = [_on_clock(half, ticks) for half in (up, down)]
    cuts = [_cuts(half) for half in halves]
    edges = {block: sorted(cuts[0][block] | cuts[1][block]) for block in cuts[0]}
    number = dict[tuple[int, int], int]()
    sizes = list[int]()
    for block in sorted(edges):
        for low, high in pairwise(edges[block]):
            number[block, low] = len(sizes)
            sizes.append(high - low)
    fine = [_recut(instance, half, edges, number, np.array(sizes, dtype=np.int64)) for half in halves]
    last = int(_arrivals(instance, fine[0]).max(initial=0))
    first, second = fine
    return replace(
        first,
        start=np.concatenate([first.start, second.start + last]),
        piece=np.concatenate([first.piece, second.piece]),
        adds=np.concatenate([first.adds, second.adds]),
        route_start=np.concatenate([first.route_start, first.route_start[-1] + second.route_start[1:]]),
        link=np.concatenate([first.link, second.link]),
    )


def timed_again(instance: FabricInstance, schedule: Schedule) -> Schedule:
    """The schedule's transfers in its order, each as early as its links allow. Raises ``ValueError`` as
    :func:`synth_models.fabric.scheduling.back_and_forth.transfers_of`."""
    transfers = replace(transfers_of(instance.machine, schedule), priority=schedule.start)
    many = schedule.transfers > FEW
    return timed(instance, transfers, in_gaps=not many, in_cells=many)


def _arrivals(instance: FabricInstance, schedule: Schedule) -> IntArray:
    """When every transfer has arrived, in ticks. Raises ``ValueError`` where a route branches."""
    transfers = Transfers.of_schedule(schedule)
    ends(instance.machine, transfers)
    return arrivals(instance, transfers, schedule)


def _with_pieces(schedule: Schedule, keep: BoolArray) -> Schedule:
    """Only these pieces and what moves them."""
    number = np.cumsum(keep) - 1
    found = _taken(schedule, keep[schedule.piece])
    return replace(
        found,
        piece_block=schedule.piece_block[keep],
        piece_bytes=schedule.piece_bytes[keep],
        piece=number[found.piece],
    )


def _taken(schedule: Schedule, keep: BoolArray) -> Schedule:
    """Only these transfers."""
    start, link = picked((schedule.route_start, schedule.link), np.flatnonzero(keep))
    return replace(
        schedule,
        start=schedule.start[keep],
        piece=schedule.piece[keep],
        adds=schedule.adds[keep],
        route_start=start,
        link=link,
    )


def _on_clock(schedule: Schedule, ticks: int) -> Schedule:
    """The same at a finer clock."""
    times = ticks // schedule.ticks_per_s
    if (int(schedule.start.max(initial=0)) + 1) * times * 8 > MOST_TICKS:
        raise ValueError("no clock has room for both")
    return replace(schedule, ticks_per_s=ticks, start=schedule.start * times)


def _cuts(schedule: Schedule) -> dict[int, set[int]]:
    """The bytes at which each block is cut, its ends among them."""
    cuts: dict[int, set[int]] = defaultdict(lambda: {0})
    for block, (_, high) in zip(schedule.piece_block.tolist(), _bytes_of(schedule), strict=True):
        cuts[block].add(high)
    return cuts


def _bytes_of(schedule: Schedule) -> list[tuple[int, int]]:
    """First byte of every piece in its block, and the one behind its last."""
    done: dict[int, int] = defaultdict(int)
    found = []
    for block, size in zip(schedule.piece_block.tolist(), schedule.piece_bytes.tolist(), strict=True):
        found.append((done[block], done[block] + size))
        done[block] += size
    return found


def _recut(
    instance: FabricInstance,
    schedule: Schedule,
    edges: Mapping[int, list[int]],
    number: Mapping[tuple[int, int], int],
    sizes: IntArray,
) -> Schedule:
    """The schedule with finer pieces, all of the one block of an allreduce: each goes where its piece went, one behind
    the other."""
    parts: list[list[int]] = []
    for block, (low, high) in zip(schedule.piece_block.tolist(), _bytes_of(schedule), strict=True):
        parts.append([number[block, edge] for edge in edges[block] if low <= edge < high])
    counts = np.array([len(parts[p]) for p in schedule.piece.tolist()], dtype=np.int64)
    piece = np.array([q for p in schedule.piece.tolist() for q in parts[p]], dtype=np.int64)
    row = np.repeat(np.arange(schedule.transfers), counts)
    start, link = picked((schedule.route_start, schedule.link), row)
    slowest = np.minimum.reduceat(instance.machine.network.bandwidth[link], start[:-1]) if len(link) else sizes[:0]
    takes = np.zeros(len(row), dtype=np.int64)
    for rate in np.unique(slowest).tolist():
        own = slowest == rate
        each = {size: clock.ticks_for(size, schedule.ticks_per_s, rate) for size in set(sizes[piece[own]].tolist())}
        takes[own] = [each[size] for size in sizes[piece[own]].tolist()]
    before = np.cumsum(takes) - takes
    first = np.cumsum(counts) - counts
    later = before - np.repeat(before[first], counts) if len(row) else before
    return replace(
        schedule,
        piece_block=np.zeros(len(sizes), dtype=np.int64),
        piece_bytes=sizes,
        start=schedule.start[row] + later,
        piece=piece,
        adds=schedule.adds[row],
        route_start=start,
        link=link,
    )
