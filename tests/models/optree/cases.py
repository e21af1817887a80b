"""What the optree tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import synth
from synth.options import RunOptions
from synth_models.optree.instance import OpTreeInstance

INSTANCES = Path(__file__).parents[3] / "instances" / "optree"
SHIPPED = sorted(INSTANCES.glob("*.json"))


def ring(nodes: int, wavelengths: int, **more: Any) -> OpTreeInstance:
    return OpTreeInstance(
        name=f"ring-{nodes}-w{wavelengths}", source="test", nodes=nodes, wavelengths=wavelengths, **more
    )


def limited(nodes: int, wavelengths: int, hops: int) -> OpTreeInstance:
    """A ring whose power budget allows circuits of ``hops`` hops: ``hops + 1`` interfaces at 1 dB each."""
    return ring(nodes, wavelengths, power={"laser_dbm": hops + 1.0, "pass_loss_db": 1.0})


def read(name: str) -> Any:
    return synth.read(INSTANCES / f"{name}.json")


def options(**more: Any) -> RunOptions:
    return RunOptions(**({"time_limit_s": 60.0} | more))
