"""One path for all items: held against exhaustive search, replayed, and where it beats ``relay``."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from models.optree.brute_force import fewest_steps
from models.optree.cases import limited, options, read, ring

import synth
from synth_models.optree.check.replay import check_solution
from synth_models.optree.programs.one_path import model
from synth_models.optree.programs.one_path.circuits import colour_arcs
from synth_models.optree.programs.one_path.method import decide
from synth_models.optree.programs.one_path.model import OnePath, build, crossings


def _fewest(nodes: int, wavelengths: int, max_hops: int) -> int:
    """The fewest steps of one item's path, by search over who holds it: in a step each node gets it from the nearest
    holder below or above, or not at all, with at most so many hops upwards and as many downwards."""
    holders = {frozenset((0,))}
    for step in range(1, nodes):
        after = set()
        for held in holders:
            others = [v for v in range(nodes) if v not in held]
            up = [min((v - u) % nodes for u in held) for v in others]
            down = [min((u - v) % nodes for u in held) for v in others]
            for pick in product((0, 1, 2), repeat=len(others)):
                hops = [[h for h, way in zip(side, pick, strict=True) if way == k] for k, side in ((1, up), (2, down))]
                if all(sum(h) <= wavelengths and max(h, default=0) <= max_hops for h in hops):
                    after.add(held | {v for v, way in zip(others, pick, strict=True) if way})
        if any(len(held) == nodes for held in after):
            return step
        holders = after
    raise AssertionError


def _solvable(path: OnePath) -> bool:
    from ortools.sat.python import cp_model

    if path.spare < 0:
        return False
    return cp_model.CpSolver().solve(build(path, 0)) in (cp_model.OPTIMAL, cp_model.FEASIBLE)


@pytest.mark.parametrize(
    ("nodes", "wavelengths", "hops"), [(n, w, n - 1) for n in range(3, 9) for w in (1, 2, 3)] + [(8, 3, 1), (8, 3, 2)]
)
def test_paths_are_those_of_exhaustive_search(nodes: int, wavelengths: int, hops: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(model, "wavelengths", lambda *_: None)  # the search knows hops only
    fewest = _fewest(nodes, wavelengths, hops)
    assert _solvable(OnePath(nodes, wavelengths, hops, fewest))
    assert fewest == 1 or not _solvable(OnePath(nodes, wavelengths, hops, fewest - 1))


@pytest.mark.long(after=2)
@pytest.mark.parametrize(("nodes", "wavelengths"), [(4, 1), (5, 1), (5, 2)])
def test_never_fewer_steps_than_any_schedule(nodes: int, wavelengths: int) -> None:
    fewest = fewest_steps(nodes, wavelengths, nodes - 1)
    record = synth.solve(ring(nodes, wavelengths), "one_path")
    assert record.ok
    assert record.value is not None
    assert fewest is not None
    assert record.value >= fewest


@pytest.mark.parametrize(
    ("nodes", "wavelengths", "horizon", "periods"),
    [(12, 3, 3, (1,)), (32, 8, 4, (1,)), (8, 2, 3, (2,)), (16, 4, 4, (2,))],
)
def test_schedules_replay(
    nodes: int, wavelengths: int, horizon: int, periods: tuple[int, ...], monkeypatch: Any
) -> None:
    monkeypatch.setattr("synth_models.optree.programs.one_path.method.PERIODS", periods)
    decision = decide(ring(nodes, wavelengths), options(), horizon)
    assert decision.answer == "feasible", decision
    verdict = check_solution(ring(nodes, wavelengths), decision.solution)
    assert verdict.ok, verdict.faults
    assert verdict.value <= horizon
    assert verdict.facts["redundant_circuits"] == 0


@pytest.mark.long
def test_a_ring_where_relay_takes_one_step_more() -> None:
    """96 nodes and 48 wavelengths: an item pays 288 hops at least, all that three steps have."""
    record = synth.solve(read("ring-96-w48"), "one_path")
    assert (record.value, record.bound, record["termination"]) == (3, 3, "optimal")
    assert record["verified"]["facts"]["wavelength_use"] == 1.0
    assert OnePath(96, 48, 95, 3).spare == 0


def test_a_horizon_alone() -> None:
    """Two steps for 7 nodes with 2 wavelengths: there is a schedule (``time_expanded``), but not of one path."""
    record = synth.solve(ring(7, 2), "one_path", options={"horizon": "2"})
    assert record.value is None
    assert "no schedule of 2 steps is found" in record["message"]
    assert record.bound == 2


def test_budgets_limit_the_circuits() -> None:
    record = synth.solve(limited(16, 4, 2), "one_path")
    assert record.ok
    assert record["verified"]["facts"]["longest_circuit_hops"] <= 2


def test_links_that_a_circuit_crosses() -> None:
    """Upwards from 3 over 4 links: 3, 4, 5, 6; downwards: 2, 1, 0, -1. Modulo 3."""
    assert [crossings(3, 0, 4, 0, place) for place in range(3)] == [2, 1, 1]
    assert [crossings(3, 1, 4, 0, place) for place in range(3)] == [1, 1, 2]


def test_wavelengths_of_any_circuits() -> None:
    """On 4 nodes: 2 hops from 0 and 2, 1 hop from everywhere need 2 wavelengths; 3 hops from each node need 4."""
    import numpy as np

    starts = np.array([[0, 2], [0, 2], [1, 3]])
    found = colour_arcs(4, [2, 1, 1], starts, 2, options())
    assert found is not None
    taken = {(int(s + k) % 4, int(c)) for h, ss, cs in zip([2, 1, 1], starts, found, strict=True)
             for s, c in zip(ss, cs, strict=True) for k in range(h)}  # fmt: skip
    assert len(taken) == 8
    assert colour_arcs(4, [3], np.arange(4)[None, :], 3, options()) is None
