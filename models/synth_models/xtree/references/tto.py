"""Method ``tto`` (reference, RECONSTRUCTION): three link-disjoint trees on a mesh, rooted at three corners.

Laskar, Majhi, Kim, Mahmud, Muzahid, Kim: "Enhancing Collective Communication in MCM Accelerators for Deep Learning
Training" (TTO), HPCA 2024; baseline of XTree, section V, whose text says no more than that it builds three
non-interlaced trees, pipelines chunks over them, and that one corner node does not participate. Everything else here is
our reconstruction and may differ from the original's trees and schedules.

**The trees.** A tree directed away from its root needs a link of its own into every other node. A corner has two links
in, so three trees can share no link only if each corner in them is the root of one; hence the fourth corner, node 0, is
idle. It cannot be left out altogether: either neighbour a, b of it has exactly as many links in as there are trees of
which it is not the root (three, or two if it is a corner), so it needs the link from the idle corner too. That makes
the corner a relay, b - corner - a in one tree and a - corner - b in another. For the complete collective, which the
original does not ask for, it also joins the third tree, as a leaf, over the same two links, every second chunk of that
tree over each. This is our addition, and the only place where trees share links: in an allreduce of K chunks each link
at the corner carries about 5K/6 transfers, every other one at most about 2K/3. The trees are found for every mesh of at
least 2x2 by Edmonds' theorem on the mesh with one link into the idle corner doubled, as in Lovasz' proof: a tree takes,
nearest to the root first, each link whose loss leaves every node enough link-disjoint paths from the other roots (a
max-flow of at most two units per link). 3(N-1) of these links are needed, and links + 1 - 3(N-1) = (R-2)(C-2) >= 0.

**The collectives.** Chunk k goes with tree k mod 3. Allreduce: sums go up the tree to its root and from there, once
complete, copies down, all chunks pipelined without a barrier; down-links of one tree may be up-links of another. The
chunks j of all nodes are more urgent than the chunks j + 1. Allgather: a chunk floods its tree, taken undirected, from
its owner. Reduce-scatter: the same backwards, partial sums flow along the tree to the owner.

Complexity: O(links^2) for the trees, then O(T * links + M log M) for M transfers. No guarantee but completion.
Deterministic. Meshes only; an EquiMesh is used as the mesh in it, its edge rings stay idle.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import Int32Array
from synth.errors import UnsupportedError
from synth.kernels import jit
from synth.method import Outcome
from synth.network import Network
from synth.options import RunOptions
from synth.schedule import Schedule
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references.from_allgather import check_listed
from synth_models.xtree.references.grid_links import links_into, turned_round
from synth_models.xtree.references.list_scheduler import list_schedule

TREES = 3
IDLE = 0  # the idle corner; the roots are the other three


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``tto``. Raises :class:`UnsupportedError` on anything but a 2-D mesh or EquiMesh of at least 2x2."""
    check_listed(instance)
    schedule = three_trees(instance.topology, instance.collective, instance.chunks)
    message = (
        "reconstruction from one sentence of XTree, the idle corner served as well; "
        f"bandwidth bound of any algorithm on this network: {lower_bound(instance)[0]} timesteps"
    )
    return Outcome("finished", solution=schedule, message=message)


def three_trees(network: Network, collective: str, chunks: int) -> Schedule:
    """The schedule of one of the three collectives."""
    into = links_into(network, ("mesh", "equimesh"), "tto")
    assert network.grid is not None
    if min(network.grid) < 2:
        raise UnsupportedError(f"tto needs three other corners, a {network.grid[0]}x{network.grid[1]} mesh has none")
    trees = corner_trees(network, into)
    turn = np.arange(network.nodes * chunks)
    owner, j = np.divmod(turn, chunks)
    variant = turn % TREES
    variant[(variant == TREES - 1) & (turn // TREES % 2 == 1)] = TREES
    back = turned_round(network, into, trees)
    if collective == "allreduce":
        return list_schedule(network, variant.astype(np.int32), trees, back, group=j)
    flooding = _flood(network.src, network.dst, trees, back).reshape(-1, network.nodes)
    tree_of = (variant * network.nodes + owner).astype(np.int32)
    if collective == "allgather":
        return list_schedule(network, tree_of, down=flooding)
    return list_schedule(network, tree_of, up=turned_round(network, into, flooding))


def corner_trees(network: Network, into: Int32Array) -> Int32Array:
    """Links into every node, shape (4, nodes), -1 at roots: three trees, and the third with another link to the idle
    corner, which is a leaf in it. The first three share exactly one link with each other, one into the idle corner.

    ``into`` are the mesh's links as :func:`links_into` gives them. Raises :class:`UnsupportedError` if there are none.
    """
    assert network.grid is not None
    rows, cols = network.grid
    roots = np.array([rows * cols - 1, cols - 1, (rows - 1) * cols], dtype=np.int32)
    mesh = np.sort(into[into >= 0])
    corner_links = mesh[network.dst[mesh] == IDLE]
    usable = np.append(mesh, corner_links[:1])
    place = disjoint_arborescences(network.nodes, network.src[usable], network.dst[usable], roots)
    if place is None:
        raise UnsupportedError(f"a {rows}x{cols} mesh has no three link-disjoint trees rooted at three corners")
    trees: Int32Array = np.where(place >= 0, usable[place], -1).astype(np.int32)
    relays = np.any((trees >= 0) & (network.src[trees] == IDLE), axis=1)
    trees = trees[np.argsort(~relays, kind="stable")]  # the tree without the corner as a relay comes last
    other = trees[-1].copy()
    other[IDLE] = corner_links[corner_links != other[IDLE]][0]
    return np.concatenate([trees, other[None]])


def disjoint_arborescences(nodes: int, tail: Int32Array, head: Int32Array, roots: Int32Array) -> Int32Array | None:
    """Arcs into every node, shape (roots, nodes), -1 at the root: a spanning tree from each root, no two with an arc
    in common; None if there are none. Parallel arcs are allowed.

    Lovasz' proof of Edmonds' theorem: trees one after the other, never taking an arc that a later one must have. With
    roots ``r_2..r_k`` still to serve and the arcs left over, every node set X must keep as many arcs in as there are of
    those roots outside X. A tree's new arc (u, v) endangers only sets with v and without u: those have enough iff v
    gets k-1 units of flow from u (any amount) and the other roots (one each). An arc refused once stays refused.
    """
    from ortools.graph.python.max_flow import SimpleMaxFlow

    count, source = len(tail), nodes
    flow = SimpleMaxFlow()
    arcs = flow.add_arcs_with_capacity(tail, head, np.ones(count, np.int64))
    supply = flow.add_arcs_with_capacity(np.full(nodes, source), np.arange(nodes), np.zeros(nodes, np.int64))
    left = np.ones(count, np.int64)
    place = np.full((len(roots), nodes), -1, np.int32)
    by_tail = [np.flatnonzero(tail == u) for u in range(nodes)]
    for t, root in enumerate(roots):
        later = roots[t + 1 :]
        members = [int(root)]
        inside = np.arange(nodes) == root
        for u in members:
            offered = np.bincount(later, minlength=nodes)
            offered[u] = len(later)
            flow.set_arcs_capacity(supply, offered)
            for arc in by_tail[u]:
                v = int(head[arc])
                if not left[arc] or inside[v]:
                    continue
                left[arc] = 0
                flow.set_arcs_capacity(arcs, left)
                flow.solve(source, v)
                if flow.optimal_flow() >= len(later):
                    place[t, v], inside[v] = arc, True
                    members.append(v)
                else:
                    left[arc] = 1
        if len(members) < nodes:
            return None
    return place


@jit
def _flood(src: Int32Array, dst: Int32Array, trees: Int32Array, back: Int32Array) -> Int32Array:
    """Each tree turned to be rooted at each node: links in, shape (trees, owners, nodes). ``back`` are the links of
    ``trees`` the other way."""
    count, nodes = trees.shape
    flooding = np.empty((count, nodes, nodes), np.int32)
    for t in range(count):
        for owner in range(nodes):
            flooding[t, owner] = trees[t]
            v = owner
            while trees[t, v] >= 0:  # only the path from the owner to the root changes its direction
                parent = src[trees[t, v]]
                flooding[t, owner, parent] = back[t, v]
                v = parent
            flooding[t, owner, owner] = -1
    return flooding
