"""Replay every transfer of a schedule that symmetry repeats, however many there are, node by node.

The second opinion on :mod:`synth.schedule.replay_quotient`: no group, no theorem. Each node's transfers are listed in
turn and replayed (gather-like collectives, where the ways of two chunks have nothing to do with each other but the
links), and a bit for every link and timestep tells which are taken. Memory: timesteps * links / 8 bytes.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import Int32Array, IntArray, WordArray
from synth.errors import UnsupportedError
from synth.kernels import jit
from synth.network import Network
from synth.schedule.collective import Collective
from synth.schedule.quotient import QuotientSchedule, node_parts
from synth.schedule.replay import Replay

_FAULTS = ("a link carries two chunks", "a chunk is sent that has not arrived before", "a chunk does not arrive")


def replay_every(network: Network, collective: Collective, schedule: QuotientSchedule) -> Replay:
    """Replay all transfers by the rules of :func:`synth.schedule.replay.replay`; one fault of a kind and node is named.

    Raises :class:`UnsupportedError` for reductions, :class:`synth.errors.InputError` where the generators are no
    symmetries, so that there is nothing to list.
    """
    if collective.reduces or not collective.to_all:
        raise UnsupportedError("only collectives that gather to all are replayed transfer by transfer")
    part, chunks = schedule.part, collective.chunks // network.nodes
    result = Replay(steps=part.steps, transfers=0)
    if len(part) and (part.step.min() < 1 or part.chunk.min() < 0 or part.chunk.max() >= chunks or part.adds.any()):
        result.fault_count, result.faults = 1, ["a step or chunk does not exist, or a sum where there is none"]
        return result
    order = np.argsort(part.step, kind="stable")
    step, chunk = part.step[order], part.chunk[order]
    taken = np.zeros((network.links * (part.steps + 1) + 63) // 64, dtype=np.uint64)
    held = np.empty((network.nodes, chunks), dtype=np.int32)
    for v, links in node_parts(network, schedule):
        faulty, redundant = _replayed(
            v, step, links[order], chunk, network.src, network.dst, network.links, held, taken
        )
        result.transfers += len(step)
        result.redundant += redundant
        found = [f"chunks of node {v}: {words}" for bit, words in enumerate(_FAULTS) if faulty >> bit & 1]
        result.fault_count += len(found)
        result.faults += found[: max(0, 20 - len(result.faults))]
    return result


@jit
def _replayed(
    v: int,
    step: Int32Array,
    link: IntArray,
    chunk: Int32Array,
    src: Int32Array,
    dst: Int32Array,
    links: int,
    held: Int32Array,
    taken: WordArray,
) -> tuple[int, int]:
    """Replay node v's chunks; ``held[u, c]`` becomes the step after which u has chunk c, and bits of ``taken`` are set.
    Returns bits for what is wrong and the number of useless transfers."""
    never = np.int32(2**31 - 1)
    held[:] = never
    held[v] = 0
    faulty = redundant = 0
    missing = held.size - held.shape[1]
    for i in range(len(step)):
        slot = np.int64(step[i]) * links + link[i]
        word, bit = slot // 64, np.uint64(1) << np.uint64(slot % 64)
        if taken[word] & bit:
            faulty |= 1
        taken[word] |= bit
        u, w, c = src[link[i]], dst[link[i]], chunk[i]
        if held[u, c] >= step[i]:
            faulty |= 2
        elif held[w, c] <= step[i]:
            redundant += 1
        else:
            held[w, c] = step[i]
            missing -= 1
    if missing:
        faulty |= 4
    return faulty, redundant
