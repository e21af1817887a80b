"""Tiny instances of several collectives, for the tests: written out by hand, or drawn."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from models.fabric.small_machines import schedule_of

from synth.instance import parse
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule

RING = {"kind": "ring", "nodes": 3, "bandwidth": 1.0, "latency": 1.0}
ONE_LINK = {"kind": "line", "nodes": 2, "bandwidth": 1.0, "latency": 0.0}
NAMES = ("allgather", "broadcast", "reduce", "allreduce", "alltoall", "scatter", "reduce_scatter")


def several(rows: Sequence[dict[str, Any]], network: dict[str, Any] | None = None, **own: Any) -> FabricInstance:
    """The instance of these collectives. Raises :class:`synth.errors.InputError`."""
    raw = {
        "format": "synth-instance/1",
        "family": "fabric",
        "name": "t",
        "source": "test",
        "network": RING if network is None else network,
        "collective": "several",
        "bytes": sum(row["bytes"] for row in rows),
        "collectives": list(rows),
    }
    return parse(raw | own, FabricInstance, "t")


def drawn(rng: random.Random) -> FabricInstance:
    """Two collectives on a ring of three ranks, or on a star of two or three, of a byte or two a block."""
    star = {"kind": "star", "nodes": 3, "bandwidth": 1.0, "latency": rng.choice([0.0, 1.0])}
    network = rng.choice([{**RING, "latency": rng.choice([0.0, 1.0, 2.0])}, star])
    rows = []
    for k in range(2):
        name = rng.choice(NAMES)
        ranks = rng.choice([[0, 1], [1, 2], [2, 0], [0, 1, 2]])
        rooted = name in ("broadcast", "reduce")
        size = rng.choice([1, 2]) * (1 if rooted or name == "allreduce" else len(ranks))
        row = {"collective": name, "bytes": size, "ranks": ranks, "release": float(k * rng.choice([0, 1, 2, 5]))}
        rows.append(row | {"priority": rng.choice([1, 3])})
    return several(rows, network, relay=rng.random() < 0.2)


def drawn_in_order(rng: random.Random) -> FabricInstance:
    """The same, the second behind the first or not, and some ranks later than others."""
    instance = drawn(rng)
    rows = [one.model_dump(mode="json", exclude_none=True) for one in instance.collectives or ()]
    if rng.random() < 0.7:
        rows[1]["after"] = [0]
    for row in rows:
        if rng.random() < 0.5:
            row["ready"] = [[rank, float(rng.choice([1, 2, 5]))] for rank in row["ranks"] if rng.random() < 0.5]
            row |= {} if row["ready"] else {"ready": [[row["ranks"][0], 1.0]]}
    return several(rows, instance.network.model_dump(mode="json", exclude_none=True), relay=instance.relay)


def as_schedule(instance: FabricInstance, unit: Fraction, rows: Sequence[tuple[int, int, list[int], bool]]) -> Schedule:
    """What brute force has found with one piece a block."""
    pieces = [(b, int(n)) for b, n in enumerate(instance.all_blocks[0].bytes)]
    ticks = Fraction(1) / unit
    scale = ticks.numerator
    return schedule_of(pieces, [(start * ticks.denominator, *rest) for start, *rest in rows], scale)
