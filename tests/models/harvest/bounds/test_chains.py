"""The bound of chains of steps, one port and a delay per circuit, against all sequences of permutations."""

from __future__ import annotations

import copy
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from models.harvest import delay_oracle as oracle
from models.harvest.instances import stated

import synth
from synth_models.harvest.bounds import chains
from synth_models.harvest.check.certificates import check_bound

FACTORS = {4: [[1, 2], [2, 1], [1, 2, 2, 1]], 6: [[1, 2], [1, 3], [3, 1], [1, 2, 1], [1, 3, 3, 1]]}


def topologies(gpus):
    """All permutations without fixed points: where every GPU sends and receives, one port leaves no others."""
    every = np.array(list(permutations(range(gpus))))
    return every[(every != np.arange(gpus)).all(axis=1)]


def step_cost(raw, step, moved):
    """Seconds of a step on a topology: every pair's route is forced."""
    hops, load = 0, np.zeros(raw["gpus"], dtype=int)
    for source, target in step["pairs"]:
        place, length = source, 0
        while place != target:
            load[place] += 1
            place, length = moved[place], length + 1
            if length > raw["gpus"]:
                return np.inf
        hops = max(hops, length)
    return raw["alpha"] + raw["delta"] * hops + step["bytes"] / raw["port_bandwidth"] * load.max()


def optimum(raw):
    """The least over all sequences of topologies, step by step."""
    shapes = topologies(raw["gpus"])
    apart = (shapes[:, None, :] != shapes[None, :, :]).sum(axis=2)
    change = raw["reconfiguration_delay"] + raw["delay_per_circuit"] * apart
    table = np.zeros(apart.shape)
    for most, seconds in reversed(raw.get("delay_by_ports", [])):  # the last row is for all ports
        table = np.where(2 * apart <= most, seconds, table)
    change = np.where(apart > 0, change + table, 0.0)
    best = np.zeros(len(shapes))
    for number, step in enumerate(raw["steps"]):
        if number:
            best = (best[:, None] + np.maximum(change - step.get("overlap", 0.0), 0.0)).min(axis=0)
        best = best + np.array([step_cost(raw, step, moved) for moved in shapes])
    return float(best.min())


def random_instance(gpus, number):
    """Powers of one cycle through all GPUs, or of several alike, in a random numbering of the GPUs."""
    random = np.random.default_rng([26, gpus, number])
    factors = FACTORS[gpus][random.integers(len(FACTORS[gpus]))]
    name = random.permutation(gpus)
    steps = [
        {
            "bytes": float(random.integers(0, 30)),
            "pairs": [[int(name[u]), int(name[(u + factor) % gpus])] for u in range(gpus)],
        }
        for factor in factors
    ]
    if random.random() < 0.3:
        steps[1]["overlap"] = float(random.choice([0.5, 2.0]))
    raw = {
        "gpus": gpus,
        "ports": 1,
        "port_bandwidth": 8.0,
        "alpha": float(random.choice([0.0, 0.5])),
        "delta": float(random.choice([0.0, 0.5, 1.0, 3.0])),
        "reconfiguration_delay": float(random.choice([0.0, 0.0, 1.0])),
        "delay_per_circuit": float(random.choice([0.125, 0.5, 1.0, 2.0])),
        "steps": steps,
    }
    if random.random() < 0.3:
        raw["delay_by_ports"] = [[gpus, 0.5], [2 * gpus, 3.0]]
    return raw


def compared(gpus, number):
    """Whether the bound of an instance is that of chains, and whether it meets the optimum."""
    raw = random_instance(gpus, number)
    best, instance = optimum(raw), stated(**raw)
    found = synth.solve(instance, method="bound")
    assert found.ok, found["verified"]["faults"]
    assert found["bound"] <= best * (1 + 1e-12)
    return "chains" in found.certificate, found["bound"] >= best * (1 - 1e-9)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("gpus", [4, 6])
def test_no_sequence_of_topologies_is_below(gpus):
    seen = [compared(gpus, number) for number in range(12)]
    assert any(chained and met for chained, met in seen)


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [4, 6])
def test_no_sequence_of_topologies_is_below_many_bounds(gpus):
    seen = [compared(gpus, number) for number in range(12, 200)]
    assert sum(chained for chained, _ in seen) > 20
    assert sum(chained and met for chained, met in seen) > 10


def test_this_oracle_agrees_with_the_other():
    """Which tries every matrix of link counts, with idle ports too."""
    for number in range(6):
        raw = random_instance(4, number)
        raw["steps"] = raw["steps"][:3]
        assert optimum(raw) == pytest.approx(oracle.optimum(raw), rel=1e-12)


def circuits_changed(gpus, one, hops, other, later, load):
    """Fewest links that differ between a topology for one shift and one for another, over all permutations."""

    def rated(shift):
        step = {"bytes": 0.0, "pairs": [[u, (u + shift) % gpus] for u in range(gpus)]}
        raw = {"gpus": gpus, "alpha": 0.0, "delta": 1.0, "port_bandwidth": 1.0}
        return np.array([step_cost(raw, step, moved) for moved in shapes])

    def loads(shift):
        step = {"bytes": 1.0, "pairs": [[u, (u + shift) % gpus] for u in range(gpus)]}
        raw = {"gpus": gpus, "alpha": 0.0, "delta": 0.0, "port_bandwidth": 1.0}
        return np.array([step_cost(raw, step, moved) for moved in shapes])

    shapes = topologies(gpus)
    before, after = shapes[rated(one) <= hops], shapes[(rated(other) <= later) & (loads(other) <= load)]
    if not len(after):
        return None
    return int((before[:, None, :] != after[None, :, :]).sum(axis=2).min())


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("gpus", "one", "other"), [(4, 1, 2), (6, 1, 2), (6, 1, 3)])
def test_circuits_in_which_topologies_must_differ(gpus, one, other):
    """Never more than all pairs of permutations say; the same where a pair of the ring's orbit is one cycle."""
    chain = chains.Chain(0, 1, False, gpus, gpus, [one, other])
    for hops in range(1, gpus):
        for later in range(1, gpus):
            for load in range(1, later + 1):
                least = circuits_changed(gpus, one, hops, other, later, load)
                ours = chain.changed(0, 1, hops, later, load)
                if least is not None:
                    assert ours is not None
                    assert ours <= least, (hops, later, load)
    assert chain.changed(0, 1, 1, 1, 1) == circuits_changed(gpus, one, 1, other, 1, 1) == gpus


def recursive_doubling(gpus):
    return [{"bytes": 50000.0 / shift, "shift": shift} for shift in (1, 2, 4, 8)[: gpus.bit_length() - 1]]


def by_circuits(steps, gpus, **more):
    fields = {"gpus": gpus, "ports": 1, "steps": steps, "reconfiguration_delay": 0.0, "delay_per_circuit": 3e-7}
    return stated(**fields | more)


def test_reduce_scatter_of_eight_is_proven():
    """6.45 us, the least over all sequences of permutations (``test_delays.py``)."""
    found = synth.solve(by_circuits(recursive_doubling(8), 8), method="bound")
    assert found.ok
    assert found["bound"] == pytest.approx(6.45e-6, rel=1e-9)


def damaged(certificate, **entry):
    changed = copy.deepcopy(certificate)
    changed["chains"][0] |= entry
    return changed


def test_damaged_certificates_are_refused():
    instance = by_circuits([*recursive_doubling(8), *recursive_doubling(8)[::-1]], 8)
    found = synth.solve(instance, method="bound")
    certificate, bound = found.certificate, found["bound"]
    assert [chain["descending"] for chain in certificate["chains"]] == [0, 1]
    assert not check_bound(instance, bound, certificate)
    units = certificate["chains"][0]["units"]
    unit = Fraction(1, 2) ** certificate["unit_exponent"]
    bad = [
        damaged(certificate, units=units + 1),
        damaged(certificate, units=-1),
        damaged(certificate, units=units * 2),
        damaged(certificate, last=3),
        damaged(certificate, last=6),
        damaged(certificate, descending=1),
        damaged(certificate, first=1),
        damaged(certificate, first=-1),
        damaged(certificate, last=2.5),
        certificate | {"chains": certificate["chains"][::-1]},
        certificate | {"chains": certificate["chains"] * 2},
        certificate | {"chains": [{}]},
        certificate | {"intervals": [{"first": 0, "last": 1, "rows": []}]},
    ]
    for number, one in enumerate(bad):
        assert check_bound(instance, bound, one), number
    assert check_bound(instance, bound * (1 + 1e-9), certificate)
    lower = damaged(certificate, units=units - 10**6)
    assert not check_bound(instance, float(Fraction(bound) - (10**6 + 1) * unit), lower)
    assert check_bound(instance, bound, lower)


def test_other_patterns_and_ports_are_no_chain():
    ring = {"bytes": 8.0, "shift": 1}
    for other in ({"bytes": 8.0, "shift": 3}, {"bytes": 8.0, "shift": 1}, {"bytes": 8.0, "pairs": [[0, 1]]}):
        assert not chains.chains(by_circuits([ring, other], 8))
    assert not chains.chains(by_circuits([ring, {"bytes": 8.0, "shift": 2}], 8, ports=2))
    assert len(chains.chains(by_circuits([ring, {"bytes": 8.0, "shift": 2}], 8))) == 1
    forged = {"unit_exponent": 60, "intervals": [], "chains": [{"first": 0, "last": 1, "descending": 0, "units": 1}]}
    for steps, more in (([ring, {"bytes": 8.0, "shift": 3}], {}), ([ring, {"bytes": 8.0, "shift": 2}], {"ports": 2})):
        assert check_bound(by_circuits(steps, 8, **more), 1e-9, forged)
