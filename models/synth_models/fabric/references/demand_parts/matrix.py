"""An instance's blocks as a matrix of bytes from rank to rank."""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth_models.fabric.instance import FabricInstance


def demand_of(instance: FabricInstance, node: IntArray) -> tuple[IntArray, IntArray]:
    """Bytes from rank to rank, in the order of ``node``, and the number of every pair's block (-1: none), shape
    (ranks, ranks) each. Raises :class:`UnsupportedError` where blocks go to several ranks, or a pair has two."""
    origin, goal, size = instance.blocks.origin, instance.blocks.goal, instance.blocks.bytes
    if (origin < 0).any() or (goal < 0).any():
        raise UnsupportedError(f"blocks of {instance.collective} do not go from one rank to one other")
    place = np.full(instance.machine.nodes, -1, dtype=np.int64)
    place[node] = np.arange(len(node))
    block = np.full((len(node), len(node)), -1, dtype=np.int64)
    block[place[origin], place[goal]] = np.arange(len(size))
    if np.any(block[place[origin], place[goal]] != np.arange(len(size))):
        raise UnsupportedError("the demand names a pair of ranks twice: add its rows up")
    matrix = np.zeros_like(block)
    matrix[place[origin], place[goal]] = size
    return matrix, block
