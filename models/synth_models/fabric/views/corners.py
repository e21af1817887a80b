"""An instance at the corners of what a fit leaves open of its machine."""

from __future__ import annotations

from itertools import product

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.network_spec import OwnSpec

ENDS = {"least": 0, "most": 1}


def corners(instance: FabricInstance) -> dict[str, FabricInstance]:
    """The instance where every measured latency is at one end of its interval and every bandwidth at one, by what
    that is in words; none where the machine was not fitted. The slowest is the first and the fastest the last, for
    time grows with latency and falls with bandwidth."""
    network = instance.network
    if not isinstance(network, OwnSpec) or not network.intervals:
        return {}
    found = {}
    for latency, bandwidth in product(("most", "least"), ("least", "most")):
        links = [link.model_dump(mode="json", exclude_none=True) for link in network.links]
        for one in network.intervals:
            for number in one.links:
                links[number] |= {"latency": one.latency[ENDS[latency]], "bandwidth": one.bandwidth[ENDS[bandwidth]]}
        other = network.model_dump(mode="json", exclude_none=True, exclude={"intervals"}) | {"links": links}
        words = f"{latency} latency, {bandwidth} bandwidth"
        found[words] = instance.model_copy(update={"network": other})
    return found
