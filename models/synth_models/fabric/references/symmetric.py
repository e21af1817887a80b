"""Method ``symmetric`` (reference, ours): one origin's trees and timetable, moved to every other by the symmetries.

Where the steps along a grid carry the machine into itself (tori, rings, hypercubes), every rank sees the same: its
links differ by direction only. One origin's data are spread greedily: whenever a direction is free, it takes the next
node that has a chunk and whose neighbour there lacks it. Moved to all origins at once this loads all links of a
direction at the same moments, so that no two origins meet on a link and every link works until the end. Allgather so
takes ``(n - 1) / degree`` sends of a block, rounded up, and two latencies more; the bound is the same without them.

Broadcast on tori goes along :func:`synth.graph.torus_trees.disjoint_trees`, one for each direction, each with its share
of the data in chunks: with k chunks and depth d ``(k + d) M / (degree k b)`` and d latencies. Reduce-scatter and reduce
are these backwards; allreduce is both, for shares of the buffer that each have a rank as root.

Complexity: N searches through N nodes a chunk for one origin; N^2 transfers a chunk, made as arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.family import Outcome
from synth.graph.torus_trees import depths, disjoint_trees
from synth.kernels import jit
from synth.network.symmetry import translations
from synth.options import RunOptions
from synth_models.fabric.bounds.cuts import quick_cut
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.out_trees import SPREADING, SUMMING, empty, refusal
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import Transfers, timed
from synth_models.fabric.scheduling.moves import pieces_of
from synth_models.fabric.scheduling.reversal import joined, reversed_instance, reversed_transfers
from synth_models.fabric.solution import Schedule

KNOWN = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")
ROOTED_TREES = ("broadcast", "reduce")
MOST_TRANSFERS = 7_000_000
MOST_CHUNKS = 4096
MOST_MEMBERS = 2048
SEVERAL = 4
NOBODY = -1


class Neighbours(NamedTuple):
    """Links by direction: ``image[v]`` is the symmetry that carries node 0 to v, shape (nodes, nodes); the link out of
    v in every direction and the node that it leads to, shape (nodes, directions)."""

    image: IntArray
    link: IntArray
    target: IntArray


class Spread(NamedTuple):
    """Sends of one origin's chunks in order of their start, shape (sends,) each: ``after`` is the send that brought the
    chunk to ``source``, :data:`NOBODY` at the origin."""

    chunk: IntArray
    source: IntArray
    direction: IntArray
    after: IntArray


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``symmetric``."""
    refused = refusal(instance, KNOWN, "symmetric", MOST_MEMBERS)
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    where = neighbours(instance)
    if where is None:
        return Outcome("unsupported", message="symmetric needs a torus, ring or hypercube, whole and all of it in use")
    rooted = instance.collective in ROOTED_TREES
    if rooted and not has_disjoint_trees(instance):
        return Outcome("unsupported", message="broadcast and reduce need a torus or ring of sides of at least 3")
    share = _parts(instance, 1)
    most = max(1, min(MOST_CHUNKS, int(instance.blocks.bytes.max()) // share))
    first = _first_chunks(instance, most)
    way = chunks.Way(partial(scheduled, instance), first, most, partial(_amount, instance), MOST_TRANSFERS)
    found = chunks.most_promising(instance, options, [way], quick_cut(instance).seconds)
    assert found is not None
    _, count, schedule = found
    how = "along trees that share no link" if rooted else "every origin alike"
    return Outcome("finished", solution=schedule, message=f"{how}, {chunks.in_words(count)}{chunks.hurried(options)}")


def neighbours(instance: FabricInstance) -> Neighbours | None:
    """The links of every node by direction, None where the steps along a grid are no symmetries or not all nodes are
    ranks of the group."""
    machine = instance.machine
    net = machine.network
    if machine.is_switch.any() or len(instance.members) < machine.nodes or (machine.group >= 0).any():
        return None
    image = translations(net)
    if image is None or net.links % net.nodes:
        return None
    back = np.argsort(image, axis=1)
    relative = back[net.src, net.dst]
    order = np.lexsort((np.arange(net.links), net.latency, net.bandwidth, relative, net.src))
    link = order.reshape(net.nodes, -1).astype(np.int64)
    return Neighbours(image, link, net.dst[link].astype(np.int64))


def has_disjoint_trees(instance: FabricInstance) -> bool:
    """Whether the machine is a torus (or ring) with the links that a torus has, and no short side."""
    sides, net = instance.machine.network.grid, instance.machine.network
    long = [side for side in sides or () if side > 1]
    return bool(long) and min(long) > 2 and net.links == 2 * len(long) * net.nodes


def scheduled(instance: FabricInstance, count: int) -> Schedule:
    """The schedule with ``count`` chunks a share."""
    parts = _parts(instance, count)
    spread: Callable[[FabricInstance, list[list[int]]], Transfers]
    spread = _from_one if instance.collective in ROOTED_TREES else _from_everyone
    sizes = [chunks.equal(int(size), parts) for size in instance.blocks.bytes]
    if instance.collective in SPREADING:
        return timed(instance, spread(instance, sizes), in_order=True)
    there = reversed_instance(instance)
    up = spread(there, sizes)
    back = reversed_transfers(there, up, timed(there, up, in_order=True))
    if instance.collective in SUMMING:
        return timed(instance, back, in_order=True)
    return timed(instance, joined(instance.machine, back, spread(instance, sizes)), in_order=True)


def _parts(instance: FabricInstance, count: int) -> int:
    """Pieces of a block: chunks, of every tree where there are several, of every rank's share in an allreduce."""
    net = instance.machine.network
    if instance.collective in ROOTED_TREES:
        return count * (net.links // net.nodes)
    return count * (len(instance.members) if instance.collective == "allreduce" else 1)


def _amount(instance: FabricInstance, count: int) -> int:
    """Transfers of a schedule with so many chunks."""
    n = len(instance.members)
    if instance.collective in ROOTED_TREES:
        return n * _parts(instance, count)
    return n * n * count * (2 if instance.collective == "allreduce" else 1)


def _first_chunks(instance: FabricInstance, most: int) -> int:
    """A number below the best: chunks that take several times as long on a link as its latency."""
    net = instance.machine.network
    if instance.collective not in ROOTED_TREES or not net.latency.max(initial=0.0):
        return 1
    share = float(instance.blocks.bytes[0]) / _parts(instance, 1)
    least = SEVERAL * float(net.bandwidth.min() * net.latency.max())
    return 1 << (max(1, min(most, int(share / least))).bit_length() - 1)


def _from_everyone(instance: FabricInstance, sizes: list[list[int]]) -> Transfers:
    """Pieces of every rank to all others: one origin's sends, moved to each."""
    where = neighbours(instance)
    assert where is not None
    net, n = instance.machine.network, instance.machine.nodes
    block, size = pieces_of(sizes)
    if len(sizes) == 1:  # an allreduce: every rank's share of one block
        each = -(-len(size) // n)
        piece_of = np.arange(each * n).reshape(each, n).T  # of rank and chunk
        piece_of = np.where(piece_of < len(size), piece_of, NOBODY)
    else:
        each = max(map(len, sizes))
        piece_of = np.full((n, each), NOBODY, dtype=np.int64)
        first = np.concatenate([[0], np.cumsum([len(row) for row in sizes])])
        for k, origin in enumerate(instance.blocks.origin.tolist()):
            piece_of[origin, : len(sizes[k])] = np.arange(first[k], first[k + 1])
    seconds = float(size.max()) / net.bandwidth[where.link[0]]
    sends = Spread(*_one_origin(where.target, seconds, net.latency[where.link[0]].astype(float), each))
    piece = piece_of[:, sends.chunk].T  # (sends, origins)
    link = where.link[where.image[:, sends.source].T, sends.direction[:, None]]
    keep = (piece != NOBODY).ravel()
    number = np.cumsum(keep) - 1
    after = np.where(sends.after[:, None] == NOBODY, NOBODY, sends.after[:, None] * n + np.arange(n)).ravel()[keep]
    waits = after != NOBODY
    count = int(keep.sum())
    return Transfers(
        block,
        size,
        piece.ravel()[keep],
        np.zeros(count, dtype=bool),
        np.arange(count, dtype=np.int64),
        np.arange(count + 1, dtype=np.int64),
        link.ravel()[keep],
        np.concatenate([[0], np.cumsum(waits)]).astype(np.int64),
        number[after[waits]],
    )


@jit
def _one_origin(
    target: IntArray, seconds: FloatArray, latency: FloatArray, chunks_each: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Columns of :class:`Spread` from node 0. ``seconds``, ``latency``: of a chunk, by direction."""
    n, directions = target.shape
    total = (n - 1) * chunks_each
    chunk, source, direction, after = np.empty((4, total), dtype=np.int64)
    came = np.full((chunks_each, n), np.inf)
    came[:, 0] = 0.0
    brought = np.full((chunks_each, n), NOBODY, dtype=np.int64)
    free = np.zeros(directions)
    for k in range(total):
        while True:
            d = int(np.argmin(free))
            begin, fresh, best_chunk, best = np.inf, -1, -1, -1
            for c in range(chunks_each):
                for u in range(n):
                    v = target[u, d]
                    soonest = max(came[c, u], free[d])
                    if came[c, v] < np.inf or came[c, u] == np.inf or soonest > begin:
                        continue
                    lacking = 0
                    for way in range(directions):
                        lacking += came[c, target[v, way]] == np.inf
                    if soonest < begin or lacking > fresh:
                        begin, fresh, best_chunk, best = soonest, lacking, c, u
            if begin == free[d]:
                break
            free[d] = begin  # nothing to send before; another direction may be free sooner
        v = target[best, d]
        came[best_chunk, v] = begin + seconds[d] + latency[d]
        free[d] = begin + seconds[d]
        chunk[k], source[k], direction[k], after[k] = best_chunk, best, d, brought[best_chunk, best]
        brought[best_chunk, v] = k
    return chunk, source, direction, after


def _from_one(instance: FabricInstance, sizes: list[list[int]]) -> Transfers:
    """Pieces of one rank to all others, dealt out to the trees in turn."""
    net, n = instance.machine.network, instance.machine.nodes
    assert net.grid is not None
    where = neighbours(instance)
    assert where is not None
    trees = disjoint_trees(net.grid)
    depth, root = depths(trees), int(instance.blocks.origin[0])
    (row,) = sizes
    link_to = {(int(u), int(v)): e for e, (u, v) in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True))}
    links, waits_for, levels = [], [], []
    for parent, hops in zip(trees, depth, strict=True):
        order = np.argsort(hops, kind="stable")[1:]
        place = np.full(n, NOBODY, dtype=np.int64)
        place[order] = np.arange(n - 1)
        moved = where.image[root]
        ends = zip(moved[parent[order]].tolist(), moved[order].tolist(), strict=True)
        links.append([link_to[pair] for pair in ends])
        waits_for.append(place[parent[order]])
        levels.append(hops[order])
    link, before, level = np.array(links, dtype=np.int64), np.stack(waits_for), np.stack(levels)
    piece = np.arange(len(row), dtype=np.int64)
    tree, turn = piece % len(trees), piece // len(trees)
    after = np.where(before[tree] == NOBODY, NOBODY, before[tree] + piece[:, None] * (n - 1)).ravel()
    waits: BoolArray = after != NOBODY
    count = len(after)
    return Transfers(
        np.zeros(len(row), dtype=np.int64),
        np.array(row, dtype=np.int64),
        np.repeat(piece, n - 1),
        np.zeros(count, dtype=bool),
        (turn[:, None] * (int(depth.max()) + 1) + level[tree]).ravel(),
        np.arange(count + 1, dtype=np.int64),
        link[tree].ravel(),
        np.concatenate([[0], np.cumsum(waits)]).astype(np.int64),
        after[waits],
    )
