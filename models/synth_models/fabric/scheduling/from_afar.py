"""Routes that come to a link from near and from afar, and what then fills the gaps before what comes from afar."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.clock.deadline import OutOfTime, left
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

FEW = 300_000  # transfers up to which all kinds of list scheduling are tried
IDLE = 1.05  # times what the busiest link takes, above which lists are not all that is tried
LISTED = 6e-5  # seconds of list scheduling a transfer, of many that wait for each other's links
PIECE = 16  # latencies that a piece takes on a link, above which gaps are no better than lists
NOTICED = 4  # parts of a piece's time on a link
LONG = 100  # times what latencies differ by, after which they no longer matter


def timed_from_near_and_afar(instance: FabricInstance, transfers: Transfers, in_order: bool) -> Schedule:
    """The quicker of what list scheduling makes, and where routes come to a link from near and from afar, of filled
    gaps. Of many transfers these with the farthest first; between ranks that are boxes of their own, lists too only
    where the busiest link is then idle and there is time."""
    many, afar = len(transfers.piece) > FEW, from_afar(instance, transfers)
    if many and afar:
        return _many_from_afar(instance, transfers, in_order)
    quick = None
    if many and not in_order and len(instance.boxes) == len(instance.members) and not _are_long(instance, transfers):
        quick = timed(instance, farthest_first(instance, transfers, True), in_cells=True)
        idle = float(chunks.seconds(instance, quick)) > IDLE * busiest_seconds(instance, transfers)
        if not idle or left() < LISTED * len(transfers.piece):
            return quick
    found = timed(instance, transfers, in_order=in_order)
    if quick is not None:
        return min(found, quick, key=partial(chunks.seconds, instance))
    if not afar:
        return found
    filled = timed(instance, transfers, in_gaps=not many, in_cells=many)
    return min(found, filled, key=partial(chunks.seconds, instance))


def _many_from_afar(instance: FabricInstance, transfers: Transfers, in_order: bool) -> Schedule:
    """Filled gaps with the farthest first; between boxes of several ranks, whose links few wait for, also lists."""
    found = timed(instance, farthest_first(instance, transfers), in_cells=True)
    if len(instance.boxes) == len(instance.members):
        return found
    with suppress(OutOfTime):
        return min(found, timed(instance, transfers, in_order=in_order), key=partial(chunks.seconds, instance))
    return found


def _are_long(instance: FabricInstance, transfers: Transfers) -> bool:
    return takes_long(instance, float(transfers.piece_bytes.max(initial=0)))


def takes_long(instance: FabricInstance, size: float) -> bool:
    """Whether a piece of so many bytes takes so much longer than latencies that gaps are no better than lists."""
    net = instance.machine.network
    return bool(size > PIECE * net.bandwidth.min() * net.latency.max(initial=0.0))


def busiest_seconds(instance: FabricInstance, transfers: Transfers) -> float:
    """How long the busiest link takes for what crosses it."""
    size = transfers.piece_bytes[transfers.piece]
    return float(seconds_of_links(instance, transfers.route_start, transfers.link, size).max(initial=0.0))


def seconds_of_links(instance: FabricInstance, route_start: IntArray, link: IntArray, size: IntArray) -> FloatArray:
    """How long each link takes for what crosses it, shape (links,); ``size``: bytes of each route."""
    net = instance.machine.network
    found: FloatArray = np.bincount(link, np.repeat(size, np.diff(route_start)), len(net.src)) / net.bandwidth
    return found


def farthest_first(instance: FabricInstance, transfers: Transfers, however_long: bool = False) -> Transfers:
    """With priorities that suit filled gaps: first what most others wait for one after the other, of that what goes
    farthest, and else in no order, so that no link is wanted by all at the same time. As they are where pieces take
    longer than latencies, unless ``however_long``: to place such in no order takes several times as long."""
    net = instance.machine.network
    if not however_long and transfers.piece_bytes.max(initial=0) > net.bandwidth.min() * net.latency.max(initial=0.0):
        return transfers
    waiting = np.repeat(np.arange(len(transfers.piece)), np.diff(transfers.before_start))
    height = np.zeros(len(transfers.piece), dtype=np.int64)  # how many wait for it, one for the other
    while True:
        higher = height.copy()
        np.maximum.at(higher, transfers.before, height[waiting] + 1)
        if np.array_equal(higher, height) or int(higher.max()) > len(height):
            break
        height = higher
    seconds = np.add.reduceat(net.latency[transfers.link], transfers.route_start[:-1])
    priority = np.empty(len(height), dtype=np.int64)
    priority[np.lexsort((_scattered(len(height)), -seconds, -height))] = np.arange(len(height))
    return replace(transfers, priority=priority)


def _scattered(count: int) -> IntArray:
    """Keys that put so many in no order, always the same (the last step of SplitMix64: Steele, Lea, Flood: "Fast
    splittable pseudorandom number generators", OOPSLA 2014)."""
    word = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: IntArray = (word >> np.uint64(1)).astype(np.int64)
    return found


def from_afar(instance: FabricInstance, transfers: Transfers, whole: float = 1.0) -> bool:
    """Whether routes come to some link after latencies that differ by more than a part of what a piece takes there, and
    by a noticeable part of what the busiest link takes for all, ``whole`` times as much as these transfers."""
    net, link, lengths = instance.machine.network, transfers.link, np.diff(transfers.route_start)
    busiest = whole * busiest_seconds(instance, transfers)
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
