"""Routes that come to a link from near and from afar, and what then fills the gaps before what comes from afar."""

from __future__ import annotations

from functools import partial

import numpy as np

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import Transfers, timed
from synth_models.fabric.solution import Schedule

NOTICED = 4  # parts of a piece's time on a link
LONG = 100  # times what latencies differ by, after which they no longer matter


def timed_from_near_and_afar(instance: FabricInstance, transfers: Transfers, in_order: bool) -> Schedule:
    """The quicker of what list scheduling makes, and where routes come to a link from near and from afar, of filled
    gaps."""
    found = timed(instance, transfers, in_order=in_order)
    if not from_afar(instance, transfers):
        return found
    return min(found, timed(instance, transfers, in_gaps=True), key=partial(chunks.seconds, instance))


def from_afar(instance: FabricInstance, transfers: Transfers, whole: float = 1.0) -> bool:
    """Whether routes come to some link after latencies that differ by more than a part of what a piece takes there, and
    by a noticeable part of what the busiest link takes for all, ``whole`` times as much as these transfers."""
    net, link, lengths = instance.machine.network, transfers.link, np.diff(transfers.route_start)
    size = np.repeat(transfers.piece_bytes[transfers.piece], lengths)
    busiest = whole * float((np.bincount(link, size, len(net.src)) / net.bandwidth).max(initial=0.0))
    if int(lengths.max(initial=0)) * float(net.latency.max(initial=0.0)) < busiest / LONG:
        return False
    behind = np.cumsum(net.latency[link])
    offset = behind - net.latency[link]
    offset -= np.repeat(offset[transfers.route_start[:-1]], lengths)
    nearest, farthest = np.full(len(net.src), np.inf), np.zeros(len(net.src))
    np.minimum.at(nearest, link, offset)
    np.maximum.at(farthest, link, offset)
    used = np.isfinite(nearest)
    apart = (farthest - nearest)[used]
    takes = float(transfers.piece_bytes.max(initial=0)) / net.bandwidth[used]
    return bool(np.any((apart > takes / NOTICED) & (apart > busiest / LONG)))
