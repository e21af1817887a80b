"""Entries of a plan as JSON has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from synth.exchange.mscclpp.blocks import Block
from synth.exchange.mscclpp.switches import Group, declared

KINDS = ("memory", "port", "switch")  # of channels


def gpu_entry(
    rank: int,
    chunks: tuple[int, int, int],
    blocks: Sequence[Block],
    peers: Mapping[str, Sequence[int]],
    remote: Sequence[tuple[int, str, str]],
    groups: Sequence[Group],
    wanted: Sequence[int] | None = None,
) -> dict[str, Any]:
    """A GPU. ``chunks``: of its input, output and scratch; ``peers`` of its channels by type; ``remote``: buffers of
    others that it touches, as owner, buffer, type of channel; ``groups`` of its channels over switches; ``wanted``: of
    an alltoall of given parts, the chunks that it gets from each, which only we read."""
    given, made, scratch = chunks
    return {
        "id": rank,
        "input_chunks": given,
        "output_chunks": made,
        "scratch_chunks": scratch,
        **({} if wanted is None else {"wanted_chunks": wanted}),
        "channels": [
            *({"channel_type": kind, "connected_to": to} for kind, to in peers.items() if to),
            *map(declared, groups),
        ],
        "remote_buffers": [
            {"rank": peer, "type": buffer, "access_channel_types": [kind]} for peer, buffer, kind in remote
        ],
        "semaphores": [],
        "threadblocks": [_block_entry(number, block) for number, block in enumerate(blocks)],
    }


def _block_entry(number: int, block: Block) -> dict[str, Any]:
    return {
        "id": number,
        "ops": block.ops or [{"name": "nop"}],
        "channels": [
            {"channel_type": kind, "channel_ids": block.channels[kind]} for kind in KINDS if block.channels[kind]
        ],
        "remote_buffer_refs": [
            {"access_channel_type": kind, "remote_buffer_ids": block.buffers[kind]}
            for kind in KINDS
            if block.buffers.get(kind)
        ],
    }
