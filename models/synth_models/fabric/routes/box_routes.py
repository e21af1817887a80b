"""Direct routes for many pairs of ranks at once; where the boxes are alike, those of one box serve all.

A machine of equal boxes looks the same from each of them: box after box moves to the next, the last to the first, what
they share stays. A route from box b to box c is then that from box 0 to box c - b, moved b boxes on, so that 128 boxes
need the searches of one. Failures and process groups that are not the same in every box break this; every pair of
ranks then has a search of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.errors import UnsupportedError
from synth.graph.symmetry import arc_images
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.balanced_fat_tree import BalancedFatTree
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.routes.search import Routes
from synth_models.fabric.routes.spines import LeastUsedSpines

NONE = -1
MANY = 100_000  # pairs whose routes are looked for together
BEHIND_LEAVES = 4_000  # pairs of boxes and rails from which on routes behind leaf switches are not searched for
_IN_A_BOX = re.compile(r"(\d+)/(.+)")


def next_box(machine: Machine) -> tuple[IntArray, IntArray] | None:
    """The nodes and links that every node and link goes to when all boxes move on by one; None where the machine does
    not stay as it is. Nodes belong to a box by their names (``3/gpu0``)."""
    place: dict[tuple[int, str], int] = {}
    for node, name in enumerate(machine.names):
        found = _IN_A_BOX.fullmatch(name)
        if found:
            box, own = found.groups()
            place[int(box), own] = node
    boxes = 1 + max((number for number, _ in place), default=0)
    if boxes < 2:
        return None
    node_image = np.arange(machine.nodes, dtype=np.int64)
    for (number, own), node in place.items():
        after = place.get(((number + 1) % boxes, own))
        if after is None:
            return None
        node_image[node] = after
    net = machine.network
    link_image = arc_images(node_image, net.src, net.dst, (net.bandwidth, net.latency, machine.group >= 0))
    return None if link_image is None else (node_image, link_image)


def boxes_are_alike(machine: Machine, boxes: Sequence[Sequence[int]]) -> bool:
    """Whether the machine and the group stay as they are when all boxes move on by one."""
    return _turns(machine, boxes) is not None


class PairRoutes:
    """The quickest direct routes of pairs of members, as arrays; each pair always takes the same route.

    ``boxes``: the members by box. ``avoided``: links of which a route takes as few as it can, shape (links,); seconds
    are then none. Raises :class:`UnsupportedError` where a pair that is asked for has no direct route.
    """

    def __init__(
        self, instance: FabricInstance, boxes: Sequence[Sequence[int]], size: int, avoided: BoolArray | None = None
    ) -> None:
        self._routes = Routes.of(instance, size, avoided)
        self.machine = instance.machine
        self._nodes = instance.machine.nodes
        self._turns = _turns(instance.machine, boxes)
        self._box = np.zeros(self._nodes, dtype=np.int64)  # of every member, by its place in ``boxes``
        self._first = np.arange(self._nodes, dtype=np.int64)  # the node that stands for each where all boxes are turned
        for number, members in enumerate(boxes):
            for rank, like in zip(members, boxes[0], strict=False):
                self._box[rank] = number
                self._first[rank] = like
        self._count = len(boxes)
        if self._turns is not None:
            self._members = np.array(boxes, dtype=np.int64)
            self._place = np.zeros(self._nodes, dtype=np.int64)
            self._place[self._members] = np.arange(self._members.shape[1])
        tree = None if self._turns is not None or avoided is not None else BalancedFatTree.of(self.machine, boxes)
        many = len(boxes) ** 2 * max(map(len, boxes)) > BEHIND_LEAVES
        self._tree = tree if tree is not None and (tree.streams < 1 or many) else None
        self._spines = None if self._tree is None else LeastUsedSpines(self._tree, self.machine)
        self._reached: dict[int, BoolArray] = {}
        self._known: dict[int, tuple[int, ...]] = {}

    def reached_from(self, source: int) -> BoolArray:
        """Which nodes a direct route leads to from a member, shape (nodes,)."""
        if self._turns is None:
            return np.isfinite(self._routes.direct_seconds(source))
        turn = int(self._box[source])
        first = int(self._first[source])
        if first not in self._reached:
            self._reached[first] = np.isfinite(self._routes.direct_seconds(first))
        found = np.zeros(self._nodes, dtype=bool)
        found[np.roll(self._members, -turn, axis=0)] = self._reached[first][self._members]
        return found

    def seconds_from(self, source: int) -> FloatArray:
        """Seconds of the quickest direct route from a member to every node, inf without one; shape (nodes,)."""
        return self._routes.direct_seconds(source)

    def of(self, source: IntArray, target: IntArray) -> tuple[IntArray, IntArray]:
        """``route_start`` (pairs + 1,) and ``link``: the route of each pair, one after the other."""
        turn = np.zeros(len(source), dtype=np.int64)
        if self._turns is not None:
            turn = self._box[source]
            ahead = (self._box[target] - turn) % self._count
            target = self._members[ahead, self._place[target]]
            source = self._first[source]
        pairs, row = _distinct(source * self._nodes + target, self._nodes**2)
        links = self._links(pairs)[row]
        used = links >= 0
        start = starts(used.sum(axis=1))
        if self._turns is not None:
            links = self._turns[turn[:, None], links]
        return start, links[used]

    def _links(self, pairs: IntArray) -> IntArray:
        """The route of each pair (source * nodes + target, ascending), -1 in the place of no link."""
        table = self._routes.of_many(pairs) if len(pairs) > MANY else None
        if table is not None or self._tree is None or self._spines is None:
            return self._table(pairs) if table is None else table
        source, target = np.divmod(pairs, self._nodes)
        far = self._tree.apart(source, target)
        ways = self._tree.ways(source[far], target[far], self._spines.of(source[far], target[far]))
        near = self._table(pairs[~far])
        found = np.full((len(pairs), max(ways.shape[1], near.shape[1])), NONE, dtype=np.int64)
        found[far, : ways.shape[1]], found[~far, : near.shape[1]] = ways, near
        return found

    def _table(self, pairs: IntArray) -> IntArray:
        found = [self._route(int(pair)) for pair in pairs]
        longest = max((len(route) for route in found), default=0)
        table = np.full((len(found), longest), NONE, dtype=np.int64)
        for k, route in enumerate(found):
            table[k, : len(route)] = route
        return table

    def _route(self, pair: int) -> tuple[int, ...]:
        if pair not in self._known:
            source, target = divmod(pair, self._nodes)
            route = self._routes.direct(source, target)
            if route is None:
                raise UnsupportedError(f"no direct route joins ranks {source} and {target}")
            self._routes.take(route)
            self._known[pair] = route
        return self._known[pair]


def _distinct(values: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """The distinct ones among ``values`` from 0 to below ``most``, sorted, and the place of each there; no sorting."""
    there = np.zeros(most, dtype=bool)
    there[values] = True
    found = np.flatnonzero(there)
    place = np.zeros(most, dtype=np.int64)
    place[found] = np.arange(len(found))
    return found, place[values]


def _turns(machine: Machine, boxes: Sequence[Sequence[int]]) -> IntArray | None:
    """Where every link goes when the boxes move on by 0, 1, 2, …, shape (boxes, links); None where that is no symmetry
    of the machine and the group."""
    images = next_box(machine)
    if images is None:
        return None
    node, link = images
    for box, after in zip(boxes, (*boxes[1:], boxes[0]), strict=True):
        if len(box) != len(after) or node[list(box)].tolist() != list(after):
            return None
    found = np.empty((len(boxes), machine.links), dtype=np.int64)
    found[0] = np.arange(machine.links)
    for k in range(1, len(boxes)):
        found[k] = link[found[k - 1]]
    return found
