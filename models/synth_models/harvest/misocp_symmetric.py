"""Topologies as symmetric as the steps themselves: few, quickly rated, and often close to the best.

A relabelling of the GPUs that keeps all patterns and moves the GPUs in at most two cycles of equal length fixes a
topology by the links of two GPUs. They are a start for the exact program; nothing is claimed about others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement, product

import numpy as np

from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.misocp_blocks import Block, relabellings
from synth_models.harvest.plan import FloatArray, IntArray

MOST_CYCLES = 2
MOST_CHOICES = 20_000  # of the links of one GPU per cycle
FAR = 1 << 20


def best(
    blocks: Sequence[Block],
    instance: HarvestInstance,
    seconds: Callable[[IntArray], float],
    out_of_time: Callable[[], bool],
) -> IntArray | None:
    """Links (source, destination, count) of the fastest symmetric topology for the blocks; None if there is none.

    They are rated by ``seconds`` in the order of a lower estimate, as long as that is below the best found.
    """
    matrices = invariant(blocks, instance.gpus, instance.ports)
    if not len(matrices):
        return None
    low = _at_least(matrices, blocks, instance)
    value, chosen = np.inf, None
    for number in np.argsort(low, kind="stable").tolist():
        if low[number] >= value or out_of_time():
            break
        src, dst = np.nonzero(matrices[number])
        links = np.stack([src, dst, matrices[number][src, dst]], axis=1).astype(np.int64)
        if (time := seconds(links)) < value:
            value, chosen = time, links
    return chosen


def invariant(blocks: Sequence[Block], gpus: int, ports: int) -> IntArray:
    """Link counts (topologies, gpus, gpus), all ports used, that some relabelling in at most two cycles keeps."""
    found: dict[bytes, IntArray] = {}
    for relabelling in relabellings(blocks, gpus):
        cycles = _cycles(relabelling.image)
        if relabelling.turned or len(cycles) > MOST_CYCLES or len({len(cycle) for cycle in cycles}) > 1:
            continue
        options = [
            list(combinations_with_replacement([v for v in range(gpus) if v != cycle[0]], ports)) for cycle in cycles
        ]
        if np.prod([len(one) for one in options]) > MOST_CHOICES:
            continue
        for targets in product(*options):
            matrix = np.zeros((gpus, gpus), dtype=np.int64)
            for cycle, ends in zip(cycles, targets, strict=True):
                now = list(ends)
                for u in cycle:
                    for v in now:
                        matrix[u, v] += 1
                    now = [relabelling.image[v] for v in now]
            if (matrix.sum(axis=0) == ports).all():
                found.setdefault(matrix.tobytes(), matrix)
    return np.array(list(found.values()), dtype=np.int64).reshape(-1, gpus, gpus)


def _cycles(image: Sequence[int]) -> list[list[int]]:
    """The GPUs in the order in which the relabelling moves them."""
    left, found = set(range(len(image))), []
    while left:
        cycle = [min(left)]
        while image[cycle[-1]] != cycle[0]:
            cycle.append(image[cycle[-1]])
        left -= set(cycle)
        found.append(cycle)
    return found


def _at_least(matrices: IntArray, blocks: Sequence[Block], instance: HarvestInstance) -> FloatArray:
    """Seconds that no routing beats: the longest distance, and the hops of all pairs spread over all links."""
    gpus, ports = instance.gpus, instance.ports
    apart = np.where(matrices > 0, 1, FAR)
    apart[:, range(gpus), range(gpus)] = 0
    for w in range(gpus):
        apart = np.minimum(apart, apart[:, :, w, None] + apart[:, w, None, :])
    total = np.zeros(len(matrices))
    for block in blocks:
        pairs = np.array(block.pairs)
        hops = apart[:, pairs[:, 0], pairs[:, 1]]
        load = np.maximum(hops.sum(axis=1) / (gpus * ports), block.degree / ports)
        total += block.count * (instance.alpha + instance.hop_delay * hops.max(axis=1) + block.seconds * load)
    return np.where(total < FAR * instance.hop_delay, total, np.inf) if instance.hop_delay > 0 else total
