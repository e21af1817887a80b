"""The parts of a balanced fat tree of leaf and spine switches, found in its links whatever their numbers are.

Every member has one way to one leaf switch, alone or through switches of its own (a NIC), and every leaf switch is
joined to every spine switch by one link. As many members of a box are at each leaf switch, and as many boxes at the
same leaf switches (Leiserson: Fat-trees, 1985; Al-Fares, Loukissas, Vahdat: A scalable, commodity data center network
architecture, 2008).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.graph.hops import hops_from_nearest
from synth_models.fabric.problem.machine import Machine


@dataclass(frozen=True)
class BalancedFatTree:
    """Where its parts are, numbered from 0. A member has a ``group`` of boxes with the same leaf switches, a ``leaf``
    of these, a ``box`` of the group, and a ``place`` among the box's members at the leaf: shape (nodes,), -1 for all
    other nodes. There are as many of each as ``sides`` says, in this order.

    ``up`` and ``down``: a member's links to its leaf switch and from it, shape (nodes, links of such a way).
    ``to_spine`` and ``from_spine``: links of the leaf switch, shape (groups, leaves, spines). ``streams``: how many
    times as much these carry as a member's way does.
    """

    sides: tuple[int, ...]
    group: IntArray
    leaf: IntArray
    box: IntArray
    place: IntArray
    up: IntArray
    down: IntArray
    to_spine: IntArray
    from_spine: IntArray
    streams: float

    @classmethod
    def of(cls, machine: Machine, boxes: Sequence[Sequence[int]]) -> BalancedFatTree | None:
        """None where a machine and the members of these boxes are no such tree."""
        net = machine.network
        level = hops_from_nearest(machine.nodes, net.src, net.dst, machine.ranks).astype(np.int64)
        top = int(level.max(initial=0))
        spines = np.flatnonzero(level == top)
        into = np.flatnonzero(level[net.dst] == top)
        leaves = np.unique(net.src[into]).astype(np.int64)
        if top < 2 or np.any(level[leaves] != top - 1):
            return None
        to_spine = _links_between(machine, leaves, spines)
        from_spine = _links_between(machine, spines, leaves)
        members = np.array([rank for box in boxes for rank in box], dtype=np.int64)
        up, down = (_ways(one, level, leaves, members) for one in (machine, machine.reversed()))
        if to_spine is None or from_spine is None or up is None or down is None:
            return None
        at = net.dst[up[:, -1]].astype(np.int64)
        if np.any(net.src[down[:, -1]] != at):
            return None
        sides = _dealt(boxes, members, at)
        narrow = np.minimum(net.bandwidth[up].min(axis=1), net.bandwidth[down].min(axis=1))
        wide = net.bandwidth[np.concatenate([to_spine.ravel(), from_spine.ravel()])]
        if sides is None or np.ptp(narrow) or np.ptp(wide):
            return None
        parts = np.full((4, machine.nodes), -1, dtype=np.int64)
        parts[:, members] = sides
        counts = sides.max(axis=1) + 1
        row = np.zeros((counts[0], counts[1]), dtype=np.int64)
        row[sides[0], sides[1]] = np.searchsorted(leaves, at)
        every = np.full((2, machine.nodes, up.shape[1]), -1, dtype=np.int64)
        every[0, members], every[1, members] = up, down[:, ::-1]
        group, leaf, box, place = parts
        streams = float(wide[0] / narrow[0])
        return cls(
            tuple(counts.tolist()),
            group,
            leaf,
            box,
            place,
            every[0],
            every[1],
            to_spine[row],
            from_spine.T[row],
            streams,
        )

    def apart(self, source: IntArray, target: IntArray) -> BoolArray:
        """Whether members are in different boxes, shape as theirs."""
        found: BoolArray = (self.group[source] != self.group[target]) | (self.box[source] != self.box[target])
        return found

    def across(self, source: IntArray, target: IntArray) -> BoolArray:
        """Whether members are at different leaf switches, shape as theirs."""
        found: BoolArray = (self.group[source] != self.group[target]) | (self.leaf[source] != self.leaf[target])
        return found

    def ways(self, source: IntArray, target: IntArray, spine: IntArray) -> IntArray:
        """The links from each source over leaf switches to its target, shape (pairs, links); over this ``spine`` from
        one leaf switch to another, else -1 in the place of these two links."""
        up, down = self.up[source], self.down[target]
        middle = np.full((len(source), 2), -1, dtype=np.int64)
        far = np.flatnonzero(self.across(source, target))
        begins, ends = ((self.group[rank[far]], self.leaf[rank[far]]) for rank in (source, target))
        middle[far] = np.stack([self.to_spine[*begins, spine[far]], self.from_spine[*ends, spine[far]]], axis=1)
        return np.concatenate([up, middle, down], axis=1)


def _links_between(machine: Machine, sources: IntArray, targets: IntArray) -> IntArray | None:
    """The one link from each source to each target, shape (sources, targets); None unless there is one."""
    net = machine.network
    used = np.flatnonzero(np.isin(net.src, sources) & np.isin(net.dst, targets))
    row, column = np.searchsorted(sources, net.src[used]), np.searchsorted(targets, net.dst[used])
    count = np.zeros((len(sources), len(targets)), dtype=np.int64)
    np.add.at(count, (row, column), 1)
    if np.any(count != 1):
        return None
    count[row, column] = used
    return count


def _ways(machine: Machine, level: IntArray, leaves: IntArray, members: IntArray) -> IntArray | None:
    """Links of every member's way to a leaf switch, shape (members, links); None where one has none or several, or
    shares part of it with another."""
    net = machine.network
    leads = np.isin(np.arange(machine.nodes), leaves)
    steps: list[BoolArray] = []
    for height in range(int(level[leaves[0]]) - 1, -1, -1):
        step = leads[net.dst] & (level[net.src] == height)
        leads = np.zeros(machine.nodes, dtype=bool)
        leads[net.src[step]] = True
        steps.append(step)
    now, found = members, list[IntArray]()
    for step in reversed(steps):
        links = np.flatnonzero(step & np.isin(net.src, now))
        if len(links) != len(now) or len(np.unique(now)) != len(now):
            return None
        place = links[np.argsort(net.src[links])]
        if not np.array_equal(net.src[place], np.sort(now)):
            return None
        own = place[np.searchsorted(net.src[place], now)]
        found.append(own)
        now = net.dst[own].astype(np.int64)
    return np.stack(found, axis=1)


def _dealt(boxes: Sequence[Sequence[int]], members: IntArray, at: IntArray) -> IntArray | None:
    """Group, leaf, box and place of every member, shape (4, members), by the leaf switch that each is ``at``; None
    where not all combinations of these exist once."""
    leaf_of = dict(zip(members.tolist(), at.tolist(), strict=True))
    groups: dict[tuple[int, ...], list[Sequence[int]]] = defaultdict(list)
    for box in boxes:
        groups[tuple(sorted({leaf_of[rank] for rank in box}))].append(box)
    if len({leaf for leaves in groups for leaf in leaves}) != sum(map(len, groups)):
        return None
    found: dict[int, tuple[int, int, int, int]] = {}
    for g, (leaves, own) in enumerate(groups.items()):
        for b, box in enumerate(own):
            for k, leaf in enumerate(leaves):
                ranks = [rank for rank in box if leaf_of[rank] == leaf]
                found |= {rank: (g, k, b, place) for place, rank in enumerate(ranks)}
    sides = np.array([found[rank] for rank in members.tolist()], dtype=np.int64).T
    return sides if len(np.unique(sides, axis=1).T) == np.prod(sides.max(axis=1) + 1) else None
