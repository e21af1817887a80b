"""Which instances differ in size only."""

from __future__ import annotations

import hashlib
import json

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.box_machine import MachineSpec
from synth_models.fabric.problem.network_spec import OwnSpec
from synth_models.fabric.problem.several import SEVERAL

NEWER = (
    "leaf",
    "rails",
    "oversubscription",
    "spines",
    "layers",
    "bandwidths",
    "latencies",
    "boxes",
    "domain",
)  # keys of networks that older instances do not have


def series(instance: FabricInstance) -> tuple[str, float] | None:
    """Machine and collective in words, and the size in bytes; None where sizes are many: for a demand, traffic or
    several collectives. Where words do not tell two apart (links of a file, failures, process groups), four letters of
    a hash do."""
    if instance.collective in ("demand", "traffic", SEVERAL):
        return None
    network = instance.network
    words = [instance.collective.replace("_", "-"), "on"]
    plain = instance.ranks is None and instance.root is None and not instance.failed.anything
    if isinstance(network, MachineSpec):
        words += [network.name, *([f"x{network.boxes}"] if network.boxes > 1 else []), *network.variant_words]
        plain = plain and instance.switching.mode == "cut_through"
    else:
        sides = network.model_dump(
            exclude={"kind", "bandwidth", "latency", "links", "names", "positions", "switches", "domain"}
        )
        numbers = [str(value) for value in sides.values() if isinstance(value, int) and not isinstance(value, bool)]
        words += [network.kind, "x".join(numbers), *(f"not {key}" for key, value in sides.items() if value is False)]
        plain = plain and not isinstance(network, OwnSpec)
    if not plain:
        words.append(f"#{_hash(instance)}")
    return " ".join(filter(None, words)), float(instance.bytes)


def _hash(instance: FabricInstance) -> str:
    """Four letters of everything but name, source and size; keys that older instances do not have are left out where
    nothing stands, so that names of series stay."""
    raw = instance.model_dump(mode="json", exclude={"name", "source", "bytes", "collectives", "objective"})
    if instance.failed.reduced is None:
        raw["failed"].pop("reduced")
    for key in NEWER:
        if raw["network"].get(key, 0) is None:
            raw["network"].pop(key)
    return hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).hexdigest()[:4]
