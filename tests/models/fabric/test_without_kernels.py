"""The replay by whole arrays says what the kernels say, of schedules that are right and of changed ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from examples import some_of

import synth
from synth.family import get_family
from synth.method import load
from synth_models.fabric.check import without_kernels
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.check.rows import rows_by
from synth_models.fabric.solution import Schedule

CASES = [
    ("hierarchical", {"machine": "dgx-a100", "boxes": 2, "gpus": "2", "collective": "allreduce"}),
    ("hierarchical", {"machine": "dgx-h100", "boxes": 2, "gpus": "3", "collective": "reduce_scatter"}),
    ("forest", {"machine": "dgx1", "collective": "allgather"}),
    ("direct", {"machine": "dgx-a100", "boxes": 2, "gpus": "2", "collective": "alltoall"}),
    ("ring", {"network": "ring", "nodes": 5, "collective": "allreduce"}),
]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have the next replays made by whole arrays, or by kernels."""

    def chosen(arrays: bool) -> None:
        monkeypatch.setattr(without_kernels, "wanted", lambda hops: arrays)

    return chosen


def changed(schedule: Schedule, rng: np.random.Generator) -> Schedule:
    """One number of one transfer is another."""
    k = int(rng.integers(schedule.transfers))
    key = rng.choice(["start", "piece", "adds", "link", "piece_bytes"])
    values = getattr(schedule, key).copy()
    if key == "start":
        values[k] = max(0, int(values[k]) + int(rng.choice([-1, 1, -1000, 1000, int(values.max())])))
    elif key == "adds":
        values[k] = not values[k]
    elif key == "piece":
        values[k] = rng.integers(len(schedule.piece_block))
    else:
        n = int(rng.integers(len(values)))
        values[n] = rng.choice(values)
    return replace(schedule, **{key: values})


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("number", "seed"), some_of((number, seed) for number in range(len(CASES)) for seed in range(8))
)
def test_both_say_the_same(number: int, seed: int, always: Any) -> None:
    method, keys = CASES[number]
    instance: Any = synth.make("fabric", **keys, bytes="120KiB")
    record = synth.solve(instance, method, time_limit=20)
    schedule = load(get_family("fabric").unpack)(instance, record.packed)
    rng = np.random.default_rng(seed)
    for one in (schedule, *(changed(schedule, rng) for _ in range(12))):
        always(True)
        by_arrays = check_schedule(instance, one)
        always(False)
        assert by_arrays == check_schedule(instance, one)


def test_a_right_schedule_needs_no_kernel(always: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    instance: Any = synth.make("fabric", machine="dgx-a100", boxes=2, gpus="2", collective="allreduce", bytes="1MiB")
    schedule = load(get_family("fabric").unpack)(instance, synth.solve(instance, "hierarchical").packed)
    always(True)
    for name in ("contributions._sums", "route_hops._place", "occupancy._overlaps", "rows._rows_by"):
        monkeypatch.setattr(f"synth_models.fabric.check.{name}", None)
    assert check_schedule(instance, schedule).ok


@pytest.mark.parametrize("seed", range(10))
def test_rows_in_order_of_time(seed: int, always: Any) -> None:
    rng = np.random.default_rng(seed)
    key, time = rng.integers(-1, 6, 200).astype(np.int32), rng.integers(0, 30, 200)
    late = rng.random(200) < 0.5 if seed % 2 else np.zeros(0, dtype=bool)
    found = []
    for arrays in (True, False):
        always(arrays)
        found.append(rows_by(key, 6, time, late))
    for ours, theirs in zip(*found, strict=True):
        assert np.array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("seed", some_of(range(20)))
def test_equal_moments_keep_their_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    moments = rng.integers(0, int(rng.choice([1, 3, 2**61])) + 1, int(rng.integers(0, 2000)))
    assert without_kernels._in_order(moments).tolist() == np.argsort(moments, kind="stable").tolist()
