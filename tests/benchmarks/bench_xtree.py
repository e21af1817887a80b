"""Benchmarks of the xtree family. Run: ``pytest tests/benchmarks/bench_xtree.py --benchmark-only`` (compiled before).

Each group holds a method and a stated reference on the same instance, so that one run gives a ratio. The references
are a plain-Python ``pull`` (same rules, no numba) and ``tacos``, the random greedy of the field. The large cases run
the whole command in a subprocess, replay and record included, and print its peak memory.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

import synth
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.xtree import FAMILY
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.replay import check_schedule


def run(instance, method: str, **own: object) -> Outcome:
    return FAMILY.methods[method].load()(instance, RunOptions(None, method=own))


def plain_python_pull(instance, seed: int) -> int:
    """Timesteps of one restart of pull in plain Python (Hopcroft-Karp by networkx on rarest-first candidates)."""
    network, chooser = instance.topology, random.Random(seed)
    n, total = network.nodes, instance.total_chunks
    held = [{k for k in range(total) if k // instance.chunks == v} for v in range(n)]
    holders = [1] * total
    into = [[int(e) for e in range(network.links) if network.dst[e] == v] for v in range(n)]
    steps = 0
    while any(len(h) < total for h in held):
        steps += 1
        arrivals = []
        for v in chooser.sample(range(n), n):
            missing = [k for k in range(total) if k not in held[v]]
            chooser.shuffle(missing)
            missing.sort(key=lambda k: holders[k])
            graph, slots = nx.Graph(), set()
            for e in into[v]:
                offered = [k for k in missing if k in held[int(network.src[e])]][: len(into[v])]
                graph.add_edges_from((("link", e), k) for k in offered)
                if offered:
                    slots.add(("link", e))
            matching = nx.bipartite.hopcroft_karp_matching(graph, slots) if slots else {}
            for slot in slots & set(matching):
                holders[matching[slot]] += 1
                arrivals.append((v, matching[slot]))
        for v, k in arrivals:
            held[v].add(k)
    return steps


@pytest.mark.benchmark(group="EquiMesh 8x8 C=4, one restart")
def test_pull_one_restart(benchmark):
    instance = synth.make("xtree", network="equimesh", rows=8, cols=8, chunks=4)
    run(instance, "pull", restarts=1)
    outcome = benchmark(lambda: run(instance, "pull", restarts=1))
    benchmark.extra_info["timesteps"] = outcome.solution.steps


@pytest.mark.benchmark(group="EquiMesh 8x8 C=4, one restart")
def test_plain_python_pull_one_restart(benchmark):
    instance = synth.make("xtree", network="equimesh", rows=8, cols=8, chunks=4)
    benchmark.extra_info["timesteps"] = benchmark.pedantic(lambda: plain_python_pull(instance, 0), rounds=1)


@pytest.mark.benchmark(group="EquiMesh 8x8 C=4, ten restarts without stopping at the bound")
def test_pull_ten_restarts(benchmark):
    """Every restart is made, though the first usually meets the bound."""
    from synth_models.xtree.references import pull

    instance = synth.make("xtree", network="equimesh", rows=8, cols=8, chunks=4)
    pull.once(instance, 0, 0)
    steps = benchmark(lambda: [pull.once(instance, 0, restart).steps for restart in range(10)])
    benchmark.extra_info["timesteps"] = min(steps)


@pytest.mark.parametrize("kind", ["torus", "mesh"])
@pytest.mark.parametrize("method", ["pull", "tacos"])
def test_1024_nodes(benchmark, kind, method):
    benchmark.group = f"{kind} 32x32 C=1"
    instance = synth.make("xtree", network=kind, rows=32, cols=32)
    run(synth.make("xtree", network=kind, rows=3, cols=3), method)
    outcome = benchmark.pedantic(lambda: run(instance, method, restarts=1), rounds=1)
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.ok
    benchmark.extra_info["timesteps"] = outcome.solution.steps
    benchmark.extra_info["bound"] = lower_bound(instance)[0]


@pytest.mark.parametrize("kind", ["torus", "mesh"])
def test_4096_nodes_with_replay_and_record(benchmark, tmp_path, kind):
    benchmark.group = "64x64 C=1, the whole command"
    synth = str(Path(sys.executable).with_name("synth"))
    file = tmp_path / "big.json"
    subprocess.run([synth, "make", "xtree", f"network={kind}", "rows=64", "cols=64", "-o", file], check=True)
    command = [synth, "solve", file, "-m", "pull", "-O", "restarts=1", "--time-limit", "10m", "--results", tmp_path]
    benchmark.pedantic(lambda: subprocess.run(command, check=True), rounds=1)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    benchmark.extra_info["peak_memory_mb"] = round(peak / 1024)
