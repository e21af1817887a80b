"""Benchmarks of the fabric family's replay. Run: ``pytest tests/benchmarks/bench_fabric_replay.py --benchmark-only``.

Each group holds the replay and a stated reference in one run: the plain-Python replay of the tests on the same small
schedule; for the large one, sorting its starts by numpy. On a busy machine add ``--benchmark-timer=time.process_time``.
"""

from __future__ import annotations

import resource

import numpy as np
import pytest
from models.fabric.slow_replay import replay
from models.fabric.small_machines import machine

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule

BYTES = 100  # of a piece, over a link of 1 GB/s: 100 ticks of a nanosecond


def ring(ranks: int, chunks: int) -> tuple[FabricInstance, Schedule]:
    """A pipelined ring allgather, in order of time: every link busy all the time, routes of one link."""
    links = [(v, (v + 1) % ranks, 1e9) for v in range(ranks)]
    instance = machine(ranks, links, bytes=ranks * chunks * BYTES)
    hop, chunk, link = (
        a.ravel() for a in np.meshgrid(np.arange(ranks - 1), range(chunks), range(ranks), indexing="ij")
    )
    count = len(hop)
    return instance, Schedule(
        10**9,
        np.repeat(np.arange(ranks, dtype=np.int64), chunks),
        np.full(ranks * chunks, BYTES, dtype=np.int64),
        (hop * chunks + chunk) * BYTES,
        (link - hop) % ranks * chunks + chunk,
        np.zeros(count, dtype=bool),
        np.arange(count + 1, dtype=np.int64),
        link.astype(np.int64),
    )


def sums(ranks: int, chunks: int) -> tuple[FabricInstance, Schedule]:
    """The same backwards: a reduce-scatter."""
    instance, there = ring(ranks, chunks)
    links = [((v + 1) % ranks, v, 1e9) for v in range(ranks)]
    turned = machine(ranks, links, bytes=instance.bytes, collective="reduce_scatter")
    start = there.start.max() - there.start[::-1]  # in order of time too
    adds = np.ones(there.transfers, dtype=bool)
    piece, link = there.piece[::-1].copy(), there.link[::-1].copy()
    return turned, Schedule(
        there.ticks_per_s, there.piece_block, there.piece_bytes, start, piece, adds, there.route_start, link
    )


@pytest.mark.parametrize("make", [ring, sums])
def test_ten_million_transfers(benchmark, make):
    benchmark.group = f"10 million transfers, {make.__name__}"
    instance, schedule = make(256, 154)
    check_schedule(*make(4, 2))
    verdict = benchmark.pedantic(lambda: check_schedule(instance, schedule), rounds=2)
    assert verdict.ok
    benchmark.extra_info["transfers"] = schedule.transfers
    benchmark.extra_info["peak_memory_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


@pytest.mark.parametrize("make", [ring, sums])
def test_sorting_ten_million_starts(benchmark, make):
    """The reference of the large groups."""
    benchmark.group = f"10 million transfers, {make.__name__}"
    _, schedule = make(256, 154)
    shuffled = np.random.default_rng(0).permutation(schedule.start)
    benchmark.pedantic(lambda: np.argsort(shuffled), rounds=2)


@pytest.mark.benchmark(group="ring of 16, 2 chunks")
def test_replay(benchmark):
    instance, schedule = ring(16, 2)
    assert benchmark(lambda: check_schedule(instance, schedule)).ok


@pytest.mark.benchmark(group="ring of 16, 2 chunks")
def test_plain_python_replay(benchmark):
    instance, schedule = ring(16, 2)
    assert benchmark.pedantic(lambda: replay(instance, schedule), rounds=1)[0] == set()
