"""``misocp``: optimal by enumeration at small sizes, whatever the solver and the switches; bounds that hold early."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from examples import some, some_of
from hypothesis import given, settings
from hypothesis import strategies as st
from models.harvest import exhaustive
from models.harvest.instances import SWITCHES, made, stated

import synth
from synth.errors import SizeLimitError
from synth.options import RunOptions
from synth.solvers import mathprog
from synth.solvers.catalogue import known_solvers
from synth_models.harvest.check import replay as check
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.topologies import Topology
from synth_models.harvest.programs.misocp import blocks as misocp_blocks
from synth_models.harvest.programs.misocp import interval_program as misocp_interval
from synth_models.harvest.programs.misocp import method as misocp
from synth_models.harvest.programs.misocp import model as misocp_model
from synth_models.harvest.programs.misocp import one_port as misocp_one_port

ALGORITHMS = ("recursive_doubling", "swing", "bruck_allgather", "binomial_broadcast")
MESSAGE = 4194304
BETA_M = MESSAGE / 100e9


def _options(solver: str = "highs", seconds: float = 300.0, **switches: object) -> RunOptions:
    return RunOptions(time_limit_s=seconds, solver=solver, method=SWITCHES | switches)


def _made(algorithm: str, gpus: int, ports: int, delay: str, **changes: str) -> HarvestInstance:
    asked = {"algorithm": algorithm, "gpus": gpus, "ports": ports, "reconfiguration_delay": delay}
    return made(**{"message_bytes": MESSAGE, **asked, **changes})


def _solved(instance: HarvestInstance, options: RunOptions | None = None) -> tuple[float, float]:
    """Time by the check and bound of an outcome that must be proven optimal."""
    outcome = misocp.solve(instance, options or _options())
    verdict = check.check_schedule(instance, outcome.solution)
    assert verdict.ok, verdict.faults
    assert verdict.value is not None
    assert outcome.bound is not None
    assert outcome.termination == "optimal"
    assert verdict.value - 2e-4 * verdict.value <= outcome.bound <= verdict.value * (1 + 1e-9)
    return verdict.value, outcome.bound


@cache
def _best(algorithm: str, ports: int) -> float:
    """What HiGHS proves for 4 GPUs with all switches on."""
    return _solved(_made(algorithm, 4, ports, "1e-3"))[0]


@pytest.mark.parametrize("algorithm", some_of(ALGORITHMS))
@pytest.mark.parametrize("delay", ["0", "1e-6", "1e-5", "1e-3"])
def test_one_port_is_the_enumerated_optimum(algorithm, delay):
    instance = _made(algorithm, 4, 1, delay)
    value, bound = _solved(instance)
    best = exhaustive.optimum(instance)
    assert value == pytest.approx(best, rel=1e-4)
    assert bound <= best * (1 + 1e-9)


permutation = st.permutations(range(4)).filter(lambda p: all(u != v for u, v in enumerate(p)))


@settings(max_examples=some(12), deadline=None, derandomize=True)
@given(
    st.lists(permutation, min_size=1, max_size=3),
    st.lists(st.floats(1e3, 1e7), min_size=3, max_size=3),
    st.floats(0, 1e-4),
    st.floats(0, 1e-5),
)
def test_one_port_random_steps(patterns, sizes, delay, delta):
    instance = _steps(patterns, sizes, 1, delay, delta)
    value, _ = _solved(instance)
    assert value == pytest.approx(exhaustive.optimum(instance), rel=1e-4)


@settings(max_examples=some(3), deadline=None, derandomize=True)
@given(st.lists(permutation, min_size=2, max_size=3), st.permutations(range(4)), st.floats(0, 1e-5))
def test_names_of_gpus_do_not_matter(patterns, names, delta):
    sizes = (1e6, 2e6, 3e6)
    renamed = [[names[p[names.index(u)]] for u in range(4)] for p in patterns]
    first, _ = _solved(_steps(patterns, sizes, 2, 1e-5, delta))
    second, _ = _solved(_steps(renamed, sizes, 2, 1e-5, delta))
    assert first == pytest.approx(second, rel=2e-4)


def _steps(patterns, sizes, ports, delay, delta) -> HarvestInstance:
    steps = [{"bytes": size, "pairs": list(enumerate(p))} for p, size in zip(patterns, sizes, strict=False)]
    return stated(ports=ports, steps=steps, delta=delta, reconfiguration_delay=delay)


@pytest.mark.long
def test_two_ports_is_the_enumerated_optimum():
    instance = _made("swing", 4, 2, "1e-5", latency="off", half="reduce_scatter")
    value, _ = _solved(instance)
    assert value == pytest.approx(exhaustive.optimum(instance), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("delay", ["1e-7", "1e-3"])
def test_two_ports_with_latency_is_the_enumerated_optimum(algorithm, delay):
    instance = _made(algorithm, 4, 2, delay, message_bytes="100000")
    value, _ = _solved(instance)
    assert value == pytest.approx(exhaustive.optimum(instance), rel=1e-4)


def test_best_ring_for_the_reduce_scatter_half_with_one_port():
    """Steps of m/2, m/4, m/8 on the ring: loads 1, 2, 4, so 0.5 + 0.5 + 0.5 of beta m."""
    value, _ = _solved(_made("recursive_doubling", 8, 1, "1", latency="off", alpha="0", half="reduce_scatter"))
    assert value == pytest.approx(1.5 * BETA_M, rel=1e-9)


@pytest.mark.slow
def test_two_ports_do_not_help_the_reduce_scatter_half():
    """The node's capacity doubles, so 1.5 beta m is half the time; no topology of two ports does better."""
    value, _ = _solved(_made("recursive_doubling", 8, 2, "1", latency="off", alpha="0", half="reduce_scatter"))
    assert value == pytest.approx(1.5 * BETA_M / 2, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("delay", ["1e-5", "1e-3"])
def test_eight_gpus_one_port(algorithm, delay):
    instance = _made(algorithm, 8, 1, delay)
    value, _ = _solved(instance)
    assert value == pytest.approx(exhaustive.optimum(instance), rel=1e-4)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("ports", [1, 2])
@pytest.mark.parametrize(
    "changed", [{"symmetry": False}, {"strengthening": False}, {"symmetry": False, "strengthening": False}]
)
def test_switches_change_nothing(ports, changed):
    instance = _made("swing", 4, ports, "1e-3")
    assert _solved(instance, _options(**changed))[0] == pytest.approx(_best("swing", ports), rel=1e-4)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("solver", "cone"), [("scip", "cone"), ("scip", "cuts"), ("gurobi", "cuts")])
@pytest.mark.parametrize("ports", [1, 2])
def test_solvers_agree(solver, cone, ports):
    if not known_solvers()[solver].installed:
        pytest.skip(f"{solver} is not installed")
    instance = _made("bruck_allgather", 4, ports, "1e-3")
    found, _ = _solved(instance, _options(solver, cone=cone))
    assert found == pytest.approx(_best("bruck_allgather", ports), rel=1e-4)


@pytest.mark.long
def test_the_bound_holds_when_time_is_short(monkeypatch):
    """The first program has half a second and no more; before it the run has all the time it wants."""
    improve, left = misocp.State.improve, [0.0, 0.5]

    def improved(*words):
        monkeypatch.setattr(RunOptions, "remaining", lambda _: left[-1])
        improve(*words)
        left.pop()

    monkeypatch.setattr(misocp.State, "improve", improved)
    instance = _made("bruck_allgather", 8, 2, "1e-3")
    outcome = misocp.solve(instance, _options())
    value = check.check_schedule(instance, outcome.solution).value
    assert outcome.termination == "time_limit"
    assert outcome.bound is not None
    assert value is not None
    assert 0.5 * value < outcome.bound < value


def test_too_large():
    with pytest.raises(SizeLimitError, match="flows"):
        misocp.solve(_made("recursive_doubling", 64, 2, "1e-3"), _options())


def test_cutoff_refutes_exactly_what_is_better_than_the_optimum():
    instance = _made("swing", 4, 1, "1")
    best = exhaustive.optimum(instance)
    blocks = misocp_blocks.blocks_of(instance, 0, len(instance.steps) - 1)
    for seconds, ended in ((best * 1.0001, "optimal"), (best * 0.9999, "infeasible")):
        for model in (
            misocp_one_port.build(instance, blocks),
            misocp_model.build(instance, blocks, 3, [[0.25, 1 / 3, 0.5, 1.0]] * len(blocks)),
        ):
            misocp_model.at_most(model, seconds)
            assert mathprog.solve(model, _options(), bounded=True).termination == ended


def test_fewer_layers_and_tangents_only_relax():
    instance = _made("swing", 4, 1, "1")
    blocks = misocp_blocks.blocks_of(instance, 0, len(instance.steps) - 1)
    values = []
    for layers in (1, 2, 3):
        model = misocp_model.build(instance, blocks, layers, [[0.25, 1 / 3, 0.5, 1.0]] * len(blocks))
        result = mathprog.solve(model, replace(_options(), relative_gap=0.0), bounded=True)
        assert result.objective is not None
        values.append(model.fixed_cost + model.unit * result.objective)
    assert values[0] <= values[1] * (1 + 1e-6)
    assert values[1] <= values[2] * (1 + 1e-6)
    assert values[2] == pytest.approx(exhaustive.optimum(instance), rel=1e-6)


def test_relabellings_of_shifts_are_rotations_and_reflections():
    blocks = misocp_blocks.blocks_of(_made("recursive_doubling", 8, 2, "1"), 0, 5)
    found = misocp_blocks.relabellings(blocks, 8)
    assert sum(not one.is_reversed for one in found) == 8
    assert sum(one.is_reversed for one in found) == 8
    for one in found:
        for block in blocks:
            assert {one.link(u, v) for u, v in block.pairs} == set(block.pairs)


def test_equal_steps_are_one_block():
    """Forwards the allgather half repeats the steps of the reduce-scatter half."""
    instance = _made("recursive_doubling", 8, 2, "1")
    assert [block.count for block in misocp_blocks.blocks_of(instance, 0, 5)] == [2, 2, 2]
    turned = misocp_blocks.reversed_blocks(misocp_blocks.blocks_of(instance, 0, 2))
    backwards = _made("recursive_doubling", 8, 2, "1", direction="backwards")
    assert misocp_blocks.blocks_of(backwards, 3, 5) == turned


@pytest.mark.long
def test_in_a_record(tmp_path):
    instance = _made("bruck_allgather", 4, 2, "1e-3")
    record = synth.solve(instance, method="misocp", solver="highs", time_limit=60)
    assert record["termination"] == "optimal"
    assert "all topologies" in record["bound_proof"]
    assert synth.check(record, instance).ok


@pytest.mark.long
def test_narrowed_rates_hold_the_best_topology():
    """Under a cutoff just above the optimum the relaxation's ranges are smaller, and the optimum's rates are inside."""
    instance = _made("swing", 4, 2, "1")
    outcome = misocp.solve(instance, _options())
    value = check.check_schedule(instance, outcome.solution).value
    assert value is not None
    program = misocp_interval.IntervalProgram(instance, _options())
    blocks = misocp_blocks.blocks_of(instance, 0, len(instance.steps) - 1)
    tangents = [[0.25, 0.5, 1.0, 2.0]] * len(blocks)
    ranges = program._narrowed(blocks, 3, tangents, value * 1.0001)
    points = program.best_points(blocks, outcome.solution.topologies[0])
    widest = misocp_model.rate_range(blocks[0], 2)
    assert len(outcome.solution.topologies) == 1
    assert any(high - low < widest[1] - widest[0] for low, high in ranges)
    for (low, high), (_, _, load) in zip(ranges, points, strict=True):
        assert low <= 1 / load * (1 + 1e-9)
        assert 1 / load <= high * (1 + 1e-9)


@pytest.mark.long
@pytest.mark.parametrize(
    ("algorithm", "ports", "delay", "searches"),
    [("swing", 2, "1e-5", 1), ("swing", 2, "1e-6", 0), ("binomial_broadcast", 2, "1e-5", 0), ("swing", 1, "1e-5", 0)],
)
def test_it_searches_for_topologies_once_where_a_gap_is_left(monkeypatch, algorithm, ports, delay, searches):
    """With several ports; where the listed topologies meet the first bounds, or routes are forced, not at all."""
    calls, search = [], misocp.own_topologies

    def counted(instance: HarvestInstance, options: RunOptions) -> list[Topology]:
        calls.append(options.time_limit_s)
        return search(instance, options)

    monkeypatch.setattr(misocp, "own_topologies", counted)
    _solved(_made(algorithm, 4, ports, delay))
    assert len(calls) == searches
    assert all(seconds is not None and seconds <= 30 for seconds in calls)  # a tenth of 300 s
