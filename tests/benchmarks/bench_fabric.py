"""Benchmarks of the fabric family. Run: ``pytest tests/benchmarks/bench_fabric.py --benchmark-only`` (compiled before).

Each group holds what was asked for and, where there is one, a stated reference in the same run: networkx's maximum
flows around every rank for the allgather bound (what ForestColl's first step does), the plain ring for `pull`.
"""

from __future__ import annotations

import networkx as nx
import pytest

import synth
from synth.options import RunOptions
from synth_models.fabric import FAMILY
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance


def made(**keys: object) -> FabricInstance:
    instance = synth.make("fabric", **keys)
    assert isinstance(instance, FabricInstance)
    return instance


def run(instance: FabricInstance, method: str, limit: float | None = 60.0) -> float:
    """Seconds of the schedule, or the bound; the schedule is replayed."""
    outcome = FAMILY.methods[method].load()(instance, RunOptions(limit))
    if outcome.solution is None:
        assert outcome.bound is not None
        return outcome.bound
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    return verdict.value


@pytest.mark.benchmark(group="allgather bound")
@pytest.mark.parametrize("boxes", [2, 16, 128])
def test_allgather_bound(benchmark, boxes: int) -> None:
    """128 GPUs under a second, 1,024 under a minute."""
    instance = made(machine="dgx-a100", boxes=boxes, bytes="1GiB")
    run(made(machine="dgx-a100", bytes="1GiB"), "bound")
    benchmark.pedantic(run, (instance, "bound"), rounds=1)


@pytest.mark.benchmark(group="allgather bound")
def test_maximum_flows_by_networkx(benchmark) -> None:
    """The reference at two boxes: one maximum flow per rank at the optimal rate."""
    instance = made(machine="dgx-a100", boxes=2, bytes="1GiB")
    net = instance.machine.network
    graph = nx.DiGraph()
    for u, v, b in zip(net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), strict=True):
        graph.add_edge(u, v, capacity=int(b))
    rate = 1040 * 10**9 // 3 // 16
    for rank in instance.members:
        graph.add_edge("source", rank, capacity=rate)
    benchmark.pedantic(lambda: [nx.maximum_flow_value(graph, "source", rank) for rank in instance.members], rounds=1)


@pytest.mark.benchmark(group="forest")
@pytest.mark.parametrize(
    "keys",
    [{"machine": "dgx-a100", "boxes": 2}, {"network": "torus", "rows": 8, "cols": 8}],
    ids=["two DGX A100", "torus 8x8"],
)
def test_forest(benchmark, keys: dict[str, object]) -> None:
    """ForestColl prints 15.7 s and 177 s."""
    run(made(machine="dgx-a100", bytes="64MiB"), "forest")
    run(made(machine="dgx1", bytes="64MiB"), "forest")
    benchmark.pedantic(run, (made(**keys, bytes="1GiB"), "forest"), rounds=1)


@pytest.mark.benchmark(group="512 ranks with replay")
@pytest.mark.parametrize("method", ["pull", "ring"])
def test_512_ranks(benchmark, method: str) -> None:
    """A fat tree of two speeds. TACOS's paper: 6.1 minutes for 512 heterogeneous NPUs."""
    run(made(machine="dgx-a100", bytes="1MiB"), method)
    keys = {"network": "fat_tree", "leaves": 32, "hosts": 16, "spines": 4, "bandwidth": 25e9, "uplink_bandwidth": 50e9}
    benchmark.pedantic(run, (made(**keys, bytes="64MiB"), method), rounds=1)
