"""From a plan in epochs to a schedule in seconds: the plan's transfers, in the plan's order, as early as they can.

The plan says who sends what over which way after whom; every chunk is cut into pieces, and list scheduling
(:mod:`synth_models.fabric.scheduling.list_scheduling`) starts each as soon as links and data allow, so that nothing
waits for the end of an epoch. Epochs leave out what a piece takes to cross a switch, latencies below a tenth of an
epoch, and the size of the last share: where an optimal plan leaves no room for these, a schedule of whole chunks may
take longer than its epochs, and more pieces bring it near.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.scheduling.chunks import cut, seconds
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.reversal import reversed_transfers
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule
from synth_peers.teccl.programs.fluid_insertion import Streams
from synth_peers.teccl.programs.grid import Grid
from synth_peers.teccl.programs.sends import Sends

MOST_TRANSFERS = 100_000
MOST_PIECES = 256  # of a chunk
MANY = 10_000  # moves whose list scheduling may take long, where links wait for each other
WORTH = Fraction(1, 10_000)  # doublings that save less, two in a row, end the search


class MoveKey(NamedTuple):
    """What tells a move from others: its first epoch, chunk, first link, and the last link where nothing is copied."""

    epoch: int
    chunk: int
    first: int
    last: int


@dataclass(frozen=True)
class EpochTransfers:
    """Transfers of whole chunks or streams. Per move: ``item`` (chunk or stream), its ``route``, the moves that it
    waits for, the epoch of its start and for how many epochs it is on the way. Per item: its block and its bytes."""

    item: list[int]
    route: list[list[int]]
    before: list[list[int]]
    epoch: list[int]
    length: list[int]
    block: list[int]
    bytes: list[int]


def schedule_of(
    instance: FabricInstance, grid: Grid, plan: Sends | Streams, options: RunOptions
) -> tuple[Schedule, int] | None:
    """The quickest schedule over the numbers of pieces tried, and that number; ``instance`` is the one to be solved,
    the grid's may be its reversal. None for a plan of nothing."""
    moves = moves_of_sends(grid, plan) if isinstance(plan, Sends) else moves_of_streams(grid, plan)
    best: tuple[Schedule, int] | None = None
    pieces, worse = 1, 0
    while worse < 2 and pieces <= min(MOST_PIECES, max(moves.bytes)) and not (best and options.out_of_time()):
        if best and len(moves.item) * pieces > MOST_TRANSFERS:
            break
        late = len(moves.item) > MANY and options.out_of_time()
        made = _quicker(instance, grid.instance, moves, pieces, (True,) if late else (False, True))
        gained = best is None or seconds(instance, made) < seconds(instance, best[0]) * (1 - WORTH)
        worse = 0 if gained else worse + 1
        if best is None or seconds(instance, made) < seconds(instance, best[0]):
            best = made, pieces
        pieces *= 2
    return best


def moves_of_sends(grid: Grid, sends: Sends) -> EpochTransfers:
    """The moves that bring every chunk first to whoever needs it; sends that nobody needs are left out."""
    routes, fed = _routes(grid, sends)
    keys = sorted(routes, key=lambda key: (key.epoch, _depth(fed, key), *key[1:]))
    number = {key: i for i, key in enumerate(keys)}
    lag = grid.lag.tolist()
    return EpochTransfers(
        [key.chunk for key in keys],
        [routes[key] for key in keys],
        [[] if (before := fed[key]) is None else [number[before]] for key in keys],
        [key.epoch for key in keys],
        [max(lag[e] for e in routes[key]) for key in keys],
        [c // grid.chunks for c in range(len(grid.origin))],
        [size for total in grid.instance.blocks.bytes.tolist() for size in _shares(total, grid.chunks)],
    )


def _routes(grid: Grid, sends: Sends) -> tuple[dict[MoveKey, list[int]], dict[MoveKey, MoveKey | None]]:
    """The links of every move, an out-tree where switches copy; and the move that brings what it takes, None from the
    chunk's origin."""
    feeders = _feeders(grid, sends)
    src, dst, link, epoch = grid.src.tolist(), grid.dst.tolist(), sends.link.tolist(), sends.epoch.tolist()
    routes: dict[MoveKey, list[int]] = {}
    brought: dict[tuple[int, int], MoveKey] = {}  # by chunk and node
    for (c, v), i in sorted(_needed(grid, sends, feeders).items(), key=lambda item: epoch[item[1]]):
        way = _way(feeders, i)
        links = without_loops([link[j] for j in way], src, dst)
        key = MoveKey(epoch[way[0]], c, links[0], -1 if grid.copies else link[i])
        route = routes.setdefault(key, [])
        reached = {src[links[0]], *(dst[e] for e in route)}
        route += links[max(k for k, e in enumerate(links) if src[e] in reached) :]
        brought[c, v] = key
    return routes, {key: brought.get((key.chunk, src[key.first])) for key in routes}


def without_loops(links: list[int], src: list[int], dst: list[int]) -> list[int]:
    """A path without the detours that lead back to a node that it has passed: on a plan a chunk may wait so."""
    found: list[int] = []
    for e in links:
        found.append(e)
        passed = [k for k, earlier in enumerate(found) if src[earlier] == dst[e]]
        if passed:
            del found[passed[0] :]
    return found


def _depth(fed: Mapping[MoveKey, MoveKey | None], key: MoveKey) -> int:
    """How many moves of the same epoch, one after the other, come before this one."""
    depth, before = 0, fed[key]
    while before is not None and before.epoch == key.epoch:
        depth, before = depth + 1, fed[before]
    return depth


def _shares(total: int, parts: int) -> list[int]:
    return [total * (j + 1) // parts - total * j // parts for j in range(parts)]


def _feeders(grid: Grid, sends: Sends) -> dict[int, int]:
    """By send out of a switch without buffer: the send that brings there what it takes out. Where nothing is copied,
    everyone has one of its own."""
    ends = (sends.epoch + grid.lag[sends.link]).tolist()
    src, dst, holds = grid.src.tolist(), grid.dst.tolist(), grid.holds.tolist()
    chunk, link, epoch = sends.chunk.tolist(), sends.link.tolist(), sends.epoch.tolist()
    coming: dict[tuple[int, int, int], list[int]] = defaultdict(list)  # by chunk, switch and epoch
    for i, e in enumerate(link):
        if not holds[dst[e]]:
            coming[chunk[i], dst[e], ends[i]].append(i)
    taken: dict[tuple[int, int, int], int] = defaultdict(int)
    found: dict[int, int] = {}
    for i, e in enumerate(link):
        if not holds[src[e]]:
            key = (chunk[i], src[e], epoch[i])
            found[i] = coming[key][taken[key]]
            taken[key] += not grid.copies
    return found


def _way(feeders: dict[int, int], send: int) -> list[int]:
    """Sends from the last node that kept the chunk up to this one."""
    way = [send]
    while way[0] in feeders:
        way.insert(0, feeders[way[0]])
    return way


def _needed(grid: Grid, sends: Sends, feeders: dict[int, int]) -> dict[tuple[int, int], int]:
    """By chunk and node that keeps it: the send that first brings it, where it is needed."""
    first: dict[tuple[int, int], int] = {}
    dst, src = grid.dst.tolist(), grid.src.tolist()
    chunk, link = sends.chunk.tolist(), sends.link.tolist()
    for i in np.argsort(sends.epoch + grid.lag[sends.link], kind="stable").tolist():
        c, v = chunk[i], dst[link[i]]
        if grid.holds[v] and v != grid.origin[c]:
            first.setdefault((c, v), i)
    stack = [(int(c), int(v)) for c, v in zip(*np.nonzero(grid.wanted), strict=True) if v != grid.origin[c]]
    found: dict[tuple[int, int], int] = {}
    while stack:
        c, v = stack.pop()
        if (c, v) in found:
            continue
        found[c, v] = first[c, v]
        u = src[link[_way(feeders, first[c, v])[0]]]
        if u != grid.origin[c]:
            stack.append((c, u))
    return found


class _Hop(NamedTuple):
    """A part of a stream between two nodes that keep it: the epoch in which it ``began``, its ``route`` of links and
    the ``epochs`` until it is there."""

    began: int
    stream: int
    hop: int
    route: list[int]
    epochs: int


def moves_of_streams(grid: Grid, streams: Streams) -> EpochTransfers:
    """Every stream cut at the nodes that keep it; its bytes are the block's, dealt out by shares."""
    lag = grid.lag.tolist()
    src, dst, holds = grid.src.tolist(), grid.dst.tolist(), grid.holds.tolist()
    sizes = _bytes(grid, streams)
    moves: dict[tuple[int, int], _Hop] = {}  # by stream and hop
    for i in range(len(streams)):
        if not sizes[i]:
            continue
        route: list[int] = []
        hop = 0
        for j in range(int(streams.start[i]), int(streams.start[i + 1])):
            e, k = int(streams.link[j]), int(streams.epoch[j])
            if not route:
                began = k
            route.append(e)
            if holds[dst[e]]:
                moves[i, hop] = _Hop(began, i, hop, without_loops(route, src, dst), k + lag[e] - began)
                route, hop = [], hop + 1
    rows = sorted(moves.values(), key=lambda row: (row.began, row.stream, row.hop))
    number = {(row.stream, row.hop): at for at, row in enumerate(rows)}
    before = [[number[row.stream, row.hop - 1]] if row.hop else [] for row in rows]
    return EpochTransfers(
        [row.stream for row in rows], [row.route for row in rows], before, [row.began for row in rows],
        [row.epochs for row in rows], streams.block.tolist(), sizes,
    )  # fmt: skip


def _bytes(grid: Grid, streams: Streams) -> list[int]:
    """Whole bytes of every stream: a block's bytes at the ends of its shares, rounded down, one after the other."""
    blocks = grid.instance.blocks
    demand = [0] * len(blocks)
    for b, amount in zip(streams.block.tolist(), streams.amount.tolist(), strict=True):
        demand[b] += amount
    done = [0] * len(blocks)
    found = []
    for b, amount in zip(streams.block.tolist(), streams.amount.tolist(), strict=True):
        size = int(blocks.bytes[b])
        before, done[b] = done[b], done[b] + amount
        found.append(size * done[b] // demand[b] - size * before // demand[b])
    return found


def _quicker(
    instance: FabricInstance, there: FabricInstance, moves: EpochTransfers, pieces: int, orders: tuple[bool, ...]
) -> Schedule:
    """The best of list scheduling (False among the ``orders``) and the plan's own order on every link (True), forwards
    and (for a reduction) backwards."""
    transfers = _transfers(moves, pieces)
    made = [timed(there, transfers, in_order=in_order) for in_order in orders]
    if there is not instance:
        reversed_ones = [reversed_transfers(there, transfers, one) for one in made]
        made = [timed(instance, one, in_order=in_order) for one in reversed_ones for in_order in orders]
    return min(made, key=lambda one: seconds(instance, one))


def _transfers(moves: EpochTransfers, pieces: int) -> Transfers:
    """Every item cut into at most ``pieces``; a piece's turn comes where it would within the item's epochs, and
    not before what it waits for."""
    cuts = [cut(size, pieces) for size in moves.bytes]
    first = starts([len(row) for row in cuts]).tolist()
    rows: list[tuple[float, int, int]] = []
    number: dict[tuple[int, int], int] = {}
    for i, (item, epoch, length) in enumerate(zip(moves.item, moves.epoch, moves.length, strict=True)):
        for j in range(len(cuts[item])):
            number[i, j] = len(rows)
            earlier = (rows[number[w, j]][0] for w in moves.before[i])  # on a quick branch of a route that takes longer
            rows.append((max((epoch + length * j / pieces, *earlier)), i, j))
    order = np.argsort(np.array([turn for turn, _, _ in rows]), kind="stable")
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.arange(len(rows))
    return Transfers.of(
        [block for block, row in zip(moves.block, cuts, strict=True) for _ in row],
        [size for row in cuts for size in row],
        [first[moves.item[i]] + j for _, i, j in rows],
        [moves.route[i] for _, i, _ in rows],
        [[number[w, j] for w in moves.before[i]] for _, i, j in rows],
        place,
    )
