"""The solution type of the xtree family: stored form and flat table.

It is a :class:`synth.schedule.schedule.Schedule`, or a :class:`synth.schedule.quotient.QuotientSchedule` where one
node's part and symmetries say it all and the whole would have too many transfers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.schedule import Schedule
from synth.schedule.quotient import QuotientSchedule, listed
from synth.text.untrusted import flags, whole_numbers
from synth_models.xtree.instance import XTreeInstance

if TYPE_CHECKING:
    import pandas as pd


Solution = Schedule | QuotientSchedule


def pack(schedule: Solution) -> dict[str, Any]:
    """Arrays ``step``, ``link``, ``chunk`` and, where there are any, ``adds``; shape (transfers,). Of a quotient those
    of node 0's chunks, with ``generators``, shape (generators, nodes), and perhaps ``within``, shape (links moved,)."""
    if isinstance(schedule, QuotientSchedule):
        packed = pack(schedule.part) | {"generators": schedule.generators.astype(np.int32)}
        return packed if schedule.within is None else packed | {"within": schedule.within.astype(np.int32)}
    ordered = schedule.sorted()
    packed = {"step": ordered.step, "link": ordered.link, "chunk": ordered.chunk}
    if ordered.adds.any():
        packed["adds"] = ordered.adds.astype(np.int8)
    return packed


def unpack(instance: XTreeInstance, packed: Mapping[str, Any]) -> Solution:
    """The inverse of :func:`pack`. Raises ``ValueError`` on data that is no schedule."""
    step, link, chunk = (whole_numbers(packed, key) for key in ("step", "link", "chunk"))
    schedule = Schedule.of(step, link, chunk, flags(packed, "adds", (len(step),)) if "adds" in packed else False)
    if "generators" not in packed:
        return schedule
    nodes, links = instance.topology.nodes, instance.topology.links
    generators = whole_numbers(packed, "generators", 0, nodes - 1, (None, nodes))
    within = whole_numbers(packed, "within", 0, links - 1) if "within" in packed else None
    return QuotientSchedule(schedule, generators, within)


def table(instance: XTreeInstance, schedule: Solution) -> pd.DataFrame:
    """Columns ``step,src,dst,link,origin,chunk`` (chunk 0..C-1 of its origin) and, for reductions, ``collective
    phase``: ``reduce_scatter`` rows add to the receiver's partial sum, ``allgather`` rows copy a complete sum.

    Raises :class:`InputError` for a quotient whose whole schedule is too long to list."""
    import pandas as pd

    ordered, network = listed(instance.topology, schedule).sorted(), instance.topology
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
