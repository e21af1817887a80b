"""Every algorithm's step patterns move the right data: possession (gather-like) and contribution sets (reductions).

A gather is replayed greedily: in a step every pair may carry as many blocks as its bytes allow, and carries those that
the receiver lacks; at the end everybody holds everything. A reduce-scatter is that replay of the reversed steps read
backwards, and is then replayed forwards: partial sums of a block are disjoint sets of contributions, and the owner ends
with all of them.
"""

from __future__ import annotations

import numpy as np
import pytest

from synth_models.bine.parts.butterfly import torus_partners
from synth_models.harvest.parts import patterns
from synth_models.harvest.parts.patterns import Wish
from synth_models.harvest.parts.step_files import birkhoff_von_neumann

BYTES = 5040.0 * 64
POWERS = (4, 8, 16, 32, 64)


def pairs_of(step, gpus):
    return step["pairs"] if "pairs" in step else [(u, (u + step["shift"]) % gpus) for u in range(gpus)]


def gather(steps, gpus, block):
    """Blocks carried by every pair of every step (those held longest first), and what every GPU holds at the end."""
    held = [{u: None} for u in range(gpus)]
    carried = []
    for step in steps:
        room = round(step["bytes"] / block)
        assert room * block == pytest.approx(step["bytes"])
        promised = [dict(blocks) for blocks in held]
        moves = []
        for u, v in pairs_of(step, gpus):
            blocks = [block for block in held[u] if block not in promised[v]][:room]
            promised[v] |= dict.fromkeys(blocks)
            moves.append((u, v, blocks))
        held = promised
        carried.append(moves)
    return carried, [set(blocks) for blocks in held]


def scatter_is_right(steps, gpus, block):
    """Read the reversed gather backwards and follow the contributions."""
    turned = [{"bytes": s["bytes"], "pairs": [(v, u) for u, v in pairs_of(s, gpus)]} for s in reversed(steps)]
    carried, held = gather(turned, gpus, block)
    assert all(blocks == set(range(gpus)) for blocks in held)
    sums = [[{u} for _ in range(gpus)] for u in range(gpus)]
    for moves in reversed(carried):
        arriving = [(u, b, v, sums[v][b]) for u, v, blocks in moves for b in blocks]
        for _, b, v, _ in arriving:
            sums[v][b] = set()
        for u, b, _, part in arriving:
            assert not sums[u][b] & part
            sums[u][b] = sums[u][b] | part
    return all(sums[u][u] == set(range(gpus)) for u in range(gpus))


def allreduce_is_right(make, wish, block):
    whole = make(wish)
    scatter = make(Wish(**{**vars(wish), "half": "reduce_scatter"}))
    after = make(Wish(**{**vars(wish), "half": "allgather"}))
    assert whole == scatter + after
    assert scatter_is_right(scatter, wish.gpus, block)
    _, held = gather(after, wish.gpus, block)
    assert all(blocks == set(range(wish.gpus)) for blocks in held)


@pytest.mark.parametrize("direction", ["forwards", "backwards"])
@pytest.mark.parametrize("gpus", POWERS)
def test_recursive_doubling_reduces_and_gathers(gpus, direction):
    wish = Wish(gpus, BYTES, direction=direction)
    allreduce_is_right(patterns.recursive_doubling, wish, BYTES / gpus)


@pytest.mark.parametrize("gpus", POWERS)
def test_swing_reduces_and_gathers(gpus):
    allreduce_is_right(patterns.swing, Wish(gpus, BYTES), BYTES / gpus)


@pytest.mark.parametrize("direction", ["forwards", "backwards"])
@pytest.mark.parametrize("gpus", [4, 5, 8, 16])
def test_ring_reduces_and_gathers(gpus, direction):
    allreduce_is_right(patterns.ring, Wish(gpus, BYTES, direction=direction), BYTES / gpus)


@pytest.mark.parametrize(("radix", "sends"), [(2, 1), (3, 1), (3, 2), (4, 3), (4, 2)])
@pytest.mark.parametrize("gpus", [4, 6, 7, 9, 16, 27, 33, 64])
def test_bruck_allgather_gathers_and_reduces_on_any_number(gpus, radix, sends):
    wish = Wish(gpus, BYTES, half="both", radix=radix, sends=sends)
    allreduce_is_right(patterns.bruck_allgather, wish, BYTES / gpus)
    assert patterns.bruck_allgather(Wish(gpus, BYTES)) == patterns.bruck_allgather(Wish(gpus, BYTES, half="allgather"))


def negabinary(ones):
    """The number whose ``ones`` negabinary digits are all 1."""
    return sum((-2) ** i for i in range(ones))


@pytest.mark.parametrize("order", [None, "doubling", "halving"])
@pytest.mark.parametrize("gpus", [2, *POWERS])
def test_bine_reduces_and_gathers(gpus, order):
    allreduce_is_right(patterns.bine, Wish(gpus, BYTES, order=order), BYTES / gpus)


@pytest.mark.parametrize("gpus", [2**k for k in range(1, 11)])
def test_where_bine_and_swing_are_one_pattern(gpus):
    """Harvest calls Swing "equivalent to Bine Butterfly in terms of communication pattern". From Bine's own text (3.1):
    at distance index s rank 0 meets the rank of s + 1 negabinary ones; trees of even ranks are that of 0, rotated,
    those of odd ranks mirrored. That is Swing, step for step, where distances double: in the allreduce of large
    vectors. In the order in which they halve the steps are the same in reverse, which up to 4 GPUs is Swing
    mirrored (or itself); from 8 on other bytes travel over other distances."""
    bits = gpus.bit_length() - 1
    steps = []
    for s in range(bits):
        rank = negabinary(s + 1) % gpus
        steps.append([[u, (u + rank if u % 2 == 0 else u - rank) % gpus] for u in range(gpus)])
    for half in ("both", "reduce_scatter", "allgather"):
        swing = patterns.swing(Wish(gpus, BYTES, half=half))
        assert patterns.bine(Wish(gpus, BYTES, half=half)) == swing
        assert patterns.bine(Wish(gpus, BYTES, half=half, order="doubling")) == swing
    assert [s["pairs"] for s in patterns.bine(Wish(gpus, BYTES, half="reduce_scatter"))] == steps
    swing = patterns.swing(Wish(gpus, BYTES, half="reduce_scatter"))
    halving = patterns.bine(Wish(gpus, BYTES, half="reduce_scatter", order="halving"))
    assert [s["pairs"] for s in halving] == steps[::-1]
    assert [s["bytes"] for s in halving] == [s["bytes"] for s in swing]
    mirrored = [{**s, "pairs": sorted([-u % gpus, -v % gpus] for u, v in s["pairs"])} for s in halving]
    assert (halving == swing) == (gpus == 2)
    assert (mirrored == swing) == (gpus <= 4)
    farthest = [{min((v - u) % gpus, (u - v) % gpus) for u, v in one[0]["pairs"]} for one in (swing, halving)]
    assert (farthest[0] == farthest[1]) == (gpus <= 4)


@pytest.mark.parametrize("torus", [(2,), (16,), (4, 4), (8, 8), (2, 4), (2, 32), (4, 4, 4), (2, 4, 8), (2, 2, 16)])
@pytest.mark.parametrize("mirrored", [True, False])
def test_swing_on_a_torus_is_bine_on_that_torus(torus, mirrored):
    """The Bine family's pairings of a torus, made by other code, from every first dimension, mirrored or not."""
    found = patterns.swing_torus_partners(torus, mirrored)
    ways = (False, True) if mirrored else (False,)
    expected = [torus_partners(list(torus), first, way).tolist() for first in range(len(torus)) for way in ways]
    assert found == expected


TORI = [(4,), (16,), (4, 4), (8, 8), (4, 4, 4), (2,), (2, 2), (2, 4), (8, 2), (4, 16), (2, 32), (2, 4, 8), (2, 2, 16)]


@pytest.mark.parametrize("torus", TORI)
@pytest.mark.parametrize("mirrored", [True, False])
def test_swing_torus_runs_a_whole_collective_per_port(torus, mirrored):
    gpus = int(np.prod(torus))
    steps = patterns.swing_torus(Wish(gpus, BYTES, half="reduce_scatter", torus=torus, mirrored=mirrored))
    collectives = patterns.swing_torus_partners(torus, mirrored)
    assert len(collectives) == len(torus) * (2 if mirrored else 1)
    share = BYTES / len(collectives)
    for i, step in enumerate(steps):
        wanted = [(u, c[i][u]) for c in collectives for u in range(gpus)]
        assert sorted(map(tuple, step["pairs"])) == sorted(wanted)
        assert np.bincount([u for u, _ in wanted]).tolist() == [len(collectives)] * gpus  # a port each
        if len(set(torus)) == 1 and torus[0] > 2:
            assert len(set(wanted)) == len(wanted)
    for partners in collectives:
        own = [{"bytes": s["bytes"], "pairs": list(enumerate(p))} for s, p in zip(steps, partners, strict=True)]
        assert scatter_is_right(own, gpus, share / gpus)
        _, held = gather(own[::-1], gpus, share / gpus)
        assert all(blocks == set(range(gpus)) for blocks in held)


@pytest.mark.parametrize("gpus", [4, 7, 16, 64])
def test_direct_alltoall_meets_every_pair_once(gpus):
    steps = patterns.alltoall_direct(Wish(gpus, BYTES))
    met = [tuple(pair) for step in steps for pair in pairs_of(step, gpus)]
    assert sorted(met) == [(u, v) for u in range(gpus) for v in range(gpus) if u != v]
    assert all(step["bytes"] == BYTES / gpus for step in steps)


@pytest.mark.parametrize(("radix", "sends"), [(2, 1), (3, 1), (4, 3), (8, 2)])
@pytest.mark.parametrize("gpus", [8, 9, 13, 16, 64])
def test_bruck_alltoall_carries_every_block_home(gpus, radix, sends):
    """A block that has to go e GPUs on moves in a step over distance z * r^p exactly if digit p of e is z."""
    at = {(u, v): u for u in range(gpus) for v in range(gpus)}
    for step in patterns.bruck_alltoall(Wish(gpus, BYTES, radix=radix, sends=sends)):
        pairs = pairs_of(step, gpus)
        for distance in sorted({(v - u) % gpus for u, v in pairs}):
            weight = max(radix**p for p in range(10) if radix**p <= distance)
            moving = [k for k in at if ((k[1] - k[0]) % gpus) // weight % radix == distance // weight]
            load = np.bincount([at[key] for key in moving], minlength=gpus)
            assert np.all(load * BYTES / gpus == pytest.approx(step["bytes"]))
            for key in moving:
                assert (at[key], (at[key] + distance) % gpus) in {tuple(pair) for pair in pairs}
                at[key] = (at[key] + distance) % gpus
        assert max(np.bincount([u for u, _ in pairs])) <= sends
    assert all(place == key[1] for key, place in at.items())


@pytest.mark.parametrize("root", [0, 3])
@pytest.mark.parametrize("gpus", [4, 7, 16, 33, 64])
@pytest.mark.parametrize("make", [patterns.binomial_broadcast, patterns.binary_broadcast])
@pytest.mark.parametrize("order", ["halving", "doubling"])
def test_broadcasts_reach_everybody_once(make, gpus, root, order):
    informed = {root}
    for step in make(Wish(gpus, BYTES, root=root, order=order)):
        assert step["bytes"] == BYTES
        assert {u for u, _ in step["pairs"]} <= informed
        new = [v for _, v in step["pairs"]]
        assert len(set(new)) == len(new)
        assert not informed & set(new)
        informed |= set(new)
    assert informed == set(range(gpus))


@pytest.mark.parametrize("seed", range(6))
def test_demand_matrix_is_split_into_matchings_that_add_up(seed):
    random = np.random.default_rng(seed)
    demand = random.integers(0, 50, (7, 7)).astype(float) * (random.random((7, 7)) < 0.6)
    np.fill_diagonal(demand, 0)
    parts = birkhoff_von_neumann(demand)
    total = np.zeros_like(demand)
    for size, pairs in parts:
        assert len(set(pairs[:, 0].tolist())) == len(set(pairs[:, 1].tolist())) == len(pairs)
        total[pairs[:, 0], pairs[:, 1]] += size
    assert total == pytest.approx(demand, abs=1e-6)
    sizes = [size for size, _ in parts]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) <= max(demand.sum(axis=0).max(), demand.sum(axis=1).max()) * (1 + 1e-9)


def test_uniform_alltoall_matrix_takes_one_matching_less_than_gpus():
    demand = np.full((5, 5), 3.0)
    np.fill_diagonal(demand, 0)
    parts = birkhoff_von_neumann(demand)
    assert [size for size, _ in parts] == [3.0] * 4
