"""What NCCL's ring should reach by NCCL's own cost model, beside what is possible: no bound and no choice uses it.

``time = base + steps + bytes / (share * rate)`` of each protocol, the quickest counts (``nccl_protocols.toml`` names
the sources). Left out: channels' caps of LL128, a NIC's own latency, and the plateau of Simple rings between boxes.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

STEPS = {"allreduce": 2, "allgather": 1, "reduce_scatter": 1}  # rounds about the ring
OVERHEAD_S = 1e-6  # of a message that is posted to a NIC; Simple posts three
FILE = Path(__file__).with_name("nccl_protocols.toml")


class Reach(NamedTuple):
    """Seconds by the quickest protocol."""

    seconds: float
    protocol: str


class Ring(NamedTuple):
    """A ring: its collective, ranks and boxes, and ``rate``: bytes/s through a rank as nccl-tests count busbw, where
    the links carry nothing else and size is no matter."""

    collective: str
    ranks: int
    boxes: int
    rate: float


@cache
def data() -> dict[str, Any]:
    """The file's tables ``protocol`` and ``gpu``."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def reach(ring: Ring, gpu: str, size: int) -> Reach | None:
    """What NCCL expects of a ring at a size in bytes; None for a collective that its model gives no such steps."""
    rounds = STEPS.get(ring.collective)
    if rounds is None:
        return None
    card = data()["gpu"][gpu]
    share = card["nvlink_share"] if ring.boxes == 1 else card["net_share"]
    volume = rounds * (ring.ranks - 1) / ring.ranks * size
    found = []
    for name, protocol in data()["protocol"].items():
        rate = ring.rate * share * protocol["share"]
        if name == "LL":
            rate = min(rate, card["most_LL"][min(ring.boxes, 3) - 1])
        found.append(Reach(protocol["base"] + _steps(ring, rounds, name, protocol) + volume / rate, name))
    return min(found)


def _steps(ring: Ring, rounds: int, name: str, protocol: dict[str, float]) -> float:
    """Seconds that the steps take."""
    between = rounds * (ring.boxes - 1)
    inside = protocol["nvlink_step"]
    if ring.boxes > 1:
        inside = max(inside, OVERHEAD_S * (3 if name == "Simple" else 1))
    step = protocol["net_step_alone" if ring.boxes == ring.ranks else "net_step"]
    return (rounds * (ring.ranks - 1) - between) * inside + between * step
