"""A schedule as an executor needs it: moves of chunks from rank to rank."""

from __future__ import annotations

import numpy as np

from synth.errors import InputError
from synth.exchange.transfers import Transfers, in_order
from synth.schedule.quotient import listed
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.solution import Solution


def transfers(instance: XTreeInstance, schedule: Solution) -> Transfers:
    """Every transfer of a chunk is one of a piece; timestep k lasts from k - 1 to k.

    Raises :class:`InputError` where a chunk has no whole number of bytes.
    """
    schedule = listed(instance.topology, schedule)
    size = int(instance.chunk_bytes)
    if size != instance.chunk_bytes:
        raise InputError(f"chunk_bytes = {instance.chunk_bytes}: a chunk that leaves needs a whole number of bytes")
    network, count = instance.topology, instance.total_chunks
    chunk = np.arange(count, dtype=np.int64)
    whole = instance.collective == "allreduce"
    hint = np.zeros(network.links, dtype=np.int64)
    seen: dict[tuple[int, int], int] = {}
    for e, pair in enumerate(zip(network.src.tolist(), network.dst.tolist(), strict=True)):
        hint[e] = seen[pair] = seen.get(pair, -1) + 1
    several = {pair for pair, last in seen.items() if last}
    for e, pair in enumerate(zip(network.src.tolist(), network.dst.tolist(), strict=True)):
        hint[e] = hint[e] if pair in several else -1
    link = schedule.link.astype(np.int64)
    return in_order(
        Transfers(
            name=instance.name,
            collective=instance.collective,
            ranks=network.nodes,
            root=None,
            part_bytes=(count if whole else instance.chunks) * size,
            piece_part=np.zeros_like(chunk) if whole else chunk // instance.chunks,
            piece_offset=(chunk if whole else chunk % instance.chunks) * size,
            piece_bytes=np.full(count, size, dtype=np.int64),
            piece=schedule.chunk.astype(np.int64),
            src=network.src[link].astype(np.int64),
            dst=network.dst[link].astype(np.int64),
            adds=np.asarray(schedule.adds),
            start_s=schedule.step.astype(np.float64) - 1,
            end_s=schedule.step.astype(np.float64),
            channel_hint=hint[link],
        )
    )
