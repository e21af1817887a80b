"""Which default methods fit an instance."""

from __future__ import annotations

from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.demands import most_partners
from synth_models.harvest.parts.topologies import static_tori
from synth_models.harvest.references.recursive_doubling import applies


def suited(instance: HarvestInstance, method: str) -> bool:
    """Whether a default method has a form for the instance's ports and steps."""
    match method:
        case "bvn":
            return all(most_partners(pairs) <= instance.ports for pairs in instance.pairs)
        case "static_torus":
            return bool(static_tori(instance))
        case "static_kautz":
            return 2 <= instance.ports < instance.gpus
        case "recursive_doubling_closed_form":
            return applies(instance)
    return True
