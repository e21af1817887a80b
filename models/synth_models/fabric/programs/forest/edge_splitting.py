"""Switches removed: capacity into and out of a switch is joined to capacity between its neighbours (edge splitting).

Where as much capacity enters a node as leaves it, all of it can be split off in pairs (into, out of) without making
the least cut between the roots and any member smaller than what is sent (Bang-Jensen, Frank, Jackson: Preserving and
increasing local edge-connectivity in mixed graphs, 1995; used for collectives by ForestColl, 2024). Every pair that is
split off keeps the links that it runs over, so that capacity between two ranks is at last a set of routes.

Whole batches of pairs are tried at once, evenly spread, the farthest neighbours first, and halved where a cut
objects: few flows, and trees that need few hops.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from synth.arrays import IntArray
from synth.graph.hops import hops, hops_from_nearest
from synth_models.fabric.programs.forest.capacities import Fluid, Share, shortfall
from synth_models.fabric.programs.forest.tuned import PARTS

Pair = tuple[int, int, int]  # from, to, amount


def split_off(fluid: Fluid, gathering: bool = False, thick: bool = False) -> list[int]:
    """Remove all nodes that are no members, in place; returns those at which capacity had to be thrown away.

    ``gathering``: of pairs equally far apart those first that join the largest part of what hangs together without the
    switch to another part: ranks that have nothing but the switch then hang on the others, not on each other.
    ``thick``: all that a neighbour sends goes to as few others as the cuts allow, so that hardly any share the link to
    one: what is sent then meets nothing on its way.
    """
    member = np.zeros(fluid.nodes, dtype=bool)
    member[fluid.members] = True
    used = (fluid.capacity[:-1].sum(axis=0)[:-1] > 0) | (fluid.capacity[:-1].sum(axis=1) > 0)
    far = _distance(fluid.capacity, fluid.members.tolist())
    inner = [v for v in range(fluid.nodes) if not member[v] and used[v]]
    inner.sort(key=lambda v: (-far[v], int((fluid.capacity[:-1, v] > 0).sum()), v))
    lost: list[int] = []
    at, width = 0, 1
    while at < len(inner):  # cuts seldom object: several switches at once, looked at once
        some = inner[at : at + width]
        capacity, shares = fluid.capacity.copy(), {pair: list(parts) for pair, parts in fluid.shares.items()}
        left = [v for v in some if not _Switch(fluid, v, gathering, thick, trusting=True).remove()]
        if shortfall(fluid.capacity, fluid.nodes, fluid.members, fluid.trees * int(fluid.weight.sum()), 1)[1] >= 0:
            fluid.capacity, fluid.shares = capacity, shares
            some = some[:1]
            left = [v for v in some if not _Switch(fluid, v, gathering, thick).remove()]
            width = 1
        else:
            width *= 2
        lost += left
        at += len(some)
    return lost


def trim(fluid: Fluid) -> None:
    """Give up capacity between switches that no cut needs, the same part of each, both ways alike: routes then stay
    near, and links have time to spare."""
    member = np.zeros(fluid.nodes, dtype=bool)
    member[fluid.members] = True
    far = _distance(fluid.capacity, fluid.members.tolist())
    cap, need = fluid.capacity, fluid.trees * int(fluid.weight.sum())
    classes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for u, v in np.argwhere(np.triu(np.minimum(cap, cap.T)[:-1, :-1]) > 0).tolist():
        if not (member[u] or member[v]):
            classes[far[u] + far[v]].append((u, v))
    for _, pairs in sorted(classes.items(), reverse=True):
        both = [int(min(cap[u, v], cap[v, u])) for u, v in pairs]
        kept, least, most = [0] * len(pairs), 0, PARTS
        while least < most:  # the greatest part that can go
            part = (least + most + 1) // 2
            trial = cap.copy()
            gone = [amount * part // PARTS for amount in both]
            for (u, v), amount in zip(pairs, gone, strict=True):
                trial[u, v] -= amount
                trial[v, u] -= amount
            if shortfall(trial, fluid.nodes, fluid.members, need, 1)[1] < 0:
                least, kept = part, gone
            else:
                most = part - 1
        for (u, v), amount in zip(pairs, kept, strict=True):
            for pair in ((u, v), (v, u)):
                cap[pair] -= amount
                fluid.shares[pair] = _less(fluid.shares[pair], amount)


def _less(parts: list[Share], amount: int) -> list[Share]:
    """The shares without ``amount`` of them, parallel links alike as far as whole numbers go."""
    total = sum(have for have, _ in parts)
    gone = [have * amount // total for have, _ in parts]
    for i, (have, _) in enumerate(parts):
        more = min(amount - sum(gone), have - gone[i])
        gone[i] += more
    return [(have - less, route) for (have, route), less in zip(parts, gone, strict=True) if have > less]


def _distances(capacity: IntArray, origins: list[int], without: int) -> IntArray:
    """Hops from every origin, over capacity in its direction and not through the node ``without``; more than there are
    nodes where there is no path. Shape (origins, nodes)."""
    nodes = len(capacity) - 1
    joined = capacity[:nodes, :nodes] > 0
    joined[without] = joined[:, without] = False
    tail, head = np.nonzero(joined)
    found = hops(nodes, tail, head, origins)
    return np.where(found >= 0, found, nodes + 1).astype(np.int64)


def _distance(capacity: IntArray, origins: list[int]) -> list[int]:
    """Hops from the nearest origin, over capacity in its direction."""
    nodes = len(capacity) - 1
    tail, head = np.nonzero(capacity[:nodes, :nodes] > 0)
    found = hops_from_nearest(nodes, tail, head, origins).tolist()
    return [away if away >= 0 else nodes + 1 for away in found]


class _Switch:
    """One node on its way out. ``trusting``: no cut is looked at; the caller does, and goes back if one objects."""

    def __init__(self, fluid: Fluid, node: int, gathering: bool, thick: bool, trusting: bool = False) -> None:
        self.fluid, self.node, self.gathering, self.thick, self.trusting = fluid, node, gathering, thick, trusting
        self.need = fluid.trees * int(fluid.weight.sum())

    def remove(self) -> bool:
        cap, w = self.fluid.capacity, self.node
        nodes = self.fluid.nodes
        classes = sorted(self._classes().items(), reverse=True)
        if self.thick:  # what goes over links between two neighbours goes straight, if the cuts allow
            for (away, _), pairs in classes:
                if away > 1:
                    self._try(self._evenly(pairs))
            if self._is_spare():
                self._drop()
                return True
        for (_, joins), pairs in classes:
            self._try(self._evenly(pairs))
            left = -1
            while joins and left != int(cap[:nodes, w].sum()):  # what even parts have left over, too
                left = int(cap[:nodes, w].sum())
                self._try(self._evenly(pairs))
        everything = [pair for _, pairs in classes for pair in pairs]
        while True:
            before = int(cap[:nodes, w].sum())
            self._try(self._evenly(everything))
            for u, v in everything:
                amount = min(int(cap[u, w]), int(cap[w, v]))
                if amount:
                    self._try([(u, v, amount)])
            after = int(cap[:nodes, w].sum())
            if after in (0, before):
                break
        lost = bool(cap[:nodes, w].any() or cap[w, :nodes].any())
        self._drop()
        return not lost

    def _classes(self) -> dict[tuple[int, bool], list[tuple[int, int]]]:
        """Pairs by how far apart they are without the switch, and whether gathering joins them first."""
        cap, w, nodes = self.fluid.capacity, self.node, self.fluid.nodes
        into = np.flatnonzero(cap[:nodes, w] > 0).tolist()
        out = np.flatnonzero(cap[w, :nodes] > 0).tolist()
        classes: dict[tuple[int, bool], list[tuple[int, int]]] = defaultdict(list)
        distance = _distances(cap, into, w)
        near = distance <= nodes
        largest = near[int(near[:, into].sum(axis=1).argmax())].tolist() if self.gathering and into else [False] * nodes
        for u, far in zip(into, distance[:, out].tolist(), strict=True):
            for v, away in zip(out, far, strict=True):
                if u != v:
                    classes[away, largest[u] != largest[v]].append((u, v))
        return classes

    def _evenly(self, pairs: list[tuple[int, int]]) -> list[Pair]:
        """Amounts that use up what is left at the switch, about equal at every node, or with few others of each."""
        cap, w = self.fluid.capacity, self.node
        left = {u: int(cap[u, w]) for u, _ in pairs}
        right = {v: int(cap[w, v]) for _, v in pairs}
        fan_out: dict[int, int] = defaultdict(int)
        fan_in: dict[int, int] = defaultdict(int)
        for u, v in pairs:
            fan_out[u] += 1
            fan_in[v] += 1
        first, second = sorted(left), sorted(right)
        place = {v: i for i, v in enumerate(second)}
        turn = {u: i for i, u in enumerate(first)}
        if self.thick:
            fan_out = fan_in = defaultdict(lambda: 1)
        quota = {(u, v): max(min(left[u] // fan_out[u], right[v] // fan_in[v]), 1) for u, v in pairs}
        amounts: dict[tuple[int, int], int] = defaultdict(int)
        for u, v in sorted(pairs, key=lambda pair: ((place[pair[1]] - turn[pair[0]]) % len(second), turn[pair[0]])):
            amount = min(quota[u, v], left[u], right[v])
            if amount > 0:
                amounts[u, v] += amount
                left[u] -= amount
                right[v] -= amount
        return [(u, v, amount) for (u, v), amount in amounts.items()]

    def _try(self, batch: list[Pair]) -> None:
        """Split these pairs off, or as much of them as the cuts allow."""
        if not batch:
            return
        self._move(batch, 1)
        most = batch[0][2] if len(batch) == 1 else 1
        missing, who = 0, -1
        if not self.trusting:
            missing, who = shortfall(self.fluid.capacity, self.fluid.nodes, self.fluid.members, self.need, most)
        if who >= 0:
            self._move(batch, -1)
            if len(batch) == 1:
                u, v, amount = batch[0]
                if missing >= amount:
                    return
                batch = [(u, v, amount - missing)]
                self._move(batch, 1)
            else:
                half = len(batch) // 2
                self._try(batch[:half])
                self._try(batch[half:])
                return
        for u, v, amount in batch:
            self._join(u, v, amount)

    def _move(self, batch: list[Pair], sign: int) -> None:
        cap, w = self.fluid.capacity, self.node
        for u, v, amount in batch:
            cap[u, w] -= sign * amount
            cap[w, v] -= sign * amount
            cap[u, v] += sign * amount

    def _join(self, u: int, v: int, amount: int) -> None:
        """Routes of the new capacity: those into the switch followed by those out of it."""
        first, second = self._taken(u, self.node, amount), self._taken(self.node, v, amount)
        made = self.fluid.shares.setdefault((u, v), [])
        while amount:
            (a, route), (b, onward) = first[-1], second[-1]
            part = min(a, b)
            made.append((part, route + onward))
            amount -= part
            for parts, have in ((first, a), (second, b)):
                if have == part:
                    parts.pop()
                else:
                    parts[-1] = (have - part, parts[-1][1])

    def _taken(self, u: int, v: int, amount: int) -> list[Share]:
        parts, taken = self.fluid.shares[u, v], []
        while amount:
            have, route = parts[-1]
            part = min(have, amount)
            taken.append((part, route))
            amount -= part
            if part == have:
                parts.pop()
            else:
                parts[-1] = (have - part, route)
        return taken

    def _is_spare(self) -> bool:
        """Whether no cut needs what is left at the switch."""
        cap = self.fluid.capacity.copy()
        cap[:, self.node] = cap[self.node, :] = 0
        return shortfall(cap, self.fluid.nodes, self.fluid.members, self.need, 1)[1] < 0

    def _drop(self) -> None:
        """Throw away what nobody needs."""
        self.fluid.capacity[:, self.node] = 0
        self.fluid.capacity[self.node, :] = 0
        for pair in [pair for pair in self.fluid.shares if self.node in pair]:
            del self.fluid.shares[pair]
