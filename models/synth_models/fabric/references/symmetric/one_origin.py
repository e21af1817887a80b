"""One origin's data spread over a grid whose steps are symmetries: greedily, so that every direction is always busy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.clock.deadline import SLACK_S, OutOfTime, left
from synth.kernels import jit
from synth.kernels.clock import now as now_s
from synth.network import Network

NOBODY = -1


class Spread(NamedTuple):
    """Sends of one origin's chunks in order of their start, shape (sends,) each: ``after`` is the send that brought the
    chunk to ``source``, :data:`NOBODY` at the origin."""

    chunk: IntArray
    source: IntArray
    direction: IntArray
    after: IntArray


def directions(network: Network) -> IntArray:
    """The link out of every node in every direction, shape (nodes, directions), on a grid whose translations are
    symmetries: links of one direction are each other's images."""
    sides = network.grid
    assert sides is not None
    tail, head = (np.stack(np.unravel_index(ends, sides)) for ends in (network.src, network.dst))
    ahead = np.ravel_multi_index(tuple((head - tail) % np.array(sides)[:, None]), sides)
    order = np.lexsort((np.arange(network.links), network.latency, network.bandwidth, ahead, network.src))
    return order.reshape(network.nodes, -1).astype(np.int64)


def one_origin(target: IntArray, seconds: FloatArray, latency: FloatArray, chunks_each: int) -> Spread:
    """The sends from node 0. ``seconds``, ``latency``: of a chunk, by direction; ``target``: the node next to each,
    shape (nodes, directions). Raises :class:`synth.clock.deadline.OutOfTime` at the time limit in force."""
    *columns, in_time = _one_origin(target, seconds, latency, chunks_each, left() + SLACK_S)
    if not in_time:
        raise OutOfTime
    return Spread(*columns)


@jit
def _one_origin(
    target: IntArray, seconds: FloatArray, latency: FloatArray, chunks_each: int, time_s: float
) -> tuple[IntArray, IntArray, IntArray, IntArray, bool]:
    """Columns of :class:`Spread`, and whether they were found within ``time_s`` seconds."""
    until = now_s() + time_s
    n, directions = target.shape
    total = (n - 1) * chunks_each
    chunk, source, direction, after = np.zeros((4, total), dtype=np.int64)
    came = np.full((chunks_each, n), np.inf)
    came[:, 0] = 0.0
    brought = np.full((chunks_each, n), NOBODY, dtype=np.int64)
    free = np.zeros(directions)
    for k in range(total):
        if now_s() > until:
            return chunk, source, direction, after, False
        while True:
            d = int(np.argmin(free))
            begin, fresh, best_chunk, best = np.inf, -1, -1, -1
            for c in range(chunks_each):
                for u in range(n):
                    v = target[u, d]
                    soonest = max(came[c, u], free[d])
                    if came[c, v] < np.inf or came[c, u] == np.inf or soonest > begin:
                        continue
                    lacking = 0
                    for onward in range(directions):
                        lacking += came[c, target[v, onward]] == np.inf
                    if soonest < begin or lacking > fresh:
                        begin, fresh, best_chunk, best = soonest, lacking, c, u
            if begin == free[d]:
                break
            free[d] = begin  # nothing to send before; another direction may be free sooner
        v = target[best, d]
        came[best_chunk, v] = begin + seconds[d] + latency[d]
        free[d] = begin + seconds[d]
        chunk[k], source[k], direction[k], after[k] = best_chunk, best, d, brought[best_chunk, best]
        brought[best_chunk, v] = k
    return chunk, source, direction, after, True
