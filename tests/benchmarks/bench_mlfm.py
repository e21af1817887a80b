"""Benchmarks of the mlfm family: ``pytest tests/benchmarks/bench_mlfm.py -o addopts= --benchmark-columns=min,mean``.

Each prints a ratio to a stated reference in the same run; nothing asserts a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from models.mlfm.slow_replay import replay

import synth
from synth.options import RunOptions
from synth_models.mlfm.bounds.load import lower_bound
from synth_models.mlfm.check.replay import check_phases
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_problem import leaf_problem
from synth_models.mlfm.programs.cpsat import build_flows, count_flows
from synth_models.mlfm.programs.decomposition import spread_flows
from synth_models.mlfm.references.closed_form import printed_rule


def read(name: str) -> MLFMInstance:
    instance = synth.read(f"instances/mlfm/{name}.json")
    assert isinstance(instance, MLFMInstance)
    return instance


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


@pytest.mark.parametrize(("name", "sizes"), [("d3-n2l4m3", (2, 4, 3)), ("d18-n18l19m18", (18, 19, 18))])
def test_replay(benchmark: Any, name: str, sizes: tuple[int, int, int]) -> None:
    """Transfers per second of the check, and how many times that of the plain Python replay (on 24 servers)."""
    instance, small = read(name), read("d3-n2l4m3")
    solution, little = printed_rule(instance, *sizes), printed_rule(small, 2, 4, 3)
    check_phases(small, little)  # compiled
    benchmark.pedantic(check_phases, (instance, solution), rounds=3)
    plain = 24**2 / seconds(lambda: replay(small, little))
    rate = instance.ranks**2 / benchmark.stats.stats.min
    benchmark.extra_info |= {"transfers_per_s": round(rate), "times_plain_python": round(rate / plain)}
    print(f"\n{name}: {rate:.3g} transfers/s, {rate / plain:.0f} times plain Python")


@pytest.mark.parametrize("name", ["d4-n4l5m4-spine", "d4-fragment-60"])
def test_parts_of_cpsat(benchmark: Any, name: str) -> None:
    """Seconds of each part of the decomposed solve; building the model is to cost less than solving it."""
    instance, options = read(name), RunOptions(None)
    problem = leaf_problem(instance)
    phases = lower_bound(instance, problem).phases
    flows = count_flows(problem, phases, options).flows
    assert flows is not None
    parts = {
        "routes": seconds(lambda: leaf_problem(instance)),
        "bound": seconds(lambda: lower_bound(instance, problem)),
        "build": seconds(lambda: build_flows(problem, phases)),
        "build and solve": seconds(lambda: count_flows(problem, phases, options)),
    }
    benchmark.pedantic(spread_flows, (instance, problem, flows, phases, options), rounds=1)
    parts["phases and servers"] = benchmark.stats.stats.min
    benchmark.extra_info |= {key: round(value, 4) for key, value in parts.items()}
    print(f"\n{name}: " + ", ".join(f"{key} {value:.3g} s" for key, value in parts.items()))
