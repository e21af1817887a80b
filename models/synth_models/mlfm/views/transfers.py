"""A schedule as moves from server to server, switches left out."""

from __future__ import annotations

import math

import numpy as np

from synth.errors import InputError
from synth.exchange.transfers import Demand, Transfers
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.solution import Phases

MOST = 2**22  # transfers


def demands(instance: MLFMInstance, solution: Phases) -> Transfers:
    """Every transfer carries one message, rounded up to bytes; phase p lasts from p to p + 1. A whole all-to-all is an
    alltoall (a server's message to itself moves nowhere), any other a demand with a part a transfer.

    Raises :class:`InputError` for more than 2^22 transfers.
    """
    if solution.phases * solution.ranks > MOST:
        raise InputError(f"{solution.phases * solution.ranks:,} transfers; at most {MOST:,} are run")
    n, size = instance.ranks, max(1, math.ceil(instance.message_bytes))
    found = [
        np.stack([phase + rows.first, source, rows.dest[phase, source]])
        for rows in solution.rows()
        for phase, source in [np.nonzero(rows.dest >= 0)]
    ]
    step, src, dst = np.concatenate([np.zeros((3, 0), dtype=np.int64), *found], axis=1).astype(np.int64)
    leaves = src != dst
    step, src, dst = step[leaves], src[leaves], dst[leaves]
    number = np.arange(len(step), dtype=np.int64)
    whole = instance.demand is None
    return Transfers(
        name=instance.name,
        collective="alltoall" if whole else "demand",
        ranks=n,
        root=None,
        part_bytes=size,
        piece_part=src * n + dst if whole else number,
        piece_offset=np.zeros_like(number),
        piece_bytes=np.full_like(number, size),
        piece=number,
        src=src,
        dst=dst,
        adds=np.zeros(len(step), dtype=bool),
        start_s=step.astype(np.float64),
        end_s=step.astype(np.float64) + 1,
        channel_hint=np.full_like(number, -1),
        demand=None if whole else Demand(src, dst, np.full_like(number, size)),
    )
