"""The collectives as blocks of data: whose they are before, whose after, and how many bytes.

Sizes count as in nccl-tests, so that ``algbw = bytes / time``:

| collective | ``bytes`` M | blocks | busbw / algbw |
|---|---|---|---|
| allgather | what every rank ends with | M/N of every rank, to all | (N-1)/N |
| reduce_scatter | what every rank begins with | M/N for every rank, the sum over all | (N-1)/N |
| allreduce | what every rank begins with | M, the sum over all, to all | 2(N-1)/N |
| alltoall | what every rank sends, its own part included | M/N for every ordered pair | (N-1)/N |
| broadcast | what the root sends | M of the root, to all | 1 |
| reduce | what every rank begins with | M, the sum over all, to the root | 1 |
| gather | what the root ends with | M/N of every rank, to the root | (N-1)/N |
| scatter | what the root begins with | M/N for every rank, of the root | (N-1)/N |
| demand | sum of the demand file | one a row ``src,dst,bytes`` | 1 |
| traffic | sum of its rows | one a row, of several holders and wanters (:mod:`.traffic`) | 1 |

A block that is where it belongs from the start (a rank's own part) is no block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.schedule.collective import CollectiveName

Collective = Literal[CollectiveName, "demand", "traffic"]
COLLECTIVES: tuple[Collective, ...] = get_args(Collective)
SHARED_OUT = ("allgather", "reduce_scatter", "alltoall", "gather", "scatter")  # bytes are cut into N equal parts
EVERYONE = -1
PART_BYTES = {"allgather": 16, "reduce_scatter": 16, "alltoall": 16, "gather": 4, "scatter": 4}  # of nccl-tests


@dataclass(frozen=True)
class Blocks:
    """What has to move. All arrays have the shape (blocks,).

    ``origin``: who holds the block: a rank, :data:`EVERYONE` (every member), or what :func:`in_set` makes of a number
    in ``sets``, tuples of ranks. ``goal``: who wants it, likewise. ``bytes``: its size, >= 1. ``summed``: whether each
    holder has a contribution, and the sum of all, each once, is wanted; else each has all of it, and any copy will do.
    None: those that everyone holds are sums.
    """

    origin: IntArray
    goal: IntArray
    bytes: IntArray
    summed: BoolArray | None = None
    sets: tuple[tuple[int, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.bytes)

    @property
    def sums(self) -> BoolArray:
        """Which are sums."""
        found: BoolArray = self.origin == EVERYONE if self.summed is None else self.summed
        return found

    def ranks(self, code: int, members: Sequence[int]) -> tuple[int, ...]:
        """The ranks that an entry of ``origin`` or ``goal`` means."""
        if code >= 0:
            return (code,)
        return tuple(members) if code == EVERYONE else self.sets[in_set(code)]

    def masks(self, codes: IntArray, members: Sequence[int], nodes: int) -> BoolArray:
        """True where an entry of ``origin`` or ``goal`` means a node, shape (codes, nodes)."""
        found = np.zeros((len(codes), nodes), dtype=bool)
        for row, code in zip(found, codes.tolist(), strict=True):
            row[list(self.ranks(code, members))] = True
        return found

    def mean(self, codes: IntArray, nodes: IntArray | Int32Array, members: Sequence[int]) -> BoolArray:
        """Whether each entry of ``origin`` or ``goal`` means the node beside it, shape (rows,)."""
        found: BoolArray = codes == nodes
        for code in np.unique(codes[codes < 0]).tolist():
            found |= (codes == code) & np.isin(nodes, self.ranks(code, members))
        return found

    def words(self, codes: IntArray) -> list[str]:
        """The ranks that each entry of ``origin`` means, separated by spaces; ``sum`` for everyone."""
        said = {code: " ".join(map(str, self.ranks(code, ()))) or "sum" for code in np.unique(codes).tolist()}
        return [said[code] for code in codes.tolist()]


def in_set(number: int) -> int:
    """The entry of ``origin`` or ``goal`` that means the set of this number; of an entry the number."""
    return -2 - number


def blocks_of(
    collective: str, members: Sequence[int], size: int, root: int | None, demand: Sequence[Sequence[int]]
) -> Blocks:
    """The blocks of a collective over ``members`` (node numbers of ranks, in the order of the process group)."""
    n, part = len(members), size // len(members)
    rows: list[tuple[int, int, int]] = []
    match collective:
        case "allgather":
            rows = [(rank, EVERYONE, part) for rank in members]
        case "reduce_scatter":
            rows = [(EVERYONE, rank, part) for rank in members]
        case "allreduce":
            rows = [(EVERYONE, EVERYONE, size)]
        case "alltoall":
            rows = [(u, v, part) for u in members for v in members if u != v]
        case "broadcast":
            rows = [(root if root is not None else members[0], EVERYONE, size)]
        case "reduce":
            rows = [(EVERYONE, root if root is not None else members[0], size)]
        case "gather":
            rows = [(rank, root if root is not None else members[0], part) for rank in members if rank != root]
        case "scatter":
            rows = [(root if root is not None else members[0], rank, part) for rank in members if rank != root]
        case "demand":
            rows = [(int(src), int(dst), int(amount)) for src, dst, amount in demand]
    if n == 1 and collective != "demand":
        rows = []
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Blocks(*np.ascontiguousarray(table.T))  # with gaps, kernels would be compiled for such columns too


def undivided(collective: str, size: int, ranks: int) -> str | None:
    """Why a collective over so many ranks does not take so many bytes; None where it does."""
    if collective not in SHARED_OUT or not size % ranks:
        return None
    fit = rounded_size(collective, size, ranks)
    return f"does not divide among {ranks} ranks" + (f"; nccl-tests, and synth make, take {fit}" if fit else "")


def rounded_size(collective: str, size: int, ranks: int) -> int:
    """The largest size of at most ``size`` bytes that a collective over so many ranks takes; 0 where there is none.

    A size that divides stays. Others are rounded as nccl-tests does (``GetCollByteCount`` of its ``all_gather.cu``,
    ``reduce_scatter.cu``, ``alltoall.cu``, ``gather.cu``, ``scatter.cu``, with its default type, float): every rank's
    part down to whole 16 bytes, of gather and scatter to whole elements of 4. Where that leaves nothing, to bytes.
    """
    if collective not in SHARED_OUT or size % ranks == 0:
        return size
    unit = PART_BYTES[collective]
    return (size // (ranks * unit) * unit or size // ranks) * ranks
