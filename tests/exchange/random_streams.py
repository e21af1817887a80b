"""Random schedules of boxes whose switches add and copy: streams that plans can say, and others."""

from __future__ import annotations

from random import Random

import numpy as np

from synth.exchange.transfers import Transfers, in_order

Row = tuple[int, int, int, bool, float, float, int]


def random_streams(seed: int) -> Transfers:
    """A valid schedule of 2 to 5 ranks, all choices from the seed."""
    random = Random(seed)
    collective = random.choice(["allreduce", "allreduce", "allgather", "broadcast", "reduce", "reduce_scatter"])
    ranks = random.randint(2, 5)
    root = random.randrange(ranks) if collective in ("broadcast", "reduce") else None
    parts = ranks if collective in ("allgather", "reduce_scatter") else 1
    size = random.choice([2, 4, 6])
    pieces = [(part, at, size // 2) for part in range(parts) for at in (0, size // 2)]
    rows: list[Row] = []
    for number, (part, _, _) in enumerate(pieces):
        middle = {"allgather": part, "broadcast": root, "reduce": root, "reduce_scatter": part}.get(collective)
        rank = random.randrange(ranks) if middle is None else middle
        now = random.choice([0.0, 0.0, 1.0])
        if collective in ("allreduce", "reduce", "reduce_scatter"):
            now = _sum(random, rows, number, rank, ranks, now)
        if collective in ("allreduce", "allgather", "broadcast"):
            _copies(random, rows, number, rank, ranks, now)
    columns = [list(column) for column in zip(*rows, strict=True)]
    piece, src, dst, adds, start, end, together = columns
    table = np.array(pieces, dtype=np.int64)
    whole = [np.array(c, dtype=np.int64) for c in (piece, src, dst)]
    return in_order(
        Transfers(
            f"streams-{seed}", collective, ranks, root, size, table[:, 0], table[:, 1], table[:, 2], *whole,
            np.array(adds, dtype=bool), np.array(start), np.array(end), np.full(len(piece), -1, dtype=np.int64),
            together=np.array(together, dtype=np.int64),
        )
    )  # fmt: skip


def _sum(random: Random, rows: list[Row], piece: int, rank: int, ranks: int, now: float) -> float:
    """All others' parts to a rank: of some by way of another of them, of some alone, of the rest as one stream."""
    others = [r for r in range(ranks) if r != rank]
    random.shuffle(others)
    if len(others) > 2 and random.random() < 0.3:
        first = others.pop()
        rows.append((piece, first, others[0], True, now, now + 1, -1))
        now += 1
    alone = others[: random.choice([0, 0, 0, 1])]
    for r in others:
        rows.append((piece, r, rank, True, now, now + 2, -1 if r in alone else 7))
    return now + 2


def _copies(random: Random, rows: list[Row], piece: int, rank: int, ranks: int, now: float) -> None:
    """Copies to all others: as one stream, as two of several senders, or some alone; at once or later."""
    others = [r for r in range(ranks) if r != rank]
    random.shuffle(others)
    now += random.choice([0, 0, 1])
    cut = random.choice([len(others), len(others), random.randint(1, len(others))])
    for r in others[:cut]:
        rows.append((piece, rank, r, False, now, now + 1, 8))
    sender = random.choice([rank, *others[:cut]])
    then = now + 1 if sender != rank else now + random.choice([0, 1])
    joint = random.choice([9, -1])
    for r in others[cut:]:
        rows.append((piece, sender, r, False, then, then + 1, joint))
