"""One call of a library's collective as messages from rank to rank, and what each of them waits for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from synth.exchange.transfers import Raised, Transfers

Planned = tuple[int, int, Sequence[int], bool]  # from, to, pieces, whether they are added
MOST_SENDERS = 32  # whose last messages a rank waits for: messages from one rank to one come in their order
WHOLE = ("broadcast", "reduce", "allreduce")  # collectives of one buffer that all ranks have or get


class Message(NamedTuple):
    """Pieces from a rank to a rank, added there or stored; in which step, and for which messages it waits."""

    source: int
    target: int
    pieces: tuple[int, ...]
    adds: bool
    step: int
    waits: tuple[int, ...]


class Moves:
    """The messages of one call, ranks counted from the root. Pieces: each rank's block (r's block is number r; of an
    alltoall r's for t is r N + t), or of one buffer (:data:`WHOLE`) the buffer, cut into ``cut`` even pieces."""

    def __init__(self, collective: str, ranks: int, part_bytes: int, cut: int = 1) -> None:
        self.collective, self.ranks, self.cut = collective, ranks, cut
        self.messages: list[Message] = []
        self.clock = 0
        self._size = [part_bytes * (k + 1) // cut - part_bytes * k // cut for k in range(cut)]
        self._came: list[dict[int, int]] = [{} for _ in range(ranks)]  # the last message of every sender

    @property
    def blocks(self) -> range:
        """All pieces."""
        return range(self.cut * (1 if self.collective in WHOLE else self.ranks))

    def bytes_of(self, message: Message) -> int:
        """Bytes of a message."""
        return sum(self._size[piece % self.cut] for piece in message.pieces)

    def send(self, planned: Planned, clock: int, waits: tuple[int, ...]) -> int:
        """Add a message; its number, -1 where it would have no bytes."""
        source, target, pieces, adds = planned
        message = Message(source, target, tuple(pieces), adds, clock, waits)
        if not self.bytes_of(message):
            return -1
        self.messages.append(message)
        return len(self.messages) - 1

    def step(self, messages: Iterable[Planned]) -> None:
        """Messages that go at once: each when its sender has what it was sent in the steps before."""
        arrived = []
        for planned in messages:
            number = self.send(planned, self.clock, tuple(self._came[planned[0]].values()))
            if number >= 0:
                arrived.append((planned[0], planned[1], number))
        for source, target, number in arrived:
            there = self._came[target]
            there.pop(source, None)
            if len(there) >= MOST_SENDERS:
                del there[next(iter(there))]
            there[source] = number
        self.clock += 1

    def tree(self, parent: Sequence[int], pieces: Sequence[int], up: bool = False) -> None:
        """Pieces one after the other from the root (its own parent) to all, or added up on their way to it. At the root
        it goes on from what came there in the tree before."""
        depth = [_depth(parent, v) for v in range(self.ranks)]
        deepest, ends = max(depth), _ends(parent, up)
        came: dict[tuple[int, int], tuple[int, ...]] = {}
        for turn in range(len(pieces) + deepest):
            for v in range(self.ranks):
                k = turn - (deepest - depth[v] if up else depth[v])
                for end in ends[v] if 0 <= k < len(pieces) else ():
                    waits = came.get((v, k), () if up or depth[v] else tuple(self._came[v].values()))
                    number = self.send((v, end, [pieces[k]], up), self.clock + turn, waits)
                    if number >= 0:
                        came[end, k] = (*came.get((end, k), ()), number)
        self.clock += len(pieces) + deepest
        root = depth.index(0)
        self._came[root] |= {self.messages[j].source: j for j in came.get((root, len(pieces) - 1), ())}

    def raised(self, name: str, part_bytes: int, root: int) -> Raised:
        """The messages as the family's timing takes them: as if they were those of an alltoall, of which every message
        is a piece of its own, for a message may go over other ranks, and none is added up anywhere."""
        n, count = self.ranks, len(self.messages)
        order = sorted(range(count), key=lambda i: self.messages[i].step)  # what is waited for comes first
        number = {i: k for k, i in enumerate(order)}
        ordered = [self.messages[i] for i in order]
        source, target, clock, size = np.array(
            [((m.source + root) % n, (m.target + root) % n, m.step, self.bytes_of(m)) for m in ordered], dtype=np.int64
        ).reshape(-1, 4).T  # fmt: skip
        nothing = np.zeros(count, dtype=np.int64)
        moves = Transfers(
            name, "alltoall", n, None, part_bytes, source * n + target, nothing, size, np.arange(count), source, target,
            nothing.astype(bool), clock.astype(np.float64), (clock + 1).astype(np.float64), nothing - 1,
        )  # fmt: skip
        start = np.cumsum([0, *(len(m.waits) for m in ordered)]).astype(np.int64)
        return Raised(moves, start, np.array([number[j] for m in ordered for j in m.waits], dtype=np.int64))


def _depth(parent: Sequence[int], v: int) -> int:
    found = 0
    while parent[v] != v:
        v, found = parent[v], found + 1
    return found


def _ends(parent: Sequence[int], up: bool) -> list[list[int]]:
    """To whom every rank sends: to its parent, or to its children."""
    found: list[list[int]] = [[] for _ in parent]
    for v, above in enumerate(parent):
        if above != v:
            found[v if up else above].append(above if up else v)
    return found
