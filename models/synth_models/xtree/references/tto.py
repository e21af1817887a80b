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

from typing import Any

import numpy as np
import numpy.typing as npt

from synth.errors import UnsupportedError
from synth.family import Outcome
from synth.kernels import jit
from synth.network import Network
from synth.options import RunOptions
from synth.schedule.schedule import Schedule
from synth_models.xtree.bounds.counting import lower_bound
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references.list_scheduler import links_into, list_schedule, turned_round

IntArray = npt.NDArray[np.int32]

TREES = 3
IDLE = 0  # the idle corner; the roots are the other three


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``tto``. Raises :class:`UnsupportedError` on anything but a 2-D mesh or EquiMesh of at least 2x2."""
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


def corner_trees(network: Network, into: IntArray) -> IntArray:
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
    tail, head = network.src[usable], network.dst[usable]
    by_tail, by_head = np.argsort(tail, kind="stable"), np.argsort(head, kind="stable")
    ends = np.arange(network.nodes + 1)
    place, complete = _edmonds(
        network.nodes, tail, head, np.searchsorted(tail[by_tail], ends), by_tail,
        np.searchsorted(head[by_head], ends), by_head, roots,
    )  # fmt: skip
    if not complete:
        raise UnsupportedError(f"a {rows}x{cols} mesh has no three link-disjoint trees rooted at three corners")
    trees: IntArray = np.where(place >= 0, usable[place], -1).astype(np.int32)
    relays = np.any((trees >= 0) & (network.src[trees] == IDLE), axis=1)
    trees = trees[np.argsort(~relays, kind="stable")]  # the tree without the corner as a relay comes last
    other = trees[-1].copy()
    other[IDLE] = corner_links[corner_links != other[IDLE]][0]
    return np.concatenate([trees, other[None]])


@jit
def _edmonds(nodes: int, tail: Any, head: Any, out: Any, by_tail: Any, start: Any, by_head: Any, roots: Any) -> Any:
    """Lovasz' proof of Edmonds' theorem: trees one after the other, never taking an arc that a later one must have.

    With roots ``r_2..r_k`` still to serve and the arcs left over, every node set X must keep as many arcs in as there
    are of those roots outside X. A tree's new arc (u, v) endangers only sets with v and without u: those have enough
    iff v gets k-1 units of flow from u (any amount) and the other roots (one each). An arc refused once stays refused.
    """
    trees = len(roots)
    arcs = len(tail)
    used = np.zeros(arcs, np.bool_)
    place = np.full((trees, nodes), -1, np.int32)
    flow = np.zeros(arcs, np.bool_)
    via, seen = np.empty(nodes, np.int64), np.empty(nodes, np.bool_)
    queue, members = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    for t in range(trees):
        inside = np.zeros(nodes, np.bool_)
        inside[roots[t]] = True
        members[0], size, m = roots[t], 1, 0
        while m < size:
            u = members[m]
            m += 1
            for i in range(out[u], out[u + 1]):
                arc = by_tail[i]
                v = head[arc]
                if used[arc] or inside[v]:
                    continue
                used[arc] = True
                flow[:] = False
                token = np.zeros(nodes, np.int64)  # roots still to serve whose unit has not been sent
                for later in range(t + 1, trees):
                    token[roots[later]] += 1
                served = True
                for _ in range(trees - 1 - t):  # one augmenting path, searched from v backwards, per unit
                    seen[:] = False
                    seen[v] = True
                    queue[0], first, last, source = v, 0, 1, -1
                    while first < last:
                        x = queue[first]
                        first += 1
                        if x == u or token[x] > 0:
                            source = x
                            break
                        for q in range(start[x], start[x + 1]):
                            a = by_head[q]
                            if not used[a] and not flow[a] and not seen[tail[a]]:
                                seen[tail[a]] = True
                                via[tail[a]] = a
                                queue[last] = tail[a]
                                last += 1
                        for q in range(out[x], out[x + 1]):
                            a = by_tail[q]
                            if flow[a] and not seen[head[a]]:
                                seen[head[a]] = True
                                via[head[a]] = arcs + a
                                queue[last] = head[a]
                                last += 1
                    if source < 0:
                        served = False
                        break
                    if source != u:
                        token[source] -= 1
                    x = source
                    while x != v:
                        if via[x] < arcs:
                            flow[via[x]] = True
                            x = head[via[x]]
                        else:
                            flow[via[x] - arcs] = False
                            x = tail[via[x] - arcs]
                if served:
                    place[t, v] = arc
                    inside[v] = True
                    members[size] = v
                    size += 1
                else:
                    used[arc] = False
        if size < nodes:
            return place, False
    return place, True


@jit
def _flood(src: Any, dst: Any, trees: Any, back: Any) -> Any:
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
