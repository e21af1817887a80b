"""Heatmaps with a delay per circuit: every point is the shortest path of the instance with that delay."""

from __future__ import annotations

import numpy as np
import pytest

import synth
from synth_models.harvest.parts.delays import Delays
from synth_models.harvest.parts.shortest_path import shortest_schedule
from synth_papers.harvest import workloads
from synth_papers.harvest.delay_grids import circuit_grid, rate_with_kept
from synth_papers.harvest.delays_page import REDUCTION, overlapped
from synth_papers.harvest.heatmaps import grid

SIZES, DELAYS = np.array([1024.0, 1e5, 1e8]), np.array([1e-7, 2.4e-6, 1e-4])
RECURSIVE_DOUBLING, BINOMIAL = workloads.FIGURE_5[0], workloads.FIGURE_9[4]


@pytest.mark.parametrize("workload", [RECURSIVE_DOUBLING, BINOMIAL], ids=lambda one: one.name)
def test_points_are_shortest_paths_and_bvn_records(workload):
    rated = rate_with_kept(workload, 8)
    found = circuit_grid(rated, SIZES, DELAYS, [0])
    for i, j in np.ndindex(found.best.shape):
        plain = workload.instance(float(SIZES[i]), 0.0, 8)
        instance = plain.model_copy(update={"delay_per_circuit": float(DELAYS[j]) / (8 * workload.ports)})
        cost = rated.hops[rated.pattern] * instance.delta
        cost = cost + instance.bytes_per_pair[:, None, None] / instance.port_bandwidth * rated.load[rated.pattern]
        best, _ = shortest_schedule(instance.alpha + cost.min(axis=2), Delays(instance, rated.topologies).before)
        assert found.best[i, j] == pytest.approx(best, rel=1e-9)
        record = synth.solve(instance, method="bvn")
        assert found.bvn[i, j] == pytest.approx(record.value, rel=1e-9)


def test_a_change_of_everything_costs_what_it_did():
    """No schedule is slower than with one delay for every change, nor faster than with none."""
    rated = rate_with_kept(BINOMIAL, 8)
    one, circuits = grid(rated, SIZES, DELAYS, [0]), circuit_grid(rated, SIZES, DELAYS, [0])
    free = grid(rated, SIZES, np.zeros(1), [0])
    assert np.all(circuits.best <= one.best * (1 + 1e-12))
    assert np.all(circuits.best >= free.best * (1 - 1e-12))
    assert np.all(circuits.bvn <= one.bvn * (1 + 1e-12))
    assert np.array_equal(circuits.static, one.static)


def test_overlap_of_reductions():
    """8 GPUs, 8 GB: steps of 4, 2 and 1 GB are added up at 1 TB/s before the step that follows each of them."""
    instance = overlapped(RECURSIVE_DOUBLING.instance(8e9, 1e-5, 8))
    assert instance.overlap.tolist() == pytest.approx([0.0, *(size / REDUCTION for size in (4e9, 2e9, 1e9)), 0.0, 0.0])
