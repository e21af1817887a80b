"""Trees for blocks with several holders and wanters, grown at costs of direct routes, and their schedules.

A copy spreads from all holders at once: again and again the wanter that costs least is joined to what has it already
(Takahashi and Matsuyama 1980). A sum is gathered by such a tree backwards, from its root to the holders, every rank
adding what comes before it sends; from the root the sum spreads to the other wanters. Where only ranks make copies,
nothing is better than a tree of ranks over direct routes; where switches copy, too, these trees are still valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.ready import moments
from synth_models.fabric.routes.search import Routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.gates import Waiting, started
from synth_models.fabric.scheduling.late_start import first_ticks, ticks_of
from synth_models.fabric.scheduling.list_scheduling import followers_of, occupied, timed, timed_at_once
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

MOST_RANKS = 256  # between all pairs of which routes are looked for
MOST_EQUAL = 4  # equally quick routes of a pair that share the load
FAR = np.inf


@dataclass(frozen=True, eq=False)
class Roads:
    """Direct routes between ranks, several of a pair where they are equally quick.

    ``ranks``: shape (n,). ``src``, ``dst``: places in ``ranks``; ``seconds`` of a piece of ``size`` bytes: shape
    (routes,). ``table``: the links of each, shape (routes, longest), the last one again behind its end.
    """

    instance: FabricInstance
    size: int
    ranks: IntArray
    src: IntArray
    dst: IntArray
    seconds: FloatArray
    routes: tuple[tuple[int, ...], ...]
    table: IntArray

    @classmethod
    def of(cls, instance: FabricInstance, size: int) -> Roads:
        """Those of a machine for pieces of so many bytes."""
        machine, found = instance.machine, Routes.of(instance, size)
        ranks = machine.ranks.astype(np.int64)
        place = {rank: k for k, rank in enumerate(ranks.tolist())}
        rows: list[tuple[int, int, float, tuple[int, ...]]] = []
        for u in ranks.tolist():
            seconds = found.direct_seconds(u)
            for v in ranks.tolist():
                if u != v and np.isfinite(seconds[v]):
                    rows += [(place[u], place[v], seconds[v], route) for route in found.equal(u, v)[:MOST_EQUAL]]
        longest = max((len(route) for *_, route in rows), default=1)
        table = np.array([[*route, *[route[-1]] * (longest - len(route))] for *_, route in rows], dtype=np.int64)
        src, dst = (np.array(ends, dtype=np.int64) for ends in ([u for u, *_ in rows], [v for _, v, *_ in rows]))
        times = np.array([took for _, _, took, _ in rows], dtype=float)
        routes = tuple(route for *_, route in rows)
        return cls(instance, size, ranks, src, dst, times, routes, table.reshape(len(rows), longest))

    @cached_property
    def resource(self) -> IntArray:
        """What each link of a machine is busy with: itself, or its group; shape (links,)."""
        group, links = self.instance.machine.group, self.instance.machine.links
        return np.where(group >= 0, links + group, np.arange(links)).astype(np.int64)

    @cached_property
    def by_pair(self) -> IntArray:
        """The routes of every pair that has some, the first again where there are fewer, shape (pairs, most)."""
        pair = self.src * len(self.ranks) + self.dst
        begins = np.flatnonzero(np.diff(pair, prepend=-1))
        counts = np.diff(np.append(begins, len(pair)))
        place = np.arange(counts.max(initial=1))
        found: IntArray = begins[:, None] + np.where(place < counts[:, None], place, 0)
        return found

    @cached_property
    def use(self) -> FloatArray:
        """Seconds for which a byte occupies each link, shape (links,)."""
        found: FloatArray = 1.0 / self.instance.machine.network.bandwidth
        return found

    def no_load(self) -> FloatArray:
        """Seconds of use of every link and group: none."""
        return np.zeros(self.instance.machine.links + len(self.instance.machine.group_names))

    def busiest(self, load: FloatArray) -> FloatArray:
        """The load of the busiest link of every route, shape (routes,)."""
        found: FloatArray = load[self.resource[self.table]].max(axis=1)
        return found

    @cached_property
    def box(self) -> IntArray:
        """The box of every rank, shape (n,); each rank outside the group has one of its own."""
        found, place = -1 - np.arange(len(self.ranks)), {rank: k for k, rank in enumerate(self.ranks.tolist())}
        for number, members in enumerate(self.instance.boxes):
            found[[place[rank] for rank in members if rank in place]] = number
        return found


class Piece(NamedTuple):
    """A part of a block: its number and bytes; places of holders, wanters in :attr:`Roads.ranks`; moments at which
    the holders have it."""

    block: int
    bytes: int
    holders: tuple[int, ...]
    wanters: tuple[int, ...]
    sums: bool
    ready: tuple[float, ...]


class Tree(NamedTuple):
    """Routes of a piece: those by which it is gathered, each before the one that takes it on, and those by which it
    spreads, each behind the one that brings it there."""

    gather: list[int]
    spread: list[int]


def pieces_of(roads: Roads, parts: int) -> list[Piece]:
    """Every block in so many parts, at least a byte each."""
    instance, blocks = roads.instance, roads.instance.blocks
    place = {rank: k for k, rank in enumerate(roads.ranks.tolist())}
    late = moments(instance.ready)
    found = []
    for b, size in enumerate(blocks.bytes.tolist()):
        holders, wanters = (blocks.ranks(int(codes[b]), instance.members) for codes in (blocks.origin, blocks.goal))
        ready = tuple(float(late.get(rank, 0)) for rank in holders)
        ends = tuple(place[rank] for rank in holders), tuple(place[rank] for rank in wanters)
        found += [Piece(b, each, *ends, bool(blocks.sums[b]), ready) for each in chunks.cut(size, min(parts, size))]
    return found


@dataclass(frozen=True)
class Habit:
    """How a tree is grown. ``crowd``: what a second of load counts beside one of travel. ``depth``: what the time at
    which a rank has the piece counts for those behind it, 0 to 1. ``boxes``: every box is entered once."""

    crowd: float = 1.0
    depth: float = 1.0
    boxes: bool = False


def grown(
    roads: Roads,
    piece: Piece,
    load: FloatArray,
    habit: Habit,
    root: int | None = None,
    toll: FloatArray | None = None,
) -> Tree | None:
    """The tree of a piece at this load, to which its own is added; None where the routes lead to no such tree.
    ``root``: where a sum is formed, by default at the wanter. ``toll``: seconds that each route costs more, for a piece
    of ``roads.size`` bytes."""
    seconds = roads.seconds if toll is None else roads.seconds + toll
    cost = seconds * (piece.bytes / roads.size) + habit.crowd * roads.busiest(load)
    if not piece.sums:
        spread = _joined(roads, cost, dict(zip(piece.holders, piece.ready, strict=True)), piece.wanters, habit, False)
        found = None if spread is None else Tree([], spread)
    else:
        at = piece.wanters[0] if root is None else root
        gather = _joined(roads, cost, {at: 0.0}, piece.holders, habit, True)
        spread = _joined(roads, cost, {at: 0.0}, piece.wanters, habit, False)
        found = None if gather is None or spread is None else Tree(gather[::-1], spread)
    if found is not None:
        add_load(roads, piece, found, load, 1.0)
    return found


def add_load(roads: Roads, piece: Piece, tree: Tree, load: FloatArray, sign: float) -> None:
    """Add to the load what the tree's routes use, or take it off (``sign`` -1)."""
    links = [e for k in (*tree.gather, *tree.spread) for e in roads.routes[k]]
    np.add.at(load, roads.resource[links], sign * piece.bytes * roads.use[links])


def _joined(
    roads: Roads, cost: FloatArray, begins: dict[int, float], goals: Sequence[int], habit: Habit, backwards: bool
) -> list[int] | None:
    """Routes that join all goals to where the piece begins, each behind those that it needs; None where some cannot
    be."""
    n = len(roads.ranks)
    best, least = np.full((n, n), -1, dtype=np.int64), np.full((n, n), FAR)
    if len(roads.by_pair):
        first = roads.by_pair[np.arange(len(roads.by_pair)), cost[roads.by_pair].argmin(axis=1)]
        ends = (roads.dst[first], roads.src[first]) if backwards else (roads.src[first], roads.dst[first])
        best[ends], least[ends] = first, cost[first]
    there = np.full(n, FAR)
    for place, moment in begins.items():
        there[place] = moment
    found: list[int] = []
    left = [goal for goal in goals if goal not in begins]
    if habit.boxes:
        _enter_no_more(roads, least, np.flatnonzero(there < FAR))
    while left:
        away, came = _reached(least, there)
        target = min(left, key=lambda goal: away[goal])
        if not away[target] < FAR:
            return None
        path = [target]
        while came[path[-1]] >= 0:
            path.append(int(came[path[-1]]))
        for u, v in zip(path[:0:-1], path[-2::-1], strict=True):
            found.append(int(best[u, v]))
            there[v] = habit.depth * away[v]
        if habit.boxes:
            _enter_no_more(roads, least, np.array(path))
        left = [goal for goal in left if goal not in path]
    return found


def _enter_no_more(roads: Roads, least: FloatArray, places: IntArray) -> None:
    """Cut the boxes of these ranks off from outside."""
    into = np.isin(roads.box, roads.box[places])
    least[np.ix_(~into, into)] = FAR
    least[np.ix_(into, into)] = np.where(roads.box[into][:, None] == roads.box[into], least[np.ix_(into, into)], FAR)


def _reached(least: FloatArray, there: FloatArray) -> tuple[FloatArray, IntArray]:
    """Least costs from those that have it, and from which rank each is reached, -1 for those."""
    away, came, open_ = there.copy(), np.full(len(there), -1, dtype=np.int64), np.ones(len(there), dtype=bool)
    for _ in range(len(there)):
        u = int(np.where(open_, away, FAR).argmin())
        if not (open_[u] and away[u] < FAR):
            break
        open_[u] = False
        nearer = (away[u] + least[u] < away) & (there == FAR)
        away[nearer], came[nearer] = away[u] + least[u][nearer], u
    return away, came


def transfers_of(roads: Roads, pieces: Sequence[Piece], trees: Sequence[Tree], order: Sequence[int]) -> Transfers:
    """The transfers of all trees; pieces of which ``order`` is less go first."""
    piece, routes, before, adds, turn = (
        list[int](),
        list[tuple[int, ...]](),
        list[list[int]](),
        list[bool](),
        list[int](),
    )
    for p, tree in enumerate(trees):
        came: dict[int, list[int]] = {}
        steps = [*((k, True) for k in tree.gather), *((k, False) for k in tree.spread)]
        for step, (k, sums) in enumerate(steps):
            u, v = int(roads.src[k]), int(roads.dst[k])
            number = len(piece)
            waits = list(came.get(u, ()))
            came[v] = [*came.get(v, ()), number] if sums else [number]
            piece.append(p)
            routes.append(roads.routes[k])
            before.append(waits)
            adds.append(sums)
            turn.append(int(order[p]) * 1024 + step)
    return Transfers.of([one.block for one in pieces], [one.bytes for one in pieces], piece, routes, before, turn, adds)


def schedules_of(instance: FabricInstance, transfers: Transfers) -> Iterator[Schedule]:
    """The transfers with start times, in several ways; none before the rank that it leaves is ready."""
    if instance.ready is None:
        ways: list[Callable[[], Schedule]] = [
            lambda: timed(instance, transfers),
            lambda: timed_at_once(instance, transfers),
            lambda: timed(instance, transfers, in_gaps=True),
        ]
        for way in ways:
            yield way()
        return
    ticks = ticks_of(instance, transfers)
    for in_gaps in (False, True):
        times, uses, resources = occupied(instance, transfers, ticks, in_gaps)
        followers = followers_of(instance.machine, transfers, times)
        waiting = Waiting(uses, resources, followers, np.diff(transfers.before_start))
        start = started(waiting, transfers.priority, first_ticks(instance, transfers, times, ticks), in_gaps)
        columns = transfers.piece_block, transfers.piece_bytes, start, transfers.piece, transfers.adds
        yield Schedule(ticks, *columns, transfers.route_start, transfers.link)


def too_many(instance: FabricInstance) -> str | None:
    """Why no trees are grown, if so."""
    if len(instance.machine.ranks) > MOST_RANKS:
        return f"trees of blocks with several holders are grown among {MOST_RANKS} ranks at most"
    return None
