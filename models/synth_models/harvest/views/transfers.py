"""A schedule as an executor needs it, where the instance says which data goes where: the direct all-to-all."""

from __future__ import annotations

import math

import numpy as np

from synth.errors import InputError
from synth.exchange.transfers import Demand, Transfers
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.solution import Schedule

DIRECT = "alltoall_direct"


def transfers(instance: HarvestInstance, schedule: Schedule) -> Transfers:
    """The direct all-to-all: every pair's bytes (rounded up) go from one to the other in the step that lists the pair.

    Raises :class:`InputError` for every other algorithm: the instance says how many bytes a pair exchanges in a step,
    not which part of whose data they are.
    """
    pairs = np.concatenate(instance.pairs)
    n, name = instance.gpus, (instance.algorithm or {}).get("name")
    sizes = {m * v for m, rows in zip(instance.bytes_per_pair, instance.demands, strict=True) for v in rows[:, 2]}
    part = pairs[:, 0] * n + pairs[:, 1]
    if name != DIRECT or len(sizes) != 1 or len(np.unique(part)) != len(part) or len(part) != n * (n - 1):
        raise InputError(
            f"a harvest instance says how many bytes its pairs exchange, not which data they are, so there is nothing "
            f"to run; only the algorithm {DIRECT} can be exported (this one is {name or 'of no name'})"
        )
    step = np.repeat(np.arange(len(instance.steps)), [len(row) for row in instance.pairs])
    size, count = max(1, math.ceil(sizes.pop())), len(part)
    zero = np.zeros(count, dtype=np.int64)
    return Transfers(
        name=instance.name,
        collective="alltoall",
        ranks=n,
        root=None,
        part_bytes=size,
        piece_part=part,
        piece_offset=zero,
        piece_bytes=zero + size,
        piece=np.arange(count, dtype=np.int64),
        src=pairs[:, 0],
        dst=pairs[:, 1],
        adds=zero.astype(bool),
        start_s=step.astype(np.float64),
        end_s=step.astype(np.float64) + 1,
        channel_hint=zero - 1,
    )


def demands(instance: HarvestInstance, schedule: Schedule) -> Transfers:
    """Every pair's bytes in every step (rounded up, at least one) as data of their own, from one to the other in that
    step: what an instance states without saying which data they are."""
    pairs = np.concatenate(instance.demands)
    step = np.repeat(np.arange(len(instance.steps)), [len(rows) for rows in instance.demands])
    size = np.maximum(1, np.ceil(pairs[:, 2] * instance.bytes_per_pair[step])).astype(np.int64)
    number = np.arange(len(pairs), dtype=np.int64)
    return Transfers(
        name=instance.name,
        collective="demand",
        ranks=instance.gpus,
        root=None,
        part_bytes=int(size.max(initial=1)),
        piece_part=number,
        piece_offset=np.zeros_like(number),
        piece_bytes=size,
        piece=number,
        src=pairs[:, 0],
        dst=pairs[:, 1],
        adds=np.zeros(len(pairs), dtype=bool),
        start_s=step.astype(np.float64),
        end_s=step.astype(np.float64) + 1,
        channel_hint=np.full(len(pairs), -1, dtype=np.int64),
        demand=Demand(pairs[:, 0], pairs[:, 1], size),
    )
