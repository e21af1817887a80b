"""Benchmarks of optree: ``pytest tests/benchmarks/bench_optree.py -o addopts= -o python_files="bench_*.py"``.

Each reports the peak memory of the process in ``extra_info``; no benchmark asserts a time.
"""

from __future__ import annotations

import resource
from typing import Any

import pytest

from synth.options import RunOptions
from synth_models.optree.bounds.steps import lower_bound
from synth_models.optree.check.replay import check_solution
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.radices import best_radices
from synth_models.optree.references.relay import relay


def ring(nodes: int, wavelengths: int) -> OpTreeInstance:
    return OpTreeInstance(name="bench", source="benchmark", nodes=nodes, wavelengths=wavelengths)


@pytest.mark.parametrize("nodes", [1024, 65_536, 1_000_000])
def test_stages(benchmark: Any, nodes: int) -> None:
    best_radices(64, 4)  # compile
    benchmark(best_radices, nodes, 64)


@pytest.mark.parametrize(("nodes", "wavelengths"), [(512, 64), (1024, 64), (2048, 64)])
def test_relay_and_replay(benchmark: Any, nodes: int, wavelengths: int) -> None:
    instance = ring(nodes, wavelengths)

    def make_and_replay() -> float | None:
        circuits = relay(instance, RunOptions(time_limit_s=None))
        assert circuits is not None
        return check_solution(instance, circuits).value

    steps = benchmark.pedantic(make_and_replay, rounds=2, warmup_rounds=1)
    benchmark.extra_info["steps"] = steps
    benchmark.extra_info["peak_MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@pytest.mark.parametrize("nodes", [512, 1024, 2048])
def test_bound(benchmark: Any, nodes: int) -> None:
    instance = ring(nodes, 64)
    benchmark.pedantic(lower_bound, args=(instance, RunOptions(time_limit_s=None)), rounds=2, warmup_rounds=1)
