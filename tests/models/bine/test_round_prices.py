"""Prices of rounds: whatever the prices, never above the optimum; met by the least trees; the rest is refused.

The optimum comes from the problem statement: all ways in which the informed of every part may inform others.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import synth
from synth.instance import Instance
from synth.options import RunOptions
from synth_models.bine.bounds.round_prices import SCALE, best_prices
from synth_models.bine.check.certificates import check_bound

SMALL = [
    (1, 1), (1, 3), (3, 1), (2, 2), (1, 1, 2), (2, 1, 1, 1), (1, 1, 1, 1), (3, 2), (1, 2, 2), (4, 1), (5, 3), (3, 5),
    (1, 7), (2, 3, 3), (3, 3, 2), (1, 1, 6), (5, 1, 1, 1), (4, 4), (3, 3), (2, 5), (6, 1), (1, 3, 3),
]  # fmt: skip


def deals(most: tuple[int, ...], total: int) -> list[tuple[int, ...]]:
    """How at most ``total`` messages can go to parts that take at most ``most``."""
    return [deal for deal in product(*(range(room + 1) for room in most)) if sum(deal) <= total]


@cache
def fewest(sizes: tuple[int, ...], rounds: int) -> int:
    """Least crossings of a broadcast from part 0: every round each informed rank informs at most one other."""
    states = {(1, *(0 for _ in sizes[1:])): 0}
    for _ in range(rounds):
        following: dict[tuple[int, ...], int] = {}
        for informed, cost in states.items():
            partial = {tuple(sizes[g] - x for g, x in enumerate(informed)): cost}  # ranks still to be informed
            for g, senders in enumerate(informed):
                grown: dict[tuple[int, ...], int] = {}
                for room, paid in partial.items():
                    for deal in deals(room, senders):
                        rest = tuple(r - n for r, n in zip(room, deal, strict=True))
                        crossed = sum(deal) - deal[g]
                        grown[rest] = min(grown.get(rest, 10**9), paid + crossed)
                partial = grown
            for room, paid in partial.items():
                reached = tuple(n - r for n, r in zip(sizes, room, strict=True))
                following[reached] = min(following.get(reached, 10**9), paid)
        states = following
    return states[sizes]


def least_rounds(sizes: tuple[int, ...]) -> int:
    return (sum(sizes) - 1).bit_length()


def instance(sizes: tuple[int, ...], collective: str = "broadcast", **more: Any) -> Instance:
    return synth.make("bine", groups=",".join(map(str, sizes)), collective=collective, bytes=1, problem="tree", **more)


def certificate(prices: list[int], scale: int = SCALE) -> dict[str, Any]:
    return {"binding": "prices", "scale": scale, "prices": np.array(prices, dtype=np.int64)}


@pytest.mark.parametrize("sizes", SMALL)
@pytest.mark.parametrize("more", [0, 1])
def test_the_best_prices_are_a_bound_and_the_check_finds_it_again(sizes: tuple[int, ...], more: int) -> None:
    rounds = least_rounds(sizes) + more
    optimum = fewest(sizes, rounds)
    least, prices = best_prices(np.array(sizes), 0, rounds, RunOptions())
    assert len(sizes) - 1 <= least <= optimum
    if sum(sizes) == 1 << rounds:  # no rank may be idle: met on every one of these
        assert least == optimum
    for collective in ("broadcast", "reduce"):
        made = instance(sizes, collective, rounds=rounds)
        assert check_bound(made, float(least), certificate(prices)) == []
        assert "proves" in check_bound(made, least + 1.0, certificate(prices))[0]


@settings(max_examples=some(150), deadline=None)
@given(st.sampled_from(SMALL), st.data())
def test_no_prices_prove_more_than_the_optimum(sizes: tuple[int, ...], data: st.DataObject) -> None:
    """Also prices that no method would choose; where ranks may be idle, those below 0 are refused."""
    rounds = least_rounds(sizes) + data.draw(st.integers(0, 1))
    scale = data.draw(st.integers(1, 8))
    prices = data.draw(st.lists(st.integers(-40, 40), min_size=rounds, max_size=rounds))
    assume(any(prices))
    faults = check_bound(instance(sizes, rounds=rounds), fewest(sizes, rounds) + 1.0, certificate(prices, scale))
    assert faults
    idle = sum(sizes) < 1 << rounds
    assert ("a price below 0" in faults[0]) == (idle and min(prices) < 0)


def test_by_hand() -> None:
    """Groups of 1 and 3 in two rounds: the root sends in both, always outside, so 2 crossings. By prices (0, 0): its
    part pays nothing; the other goes from 0 over 1 or 2 to 3, d = 1 and 1 or 2 and -1, and pays 2. By prices (-1, 0):
    the root's part has d = -1 twice and pays 1; the other pays (2 - 2) + 0 by way of 2: 1 in all."""
    assert fewest((1, 3), 2) == 2
    assert check_bound(instance((1, 3)), 2.0, certificate([0, 0], 1)) == []
    assert check_bound(instance((1, 3)), 2.5, certificate([0, 0], 1)) != []
    assert check_bound(instance((1, 3)), 1.0, certificate([-1, 0], 1)) == []
    assert check_bound(instance((1, 3)), 1.5, certificate([-1, 0], 1)) != []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"prices": np.array([1])}, "too few"),
        ({"prices": np.array([1, 1, 1])}, "2 are needed"),
        ({"scale": 0}, "scale"),
        ({"scale": 2**25}, "scale"),
        ({"prices": np.array([2**31, 0])}, "more than"),
        ({"prices": np.array([0.5, 0.5])}, "whole numbers"),
        ({"prices": None}, "prices"),
        ({"binding": "price"}, "unknown kind"),
    ],
)
def test_what_is_no_certificate_is_refused(change: dict[str, Any], told: str) -> None:
    assert told in check_bound(instance((1, 3)), 1.0, certificate([-1, 0], 1) | change)[0]


def test_prices_are_for_trees_that_broadcast_or_reduce() -> None:
    prices = certificate([-1, 0], 1)
    assert "broadcast or reduce" in check_bound(instance((1, 3), "scatter"), 1.0, prices)[0]
    anything = synth.make("bine", groups="1,3", collective="broadcast", bytes=1)
    if anything.problem != "tree":  # type: ignore[attr-defined]
        assert "broadcast or reduce" in check_bound(anything, 1.0, prices)[0]


@pytest.mark.long
@pytest.mark.parametrize("name", ["groups-24-groups-2048-broadcast", "groups-5-3-8-reduce", "synthetic-jobs-broadcast"])
def test_the_shipped_trees_are_certified(name: str) -> None:
    """The same number as the program's, which the README's table counts as certified."""
    record = synth.solve(synth.read(f"instances/bine/{name}.json"), "bound")
    tree = {"groups-24-groups-2048-broadcast": 46, "groups-5-3-8-reduce": 3, "synthetic-jobs-broadcast": 9}[name]
    assert record.ok
    assert (record.bound, record["bound_proof"]) == (tree * 2.0**20, "prices of rounds")
    assert record.grade == "certified"
