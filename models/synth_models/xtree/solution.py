"""The solution type of the xtree family, :class:`synth.schedule.schedule.Schedule`: stored form and flat table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.schedule import Schedule
from synth.untrusted import flags, whole_numbers
from synth_models.xtree.instance import XTreeInstance

if TYPE_CHECKING:
    import pandas as pd


def pack(schedule: Schedule) -> dict[str, Any]:
    """Arrays ``step``, ``link``, ``chunk`` and, where there are any, ``adds``; shape (transfers,)."""
    ordered = schedule.sorted()
    packed: dict[str, Any] = {"step": ordered.step, "link": ordered.link, "chunk": ordered.chunk}
    if ordered.adds.any():
        packed["adds"] = ordered.adds.astype(np.int8)
    return packed


def unpack(instance: XTreeInstance, packed: Mapping[str, Any]) -> Schedule:
    """The inverse of :func:`pack`. Raises ``ValueError`` on data that is no schedule."""
    step, link, chunk = (whole_numbers(packed, key) for key in ("step", "link", "chunk"))
    return Schedule.of(step, link, chunk, flags(packed, "adds", (len(step),)) if "adds" in packed else False)


def table(instance: XTreeInstance, schedule: Schedule) -> pd.DataFrame:
    """Columns ``step,src,dst,link,origin,chunk`` (chunk 0..C-1 of its origin) and, for reductions, ``collective
    phase``: ``reduce_scatter`` rows add to the receiver's partial sum, ``allgather`` rows copy a complete sum."""
    import pandas as pd

    ordered, network = schedule.sorted(), instance.topology
    columns: dict[str, Any] = {
        "step": ordered.step,
        "src": network.src[ordered.link],
        "dst": network.dst[ordered.link],
        "link": ordered.link,
        "origin": ordered.chunk // instance.chunks,
        "chunk": ordered.chunk % instance.chunks,
    }
    if instance.task.reduces:
        columns["collective phase"] = np.where(ordered.adds, "reduce_scatter", "allgather")
    return pd.DataFrame(columns)
