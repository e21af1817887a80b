"""The folded LP relaxation: what it refutes is really infeasible, and its certificates are checked exactly."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from models.xtree.cases import make

import synth
from synth.options import RunOptions
from synth.solvers import mathprog
from synth_models.xtree.bounds import relaxation
from synth_models.xtree.bounds.relaxation import refute
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.certificates import check_bound


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("side", "horizon"), [(4, 4), (5, 6)])
def test_it_refutes_what_cuts_leave_open(side, horizon):
    """Cuts prove ceil((N - 1) / 4): 15 / 4 -> 4, 24 / 4 = 6. That one more is needed follows from late arrivals too."""
    instance = make(network="equimesh", rows=side, cols=side)
    found = refute(instance.topology, 1, horizon, RunOptions())
    assert found.stretch > 1
    assert check_bound(instance, horizon + 1, found.certificate) == []
    assert lower_bound(instance)[0] == horizon + 1
    feasible = refute(instance.topology, 1, horizon + 1, RunOptions())
    assert feasible.certificate is None
    assert feasible.stretch <= 1 + 1e-6


@pytest.mark.long
def test_the_method_goes_beyond_all_counting_bounds():
    """Kautz network of 9 nodes and degree 2, C = 1: counting proves 8 / 2 = 4, the exact program needs 5."""
    instance = make(network="kautz", nodes=9, degree=2)
    assert lower_bound(instance)[0] == 4
    record = synth.solve(instance, "relaxation")
    assert (record.bound, record.ok) == (5, True)
    assert "relaxation" in record["bound_proof"]
    assert synth.check(record, instance).ok
    best = synth.solve(instance, "ilp", options={"relaxation": "off"})
    assert (best["termination"], best.value) == ("optimal", 5)


def test_reduce_scatter_is_refuted_on_the_reversed_network():
    """On the reversed Kautz network an allgather is this reduce-scatter played backwards; the links differ from the
    network's own, so certificates of one must not pass for the other."""
    scatter = make(network="kautz", nodes=9, degree=2, collective="reduce_scatter")
    record = synth.solve(scatter, "relaxation")
    assert record.ok
    assert record.bound <= synth.solve(scatter, "ilp").value
    gather = synth.solve(make(network="kautz", nodes=9, degree=2), "relaxation")
    assert check_bound(scatter, 5, gather.packed)


@pytest.mark.parametrize("kind", ["mesh", "equimesh", "torus", "ring", "kautz"])
def test_never_above_a_schedule(kind):
    sizes = {"ring": dict(nodes=5), "kautz": dict(nodes=6, degree=2)}.get(kind, dict(rows=2, cols=3))
    for chunks in (1, 2, 3):
        instance = make(network=kind, **sizes, chunks=chunks)
        best = synth.solve(instance, "ilp")
        assert best["termination"] == "optimal"
        assert synth.solve(instance, "relaxation").bound <= best.value


@pytest.fixture(scope="module")
def certified():
    instance = make(network="equimesh", rows=4, cols=4)
    return instance, refute(instance.topology, 1, 4, RunOptions()).certificate


def test_the_certificate_proves_no_more_than_it_says(certified):
    instance, certificate = certified
    assert check_bound(instance, 5, certificate) == []
    assert check_bound(instance, 6, certificate) != []
    stretched = dict(certificate, horizon=certificate["horizon"] + 1)
    assert check_bound(instance, 6, stretched) != []  # shapes no longer fit


@pytest.mark.parametrize("name", ["capacity", "conservation", "causality"])
def test_broken_certificates_are_refused(certified, name):
    instance, certificate = certified
    for change in (np.zeros_like, lambda a: -a - 1, lambda a: a[:-1], lambda a: a.astype(float)):
        broken = dict(copy.copy(certificate))
        broken[name] = change(np.asarray(certificate[name]))
        assert check_bound(instance, 5, broken) != []
    missing = {key: value for key, value in certificate.items() if key != name}
    assert check_bound(instance, 5, missing) != []


def test_a_certificate_of_another_network_is_refused(certified):
    _, certificate = certified
    other = make(network="torus", rows=4, cols=4)  # takes 4 timesteps: no certificate for 5 may pass
    assert check_bound(other, 5, certificate) != []


def test_no_multipliers_refute_a_feasible_horizon():
    """Random multipliers against a horizon that has a schedule (EquiMesh 2 x 2: its diameter is 2, and 2 suffice)."""
    instance = make(network="equimesh", rows=2, cols=2)
    optimum = int(synth.solve(instance, "ilp").value)
    arcs = len(instance.topology.arcs[0])
    rng = np.random.default_rng(3)
    for _ in range(300):
        certificate = {
            "binding": "relaxation",
            "horizon": optimum,
            "capacity": rng.integers(0, 9, (arcs, optimum)),
            "conservation": rng.integers(-9, 9, (4, 4, optimum)),
            "causality": rng.integers(0, 9, (4, arcs, optimum)),
        }
        assert check_bound(instance, optimum + 1, certificate) != []


def test_a_certificate_that_rounding_breaks_is_rounded_finer_or_dropped(monkeypatch):
    """Prices that sum to one round to nothing in units of 1000: they prove nothing, though the LP's objective says
    that 4 timesteps would need more capacity than there is. In units of 10^-10 they do prove it."""
    instance = make(network="kautz", nodes=9, degree=2)
    monkeypatch.setattr(relaxation, "SCALES", (0.001, 10**10))
    finer = refute(instance.topology, 1, 4, RunOptions())
    assert check_bound(instance, 5, finer.certificate) == []
    monkeypatch.setattr(relaxation, "SCALES", (0.001, 0.002))
    broken = refute(instance.topology, 1, 4, RunOptions())
    assert broken.stretch > 1 + 1e-6
    assert broken.certificate is None
    alone = synth.solve(instance, "relaxation")
    assert alone.bound == 4
    assert "no rounding of its multipliers proves it" in alone["message"]
    record = synth.solve(instance, "ilp", options={"warm_start": "off"})
    assert (record["termination"], record.value, record.bound) == ("optimal", 5, 5)
    assert record["bound_proof"] == "HiGHS proves 4 timesteps infeasible"


@pytest.mark.long(after=2)
@pytest.mark.parametrize("objective", [1 + 2e-6, 1.5])
@pytest.mark.parametrize("dual", [0.0, -1.0, 1e300, float("nan"), float("inf")])
def test_an_lp_that_is_wrong_raises_no_bound(objective, dual, monkeypatch):
    """Whatever a solver says of the LP, a horizon with a schedule is not refuted (5 timesteps, exactly)."""
    solved = mathprog.solve_lp

    def wrong(model, options, rows, **words):
        result, duals = solved(model, options, rows, **words)
        return replace(result, objective=objective), [[dual or value for value in row] for row in duals]

    instance = make(network="kautz", nodes=9, degree=2)
    monkeypatch.setattr(mathprog, "solve_lp", wrong)
    found = refute(instance.topology, 1, 5, RunOptions())
    assert (found.stretch, found.certificate) == (objective, None)
    assert synth.solve(instance, "relaxation").bound <= 5
    record = synth.solve(instance, "ilp", options={"warm_start": "off"})
    assert (record["termination"], record.value, record.bound) == ("optimal", 5, 5)


def test_allreduce_is_unsupported():
    record = synth.solve(make(network="line", nodes=3, collective="allreduce"), "relaxation")
    assert record["termination"] == "unsupported"


@pytest.mark.slow
def test_equimesh_8x8_with_one_chunk_needs_17_timesteps():
    """Cuts prove ceil(63 / 4) = 16; the LP refutes 16, as does counting late arrivals; pull has a schedule of 17."""
    instance = make(network="equimesh", rows=8, cols=8)
    found = refute(instance.topology, 1, 16, RunOptions(time_limit_s=600))
    assert check_bound(instance, 17, found.certificate) == []
    record = synth.solve(instance, "ilp")
    assert (record["termination"], record.value, record.bound) == ("optimal", 17, 17)
