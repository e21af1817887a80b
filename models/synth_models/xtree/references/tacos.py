"""Method ``tacos`` (reference): random greedy matching of links and chunks over the time-expanded network.

Won, Elavazhagan, Srinivasan, Gupta, Krishna: "TACOS: Topology-Aware Collective Algorithm Synthesizer for Distributed
Machine Learning", MICRO 2024; baseline of XTree, section V.

Per timestep the links are visited in random order; each takes a random chunk among those that its tail held before the
timestep and that its head neither holds nor is already receiving, if there is one. Reproduced: the time-expanded
network and the maximal random matching within each of its timesteps. Deviations: the original draws a wanted (chunk,
destination) pair first and then one of the links that can serve it, here the link comes first, which changes the
probabilities but not which matchings can occur; links of unequal speed count as one timestep each here, as everywhere
in this family. XTree's authors simulate TACOS by an enhanced MultiTree; this is the matching itself. Reductions are
the allgather of the reversed network played backwards, allreduce is both, as in the original.

Complexity: O(T * links * NC) at worst, far less in practice, as the chunk is drawn by rejection first; memory
9 * N * NC bytes and the schedule. No guarantee but completion. Random by the seed.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import Int32Array
from synth.clock.deadline import demand_time, left
from synth.kernels import jit
from synth.kernels.clock import now
from synth.method import Outcome
from synth.network import Network
from synth.options import RunOptions
from synth.schedule import Schedule
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.references.from_allgather import by_allgather

DRAWS = 16  # chunks drawn by rejection before all candidates are counted; both ways are uniform, so the mix is too


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``tacos``, on any network."""
    seeds = np.random.SeedSequence(options.seed)
    schedule = by_allgather(instance, lambda network, chunks: allgather(network, chunks, seeds.spawn(1)[0]))
    return Outcome("finished", solution=schedule)


def allgather(network: Network, chunks: int, seed: np.random.SeedSequence) -> Schedule:
    """One random allgather schedule."""
    number = int(seed.generate_state(1)[0])
    step, link, chunk = _tacos(network.nodes, chunks, network.src, network.dst, number, left())
    demand_time()
    return Schedule.of(step, link, chunk)


@jit
def _tacos(
    nodes: int, chunks: int, src: Int32Array, dst: Int32Array, seed: int, seconds: float
) -> tuple[Int32Array, Int32Array, Int32Array]:
    until = now() + seconds
    np.random.seed(seed)
    total = nodes * chunks
    held = np.zeros((nodes, total), np.bool_)
    missing = np.empty((nodes, total), np.int32)  # missing[v, :left[v]]: neither held by v nor on its way to v
    listed = np.empty((nodes, total), np.int32)  # listed[v, k] is the place of k in that list
    left = np.full(nodes, total - chunks)
    for v in range(nodes):
        held[v, v * chunks : (v + 1) * chunks] = True
        missing[v, : v * chunks] = np.arange(v * chunks)
        missing[v, v * chunks : total - chunks] = np.arange((v + 1) * chunks, total)
        for i in range(total - chunks):
            listed[v, missing[v, i]] = i
    goal = left.sum()
    out_step, out_link, out_chunk = np.empty(goal, np.int32), np.empty(goal, np.int32), np.empty(goal, np.int32)
    done = step = 0
    while done < goal and now() <= until:
        step += 1
        begin = done
        for e in np.random.permutation(len(src)):
            u, v = src[e], dst[e]
            if left[v] == 0:
                continue
            chosen = -1
            for _ in range(DRAWS):
                k = missing[v, np.random.randint(left[v])]
                if held[u, k]:
                    chosen = k
                    break
            if chosen < 0:
                seen = 0
                for i in range(left[v]):
                    k = missing[v, i]
                    if held[u, k]:
                        seen += 1
                        if np.random.randint(seen) == 0:  # each candidate equally likely
                            chosen = k
            if chosen < 0:
                continue
            left[v] -= 1
            last, hole = missing[v, left[v]], listed[v, chosen]
            missing[v, hole], listed[v, last] = last, hole
            out_step[done], out_link[done], out_chunk[done] = step, e, chosen
            done += 1
        for i in range(begin, done):  # arrivals count from the next timestep on
            held[dst[out_link[i]], out_chunk[i]] = True
    return out_step, out_link, out_chunk
