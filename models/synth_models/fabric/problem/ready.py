"""When ranks have their own part of a collective: ``ready`` of an instance, rows ``[rank, seconds]``.

Before its moment a rank sends nothing of its own: no block whose origin it is, no sum with its contribution. It may
receive and relay what others have sent. Ranks without a row are ready at moment 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from synth.arrays import IntArray
from synth.errors import Fault
from synth.instance import Unit
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.place_faults import whole

MOST_READY = 86_400.0  # seconds: a day
LATEST = 2**62  # ticks
MOST_TOLD = 100  # faults of one kind
Moment = Annotated[float, Field(ge=0, le=MOST_READY), Unit("s")]
Ready = tuple[tuple[Annotated[int, Field(ge=0)], Moment], ...]


def moments(ready: Ready | None) -> dict[int, Fraction]:
    """The exact moment in seconds of every rank that is not ready at once."""
    return {rank: exact(seconds) for rank, seconds in ready or () if seconds}


def in_ticks(ready: Ready | None, nodes: int, ticks_per_s: int) -> IntArray:
    """The first tick at which each node has its own part, shape (nodes,)."""
    first = np.zeros(nodes, dtype=np.int64)
    for rank, seconds in moments(ready).items():
        moment = seconds * ticks_per_s
        first[rank] = min(-(-moment.numerator // moment.denominator), LATEST)
    return first


def ready_faults(raw: Mapping[str, Any], members: Sequence[int]) -> Iterator[Fault]:
    """Rows of ``ready`` that name a rank twice, or one that takes no part, the first of each kind and how many more;
    ranges are the type's own."""
    seen: set[int] = set()
    rows, group = raw.get("ready"), set(members)
    found: dict[str, list[Fault]] = {}
    more: Counter[str] = Counter()
    for i, row in enumerate(rows if isinstance(rows, (list, tuple)) else ()):
        rank: Any = row[0] if isinstance(row, (list, tuple)) and len(row) == 2 else None
        if not whole(rank):
            continue
        words = "is no rank that takes part" if rank not in group else "stands twice" if rank in seen else ""
        seen.add(rank)
        if words and len(found.setdefault(words, [])) < MOST_TOLD:
            found[words].append(Fault(f"ready[{i}]", words, rank, True))
        elif words:
            more[words] += 1
    for words, faults in found.items():
        yield from faults[:-1]
        yield replace(faults[-1], more=more[words])
