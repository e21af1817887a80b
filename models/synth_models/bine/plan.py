"""The solution type of the bine family: messages of blocks, as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MAX_ROUNDS = 2**30  # with at most 2**16 ranks, (round, src, dst) then fits one number of 64 bits
MAX_BLOCKS = 2**48  # of a plan

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """What every job's ranks send, one row per contiguous piece.

    ``job, round, src, dst, first, count`` have shape (rows,), rounds count from 0 in every job. A row carries the
    blocks at positions ``first .. first+count-1`` of its job's ``layout``, which holds a permutation of the job's block
    ids, job after job (``starts``: where each begins, shape (jobs+1,)). ``adds`` marks partial sums that the receiver
    adds to its own. A message is all rows of one (job, round, src, dst). ``shares`` is the number of equal parts that
    the vector is cut into before the blocks (one per direction on a torus).
    """

    job: Ints
    round: Ints
    src: Ints
    dst: Ints
    first: Ints
    count: Ints
    adds: npt.NDArray[np.bool_]
    layout: Ints
    starts: Ints
    shares: int = 1

    def __len__(self) -> int:
        return len(self.round)

    def rows_of(self, job: int) -> slice:
        """Rows of one job (rows are sorted by job)."""
        return slice(int(np.searchsorted(self.job, job)), int(np.searchsorted(self.job, job, side="right")))

    def layout_of(self, job: int) -> Ints:
        """Block ids in layout order, shape (blocks,)."""
        return self.layout[self.starts[job] : self.starts[job + 1]]


@dataclass(frozen=True)
class Steps:
    """The rows of one job: what a pattern makes for a number of ranks before it is put on an allocation."""

    round: Ints
    src: Ints
    dst: Ints
    first: Ints
    count: Ints
    adds: npt.NDArray[np.bool_]
    layout: Ints
    shares: int = 1


def join(parts: list[Steps]) -> Plan:
    """One plan of the rows of all jobs."""
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("round", "src", "dst", "first", "count", "adds", "layout")
    }
    starts = np.concatenate([[0], np.cumsum([len(part.layout) for part in parts])]).astype(np.int64)
    job = np.repeat(np.arange(len(parts), dtype=np.int64), [len(part.round) for part in parts])
    return Plan(job=job, starts=starts, shares=parts[0].shares, **columns)
