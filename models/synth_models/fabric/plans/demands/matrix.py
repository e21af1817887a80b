"""A matrix of bytes from rank to rank: of an instance's blocks, or as it was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from synth.arrays import IntArray
from synth.errors import Fault, InputError, UnsupportedError
from synth_models.fabric.instance import MOST_BYTES, FabricInstance


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


def read_matrix(demand: npt.ArrayLike, ranks: int) -> IntArray:
    """Whole bytes from rank to rank as an array of its own, shape (ranks, ranks). Raises :class:`InputError`."""
    try:
        given = np.array(demand)
    except (ValueError, OverflowError):
        raise InputError("rows of unequal length, or numbers of more than 64 bits") from None
    if given.shape != (ranks, ranks):
        shape = " x ".join(map(str, given.shape)) or "one number"
        raise InputError(f"is {shape}: must be {ranks} x {ranks}, a row and a column for every rank")
    if given.dtype.kind not in "iuf":
        raise InputError("does not hold numbers of at most 64 bits")
    faults = list(_cell_faults(given))
    if faults:
        raise InputError(faults)
    matrix: IntArray = given.astype(np.int64)
    off = matrix[~np.eye(ranks, dtype=bool)]
    if off.astype(np.float64).sum() > MOST_BYTES:
        raise InputError(f"its sum is more than {MOST_BYTES} bytes (256 TiB), the most that an instance holds")
    return matrix


def _cell_faults(given: npt.NDArray[Any]) -> list[Fault]:
    """The first cells that are no whole number of bytes in range."""
    wrong = ~np.isfinite(given) | (given < 0) | (given > MOST_BYTES)
    if given.dtype.kind == "f":
        wrong |= ~wrong & (given != np.floor(np.where(wrong, 0, given)))
    where = np.argwhere(wrong)[:5].tolist()
    words = f"must be a whole number of bytes in 0..{MOST_BYTES}"
    return [Fault(f"row {i}, column {j}", words, given[i, j].item(), True) for i, j in where]
