"""Method ``tidalmesh`` (reference, RECONSTRUCTION): dimension-ordered trees, both halves of an allreduce overlapped.

Lim, Kim: "TidalMesh: Topology-Driven AllReduce Collective Communication for Mesh Topology", HPCA 2025; baseline of
XTree, section V, whose text only says that it overlaps the reduce-scatter of some chunks with the allgather of others.
Everything below that sentence is our reconstruction and may differ from the original's schedules.

Chunk j of node (r, c) travels X then Y if r + c + j is even, Y then X otherwise. In an allgather its tree goes from the
owner along the first dimension both ways and from every node reached along the second. In a reduce-scatter partial
sums take the same tree backwards to the owner. In an allreduce a chunk does the second and then, with no barrier to
other chunks, the first; all transfers are scheduled together (``routes.list_schedule``).

Why this suits a mesh: copies load a link the more, the more nodes lie behind it, sums the more, the more lie in front
of it, like ebb and flow. Together every link that joins neighbours of a row (or column) of n nodes carries
C * (N + n) / 2 transfers of an allreduce (C even). On a square mesh this fills all links evenly, so the volume bound
could be met; elsewhere the links of the longer dimension are the bottleneck. To have sums and copies at the same
time, the chunks j of all nodes form a wave, and earlier waves are more urgent: while wave j is handed down, wave j + 1
is being summed. With C = 1 there is one wave and little overlap.

Complexity: O(T * links + M log M) for M transfers. Guarantee: no link idles while a chunk waits for it. Deterministic.
Meshes only; an EquiMesh is used as the mesh in it, its edge rings stay idle.
"""

from __future__ import annotations

import numpy as np

from synth.method import Outcome
from synth.network import Network
from synth.options import RunOptions
from synth.schedule import Schedule
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references.from_allgather import check_listed
from synth_models.xtree.references.grid_links import COLUMN, ROW, dimension_ordered, links_into, turned_round
from synth_models.xtree.references.list_scheduler import list_schedule


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``tidalmesh``. Raises :class:`UnsupportedError` on anything but a 2-D mesh or EquiMesh."""
    check_listed(instance)
    schedule = tidal(instance.topology, instance.collective, instance.chunks)
    message = (
        "reconstruction from one sentence of XTree; "
        f"bandwidth bound of any algorithm on this network: {lower_bound(instance)[0]} timesteps"
    )
    return Outcome("finished", solution=schedule, message=message)


def tidal(network: Network, collective: str, chunks: int) -> Schedule:
    """The schedule of one of the three collectives."""
    into = links_into(network, ("mesh", "equimesh"), "tidalmesh")
    assert network.grid is not None
    owner, j = np.divmod(np.arange(network.nodes * chunks), chunks)
    row, col = np.divmod(owner, network.grid[1])
    tree_of = ((row + col + j) % 2 * network.nodes + owner).astype(np.int32)
    trees = np.concatenate([dimension_ordered(network.grid, into, axis)[0] for axis in (COLUMN, ROW)])
    copies = trees if collective != "reduce_scatter" else None
    sums = turned_round(network, into, trees) if collective != "allgather" else None
    return list_schedule(network, tree_of, copies, sums, group=j if collective == "allreduce" else None)
