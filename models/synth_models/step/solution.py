"""The solution type of all methods: when every node starts, and by which algorithm a collective runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.arrays import IntArray
from synth.text import untrusted
from synth_models.step.instance import TICKS, Computation, StepInstance

if TYPE_CHECKING:
    import pandas as pd

LATEST = 1 << 62  # picoseconds
NAMES = ("direct", "ring")  # of algorithms, by number


@dataclass(frozen=True)
class Timetable:
    """``start``, shape (nodes,): picoseconds; ``algorithm``, shape (nodes,): number in :data:`NAMES`, 0 of a
    computation."""

    start: IntArray
    algorithm: IntArray


def pack(timetable: Timetable) -> dict[str, Any]:
    """Plain values and flat arrays."""
    return {"start": timetable.start, "algorithm": timetable.algorithm}


def unpack(instance: StepInstance, packed: Mapping[str, Any]) -> Timetable:
    """The inverse of :func:`pack`. Raises ``ValueError`` on data that is no timetable."""
    shape = (len(instance.nodes),)
    start = untrusted.whole_numbers(packed, "start", 0, LATEST, shape)
    return Timetable(start, untrusted.whole_numbers(packed, "algorithm", 0, len(NAMES) - 1, shape))


def table(instance: StepInstance, timetable: Timetable) -> pd.DataFrame:
    """Columns ``node,kind,place,algorithm,start``: a row a node, its stream or class of links, start in seconds."""
    import pandas as pd

    rows = [
        (node.name, node.kind, node.stream, "", at / TICKS)
        if isinstance(node, Computation)
        else (node.name, node.kind, node.link, NAMES[how], at / TICKS)
        for node, how, at in zip(instance.nodes, timetable.algorithm.tolist(), timetable.start.tolist(), strict=True)
    ]
    return pd.DataFrame(rows, columns=["node", "kind", "place", "algorithm", "start"])


def timetable_of(start: list[int], algorithm: list[int] | None = None) -> Timetable:
    """From lists; without algorithms all by the first."""
    how = algorithm if algorithm is not None else [0] * len(start)
    return Timetable(np.array(start, dtype=np.int64), np.array(how, dtype=np.int64))
