"""Kernels that the other tests' small questions do not reach, or only with calls too long for plain Python, give the
same bits compiled and plain: on random inputs within their contracts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exchange.random_transfers import random_transfers
from kernels_twice import both, twice

from synth.errors import InputError
from synth.exchange.lowering import dependences, rank_steps
from synth.exchange.lowering.equal_chunks import chunked
from synth.graph.hops import breadth_first
from synth_models.fabric.programs.forest import tree_packing
from synth_models.fabric.scheduling import reservations
from synth_models.harvest.programs.column_generation import congestion, search
from synth_models.harvest.programs.column_generation.lifts import Lift
from synth_models.optree.references import relay_pattern, relay_wavelengths

SEEDS = range(12)
BIG, SMALL = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def rotations(gpus: int, order: int) -> Lift:
    """The group of ``order`` rotations of a ring."""
    step = gpus // order
    return Lift((np.arange(gpus)[None, :] + step * np.arange(order)[:, None]) % gpus)


def demand(random: Any, lift: Lift, patterns: int) -> tuple[Any, ...]:
    """Starts, ends, begins, volume, least load and steps of random patterns."""
    orbits = len(lift.sources)
    count = random.integers(0, 4, (patterns, orbits))
    count[:, 0] += 1
    starts = np.zeros((patterns, orbits + 1), dtype=np.int64)
    edges = np.concatenate([[0], np.cumsum(count)])
    for pattern in range(patterns):
        starts[pattern] = edges[pattern * orbits : (pattern + 1) * orbits + 1]
    begins = np.tile(np.arange(orbits), patterns).repeat(count.ravel())
    ends = (lift.sources[begins] + random.integers(1, lift.gpus, edges[-1])) % lift.gpus  # no pair of one GPU
    steps = np.column_stack([np.arange(patterns), random.random(patterns) * 1e-3, random.integers(1, 9, patterns)])
    return starts, ends, begins, random.random(len(ends)), np.zeros(patterns), steps.astype(float)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_topologies_of_a_search(seed: int) -> None:
    random = np.random.default_rng(seed)
    lift = rotations(8, int(random.choice([1, 2, 4, 8])))
    targets = lift.regular(int(random.integers(1, 4)), random)
    out, load = lift.unfolded(targets), random.random(targets.shape)
    starts, ends, begins, volume, least, steps = demand(random, lift, int(random.integers(1, 4)))
    way = (out, lift.orbit, lift.sources, starts[0], ends, volume)
    ports = np.arange(0, out.size + 1, out.shape[1])
    assert both(breadth_first, ports, out.ravel(), int(ends[0]), *np.zeros((2, 8), dtype=np.int64))
    assert both(congestion._power_sum, load, random.random(targets.shape), 0.3, 0.7)
    assert both(congestion._split_evenly, *way, load)
    taken = (out, lift.orbit, lift.sources, starts, ends, volume, least, steps, 1e-6)
    assert both(congestion.interval_seconds, *taken, float(random.choice([1e-4, 1e299])))
    if congestion.interval_seconds(*taken, 1e299) < congestion.NEVER:
        assert both(congestion._cheapest_routes, *way, random.random(targets.shape), 8, load)
        assert both(congestion.balance, *way, 8, load, 0.0)
    assert both(search._lead, out, lift.moved, lift.sources, 0, 0, int(random.integers(8)))
    orbits = search._Orbits(lift.moved, lift.orbit, lift.sources, lift.members)
    pairs = search.Demand(starts, ends, begins, volume, least, steps)
    turns = search._Turns(3, 23, 40)
    assert both(search._anneal, targets, out, orbits, pairs, 1e-6, 1e-3, turns, int(random.integers(2**31)))


@pytest.mark.parametrize("seed", SEEDS)
def test_patterns_of_a_relay(seed: int) -> None:
    random = np.random.default_rng(seed)
    later = random.choice([0.0, 0.5, 1.0, 2.5, relay_pattern.INFINITE], 12)
    capacity, reach = int(random.integers(0, 14)), int(random.integers(0, 8))
    one, _ = relay_pattern._one_end(later, capacity, reach)
    assert both(relay_pattern._one_end, later, capacity, reach)
    assert both(relay_pattern._two_ends, one, int(random.integers(0, 2 * reach + 1)), capacity)
    tables = random.choice([0.0, 1.5, 2.0, relay_pattern.INFINITE], (4, capacity + 1))
    tables[3] = relay_pattern.INFINITE  # nothing fits
    assert both(relay_pattern._knapsack, tables, random.integers(0, 3, 5), capacity)
    assert both(relay_pattern._knapsack, tables, random.integers(0, 4, 5), capacity)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_wavelengths_of_a_relay(seed: int) -> None:
    random = np.random.default_rng(seed)
    nodes, lengths = int(random.integers(4, 14)), random.integers(1, 5, random.integers(1, 6))
    lengths = np.minimum(lengths, nodes - 1)
    assert both(relay_wavelengths._by_strands, nodes, lengths, int(random.integers(2**31)))
    assert both(relay_wavelengths._fewest_by_groups, nodes, lengths)
    wavelengths = int(lengths.sum()) * 3
    colours = np.arange(len(lengths) * nodes, dtype=np.int32).reshape(-1, nodes) % wavelengths
    assert both(relay_wavelengths._single_hops, colours, lengths, wavelengths)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_grows_or_is_free(seed: int) -> None:
    """Values at both ends of their types."""
    random = np.random.default_rng(seed)
    for kind in (np.int32, np.int64):
        ends = np.iinfo(kind)
        assert both(dependences._longer, random.choice(np.array([ends.min, -1, 0, ends.max], kind), 7))
    table = random.choice([SMALL, -1, 0, BIG], (3, 9))
    cells = int(random.integers(3)), int(random.integers(5)), int(random.integers(0, 5))
    assert both(reservations.is_free_modulo, reservations.Periodic(table), *cells)


@pytest.mark.long
def test_what_waits_in_scratch() -> None:
    """Random schedules until one puts a sum where it belongs after others have been sent."""
    name = (rank_steps.__name__, "_put")
    with twice() as found:
        for seed in range(400):
            t = random_transfers(seed)
            for in_place in (False, True):
                try:
                    rank_steps.acts(chunked(t, None, 8), in_place, 8)
                except InputError:
                    continue
            if name in found.kernels:
                break
    assert name in found.kernels
    assert found.faults == []


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS[:4])
def test_trees_that_split_more_often_than_the_first_stack_has_room_for(seed: int) -> None:
    """The root's edges are ever narrower, so that fewer copies of a tree can take each: from 18 members on the stack of
    unfinished trees outgrows its room. The trees span, carry the demand and stay within the capacity."""
    random = np.random.default_rng(seed)
    n, copies = int(random.integers(18, 26)), 60
    narrower = np.sort(random.choice(copies - 1, n - 2, replace=False))
    capacity = np.zeros((n, n), dtype=np.int64)
    capacity[0, 1], capacity[0, 2:], capacity[1, 2:] = copies, copies - 1 - narrower, 1 + narrower
    names = random.permutation(n)
    capacity = capacity[np.ix_(names, names)]
    demand = np.where(names == 0, copies, 0)
    with twice() as found:
        trees = tree_packing.pack_trees(capacity, demand)
    assert (tree_packing.__name__, "_with_more_room") in found.kernels
    assert found.faults == []
    assert trees.copies.sum() == copies
    assert set(names[trees.roots].tolist()) == {0}
    assert np.all(trees.depth < n)
    assert np.all(trees.used() <= capacity)
