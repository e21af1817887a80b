"""Method ``multitree`` (reference): one spanning tree per node, grown together over the links of each timestep.

Huang, Majumder, Kim, Muzahid, Yum, Kim: "Communication Algorithm-Architecture Co-Design for Distributed Deep Learning"
(MultiTree), ISCA 2021; baseline of XTree, section V.

In each timestep all links are free at first. The trees take turns, tree 0 first; in its turn a tree takes one free
link from a node it contained before the timestep to a node it does not contain: from the earliest member that has
one, the lowest link id first. Turns go round until no tree finds a link. A tree's link of timestep t carries its
root's data in timestep t. Reproduced: the construction and C = 1. With C chunks per node all of a node's chunks
follow its tree, so each timestep of the construction lasts C timesteps, one chunk each. Reduce-scatter is the allgather
of the reversed network played backwards, as the original reverses its trees; allreduce is both. Deviation: the original
leaves the choice of parent and link to breadth-first order over its own topology tables; the order above is ours.

Complexity: O(T * N * links) at worst, memory O(N^2). No guarantee but completion; with C chunks the length is C times
that with one, so link idleness in the one-chunk schedule is never filled. Deterministic.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import Int32Array
from synth.clock.deadline import demand_time, left
from synth.kernels import jit
from synth.kernels.clock import now
from synth.method import Outcome
from synth.network import LinksByNode, Network
from synth.options import RunOptions
from synth.schedule import Schedule
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references.from_allgather import by_allgather

LARGE = 20_000  # pairs of a chunk and a node


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``multitree``, on any network."""
    return Outcome("finished", solution=by_allgather(instance, allgather))


def hold_first(instance: XTreeInstance, options: RunOptions) -> None:
    """Have a run on a large instance hold this schedule, for the case that it is stopped before it has another."""
    if instance.total_chunks * instance.topology.nodes >= LARGE:
        found = by_allgather(instance, allgather)
        options.held.offer(lambda: found, found.steps, "multitree's schedule stands in: no other in time")


def allgather(network: Network, chunks: int) -> Schedule:
    """The MultiTree allgather with ``chunks`` chunks per node."""
    step, link, tree = _multitree(network.out_links, left())
    demand_time()
    j = np.tile(np.arange(chunks, dtype=np.int32), len(step))
    step, link, tree = (np.repeat(column, chunks) for column in (step, link, tree))
    return Schedule.of((step - 1) * chunks + j + 1, link, tree * chunks + j)


@jit
def _multitree(by_tail: LinksByNode, seconds: float) -> tuple[Int32Array, Int32Array, Int32Array]:
    until = now() + seconds
    dst, pointer, links = by_tail.dst, by_tail.pointer, by_tail.links
    nodes = len(pointer) - 1
    arrived = np.full((nodes, nodes), -1, np.int32)  # timestep at which a tree got a node
    members = np.empty((nodes, nodes), np.int32)  # in order of arrival
    size, spent = np.ones(nodes, np.int64), np.zeros(nodes, np.int64)  # the first ``spent`` members have no node to add
    for root in range(nodes):
        arrived[root, root] = 0
        members[root, 0] = root
    goal = nodes * (nodes - 1)
    out_step, out_link, out_tree = np.empty(goal, np.int32), np.empty(goal, np.int32), np.empty(goal, np.int32)
    done = step = 0
    while done < goal and now() <= until:
        step += 1
        free = np.ones(len(dst), np.bool_)
        active = size < nodes
        progress = True
        while progress:
            progress = False
            for tree in range(nodes):
                if not active[tree]:
                    continue
                chosen = -1
                for m in range(spent[tree], size[tree]):
                    u = members[tree, m]
                    if arrived[tree, u] >= step:
                        break
                    useful = False
                    for i in range(pointer[u], pointer[u + 1]):
                        e = links[i]
                        if arrived[tree, dst[e]] < 0:
                            useful = True
                            if free[e]:
                                chosen = e
                                break
                    if chosen >= 0:
                        break
                    if not useful and m == spent[tree]:
                        spent[tree] += 1
                if chosen < 0:
                    active[tree] = False  # links only get fewer within a timestep
                    continue
                v = dst[chosen]
                free[chosen] = False
                arrived[tree, v] = step
                members[tree, size[tree]] = v
                size[tree] += 1
                active[tree] = size[tree] < nodes
                out_step[done], out_link[done], out_tree[done] = step, chosen, tree
                done += 1
                progress = True
    return out_step, out_link, out_tree
