"""Where members stand in boxes, and over which rails what one box sends another goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import UnsupportedError
from synth_models.fabric.references.hierarchical.box_trees import NOBODY
from synth_models.fabric.references.hierarchical.tuned import MOST_TURNS
from synth_models.fabric.routes.box_routes import PairRoutes

BY_CUT_OFF, BY_ANY = 1, 2  # who spreads a piece in a box instead of the rank that it comes to
AROUND = 3  # nobody else does, but the piece keeps to links that have their whole rate
BESIDE = 4  # nobody else does, but one rank of the first box gets the piece over its own rail


class Rails(NamedTuple):
    """Where members stand, and who of a box sends to whom of another.

    ``box``, ``number``: of every node, shape (nodes,): its box and its place there. ``rank[box, number]``, repeated
    from the first where a box has fewer than the largest; ``size`` of every box. What ``rank`` holds goes to box b from
    ``leaves[rank, b]``, itself wherever it can, to ``enters[rank, b]``, shape (nodes, boxes). Where a box has fewer
    ranks, or rails lead elsewhere, several serve equally well: ``in_turn``, shape (turns, 2, nodes, boxes), the two for
    one turn after the other.
    """

    box: IntArray
    number: IntArray
    rank: IntArray
    size: IntArray
    leaves: IntArray
    enters: IntArray
    in_turn: IntArray

    @classmethod
    def of(cls, routes: PairRoutes, boxes: Sequence[Sequence[int]], clear: BoolArray | None = None) -> Rails:
        """``clear[u, v]``: whether the route from u to v may be used, shape (nodes, nodes); None: all may. Raises
        :class:`UnsupportedError` where no direct route joins two boxes."""
        nodes, width = 1 + max(map(max, boxes)), max(map(len, boxes))
        box, number = np.zeros((2, nodes), dtype=np.int64)
        for b, members in enumerate(boxes):
            box[list(members)], number[list(members)] = b, np.arange(len(members))
        rank = np.array([np.resize(np.asarray(members), width) for members in boxes], dtype=np.int64)
        size = np.array([len(members) for members in boxes], dtype=np.int64)
        first = np.zeros((1, 2, nodes, len(boxes)), dtype=np.int64)
        found = cls(box, number, rank, size, first[0, 0], first[0, 1], first)
        several: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for members in boxes:
            for u in members:
                found.leaves[u] = u
                found.enters[u] = NOBODY
                reach = _reached(routes, u, clear)[rank]  # (boxes, width)
                like = np.arange(len(boxes)), number[u] % size
                found.enters[u] = np.where(reach[like], rank[like], NOBODY)
            there = (found.enters[list(members)] != NOBODY).any(axis=0)  # some rail leads to that box
            for u in members:
                reach = _reached(routes, u, clear)[rank]
                broken = (found.enters[u] == NOBODY) & ~(there & (number[u] < size))
                for other in np.flatnonzero(broken & reach.any(axis=1)).tolist():
                    can = rank[other][: size[other]][reach[other][: size[other]]]
                    found.enters[u, other] = can[number[u] % len(can)]
                for other in np.flatnonzero((number[u] >= size) & reach.any(axis=1)).tolist():
                    can = rank[other][: size[other]][reach[other][: size[other]]]
                    several[u, other] = [(u, int(can[(number[u] + turn) % len(can)])) for turn in range(len(can))]
            several |= found._through_gates(members, boxes)
        return found._replace(in_turn=_in_turn(first, several))

    def _through_gates(
        self, members: Sequence[int], boxes: Sequence[Sequence[int]]
    ) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """Let the members of a box that reach no rank of another leave it by those that do, in turn: the pairs by rank
        and box. Raises :class:`UnsupportedError` where none does."""
        several: dict[tuple[int, int], list[tuple[int, int]]] = {}
        lacking = np.flatnonzero((self.enters[list(members)] == NOBODY).any(axis=0))
        for other in lacking[lacking != self.box[members[0]]].tolist():
            gates = [u for u in members if self.enters[u, other] != NOBODY]
            if not gates:
                raise UnsupportedError(f"no direct route joins ranks {members[0]} and {boxes[other][0]}")
            for u in members:
                if self.enters[u, other] == NOBODY:
                    first = int(self.number[u] - self.box[u]) + other  # other boxes, other gates
                    ahead = [gates[(first + turn) % len(gates)] for turn in range(len(gates))]
                    several[u, other] = [(gate, int(self.enters[gate, other])) for gate in ahead]
        for (u, other), ((leaves, enters), *_) in several.items():
            self.leaves[u, other], self.enters[u, other] = leaves, enters
        return several

    def helpers(self, at: IntArray, turn: IntArray, how: IntArray) -> IntArray:
        """The rank by which a piece that comes to ``at`` is spread in its box, one after the other in turn: any other
        (:data:`BY_ANY`), or one that has no way of its own to some other box (:data:`BY_CUT_OFF`); NOBODY where there
        is none, or nobody helps."""
        box = self.box[at]
        any_other = self.rank[box, (self.number[at] + 1 + turn % np.maximum(1, self.size[box] - 1)) % self.size[box]]
        found = np.where((how == BY_ANY) & (self.size[box] > 1), any_other, NOBODY)
        for b in range(len(self.size)):
            own, others = self.rank[b, : self.size[b]], np.arange(len(self.size)) != b
            lacking = own[(self.leaves[own] != own[:, None])[:, others].any(axis=1)]
            mine = (how == BY_CUT_OFF) & (box == b)
            if len(lacking):
                found[mine] = lacking[turn[mine] % len(lacking)]
        return found

    def beside(self, holder: IntArray, turn: IntArray) -> IntArray:
        """The rank of the first box that gets a piece of ``holder`` over its own rail instead of inside that box, one
        after the other in turn but for the one by which it comes to the box; NOBODY where that has no rail of its
        own."""
        first = np.zeros_like(holder)
        enters = np.where(self.box[holder] == 0, holder, self.between(holder, first, turn)[1])
        others = max(1, int(self.size[0]) - 1)
        rank = self.rank[0, (self.number[enters] + 1 + turn % others) % self.size[0]]
        away = np.arange(len(self.size)) != 0
        straight = (self.leaves[rank] == rank[:, None])[:, away].all(axis=1)
        mates = self.rank[1:, self.number[rank]].T  # (pieces, other boxes)
        straight &= (self.enters[mates, 0] == rank[:, None]).all(axis=1)
        found: IntArray = np.where(straight & (rank != enters), rank, NOBODY)
        return found

    def between(self, at: IntArray, box: IntArray, turn: IntArray | int) -> tuple[IntArray, IntArray]:
        """The rank that what ``at`` holds leaves by for a box, and the one that it enters there, in this turn."""
        turn = turn % len(self.in_turn)
        return self.in_turn[turn, 0, at, box], self.in_turn[turn, 1, at, box]


def _reached(routes: PairRoutes, source: int, clear: BoolArray | None) -> BoolArray:
    reached = routes.reached_from(source)
    return reached if clear is None else reached & clear[source]


class Around(NamedTuple):
    """``rails`` of links that have their whole rate. ``apart``: the ranks that no such link joins to their boxes, shape
    (nodes,); they have what other boxes bring to theirs from those boxes themselves."""

    rails: Rails
    apart: BoolArray

    @classmethod
    def of(cls, routes: PairRoutes, boxes: Sequence[Sequence[int]], slow: BoolArray) -> Around | None:
        """Around the ``slow`` links, shape (links,); None where there are none, or where boxes need them."""
        if not slow.any():
            return None
        members = [rank for box in boxes for rank in box]
        nodes = len(routes.reached_from(members[0]))
        clear, apart = np.eye(nodes, dtype=bool), np.zeros(nodes, dtype=bool)
        source, target = (np.array(part) for part in zip(*product(members, members), strict=True))
        there = source != target
        for u in members:
            there[source == u] &= routes.reached_from(u)[target[source == u]]
        source, target = source[there], target[there]
        start, link = routes.of(source, target)
        clear[source, target] = ~np.logical_or.reduceat(slow[link], start[:-1])
        for box in boxes:
            inside = clear[np.ix_(box, box)]
            apart[list(box)] = (len(box) > 1) & ((inside.sum(axis=0) == 1) | (inside.sum(axis=1) == 1))
        clear[:, apart] = False
        try:
            return cls(Rails.of(routes, boxes, clear), apart)
        except UnsupportedError:
            return None


def _in_turn(first: IntArray, several: dict[tuple[int, int], list[tuple[int, int]]]) -> IntArray:
    """``Rails.in_turn`` from that of one turn and the pairs of ranks that serve, by rank and box."""
    counts = {len(pairs) for pairs in several.values()}
    turns = math.lcm(*counts) if counts else 1
    found = np.repeat(first, min(turns, MOST_TURNS), axis=0)
    for (rank, other), pairs in several.items():
        for turn in range(len(found)):
            found[turn, :, rank, other] = pairs[turn % len(pairs)]
    return found
