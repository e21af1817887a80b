"""Tori and meshes: bounds and their certificates against brute force, schedules and networkx."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import networkx as nx
import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.odd_values import mutants
from models.optree.cases import TORUS, grid, options
from models.optree.grid_brute_force import fewest_steps, fibres

from synth_models.optree.bounds.grid import _frontier, _least_hops, links_of, near_nodes, roots
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
    assert [row.tolist() for row in near_nodes(instance)] == [[0, 4, 2, 0], [0, 2, 1, 0], [0, 2, 1, 0]]
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


@pytest.mark.long(after=1)
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


@settings(derandomize=True, max_examples=some(60), deadline=None)
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


PRICES = st.lists(st.sampled_from([0, 1, 2, 3, 5, 10]), min_size=1, max_size=4)


def dearest(sides: tuple[int, ...], rings: tuple[bool, ...], prices: list[int], origin: int, longest: int) -> float:
    """What an item from ``origin`` pays at least: all ways to grow the set of its holders, step by step, each new
    holder paying the hops from the nearest holder along their ring or line."""
    lines = [fibre for dimension in fibres(sides, rings) for fibre in dimension]
    nodes = math.prod(sides)
    apart = np.full((nodes, nodes), math.inf)
    for line, closed in lines:
        for i, u in enumerate(line):
            for j, v in enumerate(line):
                hops = min(abs(i - j), len(line) - abs(i - j)) if closed else abs(i - j)
                if u != v and hops <= longest:
                    apart[u, v] = hops
    full = (1 << nodes) - 1
    costs = {1 << origin: 0.0}
    for price in prices:
        following = dict(costs)
        for held, paid in costs.items():
            near = {
                v: min(apart[u, v] for u in range(nodes) if held >> u & 1) for v in range(nodes) if not held >> v & 1
            }
            near = {v: hops for v, hops in near.items() if hops < math.inf}
            grown = {held: paid}
            for v, hops in near.items():
                grown |= {told | 1 << v: sum_ + price * hops for told, sum_ in grown.items()}
            for told, sum_ in grown.items():
                following[told] = min(following.get(told, math.inf), sum_)
        costs = following
    return costs.get(full, math.inf)


@settings(derandomize=True, max_examples=some(25), deadline=None)
@given(
    st.sampled_from([((2, 3), (False, True)), ((2, 3), (True, False)), ((2, 2, 2), (True,) * 3), ((3, 3), TORUS)]),
    PRICES,
    st.integers(1, 5),
    st.integers(0, 5),
)
def test_no_item_pays_less_than_the_bound_charges(
    shape: tuple[tuple[int, ...], tuple[bool, ...]], prices: list[int], longest: int, origin: int
) -> None:
    """The recursion over counts of holders against all ways over sets of holders."""
    instance = grid(*shape, 1, longest)
    least, _ = _frontier(instance.nodes, near_nodes(instance), np.array(prices, dtype=float), 1e18)
    assert least <= min(1e18, dearest(*shape, prices, origin, longest))


@pytest.mark.long
def test_the_second_step_of_a_square_torus_by_hand() -> None:
    """8 x 8, w = 16, 2 steps: after the first one all 14 nodes on the axes may hold the item, for 2 * 16 hops. The 49
    others cost 14 * 2 hops for 28 of them and 2 each for 21, 70 in sum, where each item has 64. Hence 3 steps, and
    relay takes them."""
    instance = grid((8, 8), TORUS, 16)
    near = near_nodes(instance)
    assert _least_hops(64, near, 0, 1).tolist()[-1] == 2 * (2 * (1 + 2 + 3) + 4) == 32
    assert _least_hops(64, near, 1, 15).tolist()[-1] == 28 + 2 * 21
    assert lower_bound(instance, options())[0] == 3
    assert grid_relay(instance, options()).steps == 3


@settings(derandomize=True, max_examples=some(40), deadline=None)
@given(
    st.lists(st.tuples(st.integers(2, 7), st.booleans()), min_size=2, max_size=3),
    PRICES,
    st.integers(0, 5),
    st.integers(1, 6),
)
def test_the_check_counts_the_same_hops(
    shape: list[tuple[int, bool]], prices: list[int], later: int, longest: int
) -> None:
    """The check's whole numbers and the method's floats, each from its own code: what the check just accepts."""
    instance = grid(tuple(n for n, _ in shape), tuple(kind for _, kind in shape), 1, longest)
    least, _ = _frontier(instance.nodes, near_nodes(instance), np.array(prices, dtype=float), float(later))
    needed = instance.nodes * least
    horizon = min(len(prices) + 2, instance.nodes)  # four prices at most, four nodes at least
    offered = instance.directed_links * (sum(prices) + (horizon - len(prices)) * later)
    certificate = {"binding": "reach", "weights": prices, "horizon": horizon, "later": later}
    assert (check_bound(instance, horizon + 1, certificate) == []) == (needed > offered)
