"""Sets of crossings that join ranks in time: the cases of the check against all sets of small networks."""

from __future__ import annotations

import random
from itertools import combinations, product

import numpy as np
import pytest
from peers.sccl.test_one_chunk import allreduce
from peers.sccl.test_steps import dgx1

from synth_peers.sccl.check.counted_steps import fault_of
from synth_peers.sccl.check.joining_sets import JoiningSets

Pair = tuple[int, int]


def joins(crossings: set[tuple[int, Pair]], steps: int, origins: list[int], goals: list[int]) -> bool:
    """Whether every origin's word is heard at every goal, step by step."""
    heard = {v: {v} & set(origins) for v in range(10)}
    for step in range(steps):
        now = {v: set(words) for v, words in heard.items()}
        for _, (u, v) in (one for one in crossings if one[0] == step):
            now[v] |= heard[u]
        heard = now
    return all(set(origins) <= heard[v] for v in goals)


def cheapest(pairs: list[Pair], price: list[list[int]], origins: list[int], goals: list[int]) -> int | None:
    """The least price of all sets of crossings that join them, by trying each."""
    places = [(s, k) for s in range(len(price)) for k in range(len(pairs))]
    found: int | None = None
    for number in range(len(places) + 1):
        for some in combinations(places, number):
            if joins({(s, pairs[k]) for s, k in some}, len(price), origins, goals):
                cost = sum(price[s][k] for s, k in some)
                found = cost if found is None else min(found, cost)
    return found


@pytest.mark.parametrize("seed", range(25))
def test_the_cases_find_what_trying_all_sets_finds(seed: int) -> None:
    draw = random.Random(seed)
    ranks, steps = draw.choice(((2, 2), (3, 2), (3, 3)))
    every = [(u, v) for u, v in product(range(ranks), repeat=2) if u != v]
    pairs = sorted(draw.sample(every, min(len(every), 12 // steps)))
    price = [[draw.choice((0, 1, 1, 2, 3)) for _ in pairs] for _ in range(steps)]
    origins, goals = (sorted(draw.sample(range(ranks), draw.randint(1, ranks))) for _ in range(2))
    least = cheapest(pairs, price, origins, goals)
    for share in range(12):
        assert JoiningSets(pairs, price, origins, goals).cost_more(share) == (least is None or least > share)


def test_too_much_to_go_through_is_refused() -> None:
    every = [(u, v) for u, v in product(range(6), repeat=2) if u != v]
    price = [[1] * len(every)] * 3
    with pytest.raises(ValueError, match="too many to go through"):
        JoiningSets(every, price, range(6), range(6), most_work=10_000).cost_more(8)
    with pytest.raises(ValueError, match="more than 500 crossings"):
        JoiningSets(every, price * 10, range(6), range(6))


def test_one_chunk_of_a_ring_of_three_by_hand() -> None:
    """Three ranks, all pairs, two steps of one round, a price of 1 each: 12 crossings. A chunk needs 4 (each rank hears
    two words; two steps of two crossings), so 3 chunks fit by this count, and 4 do not."""
    instance = allreduce(3, [(u, v, 1) for u, v in product(range(3), repeat=2) if u != v])
    assert instance is not None
    proof = {"argument": "joining", "price": np.ones((1, 6, 2), dtype=np.int64), "of": np.zeros(6, dtype=np.int64)}
    assert fault_of(instance, (2, 2, 4), proof) is None
    assert "a chunk may pay 4, its share of 12" in str(fault_of(instance, (2, 2, 3), proof))
    assert "a chunk may pay" in str(fault_of(instance, (2, 2, 4), proof | {"price": proof["price"] * [1, 0]}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"price": np.ones((2, 6, 2), dtype=np.int64)}, "price"),
        ({"price": -np.ones((1, 6, 2), dtype=np.int64)}, "price"),
        ({"price": np.full((1, 6, 2), 0.5)}, "price"),
        ({"price": np.ones((1, 6, 3), dtype=np.int64)}, "price"),
    ],
)
def test_prices_of_another_shape_are_no_proof(change: dict[str, object], said: str) -> None:
    instance = allreduce(3, [(u, v, 1) for u, v in product(range(3), repeat=2) if u != v])
    assert instance is not None
    with pytest.raises(ValueError, match=said):
        fault_of(instance, (2, 2, 4), {"argument": "joining", "of": np.zeros(6, dtype=np.int64), **change})


def test_links_side_by_side_cost_as_the_cheapest_and_earn_each_for_itself() -> None:
    """Two ranks, two links of one chunk a round either way, at prices of 1 and 3: they earn 2 (1 + 3), a chunk pays 2
    at least, so 4 chunks are no contradiction and 5 are one."""
    instance = allreduce(2, [(u, v, 1) for u, v in ((0, 1), (0, 1), (1, 0), (1, 0))])
    assert instance is not None
    ends = list(zip(instance.machine.network.src.tolist(), instance.machine.network.dst.tolist(), strict=True))
    price = np.array([[3 if ends[:e].count(end) else 1] for e, end in enumerate(ends)])[None]
    proof = {"argument": "joining", "price": price, "of": np.zeros(2, dtype=np.int64)}
    assert "a chunk may pay 2, its share of 8" in str(fault_of(instance, (1, 1, 4), proof))
    assert fault_of(instance, (1, 1, 5), proof) is None


@pytest.mark.long
def test_a_dgx1_at_equal_prices_is_beyond_the_cases() -> None:
    """14 crossings of 128, at prices that prove no more than counting parts does."""
    instance = dgx1("allreduce")
    price = np.ones((1, instance.machine.links, 4), dtype=np.int64)
    with pytest.raises(ValueError, match="too many to go through"):
        fault_of(instance, (4, 4, 13), {"argument": "joining", "price": price, "of": np.zeros(56, dtype=np.int64)})
