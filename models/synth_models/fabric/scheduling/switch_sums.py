"""Sums over switches that store and add: such a switch is a rank without a contribution, and holds one sum of a piece.

A switch that only stores keeps apart what it has received, so transfers of one piece may cross in it. One that adds
sends on all that it holds: of two transfers through it the second would bring the first one's contributions again. So
the links over which a piece is summed up become one in-tree, in which every node, rank or switch, sends once, after all
that comes to it. Sums that are exchanged, which is no in-tree, have no such form.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import UnsupportedError
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.scheduling.hop_times import Moved

Rows = list[list[int]]
EXCHANGED = "its ranks exchange sums, and these switches, which add what they store, cannot keep such apart"


class Summing(Moved, Protocol):
    """Transfers of which some add."""

    @property
    def adds(self) -> BoolArray:
        """Shape (transfers,)."""


class Waiting(Summing, Protocol):
    """:class:`synth_models.fabric.scheduling.transfers.Transfers`, as far as they are read here."""

    @property
    def priority(self) -> IntArray:
        """Shape (transfers,)."""

    @property
    def before_start(self) -> IntArray:
        """Shape (transfers + 1,)."""

    @property
    def before(self) -> IntArray:
        """Those that each waits for, as rows."""


def adding_stores(instance: FabricInstance) -> bool:
    """Whether there are switches that store and add."""
    switching = instance.switching
    return switching.mode == "store_and_forward" and bool(switching.adds and instance.machine.is_switch.any())


def meet_in_switches(instance: FabricInstance, transfers: Summing) -> bool:
    """Whether something that is added passes a switch that stores and adds."""
    if not adding_stores(instance) or not transfers.adds.any():
        return False
    machine = instance.machine
    adding = np.repeat(transfers.adds, np.diff(transfers.route_start))
    net = machine.network
    ends = net.src[transfers.link[adding]], net.dst[transfers.link[adding]]
    return any(bool(machine.is_switch[end].any()) for end in ends)


def in_trees(instance: FabricInstance, transfers: Waiting) -> tuple[list[int], Rows, Rows, list[int], list[bool]]:
    """What takes the place of transfers that :func:`meet_in_switches`: every link of a sum is a transfer of its own,
    copies stay, behind the sums that they waited for. Piece, route, transfers before it, priority and whether it adds,
    of each.

    Raises :class:`UnsupportedError` where the sums of a piece make no in-tree.
    """
    net, members = instance.machine.network, tuple(instance.members)
    tail, head = net.src.tolist(), net.dst.tolist()
    route = _lists(transfers.route_start, transfers.link)
    waits = _lists(transfers.before_start, transfers.before)
    rows = _Rows(transfers)
    come: dict[int, tuple[int, list[int]]] = {}  # of every piece the root, and what comes there
    for piece, own in sorted(rows.of_piece.items()):
        late: dict[int, int] = {}
        for i in own:
            for e in route[i]:
                late[e] = max(late.get(e, rows.priority[i]), rows.priority[i])
        used = tuple(sorted(late))
        into: dict[int, list[int]] = {}
        tree = _in_tree(used, tuple(tail[e] for e in used), tuple(head[e] for e in used), members)
        for e in tree:
            into.setdefault(head[e], []).append(rows.add(piece, [e], into.get(tail[e], []), late[e], True))
        come[piece] = head[tree[-1]], into[head[tree[-1]]]
    copies = np.flatnonzero(~transfers.adds).tolist()
    number = {i: rows.add(rows.piece[i], route[i], [], rows.priority[i], False) for i in copies}
    for i, at in number.items():
        for j in waits[i]:
            if j not in number and head[route[j][-1]] != come[rows.piece[j]][0]:
                raise UnsupportedError(EXCHANGED)
            rows.before[at] += [number[j]] if j in number else come[rows.piece[j]][1]
    return rows.new_piece, rows.route, rows.before, rows.in_turn(), rows.adds


def _lists(start: IntArray, flat: IntArray) -> Rows:
    values, ends = flat.tolist(), start.tolist()
    return [values[a:b] for a, b in pairwise(ends)]


class _Rows:
    """Transfers as they are made, and the old ones that add, by piece."""

    def __init__(self, old: Waiting) -> None:
        self.piece, self.priority = old.piece.tolist(), old.priority.tolist()
        self.of_piece: dict[int, list[int]] = {}
        for i in np.flatnonzero(old.adds).tolist():
            self.of_piece.setdefault(self.piece[i], []).append(i)
        self.new_piece: list[int] = []
        self.route: Rows = []
        self.before: Rows = []
        self.late: list[int] = []
        self.adds: list[bool] = []

    def add(self, piece: int, route: list[int], before: list[int], late: int, adds: bool) -> int:
        self.new_piece.append(piece)
        self.route.append(route)
        self.before.append(list(before))
        self.late.append(late)
        self.adds.append(adds)
        return len(self.route) - 1

    def in_turn(self) -> list[int]:
        """Priorities in the old order, each after those that it waits for."""
        after: Rows = [[] for _ in self.route]
        waits = [len(row) for row in self.before]
        for i, row in enumerate(self.before):
            for j in row:
                after[j].append(i)
        heap = [(self.late[i], i) for i, count in enumerate(waits) if not count]
        heapq.heapify(heap)
        turn = [0] * len(waits)
        for place in range(len(waits)):
            i = heapq.heappop(heap)[1]
            turn[i] = place
            for j in after[i]:
                waits[j] -= 1
                if not waits[j]:
                    heapq.heappush(heap, (self.late[j], j))
        return turn


@lru_cache(maxsize=1024)
def _in_tree(
    links: Sequence[int], tails: Sequence[int], heads: Sequence[int], members: Sequence[int]
) -> tuple[int, ...]:
    """Of these links those of the in-tree of fewest hops from all members to the one node that nothing leaves, the
    farthest first."""
    roots = set(heads) - set(tails)
    if len(roots) != 1:
        raise UnsupportedError(EXCHANGED)
    (root,) = roots
    into: dict[int, list[int]] = {}
    for k, head in enumerate(heads):
        into.setdefault(head, []).append(k)
    leaves = {root: -1}  # over which link, in order of distance from the root
    queue = deque([root])
    while queue:
        for k in into.get(queue.popleft(), ()):
            if tails[k] not in leaves:
                leaves[tails[k]] = k
                queue.append(tails[k])
    if not set(members) <= set(leaves):
        raise UnsupportedError(EXCHANGED)
    needed = {root}
    for member in members:
        node = member
        while node not in needed:
            needed.add(node)
            node = heads[leaves[node]]
    return tuple(links[leaves[node]] for node in reversed(leaves) if node in needed and node != root)
