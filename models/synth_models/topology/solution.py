"""The solution type of all methods: the circuits, for the objective ``load`` a routing, for ``mix`` schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.arrays import IntArray
from synth.text import untrusted
from synth_models.topology.instance import TopologyInstance

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 1 << 23  # of a routing
MOST_SCALE = 1 << 24
MOST_AMOUNT = 1 << 37  # of a row: MOST_SCALE units to each of 2^13 nodes


def _none(columns: int) -> IntArray:
    return np.zeros((0, columns), dtype=np.int64)


@dataclass(frozen=True)
class Topology:
    """The circuits and where the units go.

    ``circuits``, shape (circuits, 3): switch, sending port, receiving port; where the plant is of the kind ``degree``
    the switch is 0 and a port is a node. ``flow``, shape (rows, 4): source, tail, head, amount: of what the source
    sends, ``amount / scale`` units go over the arcs from tail to head together. ``symmetries``, shape (maps, nodes):
    renumberings of the nodes that map the arcs onto themselves. Under what these generate, one node of every orbit is a
    source; all others send as its images do, every image alike.

    ``schedules``: for each collective of a mix what its family stores of a schedule, as plain values and flat arrays,
    on these links: the fixed ones, then the circuits, each in its order, first from the one node to the other and then
    back; a link from a node to itself is none.
    """

    circuits: IntArray
    scale: int = 1
    symmetries: IntArray = field(default_factory=lambda: _none(0))
    flow: IntArray = field(default_factory=lambda: _none(4))
    schedules: tuple[Mapping[str, Any], ...] = ()


def pack(topology: Topology) -> dict[str, Any]:
    """Plain values and flat arrays; the keys of the i-th schedule begin with ``schedule<i>_``."""
    packed = {
        "circuits": topology.circuits,
        "scale": topology.scale,
        "symmetries": topology.symmetries,
        "flow": topology.flow,
    }
    for i, schedule in enumerate(topology.schedules):
        packed |= {f"schedule{i}_{key}": value for key, value in schedule.items()}
    return packed


def unpack(instance: TopologyInstance, packed: Mapping[str, Any]) -> Topology:
    """The inverse of :func:`pack`. Raises ``ValueError`` on data that is no topology."""
    circuits = untrusted.whole_numbers({"circuits": _shaped(packed, "circuits", 3)}, "circuits", 0, 1 << 31, (None, 3))
    scale = untrusted.whole(packed, "scale", 1, MOST_SCALE)
    nodes = instance.nodes
    symmetries = untrusted.whole_numbers(
        {"symmetries": _shaped(packed, "symmetries", nodes)}, "symmetries", 0, nodes - 1, (None, nodes)
    )
    flow = untrusted.whole_numbers({"flow": _shaped(packed, "flow", 4)}, "flow", 0, MOST_AMOUNT, (None, 4))
    if len(flow) > MOST_ROWS:
        raise ValueError(f"flow has {len(flow)} rows, at most {MOST_ROWS} are read")
    prefixes = [f"schedule{i}_" for i in range(len(instance.mix or ()))]
    schedules = [
        {key.removeprefix(prefix): value for key, value in packed.items() if key.startswith(prefix)}
        for prefix in prefixes
    ]
    return Topology(circuits, scale, symmetries, flow, tuple(schedules))


def _shaped(packed: Mapping[str, Any], key: str, columns: int) -> Any:
    """The value under the key; an empty one has rows of that many columns."""
    if key not in packed:
        raise ValueError(f"{key} is missing")
    value = packed[key]
    empty = isinstance(value, (list, np.ndarray)) and len(value) == 0
    return np.zeros((0, columns), dtype=np.int64) if empty else value


def table(instance: TopologyInstance, topology: Topology) -> pd.DataFrame:
    """Columns ``switch,sends,receives,src,dst``: the circuits with the ports and nodes that they join."""
    import pandas as pd

    switch, sends, receives = topology.circuits.T
    src, dst = joined(instance, topology.circuits).T
    return pd.DataFrame({"switch": switch, "sends": sends, "receives": receives, "src": src, "dst": dst})


def flow_table(instance: TopologyInstance, topology: Topology) -> pd.DataFrame:
    """Columns ``source,src,dst,amount,scale``: what the source sends over the arcs from src to dst, in units divided
    by scale."""
    import pandas as pd

    frame = pd.DataFrame(topology.flow, columns=["source", "src", "dst", "amount"])
    return frame.assign(scale=topology.scale)


def joined(instance: TopologyInstance, circuits: IntArray) -> IntArray:
    """The two nodes that each circuit joins, shape (circuits, 2). Raises ``IndexError`` where a port is none."""
    if instance.degree is not None:
        return circuits[:, 1:]
    rows = [(instance.switches[s].sends[a], instance.switches[s].receives[b]) for s, a, b in circuits.tolist()]
    return np.array(rows, dtype=np.int64).reshape(-1, 2)
