"""Machines and demands that the tests of plans share, and planners that are warm from earlier demands."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from models.fabric.small_machines import machine

import synth
from synth.arrays import IntArray
from synth.planning import Planning
from synth_models.fabric.instance import FabricInstance

MACHINES: tuple[dict[str, Any], ...] = (
    {"machine": "dgx-h100", "boxes": 2, "gpus": "2"},
    {"machine": "dgx-a100", "boxes": 3, "gpus": "2"},
    {"machine": "dgx-h100", "boxes": 2, "gpus": "2+3"},
    {"machine": "dgx2", "boxes": 2, "gpus": "4"},
    {"machine": "dgx-h100", "boxes": 1},
    {"machine": "dgx1", "boxes": 1},
    {"machine": "dgx-h100", "boxes": 4, "gpus": "2", "leaf": 2, "oversubscription": 2},
    {"network": "ring", "nodes": 5, "bandwidth": 1e10, "latency": 1e-6},
    {"network": "torus", "rows": 2, "cols": 3, "bandwidth": 3e9, "latency": 0},
    {"network": "fat_tree", "leaves": 2, "hosts": 2, "spines": 1},
    {"machine": "teccl-ndv2-2"},
)


def planner(keys: dict[str, Any]) -> Planning:
    own = dict(keys)
    if "machine" in own:
        return synth.Planner(own.pop("machine"), **own)
    return synth.Planner(synth.make("fabric", **own, collective="broadcast", bytes="1"))


PLANNERS: dict[int, Planning] = {}


def known(k: int) -> Planning:
    """The planner of a machine, warm from earlier demands."""
    if k not in PLANNERS:
        PLANNERS[k] = planner(MACHINES[k])
    return PLANNERS[k]


def random_demand(rng: np.random.Generator, ranks: int) -> IntArray:
    """Of some size and skew; with zeros, ranks that send or receive nothing, a hot receiver, one pair alone."""
    sizes = (1 / np.arange(1, ranks**2 + 1) ** rng.choice([0, 0.5, 1, 1.5])) * float(rng.choice([5, 1e5, 1e9, 2**40]))
    found = rng.permutation(sizes).reshape(ranks, ranks).astype(np.int64)
    kind = rng.integers(6)
    if kind == 0:
        found[rng.random((ranks, ranks)) < 0.7] = 0
    if kind == 1:
        found[rng.integers(ranks)] = 0
        found[:, rng.integers(ranks)] = 0
    if kind == 2:
        found[:, rng.integers(ranks)] *= 9
    if kind == 3:
        one = found.max()
        found[:] = 0
        found[tuple(rng.choice(ranks, 2, replace=False))] = one
    return found


def two_boxes(latency: float) -> FabricInstance:
    """Two boxes of two ranks, each with a switch (4, 5) at three bytes a second a rank; two rails (6, 7) at one."""
    links = [(u, v, rate, latency) for r in range(4) for s, rate in ((4 + r // 2, 3.0), (6 + r % 2, 1.0))
             for u, v in ((r, s), (s, r))]  # fmt: skip
    instance = machine(8, links, (4, 5, 6, 7), collective="broadcast", bytes=1)
    instance.__dict__["boxes"] = [(0, 1), (2, 3)]
    return instance


@cache
def many(boxes: int) -> Planning:
    """The planner of so many boxes of eight GPUs, warm from earlier demands."""
    return synth.Planner("dgx-h100", boxes=boxes)


def skewed_demand(rng: np.random.Generator, ranks: int) -> IntArray:
    """Zipf sizes, their largest from 10 bytes to 1 GB; in two of three some pairs, ranks or experts stand out."""
    sizes = (1 / np.arange(1, ranks**2 + 1) ** rng.uniform(0, 1.5)) * 10 ** rng.uniform(1, 9)
    found: IntArray = rng.permutation(sizes).reshape(ranks, ranks).astype(np.int64)
    kind = rng.integers(6)
    if kind in (0, 1):
        found[rng.random((ranks, ranks)) < rng.choice([0.5, 0.9, 0.99])] = 0
    if kind in (1, 2):
        found[:, rng.integers(ranks)] *= 20
    if kind == 3:
        found[rng.integers(ranks, size=ranks // 4)] = 0
        found[:, rng.integers(ranks)] = 0
    return found
