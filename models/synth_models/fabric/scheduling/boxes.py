"""Which ranks share a box."""

from __future__ import annotations

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.network_spec import MachineSpec, machine_file


def boxes(instance: FabricInstance) -> list[tuple[int, ...]]:
    """The members by box, in the order of the group: those of a named machine's file; elsewhere every rank alone."""
    if not isinstance(instance.network, MachineSpec):
        return [(rank,) for rank in instance.members]
    gpus = machine_file(instance.network.name).gpus
    found: dict[int, list[int]] = {}
    for rank in instance.members:
        found.setdefault(rank // gpus, []).append(rank)
    return [tuple(box) for box in found.values()]
