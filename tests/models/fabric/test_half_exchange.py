"""Allreduce over two halves of a torus: replayed one by one, and quicker than over one root where latency rules."""

from __future__ import annotations

import random

import numpy as np
import pytest
from examples import some_of

import synth
from synth.options import RunOptions
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.symmetric import method as symmetric
from synth_models.fabric.references.symmetric.half_exchange import half_exchange, halves_of, sends_of_share
from synth_models.fabric.solution import Schedule

CUBE = {"network": "torus", "rows": 4, "cols": 4, "layers": 4, "bandwidth": 50e9, "latency": 1e-6}


def made(**keys: object) -> FabricInstance:
    instance = synth.make("fabric", **{**CUBE, "collective": "allreduce", **keys})
    assert isinstance(instance, FabricInstance)
    return instance


def exchanged(instance: FabricInstance, count: int = 1) -> Schedule:
    where = symmetric.neighbours(instance)
    assert where is not None
    return half_exchange(instance, where.image, where.link, where.target, count)


@pytest.mark.parametrize("size", [1, 63, 64, 4096, 2**20])
@pytest.mark.parametrize("count", [1, 2])
def test_a_cube(size: int, count: int) -> None:
    """Nine steps of 1 us beside the bytes; also where there are fewer bytes than ranks."""
    instance = made(bytes=size)
    schedule = exchanged(instance, count)
    verdict = check_schedule(instance, schedule)
    assert verdict.faults == []
    assert verdict.value is not None
    assert verdict.value >= 9e-6
    assert verdict.value < 9.2e-6 or size > 4096
    made_of = halves_of(instance)
    assert made_of is not None
    assert schedule.transfers == len(schedule.piece_bytes) * sends_of_share(made_of)


@pytest.mark.parametrize("seed", some_of(range(4)))
def test_random_tori(seed: int) -> None:
    """Never slower than over one root by the method, which takes the quicker; no fault on any."""
    chooser = random.Random(seed)
    sides = dict(zip(("rows", "cols", "layers"), [4, chooser.choice([4, 5]), 4], strict=True))
    instance = made(**sides, bytes=chooser.choice([100, 10_000, 10**6]), latency=chooser.choice([1e-7, 1e-6]))
    schedule = exchanged(instance)
    alone = check_schedule(instance, schedule)
    assert alone.faults == []
    found = symmetric.solve(instance, RunOptions(time_limit_s=1.0).started_now())
    best = check_schedule(instance, found.solution)
    assert best.faults == []
    assert best.value is not None
    assert alone.value is not None
    assert best.value <= alone.value


def test_one_transfer_missing() -> None:
    """Every transfer is needed: without one of any kind the check finds a fault."""
    instance = made(bytes=4096)
    schedule = exchanged(instance)
    for kind in (schedule.adds, ~schedule.adds):
        left_out = int(np.flatnonzero(kind & (schedule.piece == 7))[3])
        keep = np.arange(schedule.transfers) != left_out
        columns = (schedule.start[keep], schedule.piece[keep], schedule.adds[keep])
        routes = np.arange(int(keep.sum()) + 1, dtype=np.int64)
        less = Schedule(
            schedule.ticks_per_s, schedule.piece_block, schedule.piece_bytes, *columns, routes, schedule.link[keep]
        )
        assert check_schedule(instance, less).faults != []


def test_none_elsewhere() -> None:
    """Rings, flat tori and other collectives have no halves."""
    for keys in ({"collective": "allgather"}, {"layers": None}, {"rows": 5, "cols": 5, "layers": 5}):
        own = {key: value for key, value in {**CUBE, "collective": "allreduce", **keys}.items() if value is not None}
        instance = synth.make("fabric", **own, bytes=6000)
        assert isinstance(instance, FabricInstance)
        assert halves_of(instance) is None
