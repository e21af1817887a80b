"""Topologies made for intervals: against brute force over all topologies, and the parts against definitions."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from models.harvest import brute_force
from models.harvest.brute_force import optimum, random_demand, random_one_to_many
from models.harvest.instances import made, stated

import synth
from synth.options import RunOptions
from synth_models.harvest.bounds.automorphisms import generators
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.parts.topologies import Topology, kautz
from synth_models.harvest.programs.candidates import solve as over_candidates
from synth_models.harvest.programs.column_generation.lifts import Lift, lifts
from synth_models.harvest.programs.column_generation.method import Columns, solve
from synth_models.harvest.programs.column_generation.search import seconds

ROOT = Path(__file__).resolve().parents[4]
EXACT = 1e-9  # relative


def value(instance, method=solve, **options):
    """What the check says of the method's schedule."""
    verdict = check_schedule(instance, method(instance, RunOptions(solver="highs", method={}, **options)).solution)
    assert verdict.ok, verdict.faults
    return verdict.value


def met(cases):
    """How often the method and ``candidates`` meet the optimum; the method is between the two every time."""
    own = listed = 0
    for raw in cases:
        instance, best = stated(**raw), optimum(raw)
        found, before = value(instance), value(instance, over_candidates)
        assert best * (1 - EXACT) <= found <= before * (1 + EXACT), raw
        own += found <= best * (1 + EXACT)
        listed += before <= best * (1 + EXACT)
    return own, listed


@pytest.mark.long
def test_between_the_optimum_of_all_topologies_and_the_candidates():
    own, listed = met([random_demand(number) for number in range(60, 72)])
    assert own >= listed
    assert own >= 11


@pytest.mark.slow
def test_how_often_it_meets_the_optimum_of_all_topologies():
    """Counts that models/harvest.md states; they depend on the seed, not on the machine."""
    demands = met([random_demand(number) for number in range(60)])
    matrices = met([random_one_to_many(number) for number in range(60)])
    assert (demands, matrices) == ((59, 53), (60, 58))


def test_the_same_seed_gives_the_same_schedule():
    raw = random_one_to_many(7)
    first, again = (solve(stated(**raw), RunOptions(solver="highs", method={}, seed=5)).solution for _ in range(2))
    assert len(first.topologies) == len(again.topologies)
    assert all(np.array_equal(a, b) for a, b in zip(first.topologies, again.topologies, strict=True))
    assert np.array_equal(first.share, again.share)


def test_a_time_limit_leaves_a_schedule():
    instance = synth.read(ROOT / "instances" / "harvest" / "bruck-alltoall-16-4-p4.json")
    assert value(instance, time_limit_s=0.01) >= value(instance, over_candidates)


@pytest.mark.slow
def test_a_static_topology_for_bruck_on_two_ports():
    """`candidates` takes 44.70 us; `misocp` finds 41.2002 us in minutes."""
    instance = synth.read(ROOT / "instances" / "harvest" / "bruck-allgather-8-static-p2.json")
    assert value(instance) <= 41.2003e-6


def patterns_of(instance):
    return list({rows.tobytes(): rows for rows in instance.demands}.values())


SYMMETRIC = [
    {"algorithm": "swing", "gpus": 16, "ports": 2, "message_bytes": 1e6},
    {"algorithm": "bruck_allgather", "gpus": 12, "ports": 2, "message_bytes": 1e6},
    {"algorithm": "swing_torus", "torus": "2x4", "gpus": 8, "ports": 4, "message_bytes": 1e6},
    {"algorithm": "binomial_broadcast", "gpus": 6, "ports": 2, "message_bytes": 1e6},
]


@pytest.mark.parametrize("keys", SYMMETRIC, ids=lambda keys: keys["algorithm"])
def test_groups_of_renumberings(keys):
    """Each is closed, keeps all patterns, moves every GPU; the last is the identity alone, Swing's first has as many
    members as there are GPUs (shifts by two and reflections)."""
    instance = made(**keys)
    patterns = patterns_of(instance)
    found = lifts(generators(patterns, instance.gpus), instance.gpus)
    assert [len(one.moved) for one in found] == sorted((len(one.moved) for one in found), reverse=True)
    assert len(found[-1].moved) == 1
    if keys["algorithm"] == "swing":
        assert len(found[0].moved) == instance.gpus
    everyone = np.arange(instance.gpus)
    for lift in found:
        group = {tuple(moved) for moved in lift.moved.tolist()}
        assert tuple(lift.moved[0]) == tuple(everyone)
        assert all(tuple(a[b]) in group for a, b in product(lift.moved, repeat=2))
        assert not np.any(lift.moved[1:] == everyone)
        for rows, moved in product(patterns, lift.moved):
            assert {(moved[u], moved[v], m) for u, v, m in rows.tolist()} == {tuple(row) for row in rows.tolist()}


@pytest.mark.parametrize("keys", SYMMETRIC, ids=lambda keys: keys["algorithm"])
def test_topologies_of_a_lift(keys):
    """Random targets make a topology with all ports in use (but for loops) that the renumberings keep; folding it gives
    targets of the same topology."""
    instance = made(**keys)
    random = np.random.default_rng(3)
    for lift in lifts(generators(patterns_of(instance), instance.gpus), instance.gpus):
        links = lift.links(lift.regular(instance.ports, random))
        for side in (0, 1):
            assert np.bincount(links[:, side], links[:, 2]).max() <= instance.ports
        for moved in lift.moved:
            images = {(moved[u], moved[v], count) for u, v, count in links.tolist()}
            assert images == {tuple(row) for row in links.tolist()}
        targets = lift.folded(links, instance.ports)
        assert targets is not None
        filled = lift.links(targets)
        for u, v, count in links.tolist():
            assert any((row[:2] == [u, v]).all() and row[2] >= count for row in filled)
        assert np.bincount(filled[:, 1], filled[:, 2]).max() <= instance.ports


def test_a_topology_without_the_symmetry_is_not_folded():
    group = np.array([[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]])
    lift = Lift(group, (group[1],))
    assert lift.folded(np.array([[0, 1, 1], [1, 0, 1], [2, 3, 1], [3, 2, 1]]), 1) is None
    ring = lift.folded(np.array([[0, 1, 1], [1, 2, 1], [2, 3, 1], [3, 0, 1]]), 1)
    assert ring is not None
    assert ring.tolist() == [[1]]


def seconds_by_definition(instance, links):
    """Of all steps without alpha on one topology, by the brute force's programs."""
    matrix = np.zeros((instance.gpus, instance.gpus), dtype=int)
    matrix[links[:, 0], links[:, 1]] = links[:, 2]
    shape = tuple(map(tuple, matrix.tolist()))
    total = 0.0
    for rows, size in zip(instance.demands, instance.bytes_per_pair.tolist(), strict=True):
        pairs, unit = tuple(map(tuple, rows.tolist())), size / instance.port_bandwidth
        least = brute_force.counted(shape, pairs)[0]
        if least == 0:
            return np.inf
        total += min(
            instance.hop_delay * limit + unit * brute_force.least_load(shape, pairs, limit)
            for limit in range(least, instance.gpus)
        )
    return total


@pytest.mark.parametrize("keys", [SYMMETRIC[1], SYMMETRIC[3]], ids=lambda keys: keys["algorithm"])
def test_the_search_rates_routings_that_exist(keys):
    """Its seconds are never below the concurrent flows' and rarely far above; unreachable is unreachable."""
    instance = made(**{**keys, "gpus": 6})
    columns = Columns(instance, RunOptions(solver="highs", method={}))
    last = len(instance.steps) - 1
    patterns = columns.heaviest_first(0, last)
    random, ratios = np.random.default_rng(1), []
    for level in range(min(3, len(columns.lifts_of(patterns)))):
        lift = columns.lifts_of(patterns)[level]
        demand = columns.demand(lift, patterns, 0, last)
        for _ in range(2):
            targets = lift.regular(instance.ports, random)
            found = seconds(lift, demand, targets, instance.hop_delay)
            exact = seconds_by_definition(instance, lift.links(targets))
            if np.isinf(exact):
                assert found >= 1e200
                continue
            assert found >= exact * (1 - EXACT)
            ratios.append(found / exact)
    assert np.median(ratios) < 1.05


def test_a_topology_joins_the_list_only_below_its_price():
    instance = made(algorithm="bruck_allgather", gpus=8, ports=2, message_bytes=4e6, reconfiguration_delay=1e-3)
    columns = Columns(instance, RunOptions(solver="highs", method={}))
    number, network = len(columns.ratings.topologies), kautz(8, 2)
    assert network is not None
    last = len(instance.steps) - 1
    assert not columns.ratings.add(Topology("again", network.links), (0, last), columns.value * 1e-3)
    assert len(columns.ratings.topologies) == number
    assert columns.ratings.add(Topology("again", network.links), (0, last), 1.0)
    assert len(columns.ratings.topologies) == number + 1
    assert columns.ratings.cost.shape == (last + 1, number + 1)
