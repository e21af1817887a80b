"""Prices that depend on the moment: by hand, against brute force over ways and over schedules, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import some_of
from models.fabric.brute_force import TooLarge, least_seconds
from models.fabric.planned_demands import many, two_boxes

import synth
from synth.arrays import IntArray
from synth_models.fabric import race
from synth_models.fabric.bounds.proven import NOTHING
from synth_models.fabric.bounds.timed_prices import TimedPrices
from synth_models.fabric.check import timed_prices as check
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.check.windows import Fabric
from synth_models.fabric.references.plan.method import Planned, Planner

THREE = {"boxes": 3, "gpus": "2"}


def test_what_needs_a_hop_goes_first_or_comes_last_by_hand() -> None:
    """H100, three boxes of two GPUs, 3000 bytes from every GPU to every other. A hop takes 0.7 us, a rail 2.6 us. Six
    GPUs send 6000 bytes each to GPUs of another number: over the own NIC, until T - 3.3 us, or over the goal's, not
    before the hop. Twelve NICs of 50 GB/s, T - 3.3 us each: T = 3.3 us + 36,000 / 600e9 s."""
    matrix = np.full((6, 6), 3000)
    found = synth.Planner("dgx-h100", **THREE).plan(matrix)
    assert found.proven.argument == "timed prices"
    assert found.bound == pytest.approx(3.36e-6, rel=1e-8)
    assert found.check().faults == []
    assert found.gap < 0.005


def test_a_hot_pair_between_boxes_by_hand() -> None:
    """100,000 bytes from 0/gpu1 to 3/gpu2 of eight boxes. Its own NIC carries 0.7 us before a hop is over, its goal's
    0.7 us after the last must have begun; between them, from 0.7 us to T - 3.3 us, all eight of the box:
    2 us = 2 * 0.7 us + 8 (T - 4 us)."""
    matrix = np.zeros((64, 64), dtype=np.int64)
    matrix[1, 26] = 100_000
    found = many(8).plan(matrix)
    assert found.bound == pytest.approx(4.075e-6, rel=1e-8)
    assert found.check().faults == []
    assert found.gap < 0.15


@pytest.mark.parametrize("seed", some_of(range(40)))
def test_no_timed_price_is_above_brute_force(seed: int) -> None:
    """Two boxes of two ranks with latencies of a second, where one or two small blocks leave their boxes."""
    rng = np.random.default_rng(seed)
    plans = race.planner(two_boxes(1.0))
    timed = plans._bounds._timed
    assert timed is not None
    demand = np.zeros((4, 4), dtype=np.int64)
    for _ in range(int(rng.integers(1, 3))):
        i, j = int(rng.integers(2)), int(rng.integers(2, 4))
        demand[(i, j) if rng.integers(2) else (j, i)] = int(rng.integers(1, 4))
    found = plans.plan(demand)
    pieces = [[1] * size for size in demand[demand > 0].tolist()]
    try:
        least = least_seconds(found.instance, pieces, most_states=3000)
    except TooLarge:
        pytest.skip("too large for brute force")
    proven = timed.stronger(demand, NOTHING)
    assert float(proven.seconds) <= least
    if proven.seconds:
        assert check_bound(found.instance, float(proven.seconds), proven.certificate()) == []


@pytest.mark.parametrize("seed", some_of(range(60)))
def test_the_cheapest_way_is_that_of_all_moments(seed: int) -> None:
    """A random network with small whole latencies and random prices, against a table of the least cost at every node
    at every moment: to wait costs nothing, a link is crossed at one of its moments."""
    rng = np.random.default_rng(seed)
    nodes, links, end = int(rng.integers(2, 6)), int(rng.integers(1, 12)), int(rng.integers(1, 14))
    tail, head = rng.integers(0, nodes, (2, links))
    delay = rng.integers(0, 4, links)
    count = int(rng.integers(0, 8))
    link, price = rng.integers(0, links, count), rng.integers(1, 4, count)
    since, until = np.sort(rng.integers(0, end + 1, (2, count)), axis=0)
    tariff = check._tariff(links, link, since, until, price)
    by_tail = np.argsort(tail, kind="stable")
    start = np.searchsorted(tail[by_tail], np.arange(nodes + 1))
    found = check._cheapest(start, by_tail, head, delay, *tariff, 0, end, nodes)
    assert found.tolist() == _by_table(nodes, tail, head, delay, link, since, until, price, end)


def _by_table(
    nodes: int, tail: IntArray, head: IntArray, delay: IntArray, link: IntArray, since: IntArray, until: IntArray,
    price: IntArray, end: int,
) -> list[int]:  # fmt: skip
    """The least cost to be at each node at some whole moment before the end, -1 for none."""
    never = 10**6
    cost = np.full((end, nodes), never)
    for now in range(end):
        cost[now, 0] = 0
        if now:
            cost[now] = np.minimum(cost[now], cost[now - 1])
        for _ in range(nodes):  # links without latency
            for e in range(len(tail)):
                before = now - delay[e]
                if before >= 0:
                    paid = sum(p for f, u, v, p in zip(link, since, until, price, strict=True) if f == e
                               and u <= before < v)  # fmt: skip
                    cost[now, head[e]] = min(cost[now, head[e]], cost[before, tail[e]] + paid)
    return [int(c) if c < never else -1 for c in cost[-1]]


def planned() -> Planned:
    matrix = np.full((6, 6), 3000)
    found = synth.Planner("dgx-h100", **THREE).plan(matrix)
    assert isinstance(found, Planned)
    return found


def test_more_than_what_is_proven_is_refused() -> None:
    found = planned()
    certificate = dict(found.proven.certificate())
    assert "moment comes before" in check_bound(found.instance, found.bound * 1.001, certificate)[0]
    later = {**certificate, "end": int(certificate["end"] * 1.001)}
    assert check_bound(found.instance, found.bound * 1.001, later) != []
    dearer = {**certificate, "price": [2, *certificate["price"][1:]]}
    assert "does not prove" in check_bound(found.instance, found.bound, dearer)[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"link": [-1] * 12}, "link holds -1"),
        ({"price": [0] * 12}, "price holds 0"),
        ({"price": [1] * 11}, "price"),
        ({"since": [3] * 12, "until": [2] * 12}, "a price ends before it begins"),
        ({"until": [2**62] * 12}, "until holds"),
        ({"end": 1.5}, "end is not a whole number"),
        ({"ticks_per_s": 0}, "ticks_per_s is 0"),
        ({"since": None}, "since"),
        ({"link": [0, *[4] * 11]}, "links of unequal bandwidth"),
    ],
)
def test_a_broken_certificate_is_refused(change: dict[str, Any], words: str) -> None:
    found = planned()
    [fault] = check_bound(found.instance, found.bound, {**found.proven.certificate(), **change})
    assert words in fault


def test_blocks_for_everyone_have_no_timed_prices() -> None:
    found = planned()
    broadcast = synth.make("fabric", machine="dgx-h100", boxes=3, gpus="2", collective="broadcast", bytes="1MiB")
    [fault] = check_bound(broadcast, found.bound, found.proven.certificate())
    assert "prove nothing for broadcast" in fault


def test_windows_are_those_of_the_machine() -> None:
    """What the bound looks up beside sums along the rails by hand: 0.35 us a hop in the box, 0.65 us outside."""
    plans = many(8)
    assert isinstance(plans, Planner)
    timed = plans._bounds._timed
    assert timed is not None
    us = timed.links.ticks / 1e6
    found = [ticks / us for ticks in (timed.first, timed.last, timed.rail, timed.long, timed.off)]
    assert found == pytest.approx([0.7, 0.7, 2.6, 3.3, 1.95])
    assert timed.rate == 50 * 10**9
    fabric = Fabric(plans.machine)
    assert [fabric.tail[e] for e in timed.out] == [fabric.head[e] for e in timed.into] == plans._node.tolist()


@pytest.mark.parametrize("keys", [{"machine": "dgx1", "boxes": 1}, {"machine": "dgx-h100", "boxes": 2, "gpus": "2+3"}])
def test_other_machines_have_none(keys: dict[str, Any]) -> None:
    own = dict(keys)
    plans = synth.Planner(own.pop("machine"), **own)
    assert isinstance(plans, Planner)
    assert plans._bounds._timed is None
    assert TimedPrices.of(plans._bounds._links, plans._node, plans.machine.boxes) is None
