"""Tori and meshes: bounds and their certificates against brute force, schedules and networkx."""

from __future__ import annotations

from functools import cache
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models.odd_values import mutants
from models.optree.cases import TORUS, grid, options
from models.optree.grid_brute_force import fewest_steps, fibres

from synth_models.optree.bounds.grid import links_of, near_nodes, roots
from synth_models.optree.bounds.steps import lower_bound
from synth_models.optree.check.certificates import check_bound
from synth_models.optree.references.grid_relay import grid_relay


@pytest.mark.parametrize(
    ("sides", "rings", "wavelengths"),
    [((3, 4), TORUS, 1), ((4, 4), (False, False), 1), ((2, 8), (False, True), 1), ((2, 2, 3), (True, False, True), 1)],
)
def test_cuts_against_networkx(sides: tuple[int, ...], rings: tuple[bool, ...], wavelengths: int) -> None:
    """The bound by cuts is the least T at which every node can get all items, by networkx' maximum flows."""
    instance = grid(sides, rings, wavelengths)
    capacity: dict[tuple[int, int], int] = {}
    for dimension in fibres(sides, rings):
        for line, closed in dimension:
            for a, b in zip(line, (*line[1:], line[0]) if closed else line[1:], strict=False):
                for ends in ((a, b), (b, a)):
                    capacity[ends] = capacity.get(ends, 0) + 1
    assert sorted(capacity.items()) == sorted(
        {(int(a), int(b)): np.count_nonzero((links_of(instance) == (a, b)).all(axis=1)) for a, b in capacity}.items()
    )

    def enough(steps: int) -> bool:
        graph = nx.DiGraph()
        for (a, b), count in capacity.items():
            graph.add_edge(a, b, capacity=count * wavelengths * steps)
        for v in range(instance.nodes):
            graph.add_edge("items", v, capacity=1)
        return all(nx.maximum_flow_value(graph, "items", v) == instance.nodes for v in range(instance.nodes))

    least = next(steps for steps in range(1, 100) if enough(steps))
    found = lower_bound(instance, options())
    assert found[0] == max(least, len(sides))
    assert check_bound(instance, found[0], found[2]) == []


def test_roots_stand_for_all_nodes() -> None:
    assert roots(grid((4, 5), TORUS, 1)) == [0]
    assert sorted(roots(grid((4, 5), (False, False), 1))) == [0, 1, 2, 5, 6, 7]


def test_reach_by_hand() -> None:
    """4 x 4 torus, w = 2: one step offers 16 * 4 * 2 = 128 hops, 8 an item. In one step an item pays at least 4 * 1 +
    2 * 2 = 8 hops for 6 nodes, so 7 hold it; then 9 more in the second step, at one hop each more than 8. The prices
    (1, 1) refute nothing of the sort (15 hops, 16 are there), prices that rise do."""
    instance = grid((4, 4), TORUS, 2)
    assert near_nodes(instance).tolist() == [0, 4, 2, 0]
    steps, _, certificate = lower_bound(instance, options())
    assert (steps, certificate["binding"], certificate["horizon"]) == (3, "reach", 2)
    assert check_bound(instance, 3, certificate) == []
    assert "proves 3 steps, not 4" in check_bound(instance, 4, certificate)[0]
    assert "refute nothing" in check_bound(instance, 3, certificate | {"weights": [1, 1]})[0]
    wider = grid((4, 4), TORUS, 3)
    assert "refute nothing" in check_bound(wider, 3, certificate)[0]


def test_cut_by_hand() -> None:
    """16 nodes in a line, w = 2: 15 items over one link into an end, 8 steps; 8 over the middle link, 4."""
    instance = grid((16,), (False,), 2)
    assert check_bound(instance, 8, {"binding": "cut", "nodes": [0]}) == []
    assert check_bound(instance, 4, {"binding": "cut", "nodes": list(range(8))}) == []
    assert check_bound(instance, 5, {"binding": "cut", "nodes": list(range(8))}) != []
    assert check_bound(instance, 4, {"binding": "cut", "nodes": [7]}) == []  # 15 items over two links
    assert check_bound(instance, 1, {"binding": "turns"}) == []


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        ({}, "unknown kind of bound None"),
        ({"binding": "receive"}, "unknown kind of bound 'receive'"),
        ({"binding": "cut"}, "nodes is missing"),
        ({"binding": "cut", "nodes": []}, "some of the nodes"),
        ({"binding": "cut", "nodes": list(range(9))}, "some of the nodes"),
        ({"binding": "cut", "nodes": [9]}, "more than 8"),
        ({"binding": "reach", "weights": [1], "horizon": 0, "later": 1}, "less than 1"),
        ({"binding": "reach", "weights": [1, 1], "horizon": 1, "later": 1}, "not more than the 1 steps"),
        ({"binding": "reach", "weights": [], "horizon": 1, "later": 1}, "weights must be"),
        ({"binding": "reach", "weights": [1], "horizon": 1}, "later"),
        ({"binding": "turns"}, "the turns argument proves 2 steps, not 3"),
    ],
)
def test_wrong_certificates(certificate: dict[str, Any], words: str) -> None:
    assert words in check_bound(grid((3, 3), TORUS, 1), 3, certificate)[0]


@pytest.mark.parametrize(("sides", "rings", "wavelengths"), [((3, 3), TORUS, 1), ((2, 3), (False, False), 1)])
def test_no_odd_number_in_a_certificate_lifts_a_bound(
    sides: tuple[int, ...], rings: tuple[bool, ...], wavelengths: int
) -> None:
    instance = grid(sides, rings, wavelengths)
    optimum = fewest_steps(sides, rings, wavelengths, 9, 4)
    assert optimum is not None
    valid = {"binding": "reach", "weights": [1, 1], "horizon": 2, "later": 1, "nodes": [0]}
    for binding in ("reach", "cut", "turns"):
        for key, value in valid.items():
            for mutant in mutants(value):
                assert check_bound(instance, optimum + 1, valid | {"binding": binding} | {key: mutant})


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([0, 1, 2, 3, 10**6]), min_size=1, max_size=4),
    st.integers(1, 4),
    st.sampled_from([0, 1, 2, 10**9]),
)
def test_no_prices_refute_a_schedule_that_exists(weights: list[int], horizon: int, later: int) -> None:
    """5 x 4, three wavelengths, one dimension a line: relay's schedule exists, so its horizon is not refuted."""
    sides, rings = (5, 4), (True, False)
    instance = grid(sides, rings, 3)
    steps = _steps_of_relay(sides, rings)
    certificate = {"binding": "reach", "weights": weights, "horizon": max(horizon, steps), "later": later}
    assert check_bound(instance, steps + 1, certificate)


@cache
def _steps_of_relay(sides: tuple[int, ...], rings: tuple[bool, ...]) -> int:
    return grid_relay(grid(sides, rings, 3), options()).steps
