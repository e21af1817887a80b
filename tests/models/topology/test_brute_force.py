"""Bound <= optimum <= every method, on plants whose topologies can all be tried."""

from __future__ import annotations

import numpy as np
import pytest
from models.topology.brute_force import circuits, every_matrix, hop_sums, least_load

import synth
from synth.options import RunOptions
from synth_models.topology.bounds.anywhere import least_length, strongest
from synth_models.topology.check.replay import check_topology
from synth_models.topology.parts.routing import routed
from synth_models.topology.solution import Topology

TWO_LINES = {"cubes": 2, "sides": "3"}
TWO_SQUARES = {"cubes": 2, "sides": "2x2"}
THREE_SQUARES = {"cubes": 3, "sides": "2x2"}
TWO_CUBES = {"cubes": 2, "sides": "2x2x2"}
REFERENCES = ("torus", "twisted", "search")


def test_two_cubes_of_eight_have_4096_topologies_and_the_program_finds_the_best() -> None:
    """By all of them no sum of hops is below 416, so no load below 416 / 96 arcs = 13/3, which the program reaches."""
    instance = synth.make("topology", **TWO_CUBES)
    matrices = np.array([matrix for _, matrix in every_matrix(instance)])
    sums = hop_sums(matrices)
    assert len(sums) == 4096
    assert set(matrices.sum(axis=(1, 2)).tolist()) == {96}
    assert sums.min() == least_length(instance) == 416
    record = synth.solve(instance, "milp")
    assert record.data["termination"] == "optimal"
    assert record.value == pytest.approx(13 / 3, rel=1e-9)
    assert record.bound == pytest.approx(13 / 3, rel=1e-9)
    assert synth.check(record).ok


@pytest.mark.long(after=1)
@pytest.mark.parametrize("keys", [TWO_LINES, TWO_SQUARES])
def test_the_load_of_every_topology(keys: dict[str, object]) -> None:
    """Ours routes each as well as the program there; bound <= optimum <= every method, and the program meets it."""
    instance = synth.make("topology", **keys)
    options = RunOptions(time_limit_s=None)
    loads = []
    for chosen, matrix in every_matrix(instance):
        loads.append(least_load(matrix))
        found = routed(instance, circuits(chosen), options)
        if found is None:
            assert loads[-1] == float("inf")
            continue
        assert float(found[0]) == pytest.approx(loads[-1], rel=1e-5)
        assert check_topology(instance, found[1]).value == pytest.approx(float(found[0]))
    best = min(loads)
    assert float(strongest(instance)[0]) <= best + 1e-9
    assert synth.solve(instance, "milp").value == pytest.approx(best, rel=1e-6)
    for method in REFERENCES if keys is TWO_SQUARES else ("torus",):
        options = {"moves": 50} if method == "search" else {}
        value = synth.solve(instance, method, seed=1, options=options).value
        assert value is not None
        assert value >= best - 1e-9


@pytest.mark.parametrize("keys", [TWO_SQUARES, THREE_SQUARES])
def test_the_hops_of_every_topology(keys: dict[str, object]) -> None:
    """The check counts as the matrices do, and nothing is below the bound."""
    instance = synth.make("topology", objective="hops", **keys)
    every = list(every_matrix(instance))
    sums = hop_sums(np.array([matrix for _, matrix in every]))
    assert least_length(instance) <= sums.min()
    for number in range(0, len(every), 1 + len(every) // 40):
        verdict = check_topology(instance, Topology(circuits(every[number][0])))
        assert (verdict.value or 1e9) == sums[number]
    assert synth.solve(instance, "search", options={"moves": 100, "starts": 2}).value == sums.min()


def test_a_failed_switch_counts() -> None:
    """With it the optimum is no better, and the bound stays below."""
    whole = synth.make("topology", objective="hops", **TWO_SQUARES)
    broken = synth.make("topology", objective="hops", failed_switches="1", **TWO_SQUARES)
    sums = [hop_sums(np.array([m for _, m in every_matrix(one)])).min() for one in (whole, broken)]
    assert sums[0] <= sums[1]
    assert least_length(broken) <= sums[1]
    assert synth.solve(broken, "milp").value == sums[1]
