"""Instances of the harvest tests: 1e11 bytes/s a port, alpha = delta = 500 ns, 10 us to reconfigure, unless said."""

from __future__ import annotations

from typing import Any

import synth
from synth.instance import parse
from synth_models.harvest.instance import HarvestInstance

FABRIC = {"port_bandwidth": 1e11, "alpha": 5e-7, "delta": 5e-7, "reconfiguration_delay": 1e-5}
SWITCHES = {"symmetry": True, "strengthening": True, "cone": "auto"}  # of misocp, as they are by default


def made(**keys: Any) -> HarvestInstance:
    """What ``synth make harvest`` makes of the keys."""
    instance = synth.make("harvest", **{**FABRIC, **keys})
    assert isinstance(instance, HarvestInstance)
    return instance


def stated(**fields: Any) -> HarvestInstance:
    """An instance file's data: 4 GPUs unless said, ``steps`` and ``ports`` as given."""
    raw = {"format": "synth-instance/1", "family": "harvest", "name": "case", "source": "test", "gpus": 4}
    return parse({**raw, **FABRIC, **fields}, HarvestInstance, "test")
