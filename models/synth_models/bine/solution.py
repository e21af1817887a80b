"""The solution type of the bine family: messages of blocks, as flat arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.text.untrusted import MOST, flags, whole, whole_numbers
from synth_models.bine.instance import MAX_RANKS, BineInstance

if TYPE_CHECKING:
    import pandas as pd

MAX_ROUNDS = 2**30  # with at most 2**16 ranks, (round, src, dst) then fits one number of 64 bits
MAX_BLOCKS = 2**48  # of a solution
MOST_LISTED = 50_000_000  # blocks in all messages that a table names
_INTS = ("job", "round", "src", "dst", "first", "count", "adds", "layout", "starts")


@dataclass(frozen=True)
class Columns:
    """What is sent, one row per contiguous piece; all columns have shape (rows,) and rounds count from 0.

    A row carries the blocks at positions ``first .. first+count-1`` of its job's ``layout``, which holds a permutation
    of the job's block ids. ``adds`` marks partial sums that the receiver adds to its own. ``shares`` is the number of
    equal parts that the vector is cut into before the blocks (one per direction on a torus).
    """

    round: IntArray
    src: IntArray
    dst: IntArray
    first: IntArray
    count: IntArray
    adds: BoolArray
    layout: IntArray
    shares: int = 1

    def __len__(self) -> int:
        return len(self.round)


class Steps(Columns):
    """The rows of one job: what a pattern makes for a number of ranks before it is put on an allocation."""


@dataclass(frozen=True, kw_only=True)
class Messages(Columns):
    """The solution: what every job's ranks send. A message is all rows of one (job, round, src, dst).

    Rows are sorted by ``job``, shape (rows,); ``layout`` holds the jobs' layouts one after the other and ``starts``
    where each begins, shape (jobs+1,).
    """

    job: IntArray
    starts: IntArray

    def rows_of(self, job: int) -> slice:
        """Rows of one job."""
        return slice(int(np.searchsorted(self.job, job)), int(np.searchsorted(self.job, job, side="right")))

    def layout_of(self, job: int) -> IntArray:
        """Block ids in layout order, shape (blocks,)."""
        return self.layout[self.starts[job] : self.starts[job + 1]]


def concatenated(parts: Sequence[Columns]) -> dict[str, Any]:
    """The columns of all parts, one after the other."""
    names = ("round", "src", "dst", "first", "count", "adds", "layout")
    return {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}


def join(parts: Sequence[Steps]) -> Messages:
    """The rows of all jobs."""
    starts = np.concatenate([[0], np.cumsum([len(part.layout) for part in parts])]).astype(np.int64)
    job = np.repeat(np.arange(len(parts), dtype=np.int64), [len(part) for part in parts])
    return Messages(job=job, starts=starts, shares=parts[0].shares, **concatenated(parts))


def pack(messages: Messages) -> dict[str, Any]:
    kinds = {key: np.int8 if key == "adds" else np.int64 for key in _INTS}
    return {key: getattr(messages, key).astype(kind) for key, kind in kinds.items()} | {"shares": messages.shares}


def unpack(instance: BineInstance, packed: Mapping[str, Any]) -> Messages:
    """Raises ``ValueError`` for data of a wrong kind, shape or range; what the numbers mean is the check's."""
    most = {"job": MOST, "round": MAX_ROUNDS - 1, "src": MAX_RANKS - 1, "dst": MAX_RANKS - 1}
    columns = {key: whole_numbers(packed, key, 0, most.get(key, MAX_BLOCKS)) for key in _INTS if key != "adds"}
    return Messages(**columns, adds=flags(packed, "adds"), shares=whole(packed, "shares", 1, MAX_RANKS))


def table(instance: BineInstance, messages: Messages) -> pd.DataFrame:
    """Columns ``round,src,dst,bytes``, one row a message; ``job`` in front where there are several jobs. Behind them
    exact ones: ``copied`` and ``added``, the numbers of the blocks that the receiver stores and of those that it adds
    to its own, as ``3`` and ``5-7``, separated by spaces (both empty beyond :data:`MOST_LISTED` blocks in all);
    ``parts``: a block is the ``parts``-th part of the instance's bytes, the same in all rows of a job.
    """
    import pandas as pd

    ranks = [len(groups) for groups in instance.allocations]
    unit = np.array([instance.block_bytes(n) for n in ranks]) / messages.shares
    ends = {"job": messages.job, "round": messages.round, "src": messages.src, "dst": messages.dst}
    frame = pd.DataFrame(ends | {"bytes": messages.count * unit[messages.job]})
    grouped = frame.groupby(list(ends))
    of_row, frame = grouped.ngroup().to_numpy(), grouped["bytes"].sum().reset_index()
    listed = _listed(messages) if messages.count.astype(np.float64).sum() <= MOST_LISTED else [""] * len(messages)
    for name, mask in (("copied", ~messages.adds), ("added", messages.adds)):
        texts: list[list[str]] = [[] for _ in range(len(frame))]
        for row in np.flatnonzero(mask).tolist():
            texts[of_row[row]].append(listed[row])
        frame[name] = [" ".join(filter(None, text)) for text in texts]
    parts = [(n if instance.collective == "alltoall" else instance.blocks(n)) * messages.shares for n in ranks]
    frame["parts"] = np.array(parts, dtype=np.int64)[frame["job"]]
    return frame if len(instance.allocations) > 1 else frame.drop(columns="job")


def _listed(messages: Messages) -> list[str]:
    """The blocks of every row, ``3`` or ``5-7`` for each run of numbers."""
    found = []
    first = (messages.starts[messages.job] + messages.first).tolist()
    for a, count in zip(first, messages.count.tolist(), strict=True):
        blocks = np.sort(messages.layout[a : a + count])
        cuts = np.flatnonzero(np.diff(blocks) != 1) + 1
        low, high = blocks[[0, *cuts]].tolist(), blocks[[*(cuts - 1), -1]].tolist()
        found.append(" ".join(str(u) if u == v else f"{u}-{v}" for u, v in zip(low, high, strict=True)))
    return found
