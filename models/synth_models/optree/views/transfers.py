"""A schedule as an executor needs it: moves of items from node to node."""

from __future__ import annotations

import math

import numpy as np

from synth.errors import InputError
from synth.exchange.transfers import Transfers, in_order
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.solution import Solution, StepCount


def transfers(instance: OpTreeInstance, solution: Solution) -> Transfers:
    """Every circuit is a move of its origin's item; step k lasts from k - 1 to k. An item has its bytes, rounded up.

    Raises :class:`InputError` for a plan that only counts its steps.
    """
    if isinstance(solution, StepCount):
        raise InputError(f"{solution.algorithm} counts steps and has no circuits; optree and relay make them")
    n, size = instance.nodes, max(1, math.ceil(instance.item_bytes))
    columns = {name: getattr(solution, name).astype(np.int64) for name in ("src", "dst")}
    return in_order(
        Transfers(
            name=instance.name,
            collective="allgather",
            ranks=n,
            root=None,
            part_bytes=size,
            piece_part=np.arange(n, dtype=np.int64),
            piece_offset=np.zeros(n, dtype=np.int64),
            piece_bytes=np.full(n, size, dtype=np.int64),
            piece=solution.origin.astype(np.int64),
            **columns,
            adds=np.zeros(len(solution), dtype=bool),
            start_s=solution.step.astype(np.float64) - 1,
            end_s=solution.step.astype(np.float64),
            channel_hint=np.full(len(solution), -1, dtype=np.int64),
        )
    )
