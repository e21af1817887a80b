"""What the default bound tries while time is left: at least what every stage alone proves, and more where it can."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from models.harvest.bounds.test_bounds import made
from models.harvest.instances import stated

from synth.clock.deadline import OutOfTime
from synth.options import RunOptions
from synth_models.harvest.bounds import sequences as bound_method
from synth_models.harvest.bounds.interval import bytes_differ
from synth_models.harvest.bounds.sequences import CASES, RATE_ROWS
from synth_models.harvest.check.certificates import check_bound
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.programs import candidates

SHORT = 8  # seeds of small workloads
SAME = 1e-9
LEAST = 1 - SAME  # what rounding of a dual may cost


def symmetric(seed: int) -> HarvestInstance:
    """A workload of shifts with volumes, 2 to 4 ports; some steps come again, with as many bytes or others."""
    random, steps = np.random.default_rng(seed), list[dict[str, Any]]()
    gpus, ports = int(random.integers(4, 17 if seed >= SHORT else 7)), int(random.integers(2, 5))
    for _ in range(int(random.integers(2, 5 if seed >= SHORT else 4))):
        shifts = random.choice(np.arange(1, gpus), size=int(random.integers(1, min(4, gpus))), replace=False).tolist()
        volumes = np.repeat(random.integers(1, 4, len(shifts)), gpus).tolist()
        pairs = [[u, (u + shift) % gpus] for shift in shifts for u in range(gpus)]
        steps.append({"bytes": float(random.choice([1e9, 1e10, 1e11, 4e11])), "pairs": pairs, "volumes": volumes})
    for _ in range(int(random.integers(0, 2))):
        again = dict(steps[int(random.integers(len(steps)))])
        again["bytes"] *= float(random.choice([1.0, 0.05, 20.0]))
        steps.insert(int(random.integers(len(steps) + 1)), again)
    delays = {
        "delta": float(random.choice([0.05, 1.0])),
        "reconfiguration_delay": float(random.choice([0.1, 2.0, 100])),
    }
    times: dict[str, Any] = {"alpha": 0.25, "latency": "on", **delays}
    return stated(gpus=gpus, ports=ports, port_bandwidth=1e11, steps=steps, **times)


def proven(instance: HarvestInstance, **method: str) -> float:
    """The bound, after its certificate went through a file and was verified."""
    outcome = bound_method.solve(instance, RunOptions(120.0, method=method))
    assert outcome.bound is not None
    assert check_bound(instance, outcome.bound, json.loads(json.dumps(outcome.certificate))) == []
    return outcome.bound


@pytest.mark.long
@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 120))])
def test_no_less_than_any_stage_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = symmetric(seed)
    whole = [proven(instance), proven(instance, cases="on")]
    without = proven(instance, cases="off")
    monkeypatch.setattr(bound_method, "_searches", lambda one, _: [(bytes_differ(one), [CASES])])
    cases = proven(instance)
    assert min(whole) >= max(without, cases) * LEAST
    schedule = candidates.solve(instance, RunOptions()).solution
    value = check_schedule(instance, schedule).value
    assert value is not None
    assert max(whole) <= value * (1 + 1e-12)


def test_which_stages_run_and_when_steps_of_unequal_bytes_are_told_apart() -> None:
    def searches(instance: HarvestInstance, **method: str) -> list[tuple[bool, list[str]]]:
        return [(apart, list(stages)) for apart, stages in bound_method._searches(instance, RunOptions(method=method))]

    alike, differs, one_port = made("swing", 8, 2), made("swing_torus", 8, 4, torus="2x4"), made("swing", 8, 1)
    assert not bytes_differ(alike)
    assert bytes_differ(differs)
    assert searches(alike) == searches(alike, cases="auto") == [(False, [RATE_ROWS, CASES])]
    assert searches(alike, cases="on") == [(False, [CASES, RATE_ROWS]), (False, [RATE_ROWS])]
    assert searches(alike, cases="off") == [(False, [RATE_ROWS])]
    assert searches(alike, rates="off") == searches(one_port) == [(False, [])]
    assert searches(differs) == [(False, [RATE_ROWS]), (True, [CASES])]
    assert searches(differs, cases="on") == [(True, [CASES]), (False, [RATE_ROWS])]


def test_what_one_search_proved_stays_where_time_ends_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of unequal bytes: cases are a search of their own, which here proves nothing in time."""
    instance = made("swing_torus", 8, 4, torus="2x4")
    without = proven(instance, cases="off")
    run = bound_method._Search.run

    def cut(self: bound_method._Search, stages: list[str]) -> bool:
        if self.shared.by_bytes:
            raise OutOfTime
        return run(self, stages)

    monkeypatch.setattr(bound_method._Search, "run", cut)
    for cases in ("auto", "on"):
        outcome = bound_method.solve(instance, RunOptions(method={"cases": cases}))
        assert outcome.bound == without
        assert "stopped by the limit" in str(outcome.message)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gpus", "megabytes", "left"), [(24, 64, SAME), (36, 64, SAME), (40, 32, 0.01), (48, 64, SAME)]
)
def test_the_gap_of_an_all_to_all_closes_within_the_default_limit(gpus: int, megabytes: int, left: float) -> None:
    """12 to 24 % are open without cases. On 40 GPUs 0.2 % stay open when nothing is left to try, as steps 0 and 1 on
    one topology are bounded by half links."""
    instance = made("alltoall_direct", gpus, 2, 5e-6, message_bytes=str(megabytes * 2**20))
    outcome = bound_method.solve(instance, RunOptions(60.0))
    assert outcome.bound is not None
    assert check_bound(instance, outcome.bound, json.loads(json.dumps(outcome.certificate))) == []
    value = check_schedule(instance, candidates.solve(instance, RunOptions(60.0)).solution).value
    assert value is not None
    assert value * (1 - left) <= outcome.bound <= value * (1 + 1e-12)
    without = bound_method.solve(instance, RunOptions(60.0, method={"cases": "off"})).bound
    assert without is not None
    assert without < value * 0.89
