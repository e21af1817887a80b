"""Routes cut into pieces of whole bytes and into hops from rank to rank: what is to be scheduled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.programs.flow.flow_routes import FlowPaths
from synth_models.fabric.scheduling.transfers import Transfers


@dataclass(frozen=True, eq=False)
class PathShares:
    """Bytes of every block on every one of its pair's paths that carries any: ``block``, ``path``, ``bytes``, shape
    (parts,); and the paths cut at ranks: hop h of path i is ``hop_start[first_hop[i] + h]`` …, in positions of
    ``routes.link``."""

    routes: FlowPaths
    block: IntArray
    path: IntArray
    bytes: IntArray
    first_hop: IntArray
    hop_start: IntArray


@dataclass(frozen=True, eq=False)
class Pieces:
    """A plan cut into pieces. Per piece: ``part``, ``bytes``, ``turn`` (its number within its part) and ``turns`` (how
    many that part has). Per transfer: ``piece`` and ``hop``. ``hops`` per piece."""

    plan: PathShares
    part: IntArray
    bytes: IntArray
    turn: IntArray
    turns: IntArray
    hops: IntArray
    piece: IntArray
    hop: IntArray


def planned(instance: FabricInstance, routes: FlowPaths, whole: bool = False) -> PathShares:
    """Every block dealt out to its pair's paths by largest remainders; ``whole``: all of it on its widest path."""
    blocks, nodes = instance.blocks, instance.machine.nodes
    pair = routes.source * nodes + routes.goal
    wanted = blocks.origin * nodes + blocks.goal
    first, last = np.searchsorted(pair, wanted), np.searchsorted(pair, wanted, side="right")
    if whole:
        last = first + 1
    count = last - first
    block = np.repeat(np.arange(len(blocks)), count)
    path = _ranges(first, count)
    total = blocks.bytes[block]
    exact = np.ones(len(path)) * total if whole else routes.share[path] * total
    amount = np.minimum(np.floor(exact).astype(np.int64), total)
    missing = blocks.bytes - np.bincount(block, amount, len(blocks)).astype(np.int64)
    # the bytes that rounding left over go one by one to the largest remainders of each block
    place = np.empty(len(path), dtype=np.int64)
    order = np.lexsort((-(exact - amount), block))
    begin = np.concatenate([[0], np.cumsum(count)[:-1]])
    place[order] = np.arange(len(path)) - begin[block[order]]
    each, more = np.divmod(missing, np.maximum(count, 1))
    amount += each[block] + (place < more[block])
    keep = amount > 0
    first_hop, hop_start = _hops(instance, routes)
    return PathShares(routes, block[keep], path[keep], amount[keep], first_hop, hop_start)


def cut(plan: PathShares, most_bytes: float) -> Pieces:
    """Pieces of at most ``most_bytes`` (at least 1), those of one part nearly equal."""
    turns = np.maximum(1, -(-plan.bytes // max(1, int(most_bytes))))
    part = np.repeat(np.arange(len(plan.bytes)), turns)
    turn = np.arange(len(part)) - np.repeat(np.cumsum(turns) - turns, turns)
    small, more = np.divmod(plan.bytes, turns)
    size = small[part] + (turn < more[part])
    hops = np.diff(plan.first_hop)[plan.path[part]]
    piece = np.repeat(np.arange(len(part)), hops)
    hop = np.arange(len(piece)) - np.repeat(np.cumsum(hops) - hops, hops)
    return Pieces(plan, part, size, turn, turns[part], hops, piece, hop)


def transfers(pieces: Pieces, priority: IntArray | None = None) -> Transfers:
    """The pieces' hops as transfers: each waits for the hop before it. Without ``priority`` all have the same."""
    plan = pieces.plan
    at = plan.first_hop[plan.path[pieces.part[pieces.piece]]] + pieces.hop
    length = plan.hop_start[at + 1] - plan.hop_start[at]
    hops = starts(length), plan.routes.link[_ranges(plan.hop_start[at], length)]
    after = np.where(pieces.hop > 0, np.arange(-1, len(at) - 1), -1)
    order = 0 if priority is None else priority
    return Transfers.of_rows(plan.block[pieces.part], pieces.bytes, pieces.piece, hops, before=after, priority=order)


def _hops(instance: FabricInstance, routes: FlowPaths) -> tuple[IntArray, IntArray]:
    """First hop of every path, shape (paths + 1,), and first link of every hop, shape (hops + 1,)."""
    stops = ~instance.machine.is_switch[instance.machine.network.dst[routes.link]]
    ends = np.flatnonzero(stops) + 1
    return np.searchsorted(ends, routes.start, side="right"), np.concatenate([[0], ends]).astype(np.int64)


def _ranges(first: IntArray, count: IntArray) -> IntArray:
    start = np.cumsum(count) - count
    return np.repeat(first - start, count) + np.arange(int(count.sum()))
