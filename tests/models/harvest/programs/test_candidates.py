"""Schedules: dynamic programs against every partition, extremes of the reconfiguration delay, references, records."""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise, product
from pathlib import Path

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.harvest.instances import made

import synth
from synth.family import defaults_for
from synth.instance import parse
from synth.method import load
from synth.options import RunOptions
from synth_models.harvest import FAMILY
from synth_models.harvest.parts.flows.profiles import profile, step_time
from synth_models.harvest.parts.ratings import Ratings
from synth_models.harvest.parts.shortest_path import shortest_schedule
from synth_models.harvest.references.algorithm_1 import front, interval_times

ROOT = Path(__file__).resolve().parents[4]
INSTANCES = sorted((ROOT / "instances" / "harvest").glob("*.json"))
SMALL = [path for path in INSTANCES if "-64-" not in path.name]
LONG = ("alltoall-direct-16-p2", "demand-6-p2", "moe-8-p2", "swing-torus-16-4x4-p4")  # thousands of linear programs


def value(instance, method, **options):
    record = synth.solve(instance, method=method, options={k: str(v) for k, v in options.items()})
    assert record.ok, record["verified"]["faults"]
    assert record.value is not None, record["message"]
    return record.value


def partitions(steps):
    for size in range(steps):
        for cuts in combinations(range(1, steps), size):
            yield [0, *cuts, steps]


costs = st.integers(1, 6).flatmap(
    lambda steps: st.integers(1, 4).flatmap(
        lambda topologies: st.lists(
            st.lists(st.floats(0, 10), min_size=topologies, max_size=topologies), min_size=steps, max_size=steps
        )
    )
)


@settings(max_examples=some(60), deadline=None)
@given(costs, st.floats(0, 5))
def test_shortest_path_and_algorithm_1_equal_every_assignment(table, delay):
    cost = np.array(table)
    steps, topologies = cost.shape
    brute = min(
        sum(cost[i, g] for i, g in enumerate(chosen)) + delay * sum(a != b for a, b in pairwise(chosen))
        for chosen in product(range(topologies), repeat=steps)
    )
    total, chosen = shortest_schedule(cost, delay)
    changes = int((chosen[1:] != chosen[:-1]).sum())
    assert total == pytest.approx(brute)
    assert cost[np.arange(steps), chosen].sum() + delay * changes == pytest.approx(total)
    found = front(cost)
    k = found.best(delay)
    assert found.time[k] + delay * k == pytest.approx(brute)


@settings(max_examples=some(40), deadline=None)
@given(costs)
def test_front_is_the_best_of_all_partitions_for_every_k(table):
    cost = np.array(table)
    steps = len(cost)
    time, topology = interval_times(cost)
    found = front(cost)
    for k in range(steps):
        brute = min(
            sum(cost[a:b].sum(axis=0).min() for a, b in pairwise(cuts))
            for cuts in partitions(steps)
            if len(cuts) == k + 2
        )
        assert found.time[k] == pytest.approx(brute)
        assert cost[np.arange(steps), found.topology[k]].sum() == pytest.approx(brute)
        assert (found.topology[k][1:] != found.topology[k][:-1]).sum() <= k
    front_times = found.time[found.pareto()]
    assert np.all(np.diff(front_times) < 0)
    assert time[0, steps] == pytest.approx(cost.sum(axis=0).min())
    assert cost[:, topology[0, steps]].sum() == pytest.approx(time[0, steps])


@cache
def rated(gpus, ports, algorithm):
    """Profiles of every pattern on every candidate; they do not depend on sizes and times."""
    instance = made(algorithm=algorithm, gpus=gpus, ports=ports, message_bytes=1)
    found = Ratings(instance, RunOptions()).topologies
    return found, [[profile(pairs, one.links, gpus) for one in found] for pairs in instance.pairs]


def equals_every_partition(gpus, algorithm, ports, size, alpha, delta, delay):
    """Everything rated by itself, no estimates: each interval takes its best candidate, over all 2^(s-1) partitions."""
    instance = made(
        algorithm=algorithm,
        gpus=gpus,
        ports=ports,
        message_bytes=size,
        alpha=alpha,
        delta=delta,
        reconfiguration_delay=delay,
    )
    _, table = rated(gpus, ports, algorithm)
    cost = np.array([[step_time(instance, i, one)[0] for one in row] for i, row in enumerate(table)])
    spans = list(combinations(range(len(cost) + 1), 2))
    interval = {(a, b): cost[a:b].sum(axis=0).min() for a, b in spans}
    best = min(
        sum(interval[span] for span in pairwise(cuts)) + delay * (len(cuts) - 2) for cuts in partitions(len(cost))
    )
    assert value(instance, "candidates") == pytest.approx(best, rel=1e-6)
    assert value(instance, "dp_k") == pytest.approx(best, rel=1e-6)


random_parameters = given(
    gpus=st.sampled_from([4, 8]),
    algorithm=st.sampled_from(["recursive_doubling", "swing", "bruck_alltoall", "binomial_broadcast"]),
    ports=st.sampled_from([1, 2]),
    size=st.floats(1e3, 1e9),
    alpha=st.floats(0, 1e-5),
    delta=st.floats(0, 1e-5),
    delay=st.floats(0, 1e-3),
)


@settings(max_examples=some(15), deadline=None)
@random_parameters
def test_candidates_equal_every_partition(gpus, algorithm, ports, size, alpha, delta, delay):
    equals_every_partition(gpus, algorithm, ports, size, alpha, delta, delay)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@random_parameters
def test_candidates_equal_every_partition_of_16(gpus, algorithm, ports, size, alpha, delta, delay):
    equals_every_partition(4 * gpus if gpus == 4 else gpus, algorithm, ports, size, alpha, delta, delay)


ALGORITHMS = [
    {"algorithm": "recursive_doubling", "gpus": 16, "ports": 1},
    {"algorithm": "swing", "gpus": 8, "ports": 2},
    {"algorithm": "bruck_alltoall", "gpus": 9, "ports": 2, "radix": 3, "sends": 2},
    {"algorithm": "alltoall_direct", "gpus": 8, "ports": 1},
    {"algorithm": "binary_broadcast", "gpus": 11, "ports": 2},
    {"algorithm": "swing_torus", "torus": "4x4", "gpus": 16, "ports": 4},
]


@pytest.mark.long(after=1)
@pytest.mark.parametrize("parameters", ALGORITHMS, ids=lambda p: p["algorithm"])
def test_extremes_and_monotony_in_the_reconfiguration_delay(parameters):
    """Free changes: no schedule is faster than BvN where its topologies serve each step in the least time possible.
    Dear changes: one topology throughout. In between the time never falls as the delay grows."""
    found = [
        synth.solve(made(message_bytes=1e6, **(parameters | {"reconfiguration_delay": delay})), method="candidates")
        for delay in (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 10.0)
    ]
    times = [record.value for record in found]
    assert times == sorted(times)
    assert found[-1]["verified"]["facts"]["reconfigurations"] == 0
    free = made(message_bytes=1e6, **(parameters | {"reconfiguration_delay": 0.0}))
    direct = value(free, "bvn")
    assert times[0] <= direct * (1 + 1e-12)
    if parameters["algorithm"] != "binary_broadcast":  # a level of one pair may be served by two ports, or by routes
        least = sum(
            free.alpha + free.delta + size * max(np.bincount(pairs[:, 0])) / (free.ports * free.port_bandwidth)
            for pairs, size in zip(free.pairs, free.bytes_per_pair, strict=True)
        )
        assert times[0] == pytest.approx(direct, rel=1e-9)
        assert direct == pytest.approx(least, rel=1e-9)


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] * (p.stem in LONG)) for p in SMALL]
)
def test_candidates_beat_the_references_on_shipped_instances(path):
    instance = synth.read(path)
    best = value(instance, "candidates")
    assert value(instance, "dp_k") == pytest.approx(best, rel=1e-9)
    for method in defaults_for(FAMILY, instance):
        if method in ("static_ring", "static_torus", "static_kautz", "bvn", "greedy"):
            assert value(instance, method) >= best * (1 - 1e-9)


def test_static_ring_by_hand():
    """n = 4, one port, m = 4e6 bytes at 1e11 bytes/s; shifts 1, 2, 2, 1 with 2e6, 1e6, 1e6, 2e6 bytes, loads 1, 2, 2,
    1 take 20 us each; 4 alpha = 2 us; 6 hops = 3 us."""
    instance = made(algorithm="recursive_doubling", gpus=4, ports=1, message_bytes=4e6)
    assert value(instance, "static_ring") == pytest.approx(85e-6)


def test_static_ring_serves_both_halves_one_way_only_when_forwards():
    forwards = made(algorithm="recursive_doubling", gpus=8, ports=1, message_bytes=1e6)
    backwards = made(algorithm="recursive_doubling", gpus=8, ports=1, message_bytes=1e6, direction="backwards")
    assert value(forwards, "static_ring") < value(backwards, "static_ring")
    two = [
        made(algorithm="recursive_doubling", gpus=8, ports=2, message_bytes=1e6, direction=d)
        for d in ("forwards", "backwards")
    ]
    assert value(two[0], "static_ring") == pytest.approx(value(two[1], "static_ring"))


@pytest.mark.parametrize("ports", [1, 2])
def test_best_single_candidate_for_the_reduce_scatter_of_8(ports):
    """No latency, no reconfiguration: the shift-1 ring costs 1/2 + 2/4 + 4/8 = 1.5 beta m with one port; with two ports
    beta is per node, and doubled links do the same."""
    instance = made(
        algorithm="recursive_doubling",
        gpus=8,
        ports=ports,
        half="reduce_scatter",
        message_bytes=8e5,
        alpha=0,
        delta=0,
        latency="off",
        reconfiguration_delay=1,
    )
    assert value(instance, "candidates") <= 1.5 * 8e5 / (ports * 1e11) * (1 + 1e-9)


def test_out_of_time_leaves_ratings_out_and_still_finds_a_schedule():
    """Swing with 2 ports needs programs; with no time left only those without which a step could not run are solved."""
    instance = made(algorithm="swing", gpus=16, ports=2, message_bytes=1e6)
    best = value(instance, "candidates")
    late = RunOptions(time_limit_s=1e-9)
    outcome = FAMILY.methods["candidates"].load()(instance, late)
    assert "left out for lack of time" in outcome.message
    verdict = load(FAMILY.check)(instance, outcome.solution)
    assert verdict.ok
    assert verdict.value >= best * (1 - 1e-9)


def test_dp_k_takes_the_number_of_reconfigurations_asked_for():
    instance = made(algorithm="recursive_doubling", gpus=16, ports=1, message_bytes=1e6)
    runs = [synth.solve(instance, method="dp_k", options={"reconfigurations": str(k)}) for k in range(6)]
    facts = [run["verified"]["facts"] for run in runs]
    times = [fact["alpha_s"] + fact["delta_s"] + fact["bandwidth_s"] for fact in facts]
    assert all(fact["reconfigurations"] <= k for k, fact in enumerate(facts))
    assert times == sorted(times, reverse=True)
    assert min(run.value for run in runs) == pytest.approx(value(instance, "candidates"))


def test_static_references_say_where_they_do_not_apply():
    instance = made(algorithm="recursive_doubling", gpus=8, ports=1, message_bytes=1e6)
    for method in ("static_torus", "static_kautz"):
        record = synth.solve(instance, method=method)
        assert record["termination"] == "unsupported"
        assert record.value is None


def test_a_candidate_of_the_instance_is_used():
    """Shifts 1 and 3 in turn, dear changes, two ports: the file's links 1 and 3 serve both in one hop."""
    raw = made(algorithm="recursive_doubling", gpus=8, ports=2, message_bytes=1e6).model_dump(mode="json")
    links = [[u, (u + shift) % 8, 1] for u in range(8) for shift in (1, 3)]
    raw |= {"steps": [{"bytes": 1e6, "shift": shift} for shift in (1, 3)], "reconfiguration_delay": 1.0}
    instance = parse(raw | {"candidates": [{"name": "mine", "links": links}]}, load(FAMILY.instance), "test")
    ratings = Ratings(instance, RunOptions())
    assert ratings.topologies[0].name == "mine"
    alone = Ratings(instance, RunOptions(), ratings.topologies[:1])
    chosen = alone.settle(lambda cost: (cost.argmin(axis=1), [(0, 0), (1, 0)]))
    verdict = load(FAMILY.check)(instance, alone.schedule(chosen))
    assert verdict.ok
    assert verdict.value <= 2 * (5e-7 + 5e-7 + 1e-5) * (1 + 1e-9)
    assert value(instance, "candidates") <= verdict.value * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in INSTANCES if p not in SMALL], ids=lambda p: p.stem)
def test_candidates_at_64(path):
    instance = synth.read(path)
    best = value(instance, "candidates")
    assert value(instance, "bvn") >= best * (1 - 1e-9)
    assert value(instance, "static_ring") >= best * (1 - 1e-9)
