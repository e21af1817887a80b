"""The folded LP relaxation: what it refutes is really infeasible, and its certificates are checked exactly."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import synth
from synth_models.xtree import FAMILY
from synth_models.xtree.bound import lower_bound
from synth_models.xtree.check import check_bound


def make(**parameters: object):
    return FAMILY.make({key: str(value) for key, value in parameters.items()})


@pytest.mark.parametrize(("side", "receive", "proven"), [(4, 4, 5), (5, 6, 7)])
def test_it_refutes_what_the_cuts_leave_open(side, receive, proven):
    """Receive bound ceil((N - 1) / 4): 15 / 4 -> 4, 24 / 4 = 6. The integer program proves the same (test_programs)."""
    instance = make(network="equimesh", rows=side, cols=side)
    assert lower_bound(instance)[0] == receive
    record = synth.solve(instance, "relaxation")
    assert record.bound == proven
    assert record.ok
    assert synth.check(record, instance).ok


def test_reduce_scatter_has_the_bound_of_the_reversed_allgather():
    instance = make(
        network="equimesh", rows=4, cols=4, collective="reduce_scatter", rings="even_up,odd_up,odd_up,even_up"
    )
    record = synth.solve(instance, "relaxation")
    assert record.bound == 5
    assert record.ok


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
    return instance, synth.solve(instance, "relaxation").packed


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
            "binding": "relaxation", "horizon": optimum,
            "capacity": rng.integers(0, 9, (arcs, optimum)),
            "conservation": rng.integers(-9, 9, (4, 4, optimum)),
            "causality": rng.integers(0, 9, (4, arcs, optimum)),
        }  # fmt: skip
        assert check_bound(instance, optimum + 1, certificate) != []


def test_allreduce_is_unsupported():
    record = synth.solve(make(network="line", nodes=3, collective="allreduce"), "relaxation")
    assert record["termination"] == "unsupported"


@pytest.mark.slow
def test_equimesh_8x8_with_one_chunk_needs_17_timesteps():
    """ceil(63 / 4) = 16 is refuted; pull has a schedule of 17."""
    instance = make(network="equimesh", rows=8, cols=8)
    record = synth.solve(instance, "ilp", time_limit=600)
    assert (record["termination"], record.value, record.bound) == ("optimal", 17, 17)
