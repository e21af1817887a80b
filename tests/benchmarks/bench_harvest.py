"""Benchmarks of the harvest family. Run: ``pytest tests/benchmarks/bench_harvest.py --benchmark-only``.

The closed form for 1024 GPUs beside the same in plain Python; heatmaps of 32 x 32 points at 64 GPUs with and without
their profiles, beside one schedule after the other by the methods' dynamic program; `candidates` on the 63 steps of an
all-to-all through the command, with its record written and checked, and the peak memory of its processes.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import synth
from synth.records import record as records
from synth_models.harvest.parts.shortest_path import shortest_schedule
from synth_models.harvest.parts.topologies import one_way_ring, shifted_ring
from synth_models.harvest.references.recursive_doubling import WHOLE, best_rings
from synth_papers.harvest import heatmaps

ALPHA, DELTA, BANDWIDTH = 5e-7, 5e-7, 100e9
SIZES, DELAYS = heatmaps.ticks(2**10, 2**30, 32), heatmaps.ticks(1e-8, 1e-2, 32)
FAMILIES = ("recursive_doubling", "alltoall_direct")


def plain_python(stages: int, message: float, alpha: float, delta: float, change: float) -> tuple[float, list[int]]:
    """The closed form with lists and no compiler."""
    exponent = [*range(stages), *reversed(range(stages))]
    distance = [0]
    for e in exponent:
        distance.append(distance[-1] + (1 << e))
    least, begin = [-change], [0]
    for b in range(1, len(exponent) + 1):
        best, arg = float("inf"), 0
        for a in range(b):
            ring = 1 << min(exponent[a], exponent[b - 1])
            total = least[a] + change + alpha * (b - a)
            total += delta * (distance[b] - distance[a]) / ring + message * (b - a) / (2 * ring)
            if total < best:
                best, arg = total, a
        least.append(best)
        begin.append(arg)
    rings, b = [0] * len(exponent), len(exponent)
    while b > 0:
        a = begin[b]
        rings[a:b] = [min(exponent[a], exponent[b - 1])] * (b - a)
        b = a
    return least[-1], rings


GIVEN = (10, 2**22 / BANDWIDTH, ALPHA, DELTA, 1e-5)


@pytest.mark.benchmark(group="closed form, 1024 GPUs")
def test_closed_form_compiled(benchmark):
    stages, *rest = GIVEN
    seconds, rings = best_rings(stages, WHOLE, *rest)
    assert (seconds, rings.tolist()) == (pytest.approx(plain_python(*GIVEN)[0]), plain_python(*GIVEN)[1])
    benchmark(best_rings, stages, WHOLE, *rest)


@pytest.mark.benchmark(group="closed form, 1024 GPUs")
def test_closed_form_plain_python(benchmark):
    benchmark(plain_python, *GIVEN)


def on_64(algorithm):
    given = {"ports": 1, "message_bytes": 2**20, "port_bandwidth": BANDWIDTH, "alpha": ALPHA, "delta": DELTA}
    return synth.make("harvest", algorithm=algorithm, gpus=64, reconfiguration_delay=1e-5, **given)


def rated(algorithm):
    return heatmaps.rates(on_64(algorithm), [one_way_ring(64, 1, shift) for shift in range(1, 64)])


def whole(algorithm, known=None):
    known = known or rated(algorithm)
    return heatmaps.grid(known, SIZES, DELAYS, [known.index(shifted_ring(64, 1))])


@pytest.mark.parametrize("algorithm", FAMILIES)
def test_heatmap_with_profiles(benchmark, algorithm):
    benchmark.group = f"heatmap of 32 x 32, 64 GPUs, {algorithm}"
    whole(algorithm)  # compile
    benchmark.pedantic(whole, args=(algorithm,), rounds=3)


@pytest.mark.parametrize("algorithm", FAMILIES)
def test_heatmap_from_profiles(benchmark, algorithm):
    benchmark.group = f"heatmap of 32 x 32, 64 GPUs, {algorithm}"
    known = rated(algorithm)
    whole(algorithm, known)
    benchmark.pedantic(whole, args=(algorithm, known), rounds=3)


@pytest.mark.parametrize("algorithm", FAMILIES)
def test_heatmap_point_by_point(benchmark, algorithm):
    """The same from profiles, one shortest path by numpy for every point."""
    benchmark.group = f"heatmap of 32 x 32, 64 GPUs, {algorithm}"
    known = rated(algorithm)
    weight = known.instance.bytes_per_pair / heatmaps.message_bytes(known.instance)

    def run():
        times = np.empty((len(SIZES), len(DELAYS)))
        for row, size in enumerate(SIZES):
            seconds = size * weight / BANDWIDTH
            with np.errstate(invalid="ignore"):
                cost = ALPHA + np.min(
                    DELTA * known.hops[known.pattern] + seconds[:, None, None] * known.load[known.pattern], axis=2
                )
            times[row] = [shortest_schedule(cost, delay)[0] for delay in DELAYS]
        return times

    found = benchmark.pedantic(run, rounds=1)
    assert np.allclose(found, whole(algorithm, known).best)


@pytest.mark.benchmark(group="candidates, all-to-all of 63 steps, 64 GPUs, through the command")
@pytest.mark.parametrize("ports", [1, 2])
def test_candidates(benchmark, tmp_path, ports):
    path = tmp_path / "alltoall.json"
    path.write_text(on_64("alltoall_direct").model_copy(update={"ports": ports, "name": "alltoall"}).to_json())
    command = [sys.executable, "-c", "from synth.cli.main import run; run()", "solve", str(path), "-m", "candidates",
               "--time-limit", "120s", "--results", str(tmp_path / "results")]  # fmt: skip
    benchmark.pedantic(subprocess.run, args=(command,), kwargs={"check": True, "capture_output": True}, rounds=1)
    [record] = [records.read(path) for path in (tmp_path / "results").rglob("candidates*.json")]
    assert record.ok
    benchmark.extra_info["peak of the run (MB)"] = round(record["peak_memory_mb"])
