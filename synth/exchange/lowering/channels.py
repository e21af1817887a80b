"""Which thread block does what: one for every peer, direction and channel.

A pair of ranks has one connection or several: a lane for each copy of the algorithm and each of its parallel links
(``--channels``), and where a thread block would have more steps than an executor takes, one connection after the
other. Every connection takes the first channel that is free at both its ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth.errors import LimitError
from synth.exchange.lowering.limits import Limits
from synth.exchange.lowering.rank_steps import LOCAL, RECEIVE, SEND, Acts
from synth.exchange.transfers import Transfers
from synth.kernels import jit

FIRST = np.array([2, 0, 1])  # of send, receive, local: others wait for receives, and the numbers they name are small


@dataclass(frozen=True)
class Blocks:
    """Thread blocks, ordered by rank: ``of`` (the block of every act), and ``rank``, ``send``, ``recv``, ``channel``
    of every block."""

    of: IntArray
    rank: IntArray
    send: IntArray
    recv: IntArray
    channel: IntArray


def lanes(t: Transfers, copy: IntArray, channels: int, by_time: bool = False, cuts: int = 1) -> IntArray:
    """The lane of every move: that of its copy, and by its hint (else its piece) one of ``channels``; ``by_time``: by
    its place among all moves when they are in the order of their starts. ``cuts``: pieces that were one before they
    were cut, which follow each other."""
    if by_time:
        which = np.empty(len(t.piece), dtype=np.int64)
        which[np.argsort(t.start_s, kind="stable")] = np.arange(len(which)) * channels // max(len(which), 1)
    else:
        which = np.where(t.channel_hint >= 0, t.channel_hint, t.piece // cuts) % channels
    found: IntArray = copy * channels + which
    return found


def connections(t: Transfers, lane: IntArray, budget: IntArray, pair: IntArray) -> IntArray:
    """The connection of every move, numbered: its pair's (``pair``, numbered), its lane, and the run it is in when a
    connection takes at most ``budget[pair]`` moves; shape (moves,)."""
    key = pair * (int(lane.max(initial=0)) + 1) + lane
    order = np.argsort(key, kind="stable")
    new = np.concatenate([[True], key[order][1:] != key[order][:-1]]) if len(key) else np.zeros(0, dtype=bool)
    begin = np.maximum.accumulate(np.where(new, np.arange(len(key)), 0)) if len(key) else order
    nth = np.empty(len(key), dtype=np.int64)
    nth[order] = np.arange(len(key)) - begin
    run = nth // budget[pair] if len(key) else nth
    _, found = np.unique(key * (int(run.max(initial=0)) + 1) + run, return_inverse=True)
    return np.asarray(found).reshape(-1).astype(np.int64)


def channels_of(t: Transfers, connection: IntArray, limits: Limits) -> IntArray:
    """The channel of every move. Raises :class:`LimitError` naming the limit where there are too few channels."""
    _, first = np.unique(connection, return_index=True)
    src, dst = t.src[first], t.dst[first]
    order = np.argsort(first, kind="stable")
    found = np.full(len(first), -1, dtype=np.int64)
    most = limits.channels if limits.channels is not None else len(first)
    peers = limits.peers if limits.peers is not None else t.ranks
    if not _first_free(src, dst, order, t.ranks, most, peers, found):
        raise LimitError(
            f"{limits.executor} takes {most} channels with {peers} peers in each direction; this needs more "
            f"(fewer moves: fewer pieces or chunks, fewer --instances)"
        )
    return found[connection]


@jit
def _first_free(
    src: IntArray, dst: IntArray, order: IntArray, ranks: int, most: int, peers: int, found: IntArray
) -> bool:
    """The first channel for each connection that its pair does not use and that has room at both ends."""
    pair = src * ranks + dst
    by_pair = np.argsort(pair, kind="mergesort")
    number = np.empty(len(pair), dtype=np.int64)
    pairs = 0
    for k in range(len(by_pair)):
        if k and pair[by_pair[k]] != pair[by_pair[k - 1]]:
            pairs += 1
        number[by_pair[k]] = pairs
    after = np.zeros(pairs + 1, dtype=np.int64)  # the channels of a pair grow with its connections
    size = 8
    out, into = np.zeros((ranks, size), dtype=np.int32), np.zeros((ranks, size), dtype=np.int32)
    for k in range(len(order)):
        i = order[k]
        c = after[number[i]]
        while c < size and (out[src[i], c] >= peers or into[dst[i], c] >= peers):
            c += 1
        if c >= most:
            return False
        if c >= size:
            more = np.zeros((ranks, size), dtype=np.int32)
            out, into = np.concatenate((out, more), axis=1), np.concatenate((into, more), axis=1)
            size *= 2
        found[i] = c
        after[number[i]] = c + 1
        out[src[i], c] += 1
        into[dst[i], c] += 1
    return True


def blocks(done: Acts, channel: IntArray, local_budget: int, ranks: int, copying: int = 1) -> Blocks:
    """Thread blocks of all acts: sends and receives by peer and channel, at most ``local_budget`` local acts each, and
    copies of own parts in ``copying`` blocks, as they take as long as what moves."""
    rank, role = done.rank.astype(np.int64), done.role.astype(np.int64)
    lane = np.where(role == LOCAL, _nth(rank, role == LOCAL) // local_budget, 0)
    own = (role == LOCAL) & (done.place < 0)
    count = np.bincount(rank[own], minlength=ranks)[rank[own]]
    lane[own] = np.maximum(lane[own], _nth(rank, own)[own] * copying // count)
    moving = role != LOCAL
    lane[moving] = channel[done.move[moving]]
    peer = done.peer.astype(np.int64) + 1
    wide = int(lane.max(initial=0)) + 1
    key = ((rank * 3 + FIRST[role]) * wide + lane) * (ranks + 1) + peer
    values, of = np.unique(key, return_inverse=True)
    rest, other = np.divmod(values, ranks + 1)
    rest, where = np.divmod(rest, wide)
    at, part = np.divmod(rest, 3)
    part = np.argsort(FIRST)[part]
    other = other - 1
    return Blocks(
        np.asarray(of).reshape(-1).astype(np.int64),
        at,
        np.where(part == SEND, other, -1),
        np.where(part == RECEIVE, other, -1),
        np.where(part == LOCAL, 0, where),
    )


def shared(made: Blocks, most: int, steps: int) -> Blocks:
    """The same where no rank has more than ``most`` blocks, as far as that goes: a block that sends and one that
    receives over the same channel become one, those with the fewest acts first, if they have ``steps`` together."""
    size = np.bincount(made.of, minlength=len(made.rank))
    into = np.arange(len(made.rank))
    for rank in np.flatnonzero(np.bincount(made.rank) > most).tolist():
        mine = np.flatnonzero(made.rank == rank)
        pairs = []
        for channel in np.unique(made.channel[mine]).tolist():
            here = mine[made.channel[mine] == channel]
            here = here[np.argsort(size[here], kind="stable")]
            sends = here[(made.send[here] >= 0) & (made.recv[here] < 0)]
            receives = here[(made.recv[here] >= 0) & (made.send[here] < 0)]
            count = min(len(sends), len(receives))
            together = size[sends[:count]] + size[receives[:count]]
            pairs += list(zip(together.tolist(), receives[:count].tolist(), sends[:count].tolist(), strict=True))
        for acts, receive, send in sorted(pairs)[: len(mine) - most]:
            if acts <= steps:
                into[send] = receive
    used, of = np.unique(into[made.of], return_inverse=True)
    send = np.full(len(made.rank), -1, dtype=np.int64)
    sending = made.send >= 0
    send[into[sending]] = made.send[sending]
    return Blocks(of.reshape(-1), made.rank[used], send[used], made.recv[used], made.channel[used])


def _nth(rank: IntArray, which: IntArray) -> IntArray:
    """How many of ``which`` come before each on its rank."""
    found = np.zeros(len(rank), dtype=np.int64)
    rows = np.flatnonzero(which)
    order = rows[np.argsort(rank[rows], kind="stable")]
    here = rank[order]
    begin = np.searchsorted(here, here)
    found[order] = np.arange(len(order)) - begin
    return found
