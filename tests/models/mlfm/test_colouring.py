"""The two theorems behind the decomposition, on random data: König's lift and balanced shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models.mlfm.same_transfers import same_transfers

from synth.instance import parse
from synth.options import RunOptions
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_problem import LeafProblem, leaf_problem
from synth_models.mlfm.programs.colouring import balanced_phases, name_servers
from synth_models.mlfm.programs.cpsat import count_flows
from synth_models.mlfm.programs.phase_by_phase import pack_phases
from synth_models.mlfm.references.closed_form import printed_rule
from synth_models.mlfm.solution import ProductPhases


def random_job(seed: int, routes: str = "minimal", most: int = 40) -> MLFMInstance:
    random = np.random.default_rng(seed)
    d = int(random.integers(2, 6))
    everyone = [[i, j, k] for i in range(d) for j in range(d + 1) for k in range(d)]
    servers = [
        everyone[x] for x in random.choice(len(everyone), int(random.integers(3, min(most, len(everyone)))), False)
    ]
    made = parse(
        {"family": "mlfm", "name": "x", "source": "a test", "d": d, "subset": servers, "routes": routes},
        MLFMInstance,
        "x",
    )
    assert isinstance(made, MLFMInstance)
    return made


def counted(problem: LeafProblem) -> Any:
    phases = problem.busiest
    while (found := count_flows(problem, phases, RunOptions())).flows is None:
        phases += 1
    return found.flows, phases


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("extra", [0, 3])
def test_balanced_shares_round_every_load(seed: int, extra: int) -> None:
    """Every link and every leaf gets its P-th part, rounded down or up, in every phase."""
    problem = leaf_problem(random_job(seed))
    flows, phases = counted(problem)
    phases += extra
    used, inside = balanced_phases(problem, flows, phases)
    assert np.array_equal(used.sum(axis=0), flows)
    assert np.array_equal(inside.sum(axis=0), problem.size**2)
    total = problem.loads(flows)
    sender, receiver = np.divmod(problem.pair, problem.leaves)
    for now, stay in zip(used.astype(np.int64), inside, strict=True):
        load = problem.loads(now)
        assert (load >= total // phases).all()
        assert (load <= -(-total // phases)).all()
        for side in (sender, receiver):
            starts = np.bincount(side, weights=now, minlength=problem.leaves) + stay
            assert (starts <= problem.size).all()


def test_balanced_shares_refuse_what_does_not_fit() -> None:
    problem = leaf_problem(random_job(1))
    flows, phases = counted(problem)
    with pytest.raises(ValueError, match="carries more than"):
        balanced_phases(problem, flows, problem.busiest - 1)
    with pytest.raises(ValueError, match="carries more than"):
        balanced_phases(problem, flows * 50, phases)
    detour = leaf_problem(random_job(1, "detour"))
    with pytest.raises(ValueError, match="one-spine"):
        balanced_phases(detour, (detour.middle >= 0).astype(np.int64), 100)


@pytest.mark.parametrize("seed", range(4))
def test_packing_meets_every_flow_without_congestion(seed: int) -> None:
    """Also when many flows cross two spines: here the minimal route is forbidden wherever there is another."""
    problem = leaf_problem(random_job(seed, "detour", most=12))
    flows = np.zeros(problem.routes, dtype=np.int64)
    random = np.random.default_rng(seed)
    for pair in np.flatnonzero(np.diff(problem.start)).tolist():
        routes = np.arange(problem.start[pair], problem.start[pair + 1])
        routes = routes[problem.middle[routes] >= 0] if (problem.middle[routes] >= 0).any() else routes
        np.add.at(flows, random.choice(routes, int(problem.demand[pair])), 1)
    phases = max(problem.busiest, int(problem.loads(flows).max())) + 4
    packed = pack_phases(problem, flows, phases, RunOptions())
    assert packed is not None
    used, inside = packed
    assert np.array_equal(inside.sum(axis=0), problem.size**2)
    met = np.bincount(problem.pair, weights=used.sum(axis=0), minlength=problem.leaves**2)
    assert np.array_equal(met, np.where(np.diff(problem.start) > 0, problem.demand, 0))
    assert max(problem.loads(now.astype(np.int64)).max() for now in used) == 1


def test_the_lift_refuses_phases_that_miss_a_flow() -> None:
    instance = random_job(2)
    problem = leaf_problem(instance)
    flows, phases = counted(problem)
    used, inside = balanced_phases(problem, flows, phases)
    inside[0] = 0
    with pytest.raises(RuntimeError, match="do not meet the demand"):
        name_servers(instance, problem, (used, inside))


def test_product_phases_are_read_alike_in_any_blocks() -> None:
    made = parse(
        {"family": "mlfm", "name": "x", "source": "a test", "d": 3, "block": {"layers": 2, "columns": 4, "servers": 3}},
        MLFMInstance,
        "x",
    )
    assert isinstance(made, MLFMInstance)
    solution = printed_rule(made, 2, 4, 3)
    one = [row for rows in solution.rows(1) for row in rows.dest]
    many = [row for rows in solution.rows(7) for row in rows.dest]
    assert np.array_equal(one, many)
    assert same_transfers(solution, solution)
    shifted = ProductPhases(
        2, solution.pattern, solution.layer_shift + 1, solution.slot_shift, solution.column, solution.spine
    )
    assert not same_transfers(solution, shifted)
