"""``misocp`` where delays depend on what changes: all sequences of topologies agree, whatever the solver, the switches
and what is known before; bounds that hold early."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from models.harvest import delay_oracle as oracle
from models.harvest.instances import SWITCHES, made, stated

import synth
from synth.errors import SizeLimitError
from synth.instance import parse
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers import mathprog
from synth.solvers.catalogue import known_solvers
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.topologies import Topology, count_links
from synth_models.harvest.programs.misocp import coupled_method, coupled_steps
from synth_models.harvest.programs.misocp import method as misocp
from synth_models.harvest.programs.misocp.blocks import blocks_of
from synth_models.harvest.programs.misocp.interval_program import Detail, IntervalProgram
from synth_models.harvest.programs.misocp.model import at_most

EIGHT = {"algorithm": "recursive_doubling", "half": "reduce_scatter", "gpus": 8, "ports": 1, "message_bytes": 1e5}
PER_CIRCUIT = {"reconfiguration_delay": 0.0, "delay_per_circuit": 3e-7}


def _options(solver: str = "highs", seconds: float = 60.0, **switches: object) -> RunOptions:
    return RunOptions(time_limit_s=seconds, solver=solver, method=SWITCHES | switches)


def _instance(raw: dict[str, Any]) -> HarvestInstance:
    return parse(raw, HarvestInstance, "test")


def _optimal(raw: dict[str, Any], outcome: Outcome) -> None:
    """The check's time is the least over all sequences of topologies, and the bound is not above it."""
    best = oracle.optimum(raw)
    verdict = check_schedule(_instance(raw), outcome.solution)
    assert verdict.ok, verdict.faults
    assert verdict.value is not None
    assert outcome.bound is not None
    assert outcome.termination == "optimal", raw["name"]
    assert best * (1 - 1e-9) <= verdict.value <= best * (1 + 1.01e-4), raw["name"]
    assert best * (1 - 2.02e-4) <= outcome.bound <= best * (1 + 1e-9), raw["name"]


PAID = (7, 8, 11, 12, 17, 18, 19)  # of 4 GPUs, whose changes or whose staying cost something
CASES = [(gpus, number) for gpus in (3, 4) for number in range(10)]
MANY = [pytest.param(gpus, range(10, 110), marks=pytest.mark.slow, id=f"{gpus} GPUs, 100 more") for gpus in (3, 4)]


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("gpus", "numbers"), [*((gpus, (number,)) for gpus, number in CASES), *MANY])
def test_agrees_with_all_sequences_of_topologies(gpus, numbers):
    for number in numbers:
        raw = oracle.random_trade_off(number, gpus)
        _optimal(raw, misocp.solve(_instance(raw), _options()))


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [3, 4])
def test_agrees_where_delays_are_of_any_size(gpus):
    for number in range(100):
        raw = oracle.random_instance(number, gpus)
        _optimal(raw, misocp.solve(_instance(raw), _options()))


def _ring(instance: HarvestInstance) -> list[Topology]:
    everyone = np.arange(instance.gpus, dtype=np.int64)
    return [Topology("ring", count_links(instance.gpus, everyone, (everyone + 1) % instance.gpus, instance.ports))]


def _costs_something(raw: dict[str, Any]) -> bool:
    """Whether steps alone, with free changes, say less than the optimum."""
    return sum(own.min() for own in oracle.tables(raw)[0]) < oracle.optimum(raw) * (1 - 1e-3)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("gpus", "number"), [(3, 3), (3, 5), (3, 8), *((4, number) for number in PAID)])
def test_the_program_finds_the_topologies_itself(monkeypatch, gpus, number):
    """Only the ring is known before."""
    monkeypatch.setattr(coupled_method, "tried_topologies", _ring)
    raw = oracle.random_trade_off(number, gpus)
    outcome = misocp.solve(_instance(raw), _options())
    _optimal(raw, outcome)
    assert outcome.solve_s > 0


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [3, 4])
def test_the_program_finds_the_topologies_of_many(monkeypatch, gpus):
    monkeypatch.setattr(coupled_method, "tried_topologies", _ring)
    raws = [raw for raw in (oracle.random_trade_off(number, gpus) for number in range(110)) if _costs_something(raw)]
    assert len(raws) >= 30
    for raw in raws:
        _optimal(raw, misocp.solve(_instance(raw), _options()))


def _program(instance: HarvestInstance, most: float, loops: bool = False) -> Any:
    program = IntervalProgram(instance, _options())
    parts = [
        program.part(blocks_of(instance, i, i), Detail(1, []), False, loops=loops) for i in range(len(instance.steps))
    ]
    return coupled_steps.build(instance, parts, most)


@pytest.mark.long(after=2)
@pytest.mark.parametrize("number", [3, *PAID])
def test_one_port_program_is_exact(number):
    """Its optimum is the brute force's; nothing below that is feasible, and all above is."""
    raw = oracle.random_trade_off(number, 4)
    instance, best = _instance(raw), oracle.optimum(raw)
    model = _program(instance, 2 * best)
    result = mathprog.solve(model, replace(_options(), relative_gap=0.0), bounded=True)
    assert result.objective is not None
    assert model.fixed_cost + model.unit * result.objective == pytest.approx(best, rel=1e-5)
    for share, ended in ((1.0001, "optimal"), (0.9999, "infeasible")):
        model = _program(instance, 2 * best)
        at_most(model, share * best)
        assert mathprog.solve(model, _options(), bounded=True).termination == ended


@pytest.mark.long(after=1)
@pytest.mark.parametrize("number", range(6))
def test_changes_are_counted_as_the_statement_says(number):
    """With the links of two random topologies fixed, the program pays what the statement does. It may count more ports
    than change only where that costs nothing."""
    random = np.random.default_rng(number)
    ports = 1 + number % 3
    shapes = oracle.topologies(3, ports)
    steps = [{"bytes": 0.0, "pairs": [[0, 1]]}] * 2
    table = [[2, 1.0], [5, 1.5], [6 * ports, 4.0]] if ports > 1 else [[2, 1.0], [5, 1.5], [6, 4.0]]
    raw = {
        **{"gpus": 3, "ports": ports, "alpha": 1.0, "delta": 0.0, "reconfiguration_delay": 0.25, "steps": steps},
        **{"delay_per_circuit": 0.5, "delay_by_ports": table},
    }
    instance = stated(**raw)
    usable = [shape for shape in shapes if shape[0][1]]
    for _ in range(10):
        before, after = (usable[int(random.integers(len(usable)))] for _ in range(2))
        program = IntervalProgram(instance, _options(strengthening=False))
        parts = [program.part(blocks_of(instance, 0, 0), Detail(1, [[]]), False, loops=False) for _ in range(2)]
        model = coupled_steps.build(instance, parts, 100.0)
        for part, shape in zip(model.step.values(), (before, after), strict=True):
            for (u, v), var in part.links.items():
                var.fix(shape[u][v])
        result = mathprog.solve(model, replace(_options(), relative_gap=0.0), bounded=True)
        assert result.objective is not None
        seconds = model.fixed_cost + model.unit * result.objective
        assert seconds == pytest.approx(2.0 + oracle.change_seconds(raw, before, after))


def test_idle_ports_need_no_loops():
    """0 -> 1 and nothing else on three GPUs: 1 has an idle output and no idle input. With loops it could not be."""
    steps = [{"bytes": 0.0, "pairs": [[0, 1]]}]
    instance = stated(gpus=3, ports=1, steps=steps, delay_per_circuit=1e-6)
    for loops, ended in ((False, "optimal"), (True, "infeasible")):
        model = _program(instance, 1.0, loops)
        for ends, var in model.step[0].links.items():
            if ends[0] != ends[1]:
                var.fix(int(ends == (0, 1)))
        assert mathprog.solve(model, _options(), bounded=True).termination == ended


def test_one_row_for_all_ports_is_the_constant_delay():
    keys = {"algorithm": "swing", "gpus": 4, "ports": 2, "message_bytes": 1e6, "half": "reduce_scatter"}
    plain = made(**keys, reconfiguration_delay=2e-6)
    table = made(**keys, reconfiguration_delay=0.0, delay_by_ports="16:2e-6")
    found = [misocp.solve(one, _options()) for one in (plain, table)]
    assert "interval" in found[0].bound_proof or "partition" in found[0].bound_proof
    values = [check_schedule(plain, one.solution).value for one in found]
    assert values[0] == pytest.approx(values[1], rel=2e-4)
    assert all(one.termination == "optimal" for one in found)


@pytest.mark.long
def test_proves_the_reduce_scatter_whose_best_topologies_are_no_rings():
    """tests/models/harvest/test_delays.py derives 6.45 us; the least over all sequences of permutations."""
    instance = made(**EIGHT, **PER_CIRCUIT)
    record = synth.solve(instance, method="misocp", solver="highs", time_limit=120)
    assert record["termination"] == "optimal"
    assert record.value == pytest.approx(6.45e-6)
    assert record.bound is not None
    assert record.bound >= 6.45e-6 * (1 - 1.01e-4)
    assert "all steps and all topologies" in record["bound_proof"]
    assert synth.check(record, instance).ok


@pytest.mark.parametrize("number", [3, 8])
@pytest.mark.parametrize(
    "changed", [{"symmetry": False}, {"strengthening": False}, {"symmetry": False, "strengthening": False}]
)
def test_switches_change_nothing(changed, number):
    raw = oracle.random_trade_off(number, 3)
    _optimal(raw, misocp.solve(_instance(raw), _options(**changed)))


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("solver", "cone"), [("scip", "cone"), ("scip", "cuts"), ("gurobi", "cuts")])
@pytest.mark.parametrize(("gpus", "number"), [(3, 2), (4, 8)])
def test_solvers_agree(solver, cone, gpus, number):
    if not known_solvers()[solver].installed:
        pytest.skip(f"{solver} is not installed")
    raw = oracle.random_trade_off(number, gpus)
    _optimal(raw, misocp.solve(_instance(raw), _options(solver, cone=cone)))


def test_symmetry_keeps_a_best_schedule_of_steps_that_are_relabelled_together():
    """A relabelling must move all topologies alike: the steps' patterns have other symmetries each."""
    steps = [
        {"bytes": 1e5, "pairs": [[0, 1], [1, 2], [2, 3], [3, 0]]},
        {"bytes": 3e5, "pairs": [[2, 0], [0, 2]]},
        {"bytes": 2e5, "pairs": [[1, 3], [3, 1], [0, 2], [2, 0]]},
    ]
    raw = {**oracle.random_trade_off(0, 4), "steps": steps, "delta": 5e-7, "delay_per_circuit": 1e-6, "name": "turned"}
    _optimal(raw, misocp.solve(_instance(raw), _options()))


def test_the_bound_holds_when_time_is_short(monkeypatch):
    """One program of a second and no more."""
    left = [60.0]
    monkeypatch.setattr(RunOptions, "remaining", lambda _: left[0])
    improve = coupled_method._improve

    def improved(*words):
        left[0] = 1.0
        improve(*words)
        left[0] = 0.0

    monkeypatch.setattr(coupled_method, "_improve", improved)
    instance = made(**EIGHT | {"half": "both"}, **PER_CIRCUIT)
    outcome = misocp.solve(instance, _options())
    value = check_schedule(instance, outcome.solution).value
    assert outcome.termination == "time_limit"
    assert outcome.bound is not None
    assert value is not None
    assert 0.3 * value < outcome.bound < value


def test_too_large():
    keys = {"algorithm": "recursive_doubling", "gpus": 64, "ports": 1, "message_bytes": 1e6}
    with pytest.raises(SizeLimitError, match="more than 200000 flows; try candidates, bound"):
        misocp.solve(made(**keys, **PER_CIRCUIT), _options())


@pytest.mark.parametrize("field", ["reconfiguration_delay", "delay_per_circuit"])
@pytest.mark.parametrize("overlap", [0.0, 1e-3, 1e200])
def test_delays_beyond_all_measure(field, overlap):
    """Two permutations that differ, so that a change would pay: it does only where all of it is hidden."""
    steps = [{"bytes": 1e6, "shift": 1}, {"bytes": 1e6, "shift": 2, "overlap": overlap}]
    instance = stated(ports=1, steps=steps, **{"delay_per_circuit": 1e-9, field: 1e100})
    outcome = misocp.solve(instance, _options())
    value = check_schedule(instance, outcome.solution).value
    assert value is not None
    apart, ring = 2 * (5e-7 + 5e-7 + 1e-5), 5e-7 + 5e-7 + 1e-5 + 5e-7 + 2 * 5e-7 + 2e-5
    assert value == pytest.approx(apart if overlap > 1 else ring)
    assert outcome.bound <= value
    assert outcome.termination == "optimal"


def test_tiny_delays_are_left_out_of_the_program():
    """1e-20 s a circuit: below what solvers take; the bound lacks it, and the gap is closed all the same."""
    steps = [{"bytes": 1e6, "shift": shift} for shift in (1, 2)]
    instance = stated(ports=1, steps=steps, reconfiguration_delay=0.0, delay_per_circuit=1e-20)
    outcome = misocp.solve(instance, _options())
    assert outcome.termination == "optimal"
    value = check_schedule(instance, outcome.solution).value
    assert value == pytest.approx(2 * (5e-7 + 5e-7 + 1e-5))


def test_some_of_the_instances_change_and_some_stay():
    """Of these, each of which would change its topology for nothing, some pay for a change."""
    raws = [oracle.random_trade_off(number, 4) for number in (11, 19)]
    static = [sum(oracle.tables(raw)[0]).min() for raw in raws]
    changing = [oracle.optimum(raw) < least * (1 - 1e-6) for raw, least in zip(raws, static, strict=True)]
    assert all(_costs_something(raw) for raw in raws)
    assert any(changing)
    assert not all(changing)
