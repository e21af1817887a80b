"""Oracles in plain Python, written from the definitions of ``Transfers`` and ``Algorithm`` alone.

What a rank has of a chunk is a set of contributions: ``{r}`` is rank r's own; data that is no sum has its
owner's alone.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from synth.exchange.algorithm import KINDS, RECEIVES, SENDS, Algorithm
from synth.exchange.transfers import Transfers

Chunk = tuple[int, int]  # part, place in it
Held = frozenset[int]
Message = tuple[int, int, Chunk, Held]


def owners(collective: str, ranks: int, root: int | None, part: int) -> Held:
    """Whose contributions the finished data of a part has."""
    if collective in ("reduce_scatter", "allreduce", "reduce"):
        return frozenset(range(ranks))
    if collective in ("allgather", "gather"):
        return frozenset([part])
    return frozenset([part // ranks if collective == "alltoall" else int(root or 0)])


def begins(collective: str, ranks: int, root: int | None, part: int, rank: int) -> Held:
    """What a rank has of a part at the beginning."""
    if collective in ("reduce_scatter", "allreduce", "reduce"):
        return frozenset([rank])
    own = owners(collective, ranks, root, part)
    return own if rank in own else frozenset()


def needs(collective: str, ranks: int, root: int | None, part: int, rank: int) -> bool:
    """Whether a rank must end with a part."""
    if collective in ("gather", "reduce"):
        return rank == root
    if collective in ("reduce_scatter", "scatter"):
        return rank == part
    return rank == part % ranks if collective == "alltoall" else True


def replayed(t: Transfers) -> tuple[list[Held], dict[tuple[int, int], Held]]:
    """What every transfer carries, and what every (rank, piece) has in the end. Raises ``AssertionError`` for what is
    no schedule."""
    state = {
        (r, p): begins(t.collective, t.ranks, t.root, int(part), r)
        for p, part in enumerate(t.piece_part.tolist())
        for r in range(t.ranks)
    }
    carried: list[Held] = [frozenset()] * len(t.piece)
    events = [(float(s), 1, i) for i, s in enumerate(t.start_s)] + [(float(e), 0, i) for i, e in enumerate(t.end_s)]
    for _, starts, i in sorted(events):
        src, dst, piece = int(t.src[i]), int(t.dst[i]), int(t.piece[i])
        if starts:
            carried[i] = state[src, piece]
            assert carried[i], f"transfer {i} carries nothing"
            whole = owners(t.collective, t.ranks, t.root, int(t.piece_part[piece]))
            assert t.adds[i] or carried[i] == whole, f"transfer {i} copies a sum that is not finished"
        elif t.adds[i]:
            assert not state[dst, piece] & carried[i], f"transfer {i} counts something twice"
            state[dst, piece] |= carried[i]
        else:
            state[dst, piece] = carried[i]
    for (r, p), held in state.items():
        part = int(t.piece_part[p])
        if needs(t.collective, t.ranks, t.root, part, r):
            assert held == owners(t.collective, t.ranks, t.root, part), f"rank {r} lacks piece {p}"
    return carried, state


class Run:
    """An algorithm run step by step: memory cell by cell, ready thread blocks in a random order."""

    def __init__(self, a: Algorithm, random: Any, together: bool = False) -> None:
        """``together``: a send ends only with its receive, as if a connection held nothing (no fused steps)."""
        self.a, self.random, self.together = a, random, together
        self.messages: Counter[Message] = Counter()
        self.memory: dict[tuple[int, str, int], tuple[Chunk, Held] | None] = {}
        self.queue: dict[tuple[int, int, int], deque[Any]] = {}
        self.place = [0] * len(a.tb_rank)
        self.first = {int(r): int((a.tb_rank < r).sum()) for r in range(a.ranks)}
        for rank in range(a.ranks):
            for part, at in self._inputs(rank):
                for c in range(a.chunks):
                    held = begins(a.collective, a.ranks, a.root, part, rank)
                    self.memory[self.cell(rank, "i", at + c)] = ((part, c), held)

    def _inputs(self, rank: int) -> list[tuple[int, int]]:
        """Parts that lie in a rank's input, and where."""
        a, n, c = self.a, self.a.ranks, self.a.chunks
        if a.collective == "alltoall":
            return [(rank * n + t, t * c) for t in range(n)]
        if a.collective in ("allgather", "gather"):
            return [(rank, 0)]
        if a.collective == "reduce_scatter":
            return [(r, r * c) for r in range(n)]
        if a.collective in ("scatter", "broadcast"):
            parts = range(n) if a.collective == "scatter" else range(1)
            return [(r, r * c) for r in parts] if rank == a.root else []
        return [(0, 0)]

    def _outputs(self, rank: int) -> list[tuple[int, int]]:
        """Parts that must lie in a rank's output in the end, and where."""
        a, n, c = self.a, self.a.ranks, self.a.chunks
        if a.collective == "alltoall":
            return [(r * n + rank, r * c) for r in range(n)]
        if a.collective == "allgather" or (a.collective == "gather" and rank == a.root):
            return [(r, r * c) for r in range(n)]
        if a.collective in ("reduce_scatter", "scatter"):
            return [(rank, 0)]
        if a.collective == "gather" or (a.collective == "reduce" and rank != a.root):
            return []
        return [(0, 0)]

    def cell(self, rank: int, buffer: str, offset: int) -> tuple[int, str, int]:
        """The cell of memory: in place, chunks of input and output are the same by the rules of ``Algorithm``."""
        a = self.a
        if a.in_place:
            if a.collective == "allgather" or (a.collective == "gather" and rank == a.root):
                return (rank, "o", rank * a.chunks + offset) if buffer == "i" else (rank, buffer, offset)
            if a.collective == "reduce_scatter" or (a.collective == "scatter" and rank == a.root):
                return (rank, "i", rank * a.chunks + offset) if buffer == "o" else (rank, buffer, offset)
            if a.collective not in ("gather", "scatter") and buffer == "o":
                return rank, "i", offset
        return rank, buffer, offset

    def run(self) -> None:
        """Run to the end. Raises ``AssertionError`` where nothing can go on, and for a wrong result."""
        a = self.a
        left = a.steps
        while left:
            ready = list(range(len(a.tb_rank)))
            self.random.shuffle(ready)
            went = sum(self._advance(b) for b in ready)
            assert went, f"stuck with {left} steps left"
            left -= went
        assert not any(self.queue.values()), "a message is never received"
        for rank in range(a.ranks):
            for part, at in self._outputs(rank):
                for c in range(a.chunks):
                    whole = ((part, c), owners(a.collective, a.ranks, a.root, part))
                    assert self.memory.get(self.cell(rank, "o", at + c)) == whole, (rank, part, c)

    def _ready(self, b: int) -> int:
        """The block's next step if it may start, else -1."""
        a = self.a
        i = int(a.step_start[b]) + self.place[b]
        if i >= int(a.step_start[b + 1]):
            return -1
        if a.dep_tb[i] >= 0:
            other = self.first[int(a.tb_rank[b])] + int(a.dep_tb[i])
            assert a.has_dependents[int(a.step_start[other]) + int(a.dep_step[i])], "nobody signals"
            if self.place[other] <= a.dep_step[i]:
                return -1
        return i

    def _advance(self, b: int) -> int:
        """Do the block's next step if it can be done; how many steps were done."""
        a, i = self.a, self._ready(b)
        if i < 0:
            return 0
        kind, rank = KINDS[a.kind[i]], int(a.tb_rank[b])
        if kind in RECEIVES and self.together:
            return 0  # its send does both
        came = None
        if kind in RECEIVES:
            queue = self.queue.setdefault((int(a.tb_recv[b]), rank, int(a.tb_channel[b])), deque())
            if not queue:
                return 0
            came = queue.popleft()
        if kind == "s" and self.together:
            return self._both(b, i)
        self._do(b, i, came)
        self.place[b] += 1
        return 1

    def _both(self, b: int, i: int) -> int:
        a, key = self.a, None
        rank, peer, channel = int(a.tb_rank[b]), int(a.tb_send[b]), int(a.tb_channel[b])
        (other,) = [
            c for c in range(len(a.tb_rank))
            if a.tb_rank[c] == peer and a.tb_recv[c] == rank and a.tb_channel[c] == channel
        ]  # fmt: skip
        j = self._ready(other)
        if j < 0 or KINDS[a.kind[j]] not in RECEIVES:
            return 0
        self._do(b, i, None)
        key = (rank, peer, channel)
        self._do(other, j, self.queue[key].popleft())
        self.place[b] += 1
        self.place[other] += 1
        return 2

    def _do(self, b: int, i: int, came: Any) -> None:
        a = self.a
        kind, rank, count = KINDS[a.kind[i]], int(a.tb_rank[b]), int(a.count[i])
        if kind == "nop":
            return
        src = [self.cell(rank, "ios"[a.src_buffer[i]], int(a.src_offset[i]) + c) for c in range(count)]
        dst = [self.cell(rank, "ios"[a.dst_buffer[i]], int(a.dst_offset[i]) + c) for c in range(count)]
        values = came
        if kind in ("s", "cpy", "re"):
            values = [self.memory.get(cell) for cell in src]
        if kind == "re":
            values = [self._sum(v, self.memory.get(cell)) for v, cell in zip(values, dst, strict=True)]
        if kind in ("rrc", "rrs", "rrcs"):
            values = [self._sum(v, self.memory.get(cell)) for v, cell in zip(values, src, strict=True)]
        assert values is not None
        assert len(values) == count
        assert all(v is not None for v in values), "reads what was never written"
        if kind in ("r", "cpy", "re", "rrc", "rcs", "rrcs"):
            self.memory |= dict(zip(dst, values, strict=True))
        if kind in SENDS:
            peer = int(a.tb_send[b])
            self.queue.setdefault((rank, peer, int(a.tb_channel[b])), deque()).append(values)
            self.messages.update((rank, peer, chunk, held) for chunk, held in values)

    @staticmethod
    def _sum(one: Any, other: Any) -> Any:
        assert one is not None
        assert other is not None
        assert one[0] == other[0], "sums of different chunks"
        assert not one[1] & other[1], "counts something twice"
        return one[0], one[1] | other[1]


def expected(t: Transfers, chunks: int, needed: bool = True) -> Counter[Message]:
    """The messages, chunk by chunk, that the transfers ask for; with ``needed`` those that bring a rank what it has
    finished left out. Pieces must end at chunk boundaries."""
    carried, _ = replayed(t)
    found: Counter[Message] = Counter()
    finished: dict[tuple[int, int], bool] = {}
    for i, held in enumerate(carried):
        piece, dst = int(t.piece[i]), int(t.dst[i])
        part = int(t.piece_part[piece])
        reduces = t.collective in ("reduce_scatter", "allreduce", "reduce")
        had = finished.get((dst, piece), not reduces and dst in owners(t.collective, t.ranks, t.root, part))
        if had and needed:
            continue
        finished[dst, piece] = not t.adds[i]
        low, size = int(t.piece_offset[piece]) * chunks, int(t.piece_bytes[piece]) * chunks
        assert low % t.part_bytes == 0
        assert size % t.part_bytes == 0
        for c in range(low // t.part_bytes, (low + size) // t.part_bytes):
            found[int(t.src[i]), dst, (part, c), held] += 1
    return found
