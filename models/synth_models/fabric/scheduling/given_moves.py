"""A schedule from moves that somebody else decided on: routes and start times are found, nothing else is chosen.

Rank k of the moves is the k-th member of the instance's process group. Every connection (sender, receiver, channel)
gets one of the quickest routes, so that several channels share parallel links, and keeps its order; a transfer starts
as soon as what it waits for has arrived and its links are free, the one that came first in the moves' order going
first. Between ranks that no direct route joins, a piece goes over ranks in between; a partial sum cannot, for it would
be added there. Time that a rank spends on its own (copies, additions, the start of a step) is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from pydantic import BaseModel

from synth.arrays import IntArray
from synth.errors import Fault, InputError, UnsupportedError
from synth.exchange.algorithm import Algorithm
from synth.exchange.block_costs import CostModel, Costs
from synth.exchange.chakra.held_back import held_back
from synth.exchange.dataflow import carried
from synth.exchange.moves_from_algorithm import passes_of, raised
from synth.exchange.transfers import Raised
from synth.exchange.transfers import Transfers as Moves
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE, SHARED_OUT
from synth_models.fabric.problem.rows import picked, rows_of, starts
from synth_models.fabric.routes.search import Route, Routes, star
from synth_models.fabric.scheduling import service as sharing
from synth_models.fabric.scheduling.executed import executed, executed_moves
from synth_models.fabric.scheduling.list_scheduling import completion, timed
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

Waits = tuple[IntArray, IntArray]


def from_algorithm(
    instance: FabricInstance, algorithm: Algorithm, passes: int | None = None, checked: bool = False
) -> Schedule:
    """An executor's algorithm on the instance's machine: every message, every wait of its thread blocks, in ``passes``
    of its loop (None: as many as the executor makes). ``checked``: the algorithm is known to be valid. Raises
    :class:`InputError` for an algorithm that is not valid or not for this instance, and as :func:`from_transfers`."""
    _demand_same(instance, algorithm)
    part = part_bytes(instance)
    found = raised(algorithm, part, passes_of(algorithm, part) if passes is None else passes, checked)
    return from_transfers(instance, found.transfers, (found.wait_start, found.wait))


def _demand_same(instance: FabricInstance, algorithm: Algorithm) -> None:
    """Raises :class:`InputError` where the algorithm is not for this instance."""
    n = len(instance.members)
    if algorithm.ranks != n or algorithm.collective != instance.collective:
        asks = f"the instance asks for {instance.collective} among {n} ranks"
        raise InputError(f"the algorithm is {algorithm.collective} among {algorithm.ranks} gpus, {asks}")


def from_plan(instance: FabricInstance, found: Raised) -> Schedule:
    """The moves of a plan, each after what its thread block has waited for and what brought its piece. Raises as
    :func:`from_transfers`."""
    return from_transfers(instance, found.transfers, _waits_of_plan(found))


def _waits_of_plan(found: Raised) -> Waits:
    rows = found.wait_start, found.wait
    ours = _needed(found.transfers)
    lengths = np.diff(rows[0]) + np.diff(ours[0])
    start = starts(lengths)
    row = np.concatenate([np.repeat(np.arange(len(lengths)), np.diff(begin)) for begin, _ in (rows, ours)])
    return start, np.concatenate([rows[1], ours[1]])[np.argsort(row, kind="stable")]


def _executed_plan(instance: FabricInstance, found: Raised, costs: Costs) -> float:
    """Seconds of a plan's moves, made by thread blocks of these costs."""
    try:
        placed, last = _placed_where(instance, found.transfers, _waits_of_plan(found))
    except ValueError as error:
        raise UnsupportedError(f"these moves cannot be made on this machine: {error}") from None
    block = np.full(len(placed.piece), -1, dtype=np.int64)
    block[last] = 0 if found.block is None else found.block
    return executed_moves(instance, placed, block, costs)


def as_exported(
    instance: FabricInstance,
    moves: Algorithm | Callable[[int], Raised | Moves],
    service: str = "planned",
    costs: CostModel | None = None,
) -> float:
    """Seconds that an algorithm (known to be valid), or what a plan (or moves in no thread blocks) makes of parts of so
    many bytes, takes on the instance's machine; of a plan never less than without its thread blocks' order, as method
    ``imported`` has it. ``service``: how links serve moves in no thread blocks: ``planned`` (the one that came first in
    the moves' order goes first), ``fifo`` (first come, first served; two moves from one rank to another queue in their
    order, and what the schedule holds back waits, as in a Chakra trace), ``fair`` (max-min). ``costs``: of thread
    blocks and steps, None for none (:mod:`synth.exchange.block_costs`); moves in no thread blocks have none. Raises as
    :func:`from_algorithm` and :func:`from_plan`, and :class:`UnsupportedError` as
    :func:`synth_models.fabric.scheduling.service.seconds`. Of an instance that is a demand the moves are one
    alltoall of given parts, for calls of ``most_bytes`` bytes."""
    if instance.collective == "demand":
        instance, moves = _as_alltoall(instance, moves)
    if isinstance(moves, Algorithm):
        if costs is not None:
            _demand_same(instance, moves)
            return executed(instance, moves, part_bytes(instance), costs.of(moves.protocol))
        return _seconds(instance, from_algorithm(instance, moves, checked=True))
    found = moves(part_bytes(instance))
    if isinstance(found, Moves) and service != "planned":
        alone = found.alone()  # as such formats have them
        placed = _placed(instance, alone, _held_back(alone) if service == "fifo" else None)
        return sharing.seconds(instance, placed, _queues(instance, placed), service == "fair")
    if isinstance(found, Moves):
        return _seconds(instance, from_transfers(instance, found))
    if costs is not None and found.block is not None:
        return _executed_plan(instance, found, costs.of("LL" if found.packets else "Simple"))
    return max(
        _seconds(instance, made) for made in (from_plan(instance, found), from_transfers(instance, found.transfers))
    )


def _as_alltoall(
    instance: FabricInstance, moves: Algorithm | Callable[[int], Raised | Moves]
) -> tuple[FabricInstance, Algorithm | Callable[[int], Raised | Moves]]:
    """An alltoall on the machine of a demand, with parts as large as those of the moves."""
    if isinstance(moves, Algorithm):
        return _of_parts(instance, moves.most_bytes // moves.ranks), moves
    found = moves(0)
    made = found if isinstance(found, Moves) else found.transfers
    return _of_parts(instance, made.part_bytes), lambda _: found


def _of_parts(instance: FabricInstance, part: int) -> FabricInstance:
    own = {"collective": "alltoall", "demand": None, "bytes": part * len(instance.members)}
    made = BaseModel.model_copy(instance, update=own)  # not validated again: the machine has been
    made._file = made._sha256 = None
    made.__dict__.pop("blocks", None)
    return made


def _seconds(instance: FabricInstance, made: Schedule) -> float:
    return completion(instance, made) / made.ticks_per_s


def part_bytes(instance: FabricInstance) -> int:
    """Bytes of a part of the data, as :class:`synth.exchange.transfers.Transfers` counts them."""
    return instance.bytes // (len(instance.members) if instance.collective in SHARED_OUT else 1)


def from_transfers(instance: FabricInstance, moves: Moves, waits: Waits | None = None, loops: bool = False) -> Schedule:
    """The moves on the instance's machine, those that a switch adds or copies as in-trees and out-trees.

    ``waits``: rows (start, transfers) of what must have arrived where each transfer starts, beside the piece that it
    carries; None for no more than that. Raises :class:`InputError` where the moves are not for this instance, and
    :class:`UnsupportedError` where ranks are not joined, no switch that adds or copies joins them, or the moves wait
    for each other.
    """
    try:
        return timed(instance, _placed(instance, moves, waits))
    except ValueError as error:
        raise UnsupportedError(f"these moves cannot be made on this machine: {error}") from None


def _placed(instance: FabricInstance, moves: Moves, waits: Waits | None = None) -> Transfers:
    """The moves on routes of the machine. Raises as :func:`from_transfers`."""
    return _placed_where(instance, moves, waits)[0]


def _placed_where(instance: FabricInstance, moves: Moves, waits: Waits | None) -> tuple[Transfers, IntArray]:
    """The same, and the transfer that every move ends with."""
    faults = list(_mismatches(instance, moves))
    if faults:
        raise InputError(faults)
    block = _blocks(instance, moves)
    if np.any(block[moves.piece] < 0):
        part = int(moves.piece_part[moves.piece[np.flatnonzero(block[moves.piece] < 0)[0]]])
        raise UnsupportedError(f"part {part} is where it belongs from the start, and is sent all the same")
    used = np.flatnonzero(block >= 0)
    number = np.full(len(block), -1, dtype=np.int64)
    number[used] = np.arange(len(used))
    start, wait = _needed(moves) if waits is None else waits
    hops = _Hops(instance, moves)
    together = moves.together is not None and bool((moves.together >= 0).any())
    straight = None if together else hops.straight()
    if straight is not None:
        pieces = block[used], moves.piece_bytes[used], number[moves.piece]
        made = Transfers.of_rows(*pieces, straight, before=(start, wait), adds=moves.adds)
        return made, np.arange(len(moves.piece), dtype=np.int64)
    for rows in _streams(moves) if together else ([i] for i in range(len(moves.piece))):
        piece, waited = int(number[moves.piece[rows[0]]]), [wait[start[i] : start[i + 1]].tolist() for i in rows]
        if len(rows) > 1:
            hops.add_stream(rows, piece, waited)
        else:
            hops.add(rows[0], piece, waited[0])
    made = Transfers.of(block[used], moves.piece_bytes[used], hops.piece, hops.route, hops.before, None, hops.adds)
    return made, np.array(hops.last, dtype=np.int64)


def _queues(instance: FabricInstance, placed: Transfers) -> IntArray:
    """Of every transfer the one before it from the same rank to the same rank, -1 for none."""
    network = instance.machine.network
    ends = np.stack(
        [network.src[placed.link[placed.route_start[:-1]]], network.dst[placed.link[placed.route_start[1:] - 1]]]
    )
    order = np.lexsort((np.arange(ends.shape[1]), *ends[::-1]))
    behind = np.full(ends.shape[1], -1, dtype=np.int64)
    same = (ends[:, order[1:]] == ends[:, order[:-1]]).all(axis=0)
    behind[order[1:][same]] = order[:-1][same]
    return behind


def _mismatches(instance: FabricInstance, moves: Moves) -> Iterator[Fault]:
    """What the moves are for, against what the instance asks."""
    members = instance.members
    if moves.collective != instance.collective:
        yield Fault("collective", f"the moves are {moves.collective}, the instance asks {instance.collective}")
        return
    if moves.ranks != len(members):
        yield Fault("ranks", f"the moves are for {moves.ranks} ranks, the instance has {len(members)}")
        return
    if moves.root is not None and members[moves.root] != instance.the_root:
        yield Fault("root", f"the moves have rank {moves.root}, the instance node {instance.the_root}")
    part = part_bytes(instance)
    if moves.part_bytes != part:
        yield Fault("bytes", f"the moves have parts of {moves.part_bytes} bytes, the instance of {part}")


def _blocks(instance: FabricInstance, moves: Moves) -> IntArray:
    """The block of every piece, -1 for a part that is where it belongs from the start; shape (pieces,)."""
    place = {rank: k for k, rank in enumerate(instance.members)} | {EVERYONE: EVERYONE}
    n = len(instance.members)
    number = np.full(n * n if instance.collective == "alltoall" else n, -1, dtype=np.int64)
    ends = zip(instance.blocks.origin.tolist(), instance.blocks.goal.tolist(), strict=True)
    for block, (origin, goal) in enumerate(ends):
        match instance.collective:
            case "alltoall":
                part = place[origin] * n + place[goal]
            case "allgather" | "gather":
                part = place[origin]
            case "reduce_scatter" | "scatter":
                part = place[goal]
            case _:
                part = 0
        number[part] = block
    return number[moves.piece_part]


def _needed(moves: Moves) -> Waits:
    """For every transfer those that brought its piece where it starts: the last copy, and what was added since."""
    came: dict[tuple[int, int], list[int]] = {}
    rows: list[list[int]] = []
    columns = (moves.piece, moves.src, moves.dst, moves.adds, moves.start_s)
    ends = moves.end_s.tolist()
    for i, (piece, src, dst, adds, begin) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        rows.append([j for j in came.get((piece, src), ()) if ends[j] <= begin])
        there = came.setdefault((piece, dst), [])
        if not adds:
            there.clear()
        there.append(i)
    return rows_of(rows)


def _held_back(moves: Moves) -> Waits:
    """The same with the arrival behind which a Chakra trace holds a transfer back."""
    start, wait = _needed(moves)
    held = held_back(moves, carried(moves)[0])
    rows = np.flatnonzero(held >= 0)
    begin = start + np.concatenate([[0], np.cumsum(held >= 0)])
    return begin, np.insert(wait, start[rows], held[rows])


def _streams(moves: Moves) -> Iterator[list[int]]:
    """The transfers of every stream, each stream where the last of them stands."""
    assert moves.together is not None
    keys = list(zip(moves.together.tolist(), moves.piece.tolist(), moves.adds.tolist(), strict=True))
    left = Counter(keys)
    found: dict[tuple[int, int, bool], list[int]] = {}
    for i, key in enumerate(keys):
        left[key] -= 1
        if key[0] < 0:
            yield [i]
            continue
        found.setdefault(key, []).append(i)
        if not left[key]:
            yield found[key]


def places_of(key: IntArray, count: int) -> list[IntArray]:
    """The places of every key 0 … count - 1."""
    order = np.argsort(key, kind="stable")
    return np.split(order, np.searchsorted(key[order], np.arange(1, count)))[:count]


class _Hops:
    """Transfers over routes, one after the other."""

    def __init__(self, instance: FabricInstance, moves: Moves) -> None:
        self.moves, self.members = moves, instance.members
        self.store_and_forward = instance.switching.mode == "store_and_forward"
        self.routes = Routes.of(instance, int(np.median(moves.piece_bytes)) if len(moves.piece_bytes) else 1)
        self.amount: dict[tuple[int, int, int], int] = {}
        ends = np.stack([moves.src, moves.dst, moves.channel_hint])
        triples, first, of = np.unique(ends, axis=1, return_index=True, return_inverse=True)
        self.of: IntArray = of.reshape(-1).astype(np.int64)
        sizes = moves.piece_bytes[moves.piece]
        self.triples: list[tuple[int, int, int]] = list(zip(*triples.tolist(), strict=True))
        for k, rows in enumerate(places_of(self.of, len(self.triples))):
            self.amount[self.triples[k]] = int(sizes[rows].sum())
        self.turn = np.argsort(first, kind="stable").tolist()
        self.chosen: dict[tuple[int, int, int], list[Route]] = {}
        self.last = [-1] * len(moves.piece)  # of every move, the number of its last hop
        self.piece: list[int] = []
        self.route: list[Route] = []
        self.before: list[Sequence[int]] = []
        self.adds: list[bool] = []

    def straight(self) -> tuple[IntArray, IntArray] | None:
        """The routes of all moves as rows where each takes a direct one, else None."""
        ways = {self.triples[k]: self._way(*self.triples[k]) for k in self.turn}
        if any(len(way) > 1 for way in ways.values()):
            return None
        routes = [ways[triple][0] for triple in self.triples]
        return picked(rows_of(routes), self.of)

    def add(self, i: int, piece: int, waits: list[int]) -> None:
        """Move i, of ``piece`` as the schedule numbers it, which waits for other moves."""
        adds = bool(self.moves.adds[i])
        way = self._way(int(self.moves.src[i]), int(self.moves.dst[i]), int(self.moves.channel_hint[i]))
        if adds and len(way) > 1:
            ends = f"{self.members[self.moves.src[i]]} and {self.members[self.moves.dst[i]]}"
            raise UnsupportedError(f"no direct route joins ranks {ends}, and partial sums cannot go over others")
        for k, route in enumerate(way):
            self.before.append((len(self.route) - 1,) if k else tuple(self.last[j] for j in waits))
            self.piece.append(piece)
            self.route.append(route)
            self.adds.append(adds)
        self.last[i] = len(self.route) - 1

    def add_stream(self, rows: list[int], piece: int, waits: list[list[int]]) -> None:
        """Moves that a switch adds or copies, with what each of them waits for."""
        moves, machine = self.moves, self.routes.machine
        adds = bool(moves.adds[rows[0]])
        centre, ends = (moves.dst, moves.src) if adds else (moves.src, moves.dst)
        ranks = [self.members[k] for k in ends[rows].tolist()]
        middle = self.members[int(centre[rows[0]])]
        if self.store_and_forward:
            raise UnsupportedError("streams through switches that store and forward are no one transfer")
        net, able = machine.network, machine.abilities.adds if adds else machine.abilities.copies
        route = star(machine, middle, ranks, adds)
        if route is None or not able[net.dst[route[0]]]:
            verb = "adds" if adds else "copies"
            raise UnsupportedError(f"no switch that {verb} joins rank {middle} and ranks {', '.join(map(str, ranks))}")
        self.before.append(sorted({self.last[j] for several in waits for j in several}))
        self.piece.append(piece)
        self.route.append(route)
        self.adds.append(adds)
        for i in rows:
            self.last[i] = len(self.route) - 1

    def _way(self, src: int, dst: int, channel: int) -> list[Route]:
        if (src, dst, channel) not in self.chosen:
            ends = self.members[src], self.members[dst]
            direct = self.routes.direct(*ends)  # an executor hands nothing to other ranks on the way
            found = self.routes.hops(*ends) if direct is None else [direct]
            for route in found:
                self.routes.take(route, self.amount[src, dst, channel])
            self.chosen[src, dst, channel] = found
        return self.chosen[src, dst, channel]
