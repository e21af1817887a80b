"""What RCCL's rings and trees should reach by RCCL's own cost model (``rccl_protocols.toml`` names the sources).

As :mod:`synth.exchange.selection.nccl_reach`, of which it is a fork, but for its tables, and that it takes all that the
links of a GPU carry for the rate of rings and trees alike, between boxes too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from synth.exchange.selection.nccl_reach import LEAST_MESSAGE, PROTOCOLS, ROUNDS, Boxes, Reach, quickest

FILE = Path(__file__).with_name("rccl_protocols.toml")


@cache
def data() -> dict[str, Any]:
    """The file's tables."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def reach(asked: Boxes, gpu: str, size: int) -> Reach | None:
    """What RCCL expects at a size in bytes; None for a collective that its model does not know."""
    return quickest(asked, every(asked, gpu, size))


def every(asked: Boxes, gpu: str, size: int) -> Iterator[Reach]:
    """What RCCL expects of each of its algorithms and protocols that runs there."""
    card = data()["gpu"][gpu]
    model = data()[card["inside" if asked.boxes == 1 else "between"]]
    rate = min(rate for rate in (asked.inside, asked.nics * asked.nic) if rate > 0)
    for p, protocol in enumerate(PROTOCOLS):
        for algorithm in ("ring", "tree") if asked.collective == "allreduce" else ("ring",):
            if algorithm == "tree" and asked.boxes == 1 and protocol not in card["tree_protocols"]:
                continue
            table = model[algorithm]
            share = table["share"][asked.boxes > 2][p]
            if algorithm == "tree" or asked.boxes > 1:
                factors = table["corrections"].get(protocol, [0.0])
                power = (size // LEAST_MESSAGE).bit_length() - 1
                share *= factors[min(max(power, 0), len(factors) - 1)]
            if share > 0:
                carried = 2.0 if algorithm == "tree" else _ring_steps(asked) / asked.ranks
                wait = (_tree_wait if algorithm == "tree" else _ring_wait)(asked, table, p)
                yield Reach(wait + size * carried / (rate * share), algorithm, protocol)


def _ring_steps(asked: Boxes) -> int:
    return ROUNDS[asked.collective] * (asked.ranks - 1)


def _ring_wait(asked: Boxes, table: dict[str, Any], p: int) -> float:
    inside, between = table["step"][p], 0
    if asked.boxes > 1:
        inside = max(inside, data()["post"]["seconds"] * (3 if p == 2 else 1))
        between = 2 * asked.boxes if asked.collective == "allreduce" else asked.boxes - 1
    return float(table["base"][p] + max(0, _ring_steps(asked) - between) * inside + between * table["net_step"][p])


def _tree_wait(asked: Boxes, table: dict[str, Any], p: int) -> float:
    doublings = asked.boxes.bit_length() - 1
    return float(table["base"][p] + 2 * ((asked.width - 1) * table["step"][p] + doublings * table["net_step"][p]))
