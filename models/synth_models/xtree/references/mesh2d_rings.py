"""Method ``mesh2d_rings`` (reference): hierarchical rings, one dimension of a 2-D mesh or torus after the other.

Ying, Kumar, Chen, Wang, Cheng: "Image Classification at Supercomputer Scale", 2018, and Kumar, Jouppi: "Highly
Available Data Parallel ML Training on Mesh Networks", 2020; the baseline "2DMesh" of XTree, section V.

Allgather: half of the chunks are gathered along the rows (X) and then, together with all that came from their row,
along the columns (Y); the other half at the same time along Y, then X. The second phase begins when the first has ended
everywhere. Which half a chunk belongs to is a checkerboard: chunk j of node (r, c) goes X first if r + c + j is
even. With a side of 1 there is one dimension and no second half.

The rings. Along a closed row (torus, side above 2) a chunk goes round in one direction, n - 1 hops; every second
chunk of a half goes the other way round. Along an open row (mesh) of n nodes a ring exists only folded flat: a chunk
goes from its owner outwards both ways, every node passing on to one side what comes from the other. That takes (n - 1)
timesteps per chunk, as many as a ring in one direction, and no algorithm is faster, as all of it enters the end
node over one link. An EquiMesh is used as the mesh in it; its edge rings stay idle.

Reduce-scatter is the allgather of the reversed network played backwards, allreduce is both, one after the other, which
is the original's order of phases (reduce-scatter X, Y; allgather Y, X). Deviations: the original cuts each node's data
into bytes as needed, here whole chunks are dealt, so halves may differ by a chunk per row; the two mesh half-phases
on one link take turns by the longest way to go; Kumar and Jouppi's detours around failed chips are left out.

Complexity: O(T * links + M log M) for M transfers. Guarantee: in each phase every link works whenever a chunk waits for
it. Deterministic.
"""

from __future__ import annotations

import numpy as np

from synth.method import Outcome
from synth.network import Network
from synth.options import RunOptions
from synth.schedule import Schedule
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references.from_allgather import by_allgather
from synth_models.xtree.references.grid_links import COLUMN, MINUS, PLUS, ROW, dimension_ordered, links_into
from synth_models.xtree.references.list_scheduler import list_schedule


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``mesh2d_rings``, on mesh, torus and EquiMesh. Raises :class:`UnsupportedError` elsewhere."""
    schedule = by_allgather(instance, allgather)
    message = f"bandwidth bound of any algorithm on this network: {lower_bound(instance)[0]} timesteps"
    return Outcome("finished", solution=schedule, message=message)


def allgather(network: Network, chunks: int) -> Schedule:
    """The two phases of the allgather."""
    into = links_into(network, ("mesh", "torus", "equimesh"), "mesh2d_rings")
    assert network.grid is not None
    owner, j = np.divmod(np.arange(network.nodes * chunks), chunks)
    place = np.divmod(owner, network.grid[1])
    turn = place[0] + place[1] + j
    y_first = (turn % 2 if min(network.grid) > 1 else np.zeros_like(turn)).astype(np.int32)
    senses = (MINUS, PLUS) if network.kind == "torus" else (None,)
    sense = turn // 2 % len(senses)
    routes = [dimension_ordered(network.grid, into, axis, around) for axis in (COLUMN, ROW) for around in senses]
    trees = np.concatenate([links for links, _ in routes])
    later = np.concatenate([second for _, second in routes])
    tree_of = ((y_first * len(senses) + sense) * network.nodes + owner).astype(np.int32)
    across = list_schedule(network, tree_of, down=np.where(later, np.int32(-1), trees))
    along = list_schedule(network, tree_of, down=np.where(later, trees, np.int32(-1)))
    return across.then(along)
