"""``misocp`` by cases of hop limits: the cases cover all topologies, and the answers are those of the enumeration."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from synth.instance import parse
from synth.options import RunOptions
from synth.solvers import mathprog
from synth_models.harvest import (
    check,
    exhaustive,
    misocp,
    misocp_blocks,
    misocp_cases,
    misocp_interval,
    misocp_model,
    misocp_symmetric,
)
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.making import make

INSTANCES = Path(__file__).parents[3] / "instances" / "harvest"
PATTERNS = ((1, 2, 3, 0), (1, 0, 3, 2), (2, 3, 1, 0))


def _options(seconds: float = 300.0) -> RunOptions:
    return RunOptions(
        time_limit_s=seconds, solver="highs", method={"symmetry": True, "strengthening": True, "cone": "auto"}
    )


def _three_steps(delta: float) -> HarvestInstance:
    raw = {
        "family": "harvest", "name": "three", "source": "test", "gpus": 4, "ports": 2, "port_bandwidth": 1e11,
        "alpha": 5e-7, "delta": delta, "reconfiguration_delay": 1e-3,
        "steps": [
            {"bytes": 1e5 * (i + 1), "pairs": [[u, v] for u, v in enumerate(p)]} for i, p in enumerate(PATTERNS)
        ],
    }  # fmt: skip
    instance = parse(json.loads(json.dumps(raw)), HarvestInstance, "test")
    assert isinstance(instance, HarvestInstance)
    return instance


def _on_one_topology(program, blocks, layers, links) -> float:
    """The least of all cases with the link counts given, in seconds."""
    counts = {(int(u), int(v)): int(c) for u, v, c in links}
    tangents = [sorted({p / q for q in range(1, 9) for p in range(1, 2 * q + 1)})] * len(blocks)
    values = []
    for limits in misocp_cases.limits_of(blocks, layers, program.instance.gpus):
        model = misocp_model.build(program.instance, blocks, layers, tangents, None, limits)
        del model.degrees
        for (u, v), var in model.links.items():
            var.fix(counts.get((u, v), 0))
        misocp_model.relax(model)
        result, _ = mathprog.solve_lp(model, _options(), [])
        if result.objective is not None:
            values.append(model.fixed_cost + model.unit * result.objective)
    return min(values)


@pytest.mark.parametrize("delta", [1e-7, 5e-6])
def test_some_case_has_the_time_of_every_topology(delta):
    instance = _three_steps(delta)
    blocks = misocp_blocks.blocks_of(instance, 0, 2)
    program = misocp_interval.IntervalProgram(instance, _options())
    tried = 0
    for number, counts in enumerate(exhaustive.topologies(4, 2)):
        if number % 97:
            continue
        src, dst = np.nonzero(counts * (1 - np.eye(4, dtype=np.int64)))
        links = np.stack([src, dst, counts[src, dst]], axis=1)
        true = program.seconds(blocks, links)
        if not np.isfinite(true):
            continue
        tried += 1
        assert _on_one_topology(program, blocks, 3, links) == pytest.approx(true, rel=1e-6)
        assert _on_one_topology(program, blocks, 1, links) <= true * (1 + 1e-6)
        assert _on_one_topology(program, blocks, 2, links) <= true * (1 + 1e-6)
    assert tried > 1


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-7, 5e-6])
def test_three_different_steps_are_the_enumerated_optimum(delta, monkeypatch):
    monkeypatch.setattr(misocp_cases, "WIDE", 0.0)
    instance = _three_steps(delta)
    assert misocp_cases.worthwhile(misocp_blocks.blocks_of(instance, 0, 2))
    outcome = misocp.solve(instance, _options())
    value = check.check_plan(instance, outcome.solution).value
    assert outcome.termination == "optimal"
    assert value == pytest.approx(exhaustive.optimum(instance), rel=1e-4)


def test_symmetric_topologies_use_all_ports_and_are_rated_rightly():
    fabric = {"port_bandwidth": "100e9", "alpha": "500e-9", "delta": "500e-9", "message_bytes": "4194304"}
    instance = make({**fabric, "algorithm": "bruck_allgather", "gpus": "8", "ports": "2", "reconfiguration_delay": "1"})
    blocks = misocp_blocks.blocks_of(instance, 0, 2)
    found = misocp_symmetric.invariant(blocks, 8, 2)
    assert len(found) > 28
    assert (found.sum(axis=1) == 2).all()
    assert (found.sum(axis=2) == 2).all()
    program = misocp_interval.IntervalProgram(instance, _options())
    links = misocp_symmetric.best(blocks, instance, lambda one: program.seconds(blocks, one), lambda: False)
    assert links is not None
    circulants = [matrix for matrix in found if (np.roll(matrix, (1, 1), (0, 1)) == matrix).all()]
    best = min(
        program.seconds(blocks, np.stack([*np.nonzero(one), one[np.nonzero(one)]], axis=1)) for one in circulants
    )
    assert program.seconds(blocks, links) <= best


@pytest.mark.slow
def test_one_topology_for_all_steps_of_swing_with_two_ports():
    instance = parse(json.loads((INSTANCES / "swing-8-static-p2.json").read_text()), HarvestInstance, "test")
    assert isinstance(instance, HarvestInstance)
    outcome = misocp.solve(instance, _options(3600.0))
    verdict = check.check_plan(instance, outcome.solution)
    assert outcome.termination == "optimal"
    assert outcome.bound is not None
    assert verdict.ok, verdict.faults
    assert verdict.value is not None
    assert verdict.value * (1 - 1e-4) <= outcome.bound <= verdict.value * (1 + 1e-9)
