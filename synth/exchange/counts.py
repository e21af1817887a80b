"""Which calls an executor's file serves: counts that its chunks divide.

An executor cuts what a call gives it into equal chunks, and leaves calls whose counts do not divide to NCCL's own
algorithm, without a word: Azure/msccl-executor-nccl @c6f6b36 (src/misc/msccl/msccl_lifecycle.cc,
mscclInternalSchedulerSelectAlgo: count in elements modulo nChunksPerLoop, over all ranks where it counts them),
microsoft/msccl @b23e9cd (src/graph/tuning.cc, ncclTopoGetMSCCLAlgo, likewise). MSCCL++ refuses them with an error
(src/core/executor/execution_plan.cc, checkMessageSize: 16-byte units modulo input and output chunks).
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np

from synth.exchange.lowering import in_chunks
from synth.exchange.mscclpp.plan import ALIGNED
from synth.exchange.mscclpp.registering import ASKED
from synth.exchange.mscclpp.versions import NEWEST, Version
from synth.exchange.transfers import Transfers, parts_of
from synth.text.quantities import count

GRAIN = 8 * 2**10  # bytes of a rank's part: sizes that these divide are to run
WIDEST, USUAL = 8, 4  # bytes of the largest element, and of one of float32
NEAR = 0.02  # of a part: how far the ends of pieces may move
LARGER = 16  # times as many chunks as pieces ask for, at most


def grain(planned: bool, collective: str, ranks: int, part_bytes: int) -> int:
    """What a file's chunks of a part must divide, so that the file serves all sizes of whole :data:`GRAIN` bytes a
    rank, whatever the type, and parts of ``part_bytes`` bytes (in 16-byte units, in XML as float32), as far as any file
    can; ``planned``: of a plan of MSCCL++, not of XML."""
    whole = GRAIN // (ALIGNED if planned else WIDEST) * (ranks if parts_of(collective, 2) == 1 else 1)
    unit = ALIGNED if planned else USUAL
    return whole if part_bytes % unit else math.gcd(whole, part_bytes // unit)


def even(planned: bool, collective: str, ranks: int, part_bytes: int, chunks: int) -> bool:
    """Whether a file of so many chunks a part serves all these sizes."""
    return grain(planned, collective, ranks, part_bytes) % chunks == 0


def even_chunks(transfers: Transfers, planned: bool) -> tuple[int, ...]:
    """Numbers of chunks a part, few, to which pieces can be rounded for a file that serves all these sizes: the least
    that moves no end of a piece by more than :data:`NEAR` of a part, then the largest that pieces ask for at most; none
    where they ask for such a number."""
    asked = in_chunks(transfers, None)[0].part_bytes
    whole = grain(planned, transfers.collective, transfers.ranks, transfers.part_bytes)
    if whole % asked == 0:
        return ()
    some = [chunks for chunks in range(1, whole + 1) if whole % chunks == 0]
    share = np.unique(np.concatenate([transfers.piece_offset, transfers.piece_offset + transfers.piece_bytes]))
    share = share / transfers.part_bytes

    def near(chunks: int) -> bool:
        return bool(np.abs(np.rint(share * chunks) / chunks - share).max(initial=0) <= NEAR)

    below = max(bisect_left(some, asked) - 1, 0)
    fine = [chunks for chunks in some[below + 1 :] if chunks <= LARGER * asked and near(chunks)][:1]
    return (*fine, some[below])


def told(form: str, collective: str, chunks: int, version: Version = NEWEST) -> str:
    """Which calls a file of a form or executor serves, and what becomes of the others, in words."""
    what = "of each part" if parts_of(collective, 2) > 1 else "of the data"
    if form == "mscclpp":
        least = f"runs where {count(ALIGNED * chunks)} divides the bytes {what}"
        if collective not in ASKED:
            return f"{least}; no call of NCCL's asks MSCCL++ for it: run it with mscclpp.Algorithm.execute"
        return f"{least}; {'NCCL runs the other calls' if version.registers else 'other calls end with an error'}"
    if chunks == 1:
        return "runs for all counts"
    return (
        f"runs where {count(chunks)} divides the number of elements {what}; NCCL's own algorithm runs the other calls"
    )
