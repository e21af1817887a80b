"""Link prices of a plan in epochs: what the check derives from any prices is no more than brute force needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from models.fabric.small_machines import machine
from peers.teccl.epoch_oracle import fewest_fluid
from peers.teccl.test_epochs import facts, solved, some_slow, tiny

from synth_models.fabric.check.plans import plan_verdict
from synth_peers.teccl.programs.counted_bound import counted
from synth_peers.teccl.programs.grid import grid_of
from synth_peers.teccl.programs.priced import priced


@pytest.mark.parametrize("first", some_slow(*range(0, 60, 6)))
def test_prices_prove_no_more_than_is_true(first: int) -> None:
    """Any prices, any distance from which on blocks are counted; what the method finds is what the check derives."""
    for seed in range(first, first + 6):
        instance, tau, _ = tiny(seed, ("alltoall", "gather", "scatter")[seed % 3], 4)
        best = fewest_fluid(instance, tau)
        assert best is not None
        outcome = solved(instance, tau=str(float(tau)))
        draw, links = np.random.default_rng(seed), instance.machine.links
        for _ in range(40):
            prices = {"price": draw.integers(0, 5, links), "away": int(draw.integers(0, 3))}
            claim = {**outcome.solution.plan, **prices, "counted": best + 1}
            faults = plan_verdict(instance, replace(outcome.solution, plan=claim)).faults
            assert any("counting proves" in fault for fault in faults), seed
        found = priced(grid_of(instance, tau), counted(grid_of(instance, tau)), lambda: True)
        assert found.epochs <= best, seed
        if found.price:
            claim = {**outcome.solution.plan, "price": np.array(found.price), "away": found.away}
            claim |= {"counted": found.epochs}
            assert plan_verdict(instance, replace(outcome.solution, plan=claim)).ok, seed


def test_prices_prove_what_no_cut_does() -> None:
    """Six ranks of K(3,3), links of one chunk an epoch: of the 30 pairs 12 are two hops apart, so 18 + 2 * 12 = 42
    links are needed of 18 an epoch: three epochs. A cut around one rank sees 5 chunks on 3 links, two epochs."""
    rows = [(u, v, 1e9) for u in range(6) for v in range(6) if (u + v) % 2]
    instance = machine(6, rows, collective="alltoall", bytes=6000)
    found = facts(instance, solved(instance, tau="fast"))
    assert found["epochs_least"] == 3


def test_prices_are_refused_where_data_is_copied_or_in_another_number() -> None:
    rows = [(u, (u + 1) % 4, 1e9) for u in range(4)]
    for collective, price in (("allgather", [1, 1, 1, 1]), ("alltoall", [1, 1, 1]), ("alltoall", [1, 1, 1, -1])):
        instance = machine(4, rows, collective=collective, bytes=4000)
        solution = solved(instance).solution
        plan = {**solution.plan, "price": np.array(price), "away": 0}
        assert plan_verdict(instance, replace(solution, plan=plan)).faults, (collective, price)
