"""From who sends which piece to whom, to transfers: routes filled in, over ranks where there is no other way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.kernels import numba_is_loaded
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import picked, rows_of, starts
from synth_models.fabric.routes.routes_in_turn import Edges, sent_in_turn
from synth_models.fabric.routes.search import Route, Routes
from synth_models.fabric.scheduling.transfers import Transfers

MANY_EDGES = 500  # of a schedule, whose routes are then chosen by a kernel, even where that has to be loaded first

Ways = Mapping[tuple[int, int], Sequence[Route]]  # from a rank to a rank: direct routes one after the other

_Hop = tuple[int, int]  # a route's number, the rank at its end


class Moves:
    """Collects transfers that spread pieces from the ranks that hold them: no rank receives a piece twice.

    ``holder``: the rank that holds each piece at first, shape (pieces,). ``take``: let the routes remember what they
    carry, so that equally quick ones share the load; ``False`` takes the same route for a pair of ranks every time.
    """

    def __init__(
        self, routes: Routes, piece_block: Any, piece_bytes: Any, holder: Sequence[int], take: bool = True
    ) -> None:
        self.routes = routes
        self._block, self._bytes = piece_block, piece_bytes
        self._sizes = [int(n) for n in piece_bytes]
        self._take = take
        self._ways: dict[tuple[int, int], list[_Hop]] = {}
        self._given: dict[int, dict[tuple[int, int], list[_Hop]]] = {}
        self._has: list[dict[int, int]] = [{int(rank): -1} for rank in holder]
        self._known: list[Route] = []  # the routes that transfers go over
        self._piece: list[int] = []  # of each transfer; below: its route's number, what brought the piece, its priority
        self._route: list[int] = []
        self._came: list[int] = []
        self._priority: list[int] = []
        self._also: list[tuple[int, int]] = []
        self._dst = routes.machine.network.dst.tolist()

    def __len__(self) -> int:
        """How many transfers there are by now."""
        return len(self._piece)

    def send(self, piece: int, source: int, target: int, priority: int) -> None:
        """Bring a piece from a rank that has it by now to another; nothing happens if that has it already. Raises
        ``ValueError`` if the source has not, :class:`synth.errors.UnsupportedError` if it has no way there."""
        self.send_along(piece, ((source, target, priority),))

    def send_along(self, piece: int, edges: Iterable[tuple[int, int, int]]) -> None:
        """:meth:`send` for each (source, target, priority) in turn."""
        has, size, ways = self._has[piece], self._sizes[piece], self._ways
        for source, target, priority in edges:
            if target in has:
                continue
            if source not in has:
                raise ValueError(f"rank {source} does not have piece {piece} by now")
            at = source
            for route, to in ways.get((source, target)) or self._way(source, target, size):
                if to not in has:
                    self._came.append(has[at])
                    has[to] = len(self._piece)
                    self._piece.append(piece)
                    self._route.append(route)
                    self._priority.append(priority)
                at = to

    def go_over(self, kind: int, given: Callable[[int], Ways]) -> None:
        """Send along the routes of this kind from now on, and along the quickest where it has none."""
        if kind not in self._given:
            self._given[kind] = {pair: self._known_as(way) for pair, way in given(kind).items()}
        self._ways = self._given[kind]

    def wait(self, transfer: int, other: int) -> None:
        """Let a transfer begin only where another has arrived."""
        self._also.append((transfer, other))

    def _way(self, source: int, target: int, size: int) -> list[_Hop]:
        """Direct routes one after the other, kept for the pair where routes do not share the load."""
        found = self.routes.hops(source, target)
        for route in found:
            self.routes.take(route, size if self._take else None)
        way = self._known_as(found)
        if not self._take:
            self._ways[source, target] = way
        return way

    def _known_as(self, found: Sequence[Route]) -> list[_Hop]:
        first = len(self._known)
        self._known += found
        return [(first + k, int(self._dst[route[-1]])) for k, route in enumerate(found)]

    def transfers(self) -> Transfers:
        """What has been collected."""
        came = np.array(self._came, dtype=np.int64)
        waiting, waited = np.flatnonzero(came >= 0), came[came >= 0]
        if self._also:
            more = np.array(self._also, dtype=np.int64)
            waiting, waited = np.concatenate([waiting, more[:, 0]]), np.concatenate([waited, more[:, 1]])
            order = np.argsort(waiting, kind="stable")
            waiting, waited = waiting[order], waited[order]
        routes = picked(rows_of(self._known), np.array(self._route, dtype=np.int64))
        before = starts(np.bincount(waiting, minlength=len(self))), waited
        rows = self._block, self._bytes, self._piece, routes
        return Transfers.of_rows(*rows, before=before, priority=self._priority)


def along(routes: Routes, piece_bytes: IntArray, edges: Edges) -> Transfers:
    """One piece a block along its edges, the routes chosen in this order, equally quick ones in turn; compiled where
    there are many, or kernels are loaded. Raises :class:`synth.errors.UnsupportedError` where there is no way."""
    block = np.arange(len(piece_bytes), dtype=np.int64)
    sent = None
    if len(edges.piece) >= (0 if numba_is_loaded() else MANY_EDGES):
        sent = sent_in_turn(routes, edges, piece_bytes[edges.piece])
    if sent is not None:
        piece, priority, links = edges.piece[sent.edge], edges.priority[sent.edge], (sent.start, sent.link)
        return Transfers.of_rows(block, piece_bytes, piece, links, before=sent.after, priority=priority)
    holder = np.zeros(len(piece_bytes), dtype=np.int64)
    holder[edges.piece[::-1]] = edges.source[::-1]
    moves = Moves(routes, block, piece_bytes, holder.tolist())
    for edge in zip(*(column.tolist() for column in edges), strict=True):
        moves.send(*edge)
    return moves.transfers()


def waiting(transfers: Transfers, more: Sequence[tuple[int, int]]) -> Transfers:
    """The transfers, of which the first of each of these pairs also waits until the second has arrived."""
    given = np.array(more, dtype=np.int64).reshape(-1, 2)
    count = len(transfers.piece)
    rows = np.concatenate([np.repeat(np.arange(count), np.diff(transfers.before_start)), given[:, 0]])
    order = np.argsort(rows, kind="stable")
    before_start = starts(np.bincount(rows, minlength=count))
    return replace(transfers, before_start=before_start, before=np.concatenate([transfers.before, given[:, 1]])[order])


def in_chunks(template: Transfers, pieces: Any, piece_block: Any, piece_bytes: Any, priority: Any) -> Transfers:
    """``template`` with every piece cut into chunks that all go the same way.

    ``pieces[c][s]`` (rows of any kind): the number of the c-th chunk of piece s of the template, -1 if it has none.
    ``priority(step, c)``: the priorities, shape (transfers of the template,), of chunk c; ``step`` are the template's.
    """
    lengths, waits = np.diff(template.route_start), np.diff(template.before_start)
    parts = []
    offset = 0
    for c, row in enumerate(pieces):
        number = np.asarray(row, dtype=np.int64)[template.piece]
        keep = number >= 0
        position = np.cumsum(keep) - 1 + offset
        offset += int(keep.sum())
        parts.append(
            (
                number[keep],
                template.adds[keep],
                np.asarray(priority(template.priority, c))[keep],
                lengths[keep],
                template.link[np.repeat(keep, lengths)],
                waits[keep],
                position[template.before[np.repeat(keep, waits)]],
            )
        )
    if not parts:
        return Transfers.of(piece_block, piece_bytes, [], [], [])
    piece, adds, order, length, link, wait, before = (np.concatenate(column) for column in zip(*parts, strict=True))
    rows = piece_block, piece_bytes, piece, (starts(length), link)
    return Transfers.of_rows(*rows, before=(starts(wait), before), priority=order, adds=adds)


def only_useful(machine: Machine, transfers: Transfers, members: Sequence[int]) -> Transfers:
    """Without what brings a piece to a rank that is no member and sends it on to nobody. Transfers stand behind those
    that they wait for, and every route is a path."""
    wanted = np.zeros(machine.nodes, dtype=bool)
    wanted[list(members)] = True
    keep = wanted[machine.network.dst[transfers.link[transfers.route_start[1:] - 1]]]
    if keep.all():
        return transfers
    begin, before = transfers.before_start.tolist(), transfers.before.tolist()
    for i in range(len(keep) - 1, -1, -1):
        if keep[i]:
            for j in before[begin[i] : begin[i + 1]]:
                keep[j] = True
    return transfers.taken(np.flatnonzero(keep))


def pieces_of(sizes: Iterable[Sequence[int]]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """``piece_block`` and ``piece_bytes`` from the sizes that each block is cut into."""
    block, size = [], []
    for number, row in enumerate(sizes):
        block += [number] * len(row)
        size += list(row)
    return np.array(block, dtype=np.int64), np.array(size, dtype=np.int64)
