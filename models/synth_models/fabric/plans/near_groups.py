"""Groups of near ranks, such as the hosts of a dragonfly's group, and routes that leave a group once.

On a dragonfly the quickest route to another group may go through a third one: over two global links and no local one.
Taken by all pairs, such routes load global links twice as much as the ranks' own links
(Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly topology, 2008, section 4: minimal routing).
"""

from __future__ import annotations

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.routes.box_routes import PairRoutes
from synth_models.fabric.routes.near_boxes import around, near_boxes, places, seconds_between
from synth_models.fabric.scheduling.from_afar import seconds_of_links

UNEVEN = 1.05  # times what the busiest link of a rank takes, above which other routes are looked for


def near_groups(instance: FabricInstance) -> tuple[tuple[int, ...], ...]:
    """Where every rank is a box of its own, groups of ranks near each other; none unless they are several, equally
    large."""
    if max(map(len, instance.boxes)) > 1:
        return ()
    seconds = seconds_between(PairRoutes(instance, instance.boxes, 1), instance.boxes)
    order = around(seconds)
    ranks = [rank for (rank,) in instance.boxes]
    found = tuple(tuple(ranks[order[k]] for k in places(group)) for group in near_boxes(seconds, order))
    return found if len(found) > 1 and {len(group) for group in found} == {len(found[0])} != {1} else ()


def even_routes(
    instance: FabricInstance, source: IntArray, target: IntArray, sizes: IntArray
) -> tuple[IntArray, IntArray]:
    """``route_start`` (transfers + 1,) and ``link`` of transfers from ``source`` to ``target`` of so many bytes, shape
    (transfers,) each: over the quickest routes, or, where these load links between groups more than the ranks' own,
    over the quickest that leave a group once, if the busiest link then takes shorter by more than the routes take
    longer. Raises :class:`UnsupportedError` where a pair has no direct route."""
    largest, net = int(sizes.max(initial=1)), instance.machine.network
    quickest = PairRoutes(instance, instance.boxes, largest).of(source, target)
    seconds = seconds_of_links(instance, *quickest, sizes)
    switch = instance.machine.is_switch
    own = ~(switch[net.src] & switch[net.dst])
    if seconds.max(initial=0.0) <= UNEVEN * seconds[own].max(initial=0.0):
        return quickest
    groups = near_groups(instance)
    if not groups:
        return quickest
    once = routes_leaving_once(instance, groups, source, target, largest)

    def takes(start: IntArray, link: IntArray) -> float:
        """What the busiest link takes, and the longest latency."""
        latency = np.add.reduceat(net.latency[link], start[:-1])
        return float(seconds_of_links(instance, start, link, sizes).max() + latency.max())

    return min(quickest, once, key=lambda routes: takes(*routes))


def routes_leaving_once(
    instance: FabricInstance, groups: tuple[tuple[int, ...], ...], source: IntArray, target: IntArray, largest: int
) -> tuple[IntArray, IntArray]:
    """The quickest routes for ``largest`` bytes that leave a group once, as :func:`even_routes` has them."""
    return PairRoutes(instance, instance.boxes, largest, links_between(instance, groups)).of(source, target)


def links_between(instance: FabricInstance, groups: tuple[tuple[int, ...], ...]) -> BoolArray:
    """The links between switches whose ranks are in different ``groups``, shape (links,)."""
    machine, net = instance.machine, instance.machine.network
    group = np.full(machine.nodes, -1, dtype=np.int64)
    for number, members in enumerate(groups):
        group[list(members)] = number
    into = machine.is_switch[net.dst] & (group[net.src] >= 0)
    group[net.dst[into]] = group[net.src[into]]
    ends = group[net.src], group[net.dst]
    found: BoolArray = (ends[0] >= 0) & (ends[1] >= 0) & (ends[0] != ends[1])
    return found
