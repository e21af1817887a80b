"""The solution type of the bine family: messages of blocks, as flat arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from synth.untrusted import MOST, flags, whole, whole_numbers
from synth_models.bine.instance import MAX_RANKS, BineInstance

if TYPE_CHECKING:
    import pandas as pd

MAX_ROUNDS = 2**30  # with at most 2**16 ranks, (round, src, dst) then fits one number of 64 bits
MAX_BLOCKS = 2**48  # of a plan
_INTS = ("job", "round", "src", "dst", "first", "count", "adds", "layout", "starts")
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


def pack(plan: Plan) -> dict[str, Any]:
    packed: dict[str, Any] = {key: getattr(plan, key).astype(np.int8 if key == "adds" else np.int64) for key in _INTS}
    return packed | {"shares": plan.shares}


def unpack(instance: BineInstance, packed: Mapping[str, Any]) -> Plan:
    """Raises ``ValueError`` for data of a wrong kind, shape or range; what the numbers mean is the check's."""
    most = {"job": MOST, "round": MAX_ROUNDS - 1, "src": MAX_RANKS - 1, "dst": MAX_RANKS - 1}
    columns = {key: whole_numbers(packed, key, 0, most.get(key, MAX_BLOCKS)) for key in _INTS if key != "adds"}
    return Plan(**columns, adds=flags(packed, "adds"), shares=whole(packed, "shares", 1, MAX_RANKS))


def table(instance: BineInstance, plan: Plan) -> pd.DataFrame:
    """Columns ``round,src,dst,bytes``, one row a message; ``job`` in front where there are several jobs."""
    import pandas as pd

    unit = np.array([instance.block_bytes(len(groups)) for groups in instance.allocations]) / plan.shares
    frame = pd.DataFrame(
        {
            "job": plan.job, "round": plan.round, "src": plan.src, "dst": plan.dst,
            "bytes": plan.count * unit[plan.job],
        }
    )  # fmt: skip
    frame = frame.groupby(["job", "round", "src", "dst"])["bytes"].sum().reset_index()
    return frame if len(instance.allocations) > 1 else frame.drop(columns="job")
