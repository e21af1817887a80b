"""``misocp`` where one topology serves all steps with two ports: the hardest case of eight GPUs that is proven."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from synth.instance import parse
from synth.options import RunOptions
from synth_models.harvest.check import replay as check
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.programs.misocp import method as misocp

INSTANCES = Path(__file__).parents[4] / "instances" / "harvest"


@pytest.mark.slow
def test_one_topology_for_all_steps_of_swing_with_two_ports():
    instance = parse(json.loads((INSTANCES / "swing-8-static-p2.json").read_text()), HarvestInstance, "test")
    assert isinstance(instance, HarvestInstance)
    switches = {"symmetry": True, "strengthening": True, "cone": "auto"}
    outcome = misocp.solve(instance, RunOptions(time_limit_s=3600.0, solver="highs", method=switches))
    verdict = check.check_schedule(instance, outcome.solution)
    assert verdict.ok, verdict.faults
    assert outcome.termination == "optimal"
    assert outcome.bound is not None
    assert verdict.value is not None
    assert verdict.value == pytest.approx(76.0117e-6, rel=1e-5)
    assert verdict.value * (1 - 1e-4) <= outcome.bound <= verdict.value * (1 + 1e-9)
