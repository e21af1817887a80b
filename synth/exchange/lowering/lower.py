"""The lowering itself: moves in, an algorithm that keeps to an executor's limits out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from synth.arrays import IntArray
from synth.errors import LimitError
from synth.exchange.algorithm import KINDS, Algorithm
from synth.exchange.lowering.buffers import sizes
from synth.exchange.lowering.channels import Blocks, blocks, channels_of, connections, lanes, shared
from synth.exchange.lowering.dependences import Ordered, ordered
from synth.exchange.lowering.equal_chunks import chunked, copied
from synth.exchange.lowering.far_ends import with_far_ends
from synth.exchange.lowering.fused_steps import by_time, fused
from synth.exchange.lowering.joined_pieces import joined
from synth.exchange.lowering.limits import Limits
from synth.exchange.lowering.rank_steps import Acts, acts
from synth.exchange.lowering.ways import ways
from synth.exchange.transfers import Transfers

NOP = KINDS.index("nop")
MOST_COUNT = 2**20  # chunks of a step where the executor has no limit
MOST_STEPS = 2**30
ROUNDS = 12  # tries to keep thread blocks short enough


@dataclass(frozen=True)
class Wish:
    """How to lower. ``chunks`` a part (None: as many as the pieces ask for), ``channels`` that the moves between two
    ranks are spread over (``by_time``: those that start at about one time on one, which a loop then runs side by side
    with the other times of other passes; ``by_way``: a channel a ring or tree; ``in_turn``: a send waits for the one
    before it over the same link, whatever thread block made that; ``by_arrival``: steps in the order in which moves
    arrive, not in which they start, so that a sum does not wait for what is long on its way), ``blocks``: thread blocks
    of a rank at most, where a send and a receive can share some of them, ``instances``: copies of the algorithm side by
    side, each on its share of every piece and on channels of its own; ``slices`` of every piece, one behind the other
    over the same channels, so that a rank sends on the first while the others come; ``fuse``: a receive and the send of
    the same data behind it in one step; ``join``: pieces that follow each other side by side in one step, which saves
    steps and costs overlap; ``protocol`` as MSCCL names it."""

    in_place: bool = False
    chunks: int | None = None
    channels: int = 1
    instances: int = 1
    fuse: bool = False
    join: bool = False
    protocol: str = "Simple"
    by_time: bool = False
    in_turn: bool = False
    by_arrival: bool = False
    blocks: int | None = None
    by_way: bool = False
    slices: int = 1

    @property
    def cuts(self) -> int:
        """How many chunks each becomes that the pieces ask for."""
        return self.instances * self.slices


def lower(transfers: Transfers, limits: Limits, wish: Wish) -> tuple[Algorithm, list[str]]:
    """The algorithm that makes these moves, and what was changed on the way, in words.

    Raises :class:`LimitError` naming the limit where the executor cannot run it, whatever is split.
    """
    most_count = limits.count or MOST_COUNT
    played = np.lexsort((transfers.start_s, transfers.end_s)) if wish.by_arrival else None
    transfers = transfers.taken(np.argsort(transfers.start_s, kind="stable") if played is None else played)
    cut, copy = copied(chunked(transfers, wish.chunks, most_count), wish.instances, wish.slices)
    t, notes = cut.moves, list(cut.notes)
    lane = lanes(t, copy, wish.channels, wish.by_time, wish.cuts)
    if wish.by_way:
        way = ways(t)
        lane = copy * (int(way.max(initial=0)) + 1) + way[t.piece]
    done = acts(cut, wish.in_place, most_count, max(int(lane.max(initial=0)) + 1, wish.instances))
    if done.dropped:
        notes.append(f"{done.dropped} moves bring a rank what it has already: left out")
    if wish.join:
        t, done, lane = joined(t, done, lane, sizes(t, cut.chunks, done.scratch), most_count)
    if wish.fuse:
        done = by_time(t, done)
    done, made, order = _within_limits(t, done, lane, cut.chunks, limits, wish)
    found = _algorithm(transfers, wish, cut.chunks, sizes(t, cut.chunks, done.scratch), done, made, order)
    return with_far_ends(found), notes


def _within_limits(
    t: Transfers, done: Acts, lane: IntArray, chunks: int, limits: Limits, wish: Wish
) -> tuple[Acts, Blocks, Ordered]:
    """Acts (fused, if wished), thread blocks and order of the steps; where a thread block has too many steps, its pair
    of ranks gets more connections, until none has."""
    most = limits.steps or MOST_STEPS
    pairs, pair = np.unique(t.src * t.ranks + t.dst, return_inverse=True)
    pair = pair.reshape(-1).astype(np.int64)
    budget = np.full(len(pairs), most, dtype=np.int64)
    local, own = most, max(int(lane.max(initial=0)) + 1, wish.instances)  # own copies are spread as what moves is
    room = min((number for number in (wish.blocks, limits.blocks) if number is not None), default=MOST_STEPS)
    for _ in range(ROUNDS):
        channel = channels_of(t, connections(t, lane, budget, pair), limits)
        acts_now, made = done, blocks(done, channel, local, t.ranks, own)
        if wish.fuse:
            acts_now, made = fused(done, made, sizes(t, chunks, done.scratch))
        if wish.blocks is not None:
            made = shared(made, wish.blocks, most)
        if own > wish.instances and np.bincount(made.rank).max(initial=0) > room:
            own = wish.instances
            continue
        _demand_blocks(made, t.ranks, limits)
        order = ordered(acts_now, made, sizes(t, chunks, acts_now.scratch), t.outlet if wish.in_turn else None)
        length = np.diff(order.step_start)
        long = length > most
        if not long.any():
            return acts_now, made, order
        is_local = (made.send < 0) & (made.recv < 0)
        local = max(1, int(local * most / max(most, length[is_local].max(initial=0))))
        share = np.full(len(pairs), 1.0)
        for src, dst in ((made.rank, made.send), (made.recv, made.rank)):
            rows = np.flatnonzero(long & (src >= 0) & (dst >= 0))
            np.minimum.at(share, np.searchsorted(pairs, src[rows] * t.ranks + dst[rows]), most / length[rows])
        hit = share < 1
        held = np.zeros(len(pairs), dtype=np.int64)  # moves of the fullest connection of a pair
        key = pair * (int(channel.max(initial=0)) + 1) + channel
        _, where, number = np.unique(key, return_index=True, return_counts=True)
        np.maximum.at(held, pair[where], number)
        if (np.minimum(budget, held)[hit] <= 1).any():
            break
        budget[hit] = np.maximum(1, (np.minimum(budget, held)[hit] * share[hit]).astype(np.int64) - 1)
    raise LimitError(
        f"{limits.executor} takes {most} steps a thread block; with what this schedule has to wait for some have more, "
        f"however they are split (fewer pieces or chunks{', no --fuse' if wish.fuse else ''})"
    )


def _demand_blocks(made: Blocks, ranks: int, limits: Limits) -> None:
    count = np.bincount(made.rank, minlength=ranks)
    if limits.blocks is not None and count.max(initial=0) > limits.blocks:
        raise LimitError(
            f"{limits.executor} takes {limits.blocks} thread blocks a rank; rank {int(count.argmax())} needs "
            f"{int(count.max())} (fewer pieces or chunks, fewer --instances or --channels)"
        )


def _algorithm(
    t: Transfers, wish: Wish, chunks: int, buffers: IntArray, done: Acts, made: Blocks, order: Ordered
) -> Algorithm:
    real, act = order.act >= 0, np.maximum(order.act, 0)

    def column(name: str, nothing: int) -> IntArray:
        values = getattr(done, name)
        if not len(values):
            return np.zeros(0, dtype=np.int64)
        return np.where(real, values[act], nothing).astype(np.int64)

    return Algorithm(
        name=t.name,
        collective=t.collective,
        ranks=t.ranks,
        root=t.root,
        in_place=wish.in_place,
        protocol=wish.protocol,
        chunks=chunks,
        buffer_chunks=buffers,
        tb_rank=made.rank,
        tb_send=made.send,
        tb_recv=made.recv,
        tb_channel=made.channel,
        step_start=order.step_start,
        kind=column("kind", NOP),
        src_buffer=column("src_buffer", 0),
        src_offset=column("src_offset", -1),
        dst_buffer=column("dst_buffer", 1),
        dst_offset=column("dst_offset", -1),
        count=column("count", 0),
        dep_tb=order.dep_tb,
        dep_step=order.dep_step,
        has_dependents=order.has_dependents,
        wants=None if t.wants is None else t.wants * chunks // t.part_bytes,
    )


def with_idle(a: Algorithm) -> Algorithm:
    """The same with a thread block without steps on every rank that has none: no kernel starts with no blocks."""
    idle = np.setdiff1d(np.arange(a.ranks), a.tb_rank)
    at = np.searchsorted(a.tb_rank, idle)
    nobody = np.full(len(idle), -1, dtype=np.int64)
    return replace(
        a, tb_rank=np.insert(a.tb_rank, at, idle), tb_send=np.insert(a.tb_send, at, nobody),
        tb_recv=np.insert(a.tb_recv, at, nobody), tb_channel=np.insert(a.tb_channel, at, nobody + 1),
        step_start=np.insert(a.step_start, at, a.step_start[at]),
    )  # fmt: skip
