"""Method ``symmetric`` (reference, ours): one origin's trees and timetable, moved to every other by the symmetries.

Where the steps along a grid carry the machine into itself (tori, rings, hypercubes), every rank sees the same: its
links differ by direction only. One origin's data are spread greedily: whenever a direction is free, it takes the next
node that has a chunk and whose neighbour there lacks it. Moved to all origins at once this loads all links of a
direction at the same moments, so that no two origins meet on a link and every link works until the end. Allgather so
takes ``(n - 1) / degree`` sends of a block, rounded up, and two latencies more; the bound is the same without them.

Broadcast on tori goes along :func:`synth.graph.torus_trees.disjoint_trees`, one for each direction, made shallow
(:mod:`synth.graph.shallow_trees`: a step or two beyond the diameter), each with its share of the data in chunks: with k
chunks and depth d ``(k + d) M / (degree k b)`` and d latencies. Reduce-scatter and reduce
are these backwards; allreduce is both, for shares of the buffer that each have a rank as root.

Complexity: N searches through N nodes a chunk for one origin; N^2 transfers a chunk, made as arrays.

``quotient`` keeps one origin's transfers and the symmetries only
(:mod:`.origin_part`), on machines of equal boxes as well; then the time is that of the
cut into a rank or a box but for the first block's latency and last hop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.graph.shallow_trees import shallower
from synth.graph.torus_trees import depths, disjoint_trees
from synth.method import Outcome
from synth.network.symmetry import translations
from synth.options import RunOptions
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.cuts import cut_bound
from synth_models.fabric.bounds.gossip import messages_of_boxes, quick_bound
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.instance import FabricInstance, several_boxes
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.plans.out_trees import SPREADING, SUMMING, empty, refusal
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.references.symmetric.half_exchange import half_exchange, halves_of, sends_of_share
from synth_models.fabric.references.symmetric.one_origin import NOBODY, directions, one_origin
from synth_models.fabric.references.symmetric.origin_part import Group, group_of, origin_part
from synth_models.fabric.references.symmetric.tuned import (
    MOST_CHUNKS,
    MOST_IN_QUOTIENTS,
    MOST_LOOKED_AT,
    MOST_MEMBERS,
    MOST_OF_ORIGIN,
    MOST_TRANSFERS,
    SAVES,
    SEVERAL,
)
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.back_and_forth import TIMED_AGAIN, again
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.moves import pieces_of
from synth_models.fabric.scheduling.reversal import joined, reversed_instance, reversed_transfers
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import MOST_EXPANDED, Quotient, Schedule

KNOWN = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")
ROOTED_TREES = ("broadcast", "reduce")


class Neighbours(NamedTuple):
    """Links by direction: ``image[v]`` is the symmetry that carries node 0 to v, shape (nodes, nodes); the link out of
    v in every direction and the node that it leads to, shape (nodes, directions)."""

    image: IntArray
    link: IntArray
    target: IntArray


def propose(instance: FabricInstance, options: RunOptions, _: Incumbent) -> Outcome:
    """Method ``symmetric`` in its race."""
    return solve(instance, options)


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``symmetric`` alone."""
    wanted = options.method.get("quotient")
    if wanted or (wanted is None and needs_quotient(instance)):
        return _by_quotient(instance, options)
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
    variants = [chunks.Variant(partial(scheduled, instance), first, most, partial(_amount, instance), MOST_TRANSFERS)]
    made = halves_of(instance)
    if made is not None:
        spread = partial(half_exchange, instance, where.image, where.link, where.target)
        amount = partial(int.__mul__, sends_of_share(made) * len(instance.members))
        variants.insert(0, chunks.Variant(spread, 1, most, amount, MOST_TRANSFERS))
    least = quick_bound(instance)
    found = chunks.most_promising(instance, options, variants, least)
    assert found is not None
    number, count, schedule = found
    better = again(instance, options, schedule, least)
    how = "along trees that share no link" if rooted else "every origin alike"
    how = "pairs exchange, then two halves sum up and spread" if number < len(variants) - 1 else how
    words = f"{how}, {chunks.in_words(count)}{TIMED_AGAIN if better is not schedule else ''}{chunks.hurried(options)}"
    return Outcome("finished", solution=better, message=words)


def needs_quotient(instance: FabricInstance) -> bool:
    """Whether all transfers are too many, or are only made by boxes and so only modulo their symmetries."""
    if instance.collective in ROOTED_TREES:
        return False
    boxes = bool(instance.machine.is_switch.any()) and several_boxes(instance)
    return boxes or len(instance.members) > MOST_MEMBERS


def _by_quotient(instance: FabricInstance, options: RunOptions) -> Outcome:
    """One origin's transfers and the group, with the cut that bounds them."""
    known = tuple(name for name in KNOWN if name not in ROOTED_TREES)
    refused = refusal(instance, known, "symmetric as a quotient", MOST_IN_QUOTIENTS)
    if refused is not None:
        return refused
    n = len(instance.members)
    if n == 1:
        return empty(instance)
    if instance.bytes % n:
        return Outcome("unsupported", message=f"{instance.bytes} bytes are not {n} equal shares")
    group = group_of(instance)
    best = _best_quotient(instance, options, group)
    orders = " x ".join(map(str, group.orders.tolist()))
    message = f"every origin alike under {orders} symmetries, {chunks.in_words(len(best.part.piece_block))}"
    message += chunks.hurried(options)
    bound = cut_around_box(instance)
    if bound is None:
        return Outcome("finished", solution=best, message=message)
    return Outcome("finished", best, float_below(bound.seconds), str(bound), bound.certificate(), message)


def _best_quotient(instance: FabricInstance, options: RunOptions, group: Group) -> Quotient:
    """The quotient of the best power of two of chunks; one that can be listed where one chunk's can be."""
    n = len(instance.members)
    twice, switches = instance.collective == "allreduce", bool(instance.machine.is_switch.any())
    most = MOST_EXPANDED // n if n * n <= MOST_EXPANDED else MOST_OF_ORIGIN
    best, ticks = origin_part(instance, group, 1)
    least, count = ticks / best.part.ticks_per_s, 2
    _hold(options, best, least)
    while count <= min(MOST_CHUNKS, instance.bytes // n) and n * count * (1 + twice) <= most:
        if options.out_of_time() or (not switches and (n * count) ** 2 > MOST_LOOKED_AT):
            break
        found, ticks = origin_part(instance, group, count)
        seconds = ticks / found.part.ticks_per_s
        if seconds > least * (1 - SAVES):
            break
        best, least, count = found, seconds, 2 * count
        _hold(options, best, least)
    return best


def _hold(options: RunOptions, found: Quotient, seconds: float) -> None:
    """Hand it over in case that the time limit ends the run."""
    options.held.offer(lambda: found, seconds, chunks.in_words(len(found.part.piece_block)))


def cut_around_box(instance: FabricInstance) -> Proven | None:
    """The stronger of the cuts around the first box and around its first rank, in the direction of the collective;
    of an allreduce what messages between boxes or ranks take."""
    if instance.collective == "allreduce":
        return messages_of_boxes(instance)
    links = Links.of(instance)
    links = links.reverse if instance.collective == "reduce_scatter" else links
    members = np.zeros(links.nodes, dtype=bool)
    members[links.members] = True
    found = []
    for part in (instance.boxes[0], instance.members[:1]):
        if len(part) < len(instance.members):
            goals = np.zeros(links.nodes, dtype=bool)
            goals[list(part)] = True
            inside = goals.copy()  # and the switches that are joined to these ranks alone
            joined = np.zeros(links.nodes, dtype=bool)
            joined[links.src[~goals[links.dst]]] = joined[links.dst[~goals[links.src]]] = True
            inside |= links.is_switch & ~joined
            cut = cut_bound(links, ~inside, members & ~goals, goals)
            found += [cut] if cut is not None else []
    return max(found, key=lambda cut: cut.seconds, default=None)


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
    link = directions(net)
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


@cache
def _trees(sides: tuple[int, ...]) -> IntArray:
    """Trees of a torus that share no arc, as shallow as they are made: few more steps than its diameter."""
    return shallower(disjoint_trees(sides))


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
    sends = one_origin(where.target, seconds, net.latency[where.link[0]].astype(float), each)
    piece = piece_of[:, sends.chunk].T  # (sends, origins)
    link = where.link[where.image[:, sends.source].T, sends.direction[:, None]]
    keep = (piece != NOBODY).ravel()
    number = np.cumsum(keep) - 1
    after = np.where(sends.after[:, None] == NOBODY, NOBODY, sends.after[:, None] * n + np.arange(n)).ravel()[keep]
    route = np.arange(len(after) + 1), link.ravel()[keep]
    after = np.where(after == NOBODY, NOBODY, number[after])
    return Transfers.of_rows(block, size, piece.ravel()[keep], route, before=after)


def _from_one(instance: FabricInstance, sizes: list[list[int]]) -> Transfers:
    """Pieces of one rank to all others, dealt out to the trees in turn."""
    net, n = instance.machine.network, instance.machine.nodes
    assert net.grid is not None
    where = neighbours(instance)
    assert where is not None
    trees = _trees(net.grid)
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
    route, turns = (np.arange(len(after) + 1), link[tree].ravel()), turn[:, None] * (int(depth.max()) + 1) + level[tree]
    return Transfers.of_rows(0, row, np.repeat(piece, n - 1), route, before=after, priority=turns.ravel())
