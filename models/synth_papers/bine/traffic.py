"""Traffic of many jobs at once: a pattern is made once per number of ranks and laid on all allocations of that size.

No schedule is written down and nothing is replayed: use it for studies of whole traces, the methods for records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.arrays import FloatArray, IntArray
from synth_models.bine.references import hierarchical
from synth_models.bine.references.published import pattern


@lru_cache(maxsize=4096)
def pair_volumes(
    method: str, collective: str, vector: str, ranks: int, root: int = 0, own: tuple[tuple[str, Any], ...] = ()
) -> tuple[IntArray, IntArray, IntArray, float]:
    """Sources, destinations and blocks of all messages (or pairs), and the vector's number of blocks. ``hierarchical``
    takes the ``nodes`` of all ranks.

    A ring's rounds all use the same p pairs, so it takes no more room than a tree. Raises :class:`UnsupportedError`.
    """
    if method == "ring" and collective in ("allgather", "reduce_scatter", "allreduce"):
        r = np.arange(ranks)
        halves = 2 if collective == "allreduce" else 1
        return r, (r + 1) % ranks, np.full(ranks, halves * (ranks - 1)), float(ranks)
    if method == "ring" and collective == "alltoall":
        src, dst = np.divmod(np.flatnonzero(~np.eye(ranks, dtype=bool).ravel()), ranks)
        return src, dst, np.ones(len(src), dtype=np.int64), float(ranks)
    if method == "hierarchical":
        steps = hierarchical.pattern(np.array(dict(own)["nodes"]), collective)
    else:
        steps = pattern(method, collective, vector, ranks, root, None, dict(own))
    blocks = float(ranks if collective == "alltoall" else len(steps.layout))
    if len(steps) <= 4 * ranks * ranks.bit_length():
        return steps.src, steps.dst, steps.count, blocks
    key, at = np.unique(steps.src * np.int64(ranks) + steps.dst, return_inverse=True)
    return key // ranks, key % ranks, np.bincount(at, weights=steps.count).astype(np.int64), blocks


def global_traffic(
    allocations: Sequence[npt.NDArray[Any]],
    method: str,
    collective: str = "allreduce",
    vector: str = "large",
    root: int = 0,
    own: Mapping[str, Any] | None = None,
) -> FloatArray:
    """Bytes on global links per byte of the vector, one number per allocation, shape (jobs,).

    ``allocations`` are the groups of the ranks of every job. Raises :class:`UnsupportedError`.
    """
    result = np.zeros(len(allocations))
    by_size: dict[int, list[int]] = {}
    for j, groups in enumerate(allocations):
        by_size.setdefault(len(groups), []).append(j)
    for ranks, jobs in by_size.items():
        src, dst, count, blocks = pair_volumes(
            method, collective, vector, ranks, root, tuple(sorted((own or {}).items()))
        )
        alike: dict[bytes, list[int]] = {}
        for j in jobs:
            groups = np.ascontiguousarray(allocations[j], dtype=np.int32)
            alike.setdefault(groups.tobytes(), []).append(j)
        for same in alike.values():
            groups = np.asarray(allocations[same[0]])
            if (groups == groups[0]).all():
                continue
            result[same] = count[groups[src] != groups[dst]].sum() / blocks
    return result
