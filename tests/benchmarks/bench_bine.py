"""Benchmarks of the bine family. Run: ``pytest tests/benchmarks/bench_bine.py --benchmark-only``.

Traffic of every allreduce algorithm on the whole trace (2,196 jobs; a synthetic trace of the same sizes where it is
absent) and on 16,384 ranks, beside a plain-Python count of the same rounds; least trees beside the model's building.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from synth.options import RunOptions
from synth_models.bine.programs.tree import method as tree_ilp
from synth_papers.bine import tables, traffic

TRACE = Path(__file__).resolve().parents[3] / "shared" / "data" / "leonardo-jobs.csv.gz"
ALGORITHMS = ("recursive", "bine", "swing", "ring")


def allocations():
    if TRACE.exists():
        return tables.Trace(TRACE).allocations
    chooser = np.random.default_rng(0)
    return [np.sort(chooser.integers(0, 8, size)) for size in chooser.choice([4, 8, 16, 32, 64, 128, 256], 2196)]


def count_all(jobs) -> float:
    traffic.pair_volumes.cache_clear()
    large = sum(traffic.global_traffic(jobs, name).sum() for name in ALGORITHMS)
    return large + sum(traffic.global_traffic(jobs, name, vector="small").sum() for name in ALGORITHMS[:3])


@pytest.mark.benchmark(group="allreduce, every algorithm, whole trace")
def test_whole_trace(benchmark):
    jobs = allocations()
    benchmark.pedantic(lambda: count_all(jobs), rounds=3)


def plain_python(groups: list[int]) -> float:
    """Large allreduce by recursive halving/doubling counted rank by rank."""
    ranks, total, volume, distance = len(groups), 0.0, 1.0, 1
    while distance < ranks:
        volume /= 2
        total += 2 * volume * sum(groups[r] != groups[r ^ distance] for r in range(ranks))
        distance *= 2
    return total


@pytest.mark.benchmark(group="allreduce, 16384 ranks")
@pytest.mark.parametrize("name", ["recursive", "bine"])
def test_16384_ranks(benchmark, name):
    groups = np.repeat(np.arange(128), 128)

    def count() -> float:
        traffic.pair_volumes.cache_clear()
        return float(traffic.global_traffic([groups], name)[0])

    value = benchmark.pedantic(count, rounds=3)
    if name == "recursive":
        assert value == pytest.approx(plain_python(groups.tolist()))


@pytest.mark.benchmark(group="allreduce, 16384 ranks")
def test_16384_ranks_plain_python(benchmark):
    groups = np.repeat(np.arange(128), 128).tolist()
    benchmark.pedantic(lambda: plain_python(groups), rounds=3)


@pytest.mark.benchmark(group="least tree, 2048 ranks in 24 groups")
def test_least_tree(benchmark):
    sizes = [89, 47, 125, 90, 189, 20, 211, 145, 132, 190, 54, 20, 79, 101, 20, 70, 39, 93, 20, 122, 43, 42, 20, 87]
    flow = benchmark.pedantic(lambda: tree_ilp.best_flow(sizes, 11, False, RunOptions(60.0, solver="highs")), rounds=1)
    benchmark.extra_info["crossings"] = flow.value
    benchmark.extra_info["bound"] = flow.bound
