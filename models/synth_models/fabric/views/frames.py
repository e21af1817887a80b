"""A schedule as an animation: the machine, and moment by moment the pieces that set out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from synth.text.quantities import BYTES, SECONDS, shown
from synth.views.frames import Frames
from synth_models.fabric.check.route_hops import hops_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import Blocks
from synth_models.fabric.solution import Quotient, Schedule, expanded
from synth_models.fabric.views.positions import boxes, positions

MAX_MOVES = 20_000  # arrows; of a larger schedule a sample
MAX_FRAMES = 2_000


def frames(instance: FabricInstance, schedule: Schedule | Quotient) -> Frames | None:
    """One frame a start time: every link of a route that is set out on then. Items are pieces, named for the rank whose
    data they are. Where nothing is summed the page shows who holds them, from the frame after they set out (switches
    on the way too), which is earlier than they arrive where frames are close together.

    Of more than 20,000 arrows or 2,000 frames a sample: all transfers of some pieces, evenly chosen; of a schedule that
    symmetries repeat, those of the first rank's data. None without transfers.
    """
    machine, whole = instance.machine, 0
    if isinstance(schedule, Quotient):
        whole = len(schedule.part.link) * len(instance.members)
        schedule = schedule.part if whole > MAX_MOVES else expanded(instance, schedule)
    if not schedule.transfers:
        return None
    whole = max(whole, len(schedule.link))
    schedule = _sampled(schedule)
    names = machine.names
    order = np.argsort(schedule.start, kind="stable")
    times, when = np.unique(schedule.start[order], return_inverse=True)
    lengths = np.diff(schedule.route_start)[order]
    begins = schedule.route_start[:-1][order]
    steps_in = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    at = np.repeat(begins, lengths) + steps_in
    link = schedule.link[at]
    hops = hops_of(instance, schedule)
    begin = hops.begin[at] / schedule.ticks_per_s
    blocks = instance.all_blocks[0]
    origin, sums = blocks.origin[schedule.piece_block], blocks.sums[schedule.piece_block].tolist()
    items = [
        f"piece {p} {'(a sum)' if sums[p] else _whose(blocks, rank, names)}, {shown(size, BYTES)}"
        for p, (rank, size) in enumerate(zip(origin.tolist(), schedule.piece_bytes.tolist(), strict=True))
    ]
    titles = [
        f"from {shown(tick / schedule.ticks_per_s, SECONDS)}: {n} transfer{'s' if n > 1 else ''} set out"
        for tick, n in zip(times.tolist(), np.bincount(when).tolist(), strict=True)
    ]
    held = np.stack([np.arange(len(origin), dtype=np.int64), origin], axis=1)
    src, dst = machine.network.src.astype(np.int64), machine.network.dst.astype(np.int64)
    return Frames(
        positions=positions(machine),
        names=names,
        step=np.repeat(when.reshape(-1).astype(np.int64) + 1, lengths),
        src=src[link],
        dst=dst[link],
        item=np.repeat(schedule.piece[order], lengths),
        items=items,
        links=np.stack([src, dst], axis=1),
        held=held[:0] if np.any(origin < 0) else held,
        titles=titles,
        groups=machine.is_switch.astype(np.int64),
        moments=times / schedule.ticks_per_s,
        begin=begin,
        end=begin + hops.ticks[hops.span[at]] / schedule.ticks_per_s,
        boxes=boxes(machine),
        whole=whole if whole > len(link) else 0,
    )


def _sampled(schedule: Schedule) -> Schedule:
    """The transfers of every k-th piece, with the least k that leaves few enough arrows and frames; of a single piece
    too many for that, every k-th transfer."""
    lengths = np.diff(schedule.route_start)
    stride = 1
    while True:
        keep = schedule.piece % stride == 0 if stride < len(schedule.piece_block) else schedule.piece == 0
        if stride > len(schedule.piece_block):
            keep &= np.arange(len(keep)) % (stride // len(schedule.piece_block)) == 0
        if lengths[keep].sum() <= MAX_MOVES and len(np.unique(schedule.start[keep])) <= MAX_FRAMES:
            break
        stride += max(1, stride // 4)
    if keep.all():
        return schedule
    used, piece = np.unique(schedule.piece[keep], return_inverse=True)
    return replace(
        schedule,
        piece_block=schedule.piece_block[used],
        piece_bytes=schedule.piece_bytes[used],
        start=schedule.start[keep],
        piece=piece.reshape(-1).astype(np.int64),
        adds=schedule.adds[keep],
        route_start=np.concatenate([[0], np.cumsum(lengths[keep])]).astype(np.int64),
        link=schedule.link[np.repeat(keep, lengths)],
        plan={},
    )


def _whose(blocks: Blocks, code: int, names: Sequence[str]) -> str:
    return f"of {' or '.join(names[rank] for rank in blocks.ranks(code, ()))}"
