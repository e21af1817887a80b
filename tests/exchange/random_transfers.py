"""Random schedules of every collective: pieces of unequal bytes, moves that overlap in time, relays, exchanges."""

from __future__ import annotations

from random import Random

import numpy as np
from exchange.possession import begins, needs

from synth.exchange.transfers import Transfers, in_order, parts_of
from synth.schedule.collective import NAMES as COLLECTIVES

Row = tuple[int, int, int, bool, float, float]


def random_transfers(seed: int) -> Transfers:
    """A valid schedule, all choices from the seed."""
    random = Random(seed)
    collective = COLLECTIVES[seed % len(COLLECTIVES)]
    ranks = random.randint(1, 6)
    root = random.randrange(ranks) if collective in ("broadcast", "reduce", "gather", "scatter") else None
    part_bytes = random.choice([1, 4, 6, 12])
    pieces: list[tuple[int, int, int]] = []
    for part in range(parts_of(collective, ranks)):
        if collective == "alltoall" and part // ranks == part % ranks:
            continue
        ends = sorted({part_bytes, *(random.randint(1, part_bytes) for _ in range(random.randint(0, 2)))})
        pieces += [(part, low, high - low) for low, high in zip([0, *ends], ends, strict=False)]
    random.shuffle(pieces)
    rows: list[Row] = []
    for number, (part, _, _) in enumerate(pieces):
        if collective in ("reduce_scatter", "allreduce", "reduce"):
            rows += _summed(random, collective, ranks, root, part, number, seed)
        else:
            rows += _spread(random, collective, ranks, root, part, number, {}, 0.0)
    piece, src, dst, adds, start, end = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 6
    table = np.array(pieces, dtype=np.int64).reshape(-1, 3)
    count = len(rows)
    return in_order(
        Transfers(
            f"random-{seed}", collective, ranks, root, part_bytes, table[:, 0], table[:, 1], table[:, 2],
            np.array(piece, dtype=np.int64), np.array(src, dtype=np.int64), np.array(dst, dtype=np.int64),
            np.array(adds, dtype=bool), np.array(start, dtype=np.float64), np.array(end, dtype=np.float64),
            np.array([random.randint(-1, 1) for _ in range(count)], dtype=np.int64),
        )
    )  # fmt: skip


def _spread(
    random: Random, collective: str, ranks: int, root: int | None, part: int, number: int, has: dict[int, float],
    now: float,
) -> list[Row]:  # fmt: skip
    """Copies until all that need the piece have it; now and then to somebody else, and once more than needed."""
    rows: list[Row] = []
    has = has or {r: now for r in range(ranks) if begins(collective, ranks, root, part, r)}
    wanted = {r for r in range(ranks) if needs(collective, ranks, root, part, r)}
    while not wanted <= has.keys():
        now += random.choice([0, 0, 1])
        src = random.choice([r for r, since in has.items()])
        dst = random.randrange(ranks)
        if src == dst or (dst in has and random.random() < 0.8):
            continue
        begin = max(now, has[src])
        end = begin + random.randint(1, 4)
        rows.append((number, src, dst, False, begin, end))
        has[dst] = min(end, has.get(dst, end))
    return rows


def _summed(
    random: Random, collective: str, ranks: int, root: int | None, part: int, number: int, seed: int
) -> list[Row]:  # fmt: skip
    """Sums along a random tree, or by exchanges between pairs (all ranks then have them); then copies."""
    if ranks in (2, 4) and collective == "allreduce" and random.random() < 0.7:
        rows, at = [], dict.fromkeys(range(ranks), 0.0)
        for bit in [1, 2][: ranks.bit_length() - 1]:
            begin = {r: max(at[r], at[r ^ bit]) if random.random() < 0.5 else at[r] for r in at}
            then = {}
            for r in at:
                end = max(begin[r] + random.randint(1, 3), begin[r ^ bit] + 1)  # not before the other has left
                rows.append((number, r, r ^ bit, True, begin[r], end))
                then[r ^ bit] = end
            at = {r: max(then[r], begin[r]) for r in at}
        return rows
    goals = [r for r in range(ranks) if needs(collective, ranks, root, part, r)]
    top = random.choice(goals) if random.random() < 0.8 else random.randrange(ranks)
    others = [r for r in range(ranks) if r != top]
    random.shuffle(others)
    parent, rows = {}, []
    ready, left = dict.fromkeys(range(ranks), 0.0), {}
    for k, r in enumerate(others):
        parent[r] = random.choice([top, *others[:k]])
    for r in reversed(others):
        begin = ready[r] + random.choice([0, 0, 1, 2])
        end = begin + random.randint(1, 4)
        left[r] = begin
        rows.append((number, r, parent[r], True, begin, end))
        ready[parent[r]] = max(ready[parent[r]], end)
    rows += _unused(Random(len(rows) + seed), number, parent, left, ready[top])
    return rows + _spread(random, collective, ranks, root, part, number, {top: ready[top]}, ready[top])


def _unused(random: Random, number: int, parent: dict[int, int], left: dict[int, float], whole: float) -> list[Row]:
    """Contributions that come to a rank after its sum has ``left``, where nobody asks for them: the ``whole`` sum comes
    later and replaces them. They are own ones of ranks to which nothing has been added."""
    rows: list[Row] = []
    leaves = [r for r in left if r not in parent.values()]
    for r in left:
        above = [s for s in leaves if s != r and r not in _ancestors(parent, s)]
        if above and r not in leaves and random.random() < 0.8:
            src = random.choice(above)
            begin = random.randint(0, int(left[r]))
            end = max(begin, int(left[r])) + random.randint(1, 3)
            if end <= whole:
                rows.append((number, src, r, True, begin, end))
    return rows


def _ancestors(parent: dict[int, int], rank: int) -> list[int]:
    """The ranks to which a contribution goes, one after the other."""
    found = []
    while rank in parent:
        rank = parent[rank]
        found.append(rank)
    return found
