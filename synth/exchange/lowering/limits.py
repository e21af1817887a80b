"""What an executor takes, as far as the lowering has to keep to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """``steps`` of a thread block, ``count`` (chunks) of a step, ``channels``, ``peers`` of a rank over one channel and
    direction, thread ``blocks`` of a rank; None where there is no limit. ``names``: what the executor calls them."""

    executor: str
    steps: int | None = None
    count: int | None = None
    channels: int | None = None
    peers: int | None = None
    blocks: int | None = None
