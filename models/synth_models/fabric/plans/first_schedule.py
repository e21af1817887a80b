"""A valid schedule at once, for methods to hold before their own searches: what a stop at any moment leaves.

Two are made, both from arrays without a loop over transfers, and the quicker one is returned:

* *shortest paths*: every block goes from its origin along the tree of quickest paths, split at the ranks on them;
* *rings*: the blocks of collectives in which everyone's data goes to everyone run around the ranks, box by box, in as
  many rings as a box has ranks, each of which enters boxes at another rank.

Reductions are these on the reversed machine, played backwards in time. O(N^2) transfers for N ranks. No guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.graph.shortest_paths import PathTrees
from synth.method import Outcome
from synth.options import RunOptions
from synth.schedule.collective import REDUCING
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.out_trees import too_large
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.reversal import joined, reversed_instance, reversed_transfers
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

MOST_RINGS = 8
FEW = 1_000  # deliveries
AT_ONCE = 64  # ranks from which quickest paths are searched
LISTED = 20_000  # transfers up to which links serve what is ready; beyond, all in order, which is quicker to find
MOST_TRANSFERS = 1_500_000
PIECES, MOST_PIPELINED = 64, 20_000  # of a single block, so that it is passed on while it arrives


def hold_first(instance: FabricInstance, options: RunOptions, why: str, least: int = FEW) -> None:
    """Have the run hold a quick schedule, if there is one, for the case that it is stopped; ``why`` says by what. Not
    for less than ``least`` deliveries, where the method itself has a first one as soon."""
    if instance.traffic is not None or _deliveries(instance) < least:
        return
    for schedule, words in _schedules(instance):
        seconds = float(chunks.seconds(instance, schedule))
        told = f"{words} stand in: {why} did not end within the time limit"
        options.held.offer(partial(copy, schedule), seconds, told)
        options.progress.note(seconds)


def unless_held_is_quicker(instance: FabricInstance, options: RunOptions, found: Outcome) -> Outcome:
    """What the method found, or the schedule that the run holds (:func:`hold_first`) where that is quicker."""
    held = options.held
    if found.solution is None or held.solution is None or held.made_by is not None:
        return found  # what others lent is compared by the race
    first = held.solution()
    if chunks.seconds(instance, first) < chunks.seconds(instance, found.solution):
        found.solution = first
        told = (held.words or "").partition(":")[0]
        found.message = f"{told}, which are quicker than what was found: {found.message}"
    return found


def _deliveries(instance: FabricInstance) -> int:
    blocks = instance.blocks
    wide = (blocks.goal < 0) | (blocks.origin < 0)
    shares = len(instance.members) if instance.collective == "allreduce" else 1
    return shares * int(np.sum(np.where(wide, len(instance.members) - 1, 1)))


def _schedules(instance: FabricInstance) -> Iterator[tuple[Schedule, str]]:
    if not len(instance.blocks) or too_large(instance) is not None:
        return
    kinds = [("rings", _rings), ("shortest paths", _paths)]
    if len(instance.blocks) == 1 and instance.collective != "allreduce":
        kinds.reverse()  # these need a search from one rank, not from all
    for words, make in kinds:
        schedule = _made(instance, make)
        if schedule is not None:
            yield schedule, words


@dataclass(frozen=True)
class _Asked:
    """Pieces on one machine: shape (pieces,) each; ``goal`` below 0 is everyone."""

    block: IntArray
    bytes: IntArray
    origin: IntArray
    goal: IntArray
    delay: IntArray  # added to the priorities of the piece

    @classmethod
    def of(cls, instance: FabricInstance, roots: IntArray | None = None) -> _Asked:
        """One piece a block; of a single block some, and of an allreduce one for each of the roots."""
        blocks = instance.blocks
        if len(blocks) > 1:
            return cls(np.arange(len(blocks)), blocks.bytes, blocks.origin, blocks.goal, np.zeros(len(blocks), int))
        count = max(1, min(PIECES, MOST_PIPELINED // len(instance.members))) if roots is None else len(roots)
        sizes = np.array(chunks.cut(int(blocks.bytes[0]), count), dtype=np.int64)
        number = np.arange(len(sizes))
        origin = np.repeat(blocks.origin, len(sizes)) if roots is None else roots[: len(sizes)]
        delay = number if roots is None else 0 * number
        return cls(0 * number, sizes, origin, np.repeat(blocks.goal, len(sizes)), delay)


class _Legs(NamedTuple):
    """Routes from rank to rank that pieces take: ``piece``, ``source`` and ``target`` (nodes), ``step`` (by which links
    serve them), and the places of the first and last link in a list of links; shape (legs,) each."""

    piece: IntArray
    source: IntArray
    target: IntArray
    step: IntArray
    starts: IntArray
    ends: IntArray


def _made(instance: FabricInstance, make: Callable[[FabricInstance, _Asked], Transfers | None]) -> Schedule | None:
    """The schedule of the transfers that ``make`` finds for spreading; None where it finds none."""
    if instance.collective not in REDUCING:
        transfers = make(instance, _Asked.of(instance))
        return None if transfers is None else _timed(instance, transfers)
    there = reversed_instance(instance)
    members = np.zeros(instance.machine.nodes, dtype=bool)
    members[list(instance.members)] = True
    if np.any(~members & ~instance.machine.is_switch) and instance.relay:
        return None  # a rank outside the group has nothing to add
    roots = np.array(instance.members, dtype=np.int64) if instance.collective == "allreduce" else None
    asked = _Asked.of(there, roots)
    out = make(there, asked)
    if out is None:
        return None
    up = reversed_transfers(there, out, _timed(there, out))
    if roots is None:
        return _timed(instance, up)
    down = make(instance, asked)
    return None if down is None else _timed(instance, joined(instance.machine, up, down))


def _timed(instance: FabricInstance, transfers: Transfers) -> Schedule:
    try:
        return timed(instance, transfers, in_order=len(transfers.piece) > LISTED)
    except ValueError:  # equal times hid an order
        return timed(instance, transfers)


class _Graph:
    """The quickest link between every two nodes, for pieces of one size."""

    def __init__(self, instance: FabricInstance, size: int) -> None:
        net = instance.machine.network
        self.src, self.dst = net.src.astype(np.int64), net.dst.astype(np.int64)
        self.is_rank = ~instance.machine.is_switch
        weight = net.latency + size / net.bandwidth
        order = np.lexsort((weight, self.dst, self.src))
        key = self.src[order] * net.nodes + self.dst[order]
        first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        self.keys, self.best = key[first], order[first]
        alike = weight[order] <= np.repeat(weight[self.best], np.diff([*first, len(order)])) * (1 + 1e-9)
        self.order, self.first, self.parallel = order, first, np.add.reduceat(alike, first)
        self.nodes = net.nodes
        self.weight, self.paths = weight, PathTrees(net.nodes, self.src, self.dst)

    def before(self, origins: IntArray) -> IntArray:
        """The node before each on the quickest path from each origin, negative without one: (origins, nodes)."""
        found = np.empty((len(origins), self.nodes), dtype=np.int64)
        for first in range(0, len(origins), AT_ONCE):  # so that the time limit is looked at
            entered = self.paths.trees(self.weight, origins[first : first + AT_ONCE])[1]
            found[first : first + AT_ONCE] = np.where(entered >= 0, self.src[entered], -1)
        return found

    def links(self, tail: IntArray, head: IntArray, turn: IntArray) -> IntArray:
        """A quickest link from each tail to its head, equal ones by ``turn``."""
        at = np.searchsorted(self.keys, tail * self.nodes + head)
        found: IntArray = self.order[self.first[at] + turn % self.parallel[at]]
        return found


def _paths(instance: FabricInstance, asked: _Asked) -> Transfers | None:
    """Along the trees of quickest paths; the next rank of the group first."""
    graph = _Graph(instance, max(1, int(asked.bytes.max())))
    members = np.array(instance.members, dtype=np.int64)
    place = np.zeros(graph.nodes, dtype=np.int64)
    place[members] = np.arange(len(members))
    wide = asked.goal < 0
    piece = np.repeat(np.arange(len(asked.block)), np.where(wide, len(members), 1))
    goal = asked.goal[piece]
    goal[goal < 0] = np.tile(members, int(wide.sum()))
    piece, goal = piece[asked.origin[piece] != goal], goal[asked.origin[piece] != goal]
    origins, row = np.unique(asked.origin, return_inverse=True)
    before = graph.before(origins)
    steps: list[tuple[IntArray, IntArray, IntArray]] = []  # path, tail, head: from the goals back
    path, node = np.arange(len(piece)), goal
    while len(path):
        tail = before[row.reshape(-1)[piece[path]], node]
        if np.any(tail < 0) or (len(steps) + 1) * len(piece) > 4 * MOST_TRANSFERS:
            return None
        steps.append((path, tail, node))
        on = tail != asked.origin[piece[path]]
        path, node = path[on], tail[on]
    if not steps:
        return None
    depth = np.repeat(-np.arange(len(steps)), [len(path) for path, _, _ in steps])
    path, tail, head = (np.concatenate(column) for column in zip(*steps, strict=True))
    order = np.lexsort((depth, path))
    path, tail, head = path[order], tail[order], head[order]
    starts = np.flatnonzero(graph.is_rank[tail])
    ends = np.concatenate([starts[1:], [len(path)]]) - 1
    turn = (place[goal] - place[asked.origin[piece]]) % len(members)
    legs = _Legs(piece[path[starts]], tail[starts], head[ends], turn[path[starts]], starts, ends)
    return _transfers(asked, graph, legs, tail, head)


def _rings(instance: FabricInstance, asked: _Asked) -> Transfers | None:
    """Around the ranks; None for blocks with one goal, and where some rank cannot reach the next."""
    if np.any(asked.goal >= 0) or len(instance.members) < 2:
        return None
    graph = _Graph(instance, max(1, int(asked.bytes.max())))
    together = instance.boxes
    count = min(MOST_RINGS, max(len(box) for box in together))
    walks = _walks(graph, [[r for box in together for r in (*box[k % len(box) :], *box[: k % len(box)])]
                           for k in range(count)])  # fmt: skip
    rows: list[_Legs] = []
    for number, origin in enumerate(asked.origin.tolist()):
        walk = walks[number % count]
        if walk is None:
            return None
        tail, head, starts, ends = walk
        begin = int(np.flatnonzero(tail[starts] == origin)[0])
        leg = (begin + np.arange(len(starts))) % len(starts)
        reached, first = np.unique(head[ends[leg]], return_index=True)
        step = np.sort(first[reached != origin])
        leg = leg[step]
        offset = sum(len(earlier) for earlier, *_ in (w for w in walks[: number % count] if w is not None))
        starts, ends = starts[leg], ends[leg]
        rows.append(_Legs(np.full(len(leg), number), tail[starts], head[ends], step, starts + offset, ends + offset))
    tails, heads, _, _ = zip(*(walk for walk in walks if walk is not None), strict=True)
    legs = _Legs(*(np.concatenate(column) for column in zip(*rows, strict=True)))
    return _transfers(asked, graph, legs, np.concatenate(tails), np.concatenate(heads))


_Walk = tuple[IntArray, IntArray, IntArray, IntArray]


def _walks(graph: _Graph, cycles: Sequence[Sequence[int]]) -> list[_Walk | None]:
    """Around every cycle what :func:`_walk` finds; None where some rank cannot reach the next. Few ranks are searched
    from at a time, so that the time limit is looked at and no table grows with the square of the ranks."""
    after: dict[int, set[int]] = {}
    for cycle in cycles:
        for rank, follower in pairwise((*cycle, cycle[0])):
            after.setdefault(rank, set()).add(follower)
    ranks = np.array(list(after), dtype=np.int64)
    found: dict[tuple[int, int], list[int]] = {}
    for first in range(0, len(ranks), AT_ONCE):
        some = ranks[first : first + AT_ONCE]
        for rank, before in zip(some.tolist(), graph.before(some), strict=True):
            for follower in after[rank]:
                nodes = [follower]
                while nodes[-1] != rank and nodes[-1] >= 0:
                    nodes.append(int(before[nodes[-1]]))
                if nodes[-1] == rank:
                    found[rank, follower] = nodes[::-1]
    return [_walk(graph, cycle, found) for cycle in cycles]


def _walk(graph: _Graph, cycle: Sequence[int], paths: Mapping[tuple[int, int], list[int]]) -> _Walk | None:
    """The links around a cycle of ranks by tail and head, and the first and last link of every route between ranks."""
    tails: list[int] = []
    heads: list[int] = []
    for pair in pairwise((*cycle, cycle[0])):
        if pair not in paths:
            return None
        tails += paths[pair][:-1]
        heads += paths[pair][1:]
    tail, head = np.array(tails, dtype=np.int64), np.array(heads, dtype=np.int64)
    starts = np.flatnonzero(graph.is_rank[tail])
    return tail, head, starts, np.concatenate([starts[1:], [len(tail)]]) - 1


def _transfers(asked: _Asked, graph: _Graph, legs: _Legs, tail: IntArray, head: IntArray) -> Transfers | None:
    """The legs as transfers over the links from ``tail`` to ``head``; of those that bring a piece to a rank the first.
    A transfer waits for the one that brings its piece to its source."""
    key, kept = np.unique(legs.piece * graph.nodes + legs.target, return_index=True)
    if len(kept) > MOST_TRANSFERS:
        return None
    piece, source, _, step, first, last = (column[kept] for column in legs)
    length = last - first + 1
    route_start = starts(length)
    at = np.repeat(first - route_start[:-1], length) + np.arange(int(route_start[-1]))
    link = graph.links(tail[at], head[at], np.repeat(piece, length))
    waits: BoolArray = source != asked.origin[piece]
    before = np.searchsorted(key, (piece * graph.nodes + source)[waits])
    depth = _depth(waits, before)
    span = int(step.max(initial=0)) + 1
    priority = (depth + asked.delay[piece]) * span + step
    waited = starts(waits), before
    return Transfers.of_rows(asked.block, asked.bytes, piece, (route_start, link), before=waited, priority=priority)


def _depth(waits: BoolArray, before: IntArray) -> IntArray:
    """How many transfers have to arrive, one after the other, before each."""
    parent = np.arange(len(waits))
    parent[waits] = before
    depth = waits.astype(np.int64)
    while True:  # pointer doubling
        further = depth + depth[parent]
        if np.array_equal(further, depth):
            return depth
        depth, parent = further, parent[parent]
