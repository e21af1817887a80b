"""Schedules written by hand, as families would hand them over: textbook algorithms on timesteps."""

from __future__ import annotations

import numpy as np

from synth.exchange.transfers import Transfers


def schedule(
    collective: str,
    ranks: int,
    moves: list[tuple[int, int, int, int, bool]],
    parts: list[int],
    part_bytes: int = 64,
    split: int = 1,
    root: int | None = None,
) -> Transfers:
    """``moves``: (step, part, src, dst, adds), each moving all ``split`` pieces of the part one after the other."""
    part_bytes = max(part_bytes, split)
    size = part_bytes // split
    rows = sorted(
        (step * split + k, parts.index(part) * split + k, src, dst, adds)
        for step, part, src, dst, adds in moves
        for k in range(split)
    )
    start = np.array([row[0] for row in rows], dtype=float)
    columns = np.array([row[1:4] for row in rows], dtype=np.int64).reshape(-1, 3)
    return Transfers(
        name=f"{collective} by hand",
        collective=collective,
        ranks=ranks,
        root=root,
        part_bytes=part_bytes,
        piece_part=np.repeat(np.array(parts, dtype=np.int64), split),
        piece_offset=np.tile(np.arange(split) * size, len(parts)),
        piece_bytes=np.full(len(parts) * split, size),
        piece=columns[:, 0],
        src=columns[:, 1],
        dst=columns[:, 2],
        adds=np.array([row[4] for row in rows], dtype=bool),
        start_s=start,
        end_s=start + split,
        channel_hint=np.full(len(rows), -1, dtype=np.int64),
    )


def ring_allgather(n: int, split: int = 1) -> Transfers:
    moves = [(t, (r - t) % n, r, (r + 1) % n, False) for t in range(n - 1) for r in range(n)]
    return schedule("allgather", n, moves, list(range(n)), split=split)


def direct_alltoall(n: int, split: int = 1) -> Transfers:
    moves = [(t - 1, r * n + (r + t) % n, r, (r + t) % n, False) for t in range(1, n) for r in range(n)]
    return schedule("alltoall", n, moves, [r * n + s for r in range(n) for s in range(n) if r != s], split=split)


def relayed_alltoall(n: int) -> Transfers:
    """Everything goes around the ring, a hop a step."""
    moves = [
        (k, a * n + b, (a + k) % n, (a + k + 1) % n, False)
        for a in range(n)
        for b in range(n)
        for k in range((b - a) % n)
    ]
    return schedule("alltoall", n, moves, [r * n + s for r in range(n) for s in range(n) if r != s])


def ring_reduce_scatter(n: int, split: int = 1) -> Transfers:
    moves = [(t, (r - t - 1) % n, r, (r + 1) % n, True) for t in range(n - 1) for r in range(n)]
    return schedule("reduce_scatter", n, moves, list(range(n)), split=split)


def ring_allreduce(n: int, split: int = 1) -> Transfers:
    """The part of an allreduce is one; its n pieces go around twice."""
    rows = [(t, (r - t - 1) % n, r, (r + 1) % n, True) for t in range(n - 1) for r in range(n)]
    rows += [(n - 1 + t, (r - t) % n, r, (r + 1) % n, False) for t in range(n - 1) for r in range(n)]
    pieces = schedule("allreduce", n, rows, list(range(n)), split=split)
    return _one_part(pieces)


def doubling_allreduce(n: int) -> Transfers:
    """Recursive doubling: both of a pair send what they had before the exchange."""
    steps = n.bit_length() - 1
    moves = [(t, 0, r, r ^ (1 << t), True) for t in range(steps) for r in range(n)]
    return schedule("allreduce", n, moves, [0])


def tree_broadcast(n: int, root: int = 0, split: int = 1) -> Transfers:
    moves = [
        (v.bit_length() - 1, 0, (root + v - (1 << v.bit_length() - 1)) % n, (root + v) % n, False) for v in range(1, n)
    ]
    return schedule("broadcast", n, moves, [0], root=root, split=split)


def chain_reduce(n: int, root: int = 0, split: int = 1) -> Transfers:
    moves = [(t, 0, (root + n - 1 - t) % n, (root + n - 2 - t) % n, True) for t in range(n - 1)]
    return schedule("reduce", n, moves, [0], root=root, split=split)


def star_gather(n: int, root: int = 0) -> Transfers:
    others = [r for r in range(n) if r != root]
    return schedule("gather", n, [(t, r, r, root, False) for t, r in enumerate(others)], others, root=root)


def chain_scatter(n: int, root: int = 0) -> Transfers:
    moves = [
        (n - 1 - k + hop, (root + k) % n, (root + hop) % n, (root + hop + 1) % n, False)
        for k in range(1, n)
        for hop in range(k)
    ]
    return schedule("scatter", n, moves, [(root + k) % n for k in range(1, n)], root=root)


def _one_part(t: Transfers) -> Transfers:
    """Pieces of many parts as pieces of one."""
    fields = dict(t.__dict__)
    fields.update(
        piece_part=np.zeros_like(t.piece_part),
        piece_offset=t.piece_part * t.part_bytes + t.piece_offset,
        part_bytes=t.part_bytes * (int(t.piece_part.max()) + 1),
    )
    return Transfers(**fields)


EVERY = {
    "allgather": ring_allgather(4),
    "allgather in pieces": ring_allgather(3, split=2),
    "alltoall": direct_alltoall(4),
    "alltoall over others": relayed_alltoall(4),
    "reduce_scatter": ring_reduce_scatter(4),
    "reduce_scatter in pieces": ring_reduce_scatter(3, split=4),
    "allreduce": ring_allreduce(4),
    "allreduce in pieces": ring_allreduce(5, split=2),
    "allreduce by doubling": doubling_allreduce(8),
    "broadcast": tree_broadcast(5, root=2),
    "broadcast in pieces": tree_broadcast(4, root=1, split=4),
    "reduce": chain_reduce(4, root=3),
    "gather": star_gather(4, root=1),
    "scatter": chain_scatter(4, root=2),
}
