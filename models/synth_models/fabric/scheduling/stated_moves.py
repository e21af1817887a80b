"""A schedule from moves that somebody states (:class:`synth.schedule.moves.Moves`): routes and start times found where
none are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from synth.errors import Fault, InputError, UnsupportedError
from synth.schedule.moves import Moves, fault
from synth.schedule.stated import NOBODY, ROUNDS, Ground, Stated, demand_arrived, early_fault, understood
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.routes.search import Route, Routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.fitted_in import fitted_in, ticks_for
from synth_models.fabric.scheduling.list_scheduling import timed, timed_at_once
from synth_models.fabric.scheduling.moves import pieces_of
from synth_models.fabric.scheduling.reversal import arrivals
from synth_models.fabric.scheduling.switch_sums import meet_in_switches
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

MOST_TWICE = 20_000  # transfers up to which two ways to serve links in turn are compared
MOST_HELD = 100_000  # pairs of moves that are looked at in a round
ADDING = ("reduce", "reduce_scatter")


def schedule(instance: FabricInstance, moves: Moves, plain: bool = False) -> Schedule:
    """The moves with routes and start times. Raises :class:`InputError` with all that is wrong with them, and
    :class:`UnsupportedError` for several collectives. ``plain``: links are served in one way only; moves take the
    quickest way even if that is over ranks; no sum is held back that comes to a rank before what does not wait for it
    has left; the first fault ends it."""
    task = _task(instance, moves)
    stated = understood(moves, task.ground)
    placed = _placed(instance, moves, stated, task, plain)
    if meet_in_switches(instance, placed.transfers):
        if any(start is not None for start in stated.start):
            raise UnsupportedError("sums that meet in switches are given no start times")
        return timed(instance, placed.transfers)
    fixed = [i for i, start in enumerate(stated.start) if start is not None]
    made = _with_starts(instance, placed, stated, {}) if fixed else _timed(instance, placed.transfers, plain)
    if fixed:
        left, came = _times(instance, placed, made)
        demand_arrived(moves, stated, came, left)
    return _settled(instance, moves, task.ground, stated, placed, made, plain) if any(stated.adds) else made


class _Placed(NamedTuple):
    """The transfers of all moves: of every move its ``first`` and its ``last``."""

    transfers: Transfers
    first: list[int]
    last: list[int]


class _Task(NamedTuple):
    """What the instance asks: the ``ground``; of every block there the block of the instance (``of``), and the sizes of
    its pieces."""

    ground: Ground
    of: list[int]
    sizes: list[list[int]]


def _task(instance: FabricInstance, moves: Moves) -> _Task:
    """What the instance asks. An allreduce whose moves name blocks has a share of the buffer for every rank."""
    pieces = 1 if moves.pieces is None else moves.pieces
    if not hasattr(pieces, "__index__") or pieces < 1:
        raise InputError([Fault("pieces", "must be a whole number from 1 on", pieces, True)])
    blocks, members = instance.blocks, list(instance.members)
    origin, goal, size = blocks.origin.tolist(), blocks.goal.tolist(), blocks.bytes.tolist()
    of = list(range(len(size)))
    shared = instance.collective == "allreduce" and any(move.block is not None for move in moves.stated)
    if shared and size:
        size = chunks.cut(size[0], len(members))
        origin, goal, of = [EVERYONE] * len(size), members[: len(size)], [0] * len(size)
    sizes = [chunks.cut(each, int(pieces)) for each in size]
    holder = [NOBODY if rank == EVERYONE else rank for rank in origin]
    ranks = frozenset(instance.machine.ranks.tolist() if instance.relay else members)
    block = _block_of("shares" if shared else instance.collective, origin, goal)
    adds = instance.collective in ADDING
    return _Task(Ground(instance.machine.names, ranks, block, holder, [len(row) for row in sizes], adds), of, sizes)


def _block_of(collective: str, origin: Sequence[int], goal: Sequence[int]) -> Callable[[Any], int]:
    """From what a user calls a block to its number."""
    held, wanted, pair = "the rank that holds it", "the rank that is to get it", "the pair (from, to)"
    words, keys = {
        **dict.fromkeys(("allgather", "gather"), (held, origin)),
        **dict.fromkeys(("reduce_scatter", "scatter"), (wanted, goal)),
        **dict.fromkeys(("alltoall", "demand"), (pair, list(zip(origin, goal, strict=True)))),
        "shares": ("a rank's share of the buffer, in all moves", goal),
    }.get(collective, ("left out: there is one", [None] * len(origin)))
    number: dict[Any, int] = {}
    for block, key in enumerate(keys):
        number.setdefault(key, block)

    def found(key: Any) -> int:
        if key not in number:
            raise ValueError(f"is no block that moves: a block is {words}")
        return number[key]

    return found


def _placed(instance: FabricInstance, moves: Moves, stated: Stated, task: _Task, plain: bool) -> _Placed:
    """The moves on routes of the machine, equally quick ones in turn. Raises :class:`InputError`."""
    block, size = pieces_of(task.sizes)
    block = np.array(task.of, dtype=np.int64)[block]
    begin = starts([len(row) for row in task.sizes]).tolist()
    piece = [begin[b] + p for b, p in stated.piece]
    finder = _Finder(instance, int(size.max(initial=1)), plain)
    faults: list[Fault] = []
    ways: list[list[Route]] = []
    for i in range(len(stated.source)):
        try:
            ways.append(finder.way(stated, i, int(size[piece[i]])))
        except (ValueError, UnsupportedError) as error:
            faults.append(fault(moves, i, "", str(error)))
            if plain:
                break
    if faults:
        raise InputError(faults)
    ends = np.cumsum([0, *map(len, ways)]).tolist()
    first, last = ends[:-1], [end - 1 for end in ends[1:]]
    before: list[list[int]] = []
    for i in range(len(ways)):
        before.append([last[k] for k in stated.waits[i]])
        before += [[k] for k in range(first[i], last[i])]
    of = np.repeat(np.arange(len(ways)), [len(way) for way in ways])
    routes = [route for way in ways for route in way]
    adds = np.array(stated.adds, dtype=bool)[of]
    pieces = np.array(piece, dtype=np.int64)[of]
    made = Transfers.of(block, size, pieces, routes, before, of, adds)
    return _Placed(replace(made, anywhere=True), first, last)


class _Finder:
    """Routes of moves, from rank to rank each."""

    def __init__(self, instance: FabricInstance, size: int, plain: bool) -> None:
        self.routes, self.machine, self.plain = Routes.of(instance, size), instance.machine, plain
        net = self.machine.network
        self.src, self.dst = net.src.tolist(), net.dst.tolist()
        self.between: dict[tuple[int, int], list[int]] = {}
        for e, ends in enumerate(zip(self.src, self.dst, strict=True)):
            self.between.setdefault(ends, []).append(e)

    def way(self, stated: Stated, i: int, size: int) -> list[Route]:
        """The routes of move i one after the other, noted as used. Raises ``ValueError`` and
        :class:`UnsupportedError`."""
        path, links = stated.path[i], stated.links[i]
        if links is not None:
            found = self._cut(self._joined(links, path))
        elif len(path) > 2:
            found = self._cut(tuple(self._link(u, v) for u, v in pairwise(path)))
        else:
            direct = None if self.plain else self.routes.direct(*path)
            found = self.routes.hops(*path) if direct is None else [direct]
        if stated.adds[i] and len(found) > 1:
            names = self.machine.names
            words = f"from rank {names[path[0]]} to rank {names[path[-1]]} the route leads over other ranks"
            raise ValueError(f"{words}, where a partial sum would be added: send it rank by rank")
        for route in found:
            self.routes.take(route, size)
        return found

    def _joined(self, links: Sequence[int], path: Sequence[int]) -> Route:
        """The links, if they lead from the source over the nodes between to the target."""
        wrong = [e for e in links if not 0 <= e < self.machine.links]
        if wrong:
            raise ValueError(f"there is no link {wrong[0]}: links are 0..{self.machine.links - 1}")
        nodes = [self.src[links[0]], *(self.dst[e] for e in links)]
        apart = next((b for a, b in pairwise(links) if self.dst[a] != self.src[b]), None)
        if apart is not None:
            raise ValueError(f"link {apart} does not begin where the link before it ends")
        if (nodes[0], nodes[-1]) != (path[0], path[-1]) or (len(path) > 2 and tuple(nodes) != tuple(path)):
            raise ValueError(f"its links lead over the nodes {' '.join(self.machine.names[v] for v in nodes)}")
        return tuple(links)

    def _link(self, source: int, target: int) -> int:
        """The least used link between two nodes."""
        found = self.between.get((source, target))
        if not found:
            names = self.machine.names
            raise ValueError(f"no link leads from {names[source]} to {names[target]}")
        return min(found, key=lambda e: self.routes.load[e] * 1.0)

    def _cut(self, route: Route) -> list[Route]:
        """The route at the ranks on it."""
        ends = [k + 1 for k, e in enumerate(route) if k + 1 == len(route) or not self.machine.is_switch[self.dst[e]]]
        return [route[a:b] for a, b in pairwise([0, *ends])]


def _timed(instance: FabricInstance, transfers: Transfers, plain: bool) -> Schedule:
    """The quicker of two ways to serve links in turn, where transfers are few and it is not to be ``plain``."""
    one = timed(instance, transfers)
    if plain or len(transfers.piece) > MOST_TWICE:
        return one
    other = timed_at_once(instance, transfers)
    return other if chunks.seconds(instance, other) < chunks.seconds(instance, one) else one


def _with_starts(instance: FabricInstance, placed: _Placed, stated: Stated, earliest: dict[int, int]) -> Schedule:
    """The moves with a start at it, the others around them, the first transfers of some not before these ticks."""
    latest = max((start for start in stated.start if start is not None), default=0.0)
    ticks = ticks_for(instance, placed.transfers, latest)
    given = {placed.first[i]: round(start * ticks) for i, start in enumerate(stated.start) if start is not None}
    order = [k for i in stated.order for k in range(placed.first[i], placed.last[i] + 1)]
    return fitted_in(instance, placed.transfers, order, ticks, given, earliest)


def _settled(
    instance: FabricInstance, moves: Moves, ground: Ground, stated: Stated, placed: _Placed, made: Schedule, plain: bool
) -> Schedule:
    """The schedule in which every partial sum leaves without what it does not wait for. Raises :class:`InputError`."""
    earliest: dict[int, int] = {}
    for turn in range(1 if plain else ROUNDS):
        left, came = _times(instance, placed, made)
        early = list(islice(stated.leaving_early(came, left), 1 if plain else MOST_HELD))
        if not early:
            return made
        if plain or any(stated.start[k] is not None for k, _ in early):
            break
        for k, i in early if turn else ():  # the first schedule may have other ticks
            first = placed.first[k]
            earliest[first] = max(earliest.get(first, 0), left[i] + 1 - (came[k] - left[k]))
        made = _with_starts(instance, placed, stated, earliest)
    raise InputError([early_fault(moves, ground, stated, k, i) for k, i in early])


def _times(instance: FabricInstance, placed: _Placed, made: Schedule) -> tuple[list[int], list[int]]:
    """When every move starts and has arrived, in ticks."""
    transfers = placed.transfers
    begin = made.start
    if instance.switching.mode == "store_and_forward":
        begin = begin[transfers.route_start[:-1]]
    came = arrivals(instance, transfers, made)
    return begin[placed.first].tolist(), came[placed.last].tolist()
