"""What a collective promises, from its definition: which rank begins with which part, and which must end with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.exchange.transfers import EVERYONE, Transfers, parts_of
from synth.schedule.collective import REDUCING


@dataclass(frozen=True)
class Goals:
    """``origin``: the rank that begins with a part, or :data:`EVERYONE`: every rank has a contribution to it, and the
    sum of all is wanted. ``goal``: the rank that must end with it, or :data:`EVERYONE`. Both of shape (parts,).
    ``begins`` and ``ends``, shape (parts, ranks): which ranks do, where those are neither one nor all."""

    origin: IntArray
    goal: IntArray
    begins: BoolArray | None = None
    ends: BoolArray | None = None

    @property
    def sums(self) -> bool:
        """Whether sums are formed."""
        return bool(np.any(self.origin == EVERYONE))


def goals_of(collective: str, ranks: int, root: int | None) -> Goals:
    """The collective's definition for the parts of :class:`Transfers`. ``root`` is that of a rooted one."""
    part = np.arange(parts_of(collective, ranks), dtype=np.int64)
    everyone, at_root = np.full_like(part, EVERYONE), np.full_like(part, root or 0)
    match collective:
        case "allgather":
            return Goals(part, everyone)
        case "gather":
            return Goals(part, at_root)
        case "scatter":
            return Goals(at_root, part)
        case "broadcast":
            return Goals(at_root, everyone)
        case "alltoall":
            return Goals(part // ranks, part % ranks)
        case "reduce_scatter":
            return Goals(everyone, part)
        case "reduce":
            return Goals(everyone, at_root)
    assert collective in REDUCING
    return Goals(everyone, everyone)


def of_transfers(transfers: Transfers) -> Goals:
    """The goals of a schedule."""
    if transfers.demand is not None:
        demand = transfers.demand
        return Goals(demand.origin, demand.goal, transfers.begins, transfers.ends)
    return goals_of(transfers.collective, transfers.ranks, transfers.root)
