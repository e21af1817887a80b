"""Methods ``xtree`` and ``mirror_xtree`` (references): the published greedy, algorithms 2 and 3 of XTree.

Cui, Qin, Cai, Huang: "XTree on EquiMesh: Topology and Algorithm Co-Design for Collective Communication".

Every chunk grows a tree from its node. In each timestep the chunk-trees are taken in the order of the farthest node
they have not reached (line 7); a tree takes one free link from a node it contained before the timestep to a node it
does not contain (lines 9-11), and turns go round until no tree finds a link. The text leaves open which of several
links a tree takes, how ties in the order are broken, and whether the order is refreshed between rounds: here ties
and links are random by the seed and the order is fixed for the timestep, as line 7 stands outside the loop.

Complexity: O(T * (NC * links + N * NC)). No guarantee but completion.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import Int32Array
from synth.clock.deadline import demand_time, left
from synth.errors import UnsupportedError
from synth.kernels import jit
from synth.kernels.clock import now
from synth.method import Outcome
from synth.network import LinksByNode, Network
from synth.options import RunOptions
from synth.schedule import Schedule
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references.from_allgather import by_allgather


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``xtree``: algorithm 2, for allgather only."""
    if instance.collective != "allgather":
        raise UnsupportedError("algorithm 2 makes allgather schedules; use mirror_xtree for reductions")
    return _solve(instance, options)


def solve_mirror(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``mirror_xtree``: algorithm 3, for reduce-scatter and allreduce."""
    if instance.collective == "allgather":
        raise UnsupportedError("algorithm 3 makes reduce-scatter and allreduce schedules; use xtree for allgather")
    return _solve(instance, options)


def _solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    seeds = np.random.SeedSequence(options.seed)
    schedule = by_allgather(instance, lambda network, chunks: allgather(network, chunks, seeds.spawn(1)[0]))
    return Outcome("finished", solution=schedule)


def allgather(network: Network, chunks: int, seed: np.random.SeedSequence) -> Schedule:
    """Algorithm 2 once, with the given seed."""
    number = int(seed.generate_state(1)[0])
    step, link, chunk = _xtree(network.out_links, network.distances, chunks, number, left())
    demand_time()
    return Schedule.of(step, link, chunk)


@jit
def _xtree(
    by_tail: LinksByNode, distance: Int32Array, chunks: int, seed: int, seconds: float
) -> tuple[Int32Array, Int32Array, Int32Array]:
    until = now() + seconds
    np.random.seed(seed)
    dst, pointer, links = by_tail.dst, by_tail.pointer, by_tail.links
    nodes = len(pointer) - 1
    total = nodes * chunks
    arrived = np.full((total, nodes), -1, np.int32)  # timestep at which a tree got a node
    size = np.ones(total, np.int64)
    members = np.empty((total, nodes), np.int32)
    for k in range(total):
        arrived[k, k // chunks] = 0
        members[k, 0] = k // chunks
    goal = total * (nodes - 1)
    out_step, out_link, out_chunk = np.empty(goal, np.int32), np.empty(goal, np.int32), np.empty(goal, np.int32)
    far = np.empty(total)
    done = step = 0
    while done < goal and now() <= until:
        step += 1
        free = np.ones(len(dst), np.bool_)
        for k in range(total):
            far[k] = 0.0
            for v in range(nodes):
                if arrived[k, v] < 0:
                    far[k] = max(far[k], float(distance[k // chunks, v]))
            far[k] += np.random.random()  # ties at random; distances are whole numbers
        order = np.argsort(-far)
        active = np.ones(total, np.bool_)
        progress = True
        while progress:
            progress = False
            for k in order:
                if not active[k] or size[k] == nodes:
                    continue
                chosen, seen = -1, 0
                for m in range(size[k]):
                    u = members[k, m]
                    if arrived[k, u] >= step:
                        break  # members stand in order of arrival
                    for i in range(pointer[u], pointer[u + 1]):
                        e = links[i]
                        if free[e] and arrived[k, dst[e]] < 0:
                            seen += 1
                            if np.random.randint(seen) == 0:  # each candidate equally likely
                                chosen = e
                if chosen < 0:
                    active[k] = False  # links only get fewer within a timestep
                    continue
                v = dst[chosen]
                free[chosen] = False
                arrived[k, v] = step
                members[k, size[k]] = v
                size[k] += 1
                out_step[done], out_link[done], out_chunk[done] = step, chosen, k
                done += 1
                progress = True
    return out_step, out_link, out_chunk
