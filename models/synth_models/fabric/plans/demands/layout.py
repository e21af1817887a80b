"""A machine of equal boxes as plans of demands see it: routes between boxes on rails, and routes inside boxes.

Rail g joins the g-th ranks of all boxes. Every route is direct: it passes switches only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import UnsupportedError
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.routes.box_routes import PairRoutes

ROUTE_SIZE = 2**20  # bytes for which the quickest routes are chosen
LONGEST = 2**16  # seconds that the longest plan may take, for which ticks are chosen


class RouteTable(NamedTuple):
    """Direct routes by number; times in ticks.

    ``row``: shape (routes + 1,); the links of route r are ``link[row[r]:row[r + 1]]``. What it occupies are the entries
    ``used[r]:used[r + 1]`` of ``resource`` (a link, or the group it is in), ``offset`` (latency before it) and
    ``per_byte``; a link that always follows another as fast is left out. ``latency``, ``slowest`` (ticks a byte takes
    on the slowest link): shape (routes,).
    """

    row: IntArray
    link: IntArray
    used: IntArray
    resource: IntArray
    offset: IntArray
    per_byte: IntArray
    latency: IntArray
    slowest: IntArray


@dataclass(frozen=True, eq=False)
class Layout:
    """``boxes`` boxes of ``size`` ranks; rank i = box * size + place is node ``node[i]``.

    ``routes``: from rank g of box b to rank g of box c by the number ``(b * boxes + c) * size + g``; then from rank g
    of box b to rank h of the same by ``inside + (b * size + g) * size + h``. ``resources``: links and groups.
    """

    boxes: int
    size: int
    node: IntArray
    routes: RouteTable
    inside: int
    resources: int
    ticks_per_s: int

    @property
    def ranks(self) -> int:
        """Ranks of all boxes."""
        return self.boxes * self.size

    @classmethod
    def of(cls, instance: FabricInstance) -> Layout:
        """The layout of the instance's machine and process group. Raises :class:`UnsupportedError` saying why where
        boxes are unequal, two ranks of a box or of a rail have no direct route, switches store, or no clock makes
        the time of a byte on every link a whole number of ticks."""
        if instance.switching.mode != "cut_through":
            raise UnsupportedError("switches store and forward")
        if len({len(box) for box in instance.boxes}) > 1:
            raise UnsupportedError("boxes have unequal numbers of ranks")
        node = np.array(instance.boxes, dtype=np.int64)
        boxes, size = node.shape
        source, target = _pairs(node)
        start, link = PairRoutes(instance, instance.boxes, ROUTE_SIZE).of(source, target)
        ticks = clock.ticks_per_second(instance.machine, LONGEST)
        routes = timed_routes(instance, start, link, ticks)
        inside = boxes * boxes * size
        resources = instance.machine.links + len(instance.machine.group_names)
        return cls(boxes, size, node.reshape(-1), routes, inside, resources, ticks)


def _pairs(node: IntArray) -> tuple[IntArray, IntArray]:
    """Sources and targets of all routes by number; a box to itself, a rank to itself is any route."""
    boxes, size = node.shape
    b, c, g = (part.reshape(-1) for part in np.meshgrid(*map(np.arange, (boxes, boxes, size)), indexing="ij"))
    source, target = node[b, g], node[c, g]
    e, f, h = (part.reshape(-1) for part in np.meshgrid(*map(np.arange, (boxes, size, size)), indexing="ij"))
    source, target = np.concatenate([source, node[e, f]]), np.concatenate([target, node[e, h]])
    real = np.flatnonzero(source != target)
    if not len(real):
        raise UnsupportedError("the machine has one rank")
    same = source == target
    source[same], target[same] = source[real[0]], target[real[0]]
    return source, target


def timed_routes(instance: FabricInstance, start: IntArray, link: IntArray, ticks: int) -> RouteTable:
    """Routes ``link[start[r]:start[r + 1]]`` with times. Raises :class:`UnsupportedError` where no clock fits, and
    where a route crosses a group of links twice: it would hold it from the first moment to the last."""
    machine = instance.machine
    per_byte = clock.durations(machine, ticks, 1)
    if np.any(clock.durations(machine, ticks, 2**20) != per_byte * 2**20):
        raise UnsupportedError("the bandwidths have no common clock in which a byte takes whole ticks")
    latency = clock.latencies(machine, ticks)[link]
    gone = np.cumsum(latency) - latency
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    grouped = machine.group[link] >= 0
    crossed = owner[grouped] * len(machine.group_names) + machine.group[link][grouped]
    if len(np.unique(crossed)) < len(crossed):
        raise UnsupportedError("a route crosses a group of links twice")
    resource = np.where(machine.group[link] >= 0, machine.links + machine.group[link], link)
    used = ~_following(start, link, per_byte) | grouped
    return RouteTable(
        start,
        link,
        np.concatenate([[0], np.cumsum(used)])[start].astype(np.int64),
        resource[used],
        (gone - gone[start[:-1]][owner])[used],
        per_byte[link][used],
        np.add.reduceat(latency, start[:-1]),
        np.maximum.reduceat(per_byte[link], start[:-1]),
    )


def _following(start: IntArray, link: IntArray, per_byte: IntArray) -> BoolArray:
    """Which entries of routes are links that every route enters from the same link, which takes a byte as long or
    longer: they are free whenever that one is, a latency later."""
    first = np.zeros(len(link), dtype=bool)
    first[start[:-1]] = True
    before = np.where(first, -1, np.roll(link, 1))
    links = int(link.max()) + 1
    least, most = np.full(links, links), np.full(links, -1)
    np.minimum.at(least, link, before)
    np.maximum.at(most, link, before)
    found: BoolArray = (least[link] == most[link]) & (before >= 0)
    found &= per_byte[link] <= per_byte[np.maximum(before, 0)]
    return found
