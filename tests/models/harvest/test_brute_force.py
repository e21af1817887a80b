"""Every method against brute force over all topologies and sequences, on random demands in which GPUs send to and
receive from several others at once, often more than they have ports."""

from __future__ import annotations

from typing import Any

import pytest
from models.harvest import brute_force
from models.harvest.brute_force import optimum, random_demand
from models.harvest.instances import SWITCHES, stated

from synth.family import defaults_for
from synth.method import load
from synth.options import RunOptions
from synth.solvers.catalogue import known_solvers
from synth_models.harvest import FAMILY
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.programs.misocp import method as misocp

GAP = 1e-4
EXACT = 1e-9  # relative: what rounding may make of two sums of the same numbers
OFF = {"port_bandwidth": 1e11, "alpha": 0.0, "delta": 0.0, "latency": "off"}


def proven_optimal(raw: dict[str, Any], best: float, solver: str = "highs", **switches: object) -> None:
    """The value is the optimum to within the gap, and neither value nor bound is on the wrong side of it."""
    if not known_solvers()[solver].installed:
        pytest.skip(f"{solver} is not installed")
    instance = stated(**raw)
    outcome = misocp.solve(instance, RunOptions(time_limit_s=300, solver=solver, method=SWITCHES | switches))
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.ok, (raw, verdict.faults)
    assert outcome.termination == "optimal", raw
    assert outcome.bound is not None
    assert verdict.value is not None
    assert best * (1 - EXACT) <= verdict.value <= best * (1 + 1.01 * GAP), raw
    assert verdict.value * (1 - 1.01 * GAP) <= outcome.bound <= best * (1 + EXACT), raw
    if outcome.certificate is not None:
        assert load(FAMILY.check_bound)(instance, outcome.bound, outcome.certificate) == []


def nothing_beats(raw: dict[str, Any], best: float) -> None:
    """No method is faster than the optimum, and the certified bound is not above it."""
    instance = stated(**raw)
    for name in ("candidates", "dp_k", "greedy", "bvn", "static_ring", "static_torus", "static_kautz"):
        if name in ("bvn", "static_torus", "static_kautz") and name not in defaults_for(FAMILY, instance):
            continue
        outcome = FAMILY.method(name).load()(instance, RunOptions(solver="highs", method={}))
        verdict = check_schedule(instance, outcome.solution)
        assert verdict.ok, (name, raw, verdict.faults)
        assert verdict.value is not None
        assert verdict.value >= best * (1 - EXACT), (name, raw)
        assert outcome.bound is None
    for rates in ("on", "off"):
        outcome = FAMILY.method("bound").load()(instance, RunOptions(time_limit_s=60, method={"rates": rates}))
        assert outcome.bound is not None
        assert outcome.bound <= best * (1 + EXACT), raw
        assert outcome.certificate is not None
        assert load(FAMILY.check_bound)(instance, outcome.bound, outcome.certificate) == []


def test_the_brute_force_by_hand():
    """GPUs 0, 1, 2 with one port, each sending 1 s to both others: only a ring of three joins all, the pairs
    take 9 hops on its 3 links, so 3 s, and 2 hops. With two ports everybody has a link to everybody: 1 s."""
    pairs = [[u, v] for u in range(3) for v in range(3) if u != v]
    raw = OFF | {"gpus": 3, "ports": 1, "reconfiguration_delay": 0.0, "steps": [{"bytes": 1e11, "pairs": pairs}]}
    assert optimum(raw) == pytest.approx(3)
    assert optimum(raw | {"ports": 2}) == pytest.approx(1)
    assert optimum(raw | {"latency": "on", "delta": 0.25, "alpha": 0.5}) == pytest.approx(4)
    raw["steps"].append({"bytes": 0.0, "pairs": [[0, 2], [2, 1]]})
    slow = raw | {"latency": "on", "delta": 0.25, "alpha": 0.5}
    assert optimum(slow) == pytest.approx(4 + 0.5 + 0.25)
    slow["steps"][1]["pairs"] = [[0, 2], [1, 0], [0, 1]]
    assert optimum(slow) == pytest.approx(4 + 0.5 + 0.5)


def test_the_brute_force_adds_volumes_by_hand():
    """GPU 0 sends 3 to GPU 1 (2 and 1, listed twice) and 1 to GPU 2; a unit takes a port 1 s. Two ports: a link to each
    and one hop take 3 s; 4 on two links take 2 s, and 2 hops, as a part for 1 goes by way of 2. Four ports: three links
    to 1 and one to 2 take 1 s."""
    steps = [{"bytes": 1e11, "pairs": [[0, 1], [0, 2], [0, 1]], "volumes": [2, 1, 1]}]
    raw = OFF | {"gpus": 3, "ports": 2, "reconfiguration_delay": 0.0, "steps": steps}
    assert optimum(raw) == pytest.approx(2)
    assert optimum(raw | {"ports": 4}) == pytest.approx(1)
    assert optimum(raw | {"latency": "on", "delta": 0.75}) == pytest.approx(3.5)
    assert optimum(raw | {"latency": "on", "delta": 1.25}) == pytest.approx(4.25)
    once = [{"bytes": 1e11, "pairs": [[0, 1], [0, 2], [0, 1], [0, 1]]}]
    assert optimum(raw | {"steps": once}) == optimum(raw)


@pytest.mark.parametrize("number", range(6))
def test_counting_ahead_leaves_the_brute_force_as_it_is(number, monkeypatch):
    """The same with nothing counted ahead: every topology rated for every step."""
    raw = random_demand(number) | {"gpus": 3}
    raw["steps"] = [s | {"pairs": [p for p in s["pairs"] if max(p) < 3] or [[0, 1]]} for s in raw["steps"]]
    quick = optimum(raw)
    known = brute_force.counted
    monkeypatch.setattr(brute_force, "counted", lambda links, pairs: (known(links, pairs)[0], 0.0))
    assert optimum(raw) == pytest.approx(quick, rel=1e-12)


SEVERAL_TARGETS = OFF | {
    "gpus": 3,
    "ports": 3,
    "reconfiguration_delay": 0.0,
    "steps": [{"bytes": 1e11, "pairs": [[2, 1], [1, 2], [1, 0], [0, 2]]}],
}
FOUR_STEPS = OFF | {
    "gpus": 4,
    "ports": 2,
    "reconfiguration_delay": 0.1,
    "steps": [
        {"bytes": 1e9, "pairs": [[2, 1], [2, 3], [1, 3], [0, 2], [3, 0], [3, 2]]},
        {"bytes": 2e9, "pairs": [[2, 3], [1, 3], [0, 2], [0, 1]]},
        {"bytes": 3e9, "pairs": [[1, 0], [0, 2]]},
        {"bytes": 1e9, "pairs": [[1, 2], [1, 3], [0, 3]]},
    ],
}


@pytest.mark.long
@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize(
    ("raw", "best"), [(SEVERAL_TARGETS, 2 / 3), (FOUR_STEPS, 0.055)], ids=["one step", "four steps"]
)
def test_several_targets_of_one_gpu(raw, best, solver):
    """A merged flow was once capped at the rate of one pair: 0.75 and 0.06 were called optimal. In the
    one step GPU 1 sends two pairs over three ports, so 2/3 of a second at least; a part of (1, 0) goes by way of 2."""
    assert optimum(raw) == pytest.approx(best)
    proven_optimal(raw, best, solver)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("part", range(2))
def test_misocp_is_optimal_on_random_demands(part, solver):
    for number in range(3 * part, 3 * part + 3):
        raw = random_demand(number)
        proven_optimal(raw, optimum(raw), solver)


def test_switches_change_nothing_on_random_demands():
    for number in range(30, 32):
        raw = random_demand(number)
        best = optimum(raw)
        proven_optimal(raw, best, symmetry=False)
        proven_optimal(raw, best, strengthening=False)


@pytest.mark.long
def test_nothing_beats_the_optimum_of_random_demands():
    for number in range(40, 43):
        raw = random_demand(number)
        nothing_beats(raw, optimum(raw))


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_misocp_is_optimal_on_520_random_demands(solver):
    for number in range(520):
        raw = random_demand(number)
        proven_optimal(raw, optimum(raw), solver)


@pytest.mark.slow
def test_nothing_beats_the_optimum_of_520_random_demands():
    for number in range(520):
        raw = random_demand(number)
        nothing_beats(raw, optimum(raw))


@pytest.mark.slow
@pytest.mark.parametrize("switches", [{"symmetry": False}, {"strengthening": False}, {"cone": "cuts"}])
def test_switches_change_nothing_on_150_random_demands(switches):
    for number in range(150):
        raw = random_demand(number)
        proven_optimal(raw, optimum(raw), "scip" if "cone" in switches else "highs", **switches)
