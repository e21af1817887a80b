"""Machines that nobody would draw: bandwidths and latencies that are no round numbers, groups of unlike links, one-way
links, all collectives and ways of switching. Every method's answer holds, and no bound is above any schedule.

Found by such machines: clocks without room for odd bandwidths, durations beyond 64 bits on links that nothing uses, and
cuts backwards in time through groups of links of unlike latency, which promised more than was so.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from examples import some_of

import synth
from synth.errors import InputError
from synth.family import get_family
from synth.instance import parse
from synth_models.fabric.instance import FabricInstance

COLLECTIVES = ["allgather", "reduce_scatter", "allreduce", "alltoall", "broadcast", "reduce", "gather", "scatter"]
SWITCHING: list[dict[str, Any]] = [
    {"mode": "cut_through"},
    {"mode": "cut_through", "multicast": True},
    {"mode": "store_and_forward", "copies": True},
    {"mode": "store_and_forward", "buffer": True},
]
REFERENCES = ("pull", "forest", "flow", "direct", "ring", "bruck", "tacos")


def a_machine(rng: random.Random) -> FabricInstance | None:
    """A random instance of 2 to 4 ranks and up to 2 switches, or None where the ranks cannot reach each other."""
    ranks, switches = rng.choice([2, 3, 4]), rng.choice([0, 1, 2])
    links = []
    for u in range(ranks + switches):
        for v in range(ranks + switches):
            if u != v and rng.random() < (0.9 if (u >= ranks) != (v >= ranks) else 0.5):
                bandwidth = rng.choice([rng.uniform(1e8, 5e11), 10 ** rng.uniform(-2, 17), 25e9, 1e10 / 3])
                latency = rng.choice([0.0, 10 ** rng.uniform(-12, 5), 7e-7])
                links.append({"src": u, "dst": v, "bandwidth": bandwidth, "latency": latency})
                if rng.random() < 0.3:
                    links[-1]["group"] = rng.choice("ab")
    raw = {
        "family": "fabric", "name": "odd", "source": "random",
        "collective": rng.choice(COLLECTIVES), "bytes": ranks * rng.choice([1, 7, 65536, 10**6 + 1, 2**30]),
        "switching": rng.choice(SWITCHING),
        "network": {"kind": "links", "nodes": ranks + switches, "switches": list(range(ranks, ranks + switches)),
                    "links": links},
    }  # fmt: skip
    try:
        return parse(raw, FabricInstance, "odd")
    except InputError:
        return None


@pytest.mark.long
@pytest.mark.parametrize("seed", some_of(range(8)))
def test_every_method_answers_and_no_bound_is_above(seed: int) -> None:
    rng, seen = random.Random(seed), 0
    while seen < 5:
        instance = a_machine(rng)
        if instance is None:
            continue
        seen += 1
        values, bound = [], 0.0
        for method in ("bound", *rng.sample(REFERENCES, 3)):
            record = synth.solve(instance, method, time_limit=60)
            assert record["termination"] in ("finished", "optimal", "unsupported"), (method, record["message"])
            assert record["verified"]["ok"], (method, record["verified"]["faults"], instance.to_json())
            bound = max(bound, record.bound or 0.0)
            values += [record.value] if record.value is not None else []
        assert all(bound <= value * (1 + 1e-15) for value in values), (bound, values, instance.to_json())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 16))
def test_of_all_methods(seed: int) -> None:
    """The same with all methods at once; programs are stopped soon, and their words must hold all the same."""
    rng = random.Random(seed)
    methods = [name for name in get_family("fabric").methods if name != "imported"]  # that one asks for a file
    for instance in filter(None, (a_machine(rng) for _ in range(6))):
        found = {name: synth.solve(instance, name, time_limit=1) for name in methods}
        for name, record in found.items():
            assert record["verified"]["ok"], (name, record["verified"]["faults"], instance.to_json())
        bound = max(record.bound or 0.0 for record in found.values())
        values = [record.value for record in found.values() if record.value is not None]
        assert all(bound <= value * (1 + 1e-15) for value in values), (bound, values, instance.to_json())


def machine_of(bandwidth: float, latency: float) -> dict[str, Any]:
    links = [{"src": u, "dst": 1 - u, "bandwidth": bandwidth, "latency": latency} for u in (0, 1)]
    return {
        "family": "fabric", "name": "odd", "source": "by hand", "collective": "broadcast", "bytes": 1,
        "network": {"kind": "links", "nodes": 2, "links": links},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("bandwidth", "latency", "words"),
    [
        (1e-4, 0.0, "the bandwidth must be in 0.001..1e+18 bytes/s"),
        (1e19, 0.0, "the bandwidth must be in 0.001..1e+18 bytes/s"),
        (1e9, 2e6, "the latency must be at most 1e+06 s"),
    ],
)
def test_numbers_that_no_machine_has_are_refused(bandwidth: float, latency: float, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(machine_of(bandwidth, latency), FabricInstance, "odd")
    assert words in str(caught.value)


def test_a_schedule_longer_than_any_clock_is_told() -> None:
    """2^40 bytes at 0.001 bytes/s are 35 million years."""
    instance = parse(machine_of(1e-3, 0.0) | {"bytes": 2**40}, FabricInstance, "odd")
    record = synth.solve(instance, "direct", time_limit=5)
    assert record["termination"] == "unsupported"
    assert "36 years" in record["message"]


def test_sums_that_need_a_finer_clock_than_a_record_states_are_lent() -> None:
    """1e18 bytes/s want 1e18 ticks a second, and an allreduce by `continuous` sixteen times as many."""
    keys = {"network": "line", "nodes": 4, "bandwidth": 1e18, "latency": 2.5e-6, "collective": "allreduce"}
    record = synth.solve(synth.make("fabric", **keys, bytes=2**20), "continuous", time_limit=10)
    assert record["verified"]["ok"], record["verified"]["faults"]
    assert record.value is not None
    assert record["made_by"] != ["continuous"]


def test_a_schedule_of_very_many_latencies_is_packed_by_others() -> None:
    """At 3 bytes/s the end is 10^14 latencies away: trees over time would need a bin for each."""
    keys = {"network": "full", "nodes": 3, "bandwidth": 3.0, "latency": 7e-7, "collective": "broadcast"}
    record = synth.solve(synth.make("fabric", **keys, bytes=3 * 10**8), "continuous", time_limit=10)
    assert record.ok, record["verified"]["faults"]
    assert record["termination"] != "out_of_memory"
    assert record.value is not None
