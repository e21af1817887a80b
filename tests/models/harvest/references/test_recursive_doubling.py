"""The closed form for recursive doubling against hand arithmetic, all partitions, all permutations and `candidates`."""

from __future__ import annotations

from functools import cache
from itertools import pairwise, permutations

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.harvest.instances import made

import synth
from synth.errors import UnsupportedError
from synth.family import defaults_for, get_family
from synth.options import RunOptions
from synth_models.harvest.parts.ratings import Ratings
from synth_models.harvest.parts.shortest_path import shortest_schedule
from synth_models.harvest.references import recursive_doubling as closed_form
from synth_models.harvest.references.algorithm_1 import front

HALVES = {"both": closed_form.WHOLE, "reduce_scatter": closed_form.REDUCE_SCATTER, "allgather": closed_form.ALLGATHER}
BANDWIDTH = 100e9


def make(gpus=8, half="both", message=2.0**20, alpha=5e-7, delta=5e-7, change=1e-5, **more):
    times = {"alpha": alpha, "delta": delta, "reconfiguration_delay": change}
    return made(
        **{"algorithm": "recursive_doubling", "gpus": gpus, "ports": 1, "message_bytes": message, "half": half}
        | times
        | more
    )


def exponents(stages, half):
    up = list(range(stages))
    return {"both": up + up[::-1], "reduce_scatter": up, "allgather": up[::-1]}[half]


def ring_costs(gpus, half, message, alpha, delta):
    """cost[i][k]: seconds of step i on the ring u -> u + k, k = 1 … gpus - 1, by walking; inf where unreachable."""
    costs = []
    for e in exponents(gpus.bit_length() - 1, half):
        row = []
        for k in range(1, gpus):
            at, hops = k % gpus, 1
            while at != (1 << e) % gpus and hops <= gpus:
                at, hops = (at + k) % gpus, hops + 1
            size = message / (2 << e) / BANDWIDTH
            row.append(alpha + delta * hops + size * hops if hops <= gpus else np.inf)
        costs.append(row)
    return costs


def best_of_all_partitions(costs, change):
    """Every way to cut the steps into intervals, every ring for every interval."""
    steps = len(costs)
    table = np.array(costs)
    best = np.inf
    for cuts in range(1 << (steps - 1)):
        ends = [i + 1 for i in range(steps - 1) if cuts >> i & 1]
        bounds = [0, *ends, steps]
        total = sum(table[a:b].sum(axis=0).min() for a, b in pairwise(bounds))
        best = min(best, total + change * len(ends))
    return best


times = st.one_of(st.just(0.0), st.floats(1e-9, 1e-3))


@settings(max_examples=some(40), deadline=None)
@given(
    st.sampled_from([4, 8, 16]),
    st.sampled_from(sorted(HALVES)),
    st.floats(1.0, 1e10),
    times,
    times,
    st.one_of(times, st.floats(1e-8, 1e-2)),
)
def test_equals_every_partition_and_candidates(gpus, half, message, alpha, delta, change):
    seconds, rings = closed_form.best_rings(
        gpus.bit_length() - 1, HALVES[half], message / BANDWIDTH, alpha, delta, change
    )
    costs = ring_costs(gpus, half, message, alpha, delta)
    assert seconds == pytest.approx(best_of_all_partitions(costs, change), rel=1e-9, abs=1e-15)
    own = sum(costs[i][(1 << ring) - 1] for i, ring in enumerate(rings)) + change * np.count_nonzero(np.diff(rings))
    assert own == pytest.approx(seconds, rel=1e-9, abs=1e-15)
    instance = make(gpus, half, message, alpha, delta, change)
    rated = Ratings(instance, RunOptions())
    assert rated.settled.all()
    assert shortest_schedule(rated.cost, change)[0] == pytest.approx(seconds, rel=1e-9, abs=1e-15)


@cache
def all_permutations(gpus):
    """hops and largest load of every shift 2^e on every permutation topology, both (log2 gpus, permutations)."""
    topologies = np.array(list(permutations(range(gpus))))
    everyone = np.arange(len(topologies))
    hops, loads = [], []
    for e in range(gpus.bit_length() - 1):
        longest = np.zeros(len(topologies))
        load = np.zeros(topologies.shape)
        for u in range(gpus):
            at, target = np.full(len(topologies), u), (u + (1 << e)) % gpus
            length = np.zeros(len(topologies))
            for _ in range(gpus):
                going = at != target
                load[everyone[going], at[going]] += 1
                length += going
                at = np.where(going, topologies[everyone, at], at)
            length[at != target] = np.inf
            longest = np.maximum(longest, length)
        hops.append(longest)
        loads.append(load.max(axis=1))
    return np.array(hops), np.array(loads)


@settings(max_examples=some(25), deadline=None)
@given(
    st.sampled_from([4, 8]),
    st.sampled_from(sorted(HALVES)),
    st.floats(1.0, 1e10),
    times,
    times,
    st.one_of(times, st.floats(1e-8, 1e-2)),
)
def test_observation_4_no_permutation_is_better(gpus, half, message, alpha, delta, change):
    """With one port every topology is a permutation: the closed form is the optimum over all 24 and all 40,320."""
    hops, loads = all_permutations(gpus)
    chosen = exponents(gpus.bit_length() - 1, half)
    size = np.array([message / (2 << e) / BANDWIDTH for e in chosen])
    reached = np.isfinite(hops[chosen])
    far, load = np.where(reached, hops[chosen], 0), loads[chosen]
    cost = np.where(reached, alpha + delta * far + size[:, None] * load, np.inf)
    seconds, _ = closed_form.best_rings(gpus.bit_length() - 1, HALVES[half], message / BANDWIDTH, alpha, delta, change)
    assert shortest_schedule(cost, change)[0] == pytest.approx(seconds, rel=1e-9, abs=1e-15)


def test_hand_arithmetic_equation_8():
    """n = 8, reduce-scatter, no cut: alpha*3 + delta*7 + beta*m*3/2 = 1.5 + 3.5 + 1.5*8 = 17 us for m/b = 8 us."""
    seconds, rings = closed_form.best_rings(3, closed_form.REDUCE_SCATTER, 8e-6, 5e-7, 5e-7, 1.0)
    assert seconds == pytest.approx(17e-6)
    assert rings.tolist() == [0, 0, 0]


def test_hand_arithmetic_across_the_middle():
    """n = 8, both halves, alpha = delta = 0, m/b = 8, a change costs 3. One ring costs 6 * 4 = 24. Rings 0, 0 / 1, 1, 1
    / 0 cost 4 + 4 + 2 + 2 + 2 + 4 = 18 and two changes; 0 / 1, 1, 1, 1 / 0 costs 16 and two changes, 22 in all."""
    seconds, rings = closed_form.best_rings(3, closed_form.WHOLE, 8.0, 0.0, 0.0, 3.0)
    assert seconds == pytest.approx(22.0)
    assert rings.tolist() == [0, 1, 1, 1, 1, 0]


def test_no_delay_is_bvn_and_a_long_one_is_static():
    free = make(16, change=0.0)
    value = synth.solve(free, "recursive_doubling_closed_form").value
    assert value == pytest.approx(synth.solve(free, "bvn").value, rel=1e-12)
    slow = make(16, change=1.0)
    assert synth.solve(slow, "recursive_doubling_closed_form").value == pytest.approx(
        synth.solve(slow, "static_ring").value, rel=1e-12
    )


def test_cost_grows_with_the_delay_and_agrees_with_the_front():
    instance = make(16)
    table = front(Ratings(instance, RunOptions()).cost)
    before = 0.0
    for change in np.geomspace(1e-8, 1e-2, 13):
        seconds, _ = closed_form.best_rings(4, 0, 2.0**20 / BANDWIDTH, 5e-7, 5e-7, float(change))
        k = table.best(float(change))
        assert seconds == pytest.approx(table.time[k] + k * change, rel=1e-12)
        assert seconds >= before
        before = seconds


@pytest.mark.parametrize("half", sorted(HALVES))
@pytest.mark.parametrize("latency", ["on", "off"])
def test_method_is_checked_and_equals_candidates(half, latency):
    instance = make(16, half, 2.0**22, latency=latency)
    record = synth.solve(instance, "recursive_doubling_closed_form")
    assert record["verified"]["ok"]
    assert "recursive_doubling_closed_form" in defaults_for(get_family("harvest"), instance)
    shape = closed_form.shape_of(instance)
    assert shape.half == HALVES[half]
    assert shape.message_bytes == pytest.approx(2.0**22)
    assert record.value == pytest.approx(synth.solve(instance, "candidates").value, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"ports": 2}, "one port"),
        ({"algorithm": "bruck_allgather"}, "not those of recursive doubling"),
        ({"direction": "backwards"}, "forwards"),
        ({"gpus": 6, "algorithm": "ring"}, "power of two"),
    ],
)
def test_anything_else_is_refused(change, word):
    with pytest.raises(UnsupportedError, match=word):
        closed_form.shape_of(make(**change))
    assert "recursive_doubling_closed_form" not in defaults_for(get_family("harvest"), make(**change))


def test_other_bytes_are_refused():
    instance = make(8)
    steps = tuple(
        step.model_copy(update={"bytes": step.bytes * (1 + (i == 2))}) for i, step in enumerate(instance.steps)
    )
    with pytest.raises(UnsupportedError, match="bytes"):
        closed_form.shape_of(instance.model_copy(update={"steps": steps}))
