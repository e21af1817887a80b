"""What switches can do with data that passes them: copy one stream to several ports, add several streams up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.instance import Part
from synth.network.spec import Bandwidth

Streams = Annotated[int, Field(ge=1, le=1_000_000)]
ANY_NUMBER = 0


class Ability(Part):
    """One switch's. ``copies``: a stream that comes in may leave through several ports. ``adds``: streams of one piece
    that come in through several ports may leave as their sum. ``streams``: of how many transfers at once it does either
    (default: any number). ``add_rate``: bytes/s of a sum through a port (default: what the link carries)."""

    copies: bool = False
    adds: bool = False
    streams: Streams | None = None
    add_rate: Bandwidth | None = None


@dataclass(frozen=True, eq=False)
class Abilities:
    """Of all nodes, shape (nodes,) each: ``copies``, ``adds``; ``streams``, :data:`ANY_NUMBER` for no limit;
    ``add_rate``, bytes/s on links *out of* a switch that adds what it sends there, infinite for none; ``copy_rate``,
    the same on links *into* a switch that copies it, which only a reversed machine has."""

    copies: BoolArray
    adds: BoolArray
    streams: IntArray
    add_rate: FloatArray
    copy_rate: FloatArray

    @classmethod
    def none(cls, nodes: int) -> Abilities:
        """Every switch sends on what comes in, and nothing else."""
        no, any_rate = np.zeros(nodes, dtype=bool), np.full(nodes, np.inf)
        return cls(no, no, np.full(nodes, ANY_NUMBER, dtype=np.int64), any_rate, any_rate)

    @classmethod
    def of(cls, nodes: int, stated: Iterable[tuple[int, Ability]]) -> Abilities:
        """Those of single switches by their node numbers."""
        found = cls.none(nodes)
        found = replace(found, **{name: getattr(found, name).copy() for name in vars(found)})
        for node, ability in stated:
            found.copies[node], found.adds[node] = ability.copies, ability.adds
            found.streams[node] = ability.streams or ANY_NUMBER
            found.add_rate[node] = ability.add_rate or np.inf
        return found

    @property
    def any(self) -> bool:
        """Whether some switch copies or adds."""
        return bool(self.copies.any() or self.adds.any())

    def reversed(self) -> Abilities:
        """With every link turned round: what copies adds."""
        return Abilities(self.adds, self.copies, self.streams, self.copy_rate, self.add_rate)
