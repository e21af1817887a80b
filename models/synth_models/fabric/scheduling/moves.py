"""From who sends which piece to whom, to transfers: routes filled in, over ranks where there is no other way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.scheduling.list_scheduling import Transfers
from synth_models.fabric.scheduling.routes import Route, Routes


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
        self._ways: dict[tuple[int, int], list[Route]] = {}
        self._has: list[dict[int, int]] = [{int(rank): -1} for rank in holder]
        self.piece: list[int] = []
        self.route: list[Route] = []
        self.before: list[Sequence[int]] = []
        self.priority: list[int] = []
        self._dst = routes.machine.network.dst.tolist()

    def send(self, piece: int, source: int, target: int, priority: int) -> None:
        """Bring a piece from a rank that has it by now to another; nothing happens if that has it already. Raises
        ``ValueError`` if the source has not, :class:`synth.errors.UnsupportedError` if it has no way there."""
        has = self._has[piece]
        if target in has:
            return
        if source not in has:
            raise ValueError(f"rank {source} does not have piece {piece} by now")
        at = source
        for route in self.way(source, target, self._sizes[piece]):
            to = self._dst[route[-1]]
            if to not in has:
                came = has[at]
                has[to] = len(self.piece)
                self.piece.append(piece)
                self.route.append(route)
                self.before.append((came,) if came >= 0 else ())
                self.priority.append(priority)
            at = to

    def way(self, source: int, target: int, size: int) -> list[Route]:
        """Direct routes one after the other."""
        if not self._take:
            if (source, target) not in self._ways:
                self._ways[source, target] = found = self.routes.hops(source, target)
                for route in found:
                    self.routes.take(route)
            return self._ways[source, target]
        found = self.routes.hops(source, target)
        for route in found:
            self.routes.take(route, size)
        return found

    def has(self, piece: int, rank: int) -> bool:
        """Whether a rank has a piece by now."""
        return rank in self._has[piece]

    def transfers(self, adds: bool = False) -> Transfers:
        """What has been collected."""
        return Transfers.of(self._block, self._bytes, self.piece, self.route, self.before, self.priority, adds)


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
    return Transfers(
        np.asarray(piece_block, dtype=np.int64),
        np.asarray(piece_bytes, dtype=np.int64),
        piece,
        adds,
        order.astype(np.int64),
        np.concatenate([[0], np.cumsum(length)]).astype(np.int64),
        link,
        np.concatenate([[0], np.cumsum(wait)]).astype(np.int64),
        before,
    )


def only_useful(machine: Machine, transfers: Transfers, members: Sequence[int]) -> Transfers:
    """Without what brings a piece to a rank that is no member and sends it on to nobody. Transfers stand behind those
    that they wait for, and every route is a path."""
    wanted = np.zeros(machine.nodes, dtype=bool)
    wanted[list(members)] = True
    keep = wanted[machine.network.dst[transfers.link[transfers.route_start[1:] - 1]]]
    if keep.all():
        return transfers
    starts, before = transfers.before_start.tolist(), transfers.before.tolist()
    for i in range(len(keep) - 1, -1, -1):
        if keep[i]:
            for j in before[starts[i] : starts[i + 1]]:
                keep[j] = True
    lengths, waits = np.diff(transfers.route_start), np.diff(transfers.before_start)
    number = np.cumsum(keep) - 1
    return Transfers(
        transfers.piece_block,
        transfers.piece_bytes,
        transfers.piece[keep],
        transfers.adds[keep],
        transfers.priority[keep],
        np.concatenate([[0], np.cumsum(lengths[keep])]).astype(np.int64),
        transfers.link[np.repeat(keep, lengths)],
        np.concatenate([[0], np.cumsum(waits[keep])]).astype(np.int64),
        number[transfers.before[np.repeat(keep, waits)]],
    )


def pieces_of(sizes: Iterable[Sequence[int]]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """``piece_block`` and ``piece_bytes`` from the sizes that each block is cut into."""
    block, size = [], []
    for number, row in enumerate(sizes):
        block += [number] * len(row)
        size += list(row)
    return np.array(block, dtype=np.int64), np.array(size, dtype=np.int64)
