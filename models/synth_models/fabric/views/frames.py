"""A schedule as an animation: the machine, and moment by moment the pieces that set out."""

from __future__ import annotations

import numpy as np

from synth.text.quantities import BYTES, SECONDS, shown
from synth.views.frames import Frames
from synth_models.fabric.check.route_hops import hops_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Quotient, Schedule, expanded
from synth_models.fabric.views.positions import boxes, positions

MAX_MOVES = 20_000  # arrows; a larger schedule has no animation
MAX_FRAMES = 2_000


def frames(instance: FabricInstance, schedule: Schedule | Quotient) -> Frames | None:
    """One frame a start time: every link of a route that is set out on then. Items are pieces, named for the rank whose
    data they are. Where nothing is summed the page shows who holds them, from the frame after they set out (switches
    on the way too), which is earlier than they arrive where frames are close together.

    None where there would be more than 20,000 arrows or 2,000 frames.
    """
    machine = instance.machine
    if isinstance(schedule, Quotient):
        if len(schedule.part.link) * len(instance.members) > MAX_MOVES:
            return None
        schedule = expanded(instance, schedule)
    if not schedule.transfers or len(schedule.link) > MAX_MOVES:
        return None
    order = np.argsort(schedule.start, kind="stable")
    times, when = np.unique(schedule.start[order], return_inverse=True)
    if len(times) > MAX_FRAMES:
        return None
    lengths = np.diff(schedule.route_start)[order]
    begins = schedule.route_start[:-1][order]
    steps_in = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    at = np.repeat(begins, lengths) + steps_in
    link = schedule.link[at]
    hops = hops_of(instance, schedule)
    begin = hops.begin[at] / schedule.ticks_per_s
    origin = instance.all_blocks[0].origin[schedule.piece_block]
    names = machine.names
    items = [
        f"piece {p} {'(a sum)' if rank < 0 else f'of {names[rank]}'}, {shown(size, BYTES)}"
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
    )
