"""Random machines of a few nodes with all kinds of switches, for the brute force of ``epochs``."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

from models.fabric.small_machines import machine

from synth_models.fabric.instance import FabricInstance

QUICK, ANY = [12.0, 24.0, 36.0], [6.0, 12.0, 12.0, 24.0]  # bytes/s
SPREADING = ("allgather", "broadcast", "reduce_scatter", "reduce")


def any_switches(seed: int) -> tuple[FabricInstance, Fraction, int]:
    """An instance, the seconds of an epoch, and chunks a block.

    Two to four ranks, none to three switches that copy or not, store (with buffer or without) or cut through; links of
    unlike speed and latency, between switches too (half of the time quick ones into them), sometimes parallel or in a
    group; blocks of 12 bytes.
    """
    draw = random.Random(seed)
    while True:
        ranks, switches = draw.randint(2, 4), draw.choice([0, 1, 1, 2, 2, 3])
        collective = draw.choice(SPREADING)
        if ranks > 3 and collective in ("allgather", "reduce_scatter") and switches > 1:
            continue
        nodes = ranks + switches
        pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v]
        quick = draw.random() < 0.5
        if switches and draw.random() < 0.4:  # no links between ranks
            pairs = [(u, v) for u, v in pairs if max(u, v) >= ranks]
        drawn = draw.sample(pairs, min(len(pairs), nodes + draw.randint(0, 4)))
        drawn += draw.choices(drawn, k=draw.choice([0, 0, 1]))
        links = [
            (u, v, draw.choice(QUICK if quick and v >= ranks else ANY), draw.choice([0.0, 0.0, 0.0, 1.0, 2.0]),
             "bus" if draw.random() < 0.08 else None)
            for u, v in drawn
        ]  # fmt: skip
        reduces = collective in ("reduce", "reduce_scatter")
        buffer = draw.random() < 0.25 and not reduces
        switching: dict[str, Any] = {
            "mode": "store_and_forward",
            "buffer": buffer,
            "copies": buffer or draw.random() < 0.5,
        }
        if draw.random() < 0.3:
            switching = {"mode": "cut_through", "multicast": draw.random() < 0.5}
        size = 12 * (ranks if collective in ("allgather", "reduce_scatter") else 1)
        chunks = 2 if collective in ("broadcast", "reduce") and draw.random() < 0.4 else 1
        try:
            found = machine(nodes, links, range(ranks, nodes), collective=collective, bytes=size, switching=switching)
        except ValueError:
            continue  # ranks that do not reach each other
        slow = Fraction(12, chunks) / Fraction(min(link[2] for link in links))
        return found, draw.choice([slow, Fraction(draw.choice([1, 2]), draw.choice([1, 2]) * chunks)]), chunks
