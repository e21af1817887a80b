"""The circuits of TONS as the page ``topology`` has them."""

from __future__ import annotations

import synth
from synth_models.topology.check.replay import check_topology
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.solution import Topology
from synth_papers.topology.two_cubes import PRINTED, tons


def test_circuits_of_tons_take_every_port_and_its_hops_allow_the_printed_flow() -> None:
    """96 circuits and 54,752 hops, where its chosen routes have 54,864: the printed load is theirs over 768 arcs."""
    instance = synth.make("topology", cubes=2, objective="hops")
    assert isinstance(instance, TopologyInstance)
    verdict = check_topology(instance, Topology(tons()))
    assert verdict.ok, verdict.faults
    assert verdict.facts["circuits"] == 96
    assert verdict.value == 54752
    assert PRINTED["load.tons"].number == 54864 / 768
