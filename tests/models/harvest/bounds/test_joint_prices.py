"""Prices of a whole interval from one program: valid, nearly as good as row after row, and with many GPUs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from models.harvest.bounds.test_bounds import best_by_enumeration, made, proven

from synth.options import RunOptions
from synth_models.harvest.bounds import rate_prices
from synth_models.harvest.bounds import sequences as bound_method
from synth_models.harvest.bounds.interval import RATES, TREES, Patterns, Relaxation
from synth_models.harvest.bounds.joint_prices import JointPrices
from synth_models.harvest.check.certificate_rows import Facts
from synth_models.harvest.check.certificates import check_bound
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.programs import candidates

CASES = [("bruck_allgather", 8, 2), ("swing", 8, 2), ("bruck_alltoall", 16, 2), ("bruck_allgather", 16, 3)]


@pytest.fixture
def jointly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the joint program makes prices, on few GPUs too."""
    monkeypatch.setattr(rate_prices, "JOINT_ABOVE", 3)
    monkeypatch.setattr(rate_prices, "GPUS_UP_TO", 0)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("algorithm", "gpus", "ports"), CASES)
@pytest.mark.usefixtures("jointly")
def test_it_is_verified_and_never_above_a_schedule(algorithm: str, gpus: int, ports: int) -> None:
    for delay in (1e-6, 1e-3):
        instance = made(algorithm, gpus, ports, delay)
        value = check_schedule(instance, candidates.solve(instance, RunOptions()).solution).value
        assert value is not None
        assert proven(instance) <= value * (1 + 1e-12)


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["bruck_allgather", "swing", "recursive_doubling"])
@pytest.mark.usefixtures("jointly")
def test_four_gpus_never_above_the_best_of_all_topologies(algorithm: str) -> None:
    for delay in (1e-6, 1e-5, 1e-3):
        instance = made(algorithm, 4, 2, delay)
        assert proven(instance) <= best_by_enumeration(instance)[1] * (1 + 1e-12)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("algorithm", "gpus", "ports"), CASES)
def test_one_bundle_is_worth_nearly_all_rows(
    monkeypatch: pytest.MonkeyPatch, algorithm: str, gpus: int, ports: int
) -> None:
    """On one topology for all steps: at least 98 % of what the rows one after the other prove beyond trees."""
    instance = made(algorithm, gpus, ports, 1e-3)
    last = len(instance.steps) - 1
    trees = Relaxation(Patterns(instance), 0, last).solve(lambda: False, TREES).seconds
    rows = Relaxation(Patterns(instance), 0, last).solve(lambda: False, RATES).seconds
    monkeypatch.setattr(rate_prices, "JOINT_ABOVE", 3)
    monkeypatch.setattr(rate_prices, "GPUS_UP_TO", 0)
    shared = Patterns(instance)
    joint = Relaxation(shared, 0, last).solve(lambda: False, RATES).seconds
    assert len(shared.prices.pool) == 1
    assert trees < joint
    assert joint >= rows * 98 / 100


@pytest.mark.usefixtures("jointly")
def test_it_stops_when_time_is_up() -> None:
    shared = Patterns(made("bruck_allgather", 8, 2, 1e-3))
    relaxation = Relaxation(shared, 0, 2)
    least = np.array([float(low) for low in relaxation.least.values()])
    joint = JointPrices(shared.prices, relaxation.patterns, relaxation.column, (np.ones(len(least)), least), {})
    assert joint.best(relaxation.rows, lambda: True) is None


def test_more_than_256_gpus_have_prices() -> None:
    """The check takes bundles of up to 1,024 GPUs; here of 320, on two steps."""
    long = made("bruck_allgather", 320, 2, 1e-3)
    instance = long.model_copy(update={"steps": long.steps[-2:]})
    outcome = bound_method.solve(instance, RunOptions(60.0))
    assert outcome.certificate is not None
    assert outcome.certificate["bundles"]
    assert check_bound(instance, outcome.bound, outcome.certificate) == []


@pytest.mark.parametrize(("algorithm", "gpus"), [("swing", 8), ("bruck_allgather", 6), ("binomial_broadcast", 4)])
def test_labels_are_orbits_in_the_order_of_their_least_pairs(algorithm: str, gpus: int) -> None:
    instance = made(algorithm, gpus, 2)
    generators = [moved.tolist() for moved in Patterns(instance).group]
    facts = Facts(instance, {"generators": generators, "bundles": [], "intervals": []})
    by_search = facts._orbits(list(product(range(gpus), repeat=2)))
    assert facts._labels().ravel().tolist() == [by_search[pair] for pair in product(range(gpus), repeat=2)]
