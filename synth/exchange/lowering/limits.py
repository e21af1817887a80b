"""What an executor takes, as far as the lowering has to keep to it."""

from __future__ import annotations

from dataclasses import dataclass

from synth.exchange.executors import Executor


@dataclass(frozen=True)
class Limits:
    """``steps`` of a thread block, ``count`` (chunks) of a step, ``channels``, ``peers`` of a rank over one channel and
    direction, thread ``blocks`` of a rank; None where there is no limit."""

    executor: str
    steps: int | None = None
    count: int | None = None
    channels: int | None = None
    peers: int | None = None
    blocks: int | None = None


def limits_of(executor: Executor) -> Limits:
    """The limits of an executor of MSCCL XML."""
    e = executor
    return Limits(e.name, e.steps, e.count, e.channels, e.blocks_per_channel, e.blocks)
