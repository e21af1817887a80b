"""An instance on which the program's free late hops once stopped the method with 8 % open."""

from __future__ import annotations

import pytest

from synth import api
from synth.instance import parse
from synth_models.harvest.instance import HarvestInstance

INSTANCE = {
    "format": "synth-instance/1",
    "family": "harvest",
    "source": "random, found by brute force",
    "name": "late-hops",
    "gpus": 5,
    "ports": 2,
    "port_bandwidth": 1e11,
    "alpha": 0,
    "delta": 3e-6,
    "reconfiguration_delay": 1e-4,
    "steps": [
        {"bytes": 295373.1, "pairs": [[2, 4], [3, 2], [4, 3]]},
        {"bytes": 1911.0, "pairs": [[0, 1], [0, 2], [1, 0], [1, 4], [2, 1], [2, 3], [3, 2], [3, 4], [4, 0], [4, 3]]},
    ],
}


@pytest.mark.long
def test_layers_are_added_until_the_gap_closes() -> None:
    record = api.solve(parse(INSTANCE, HarvestInstance, "test"), "misocp", time_limit=60)
    assert record["termination"] == "optimal"
    assert record.value == pytest.approx(1.1972841e-5)  # least of all 2760 topologies that no link can be added to
    assert record.bound is not None
    assert record.bound >= 1.1972841e-5 * (1 - 1.01e-4)
