"""Trees for switches that copy: one transfer of a piece serves every rank that its switches can reach.

A *multicast tree* is what leaves a rank over one of its links: an out-tree through switches to ranks. Every piece is
sent over one tree after the other, from its origin on: at each step the one of least arrival plus ``thrift`` times the
link seconds for a rank that it serves, where waiting counts by what links are wanted for already. With much thrift a
piece passes a slow link once and is copied on the other side. List scheduling orders them in time, the longest
remaining path first.

Only where a switch may send what has arrived over several links (``copies``, or ``multicast``), and only for data that
all want: nothing adds up in a switch, so there is no reversal.

Complexity: per piece trees x (holders x links of a tree).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.graph.rows import rows_by
from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.references.pull.tree_search import cut_blocks
from synth_models.fabric.references.pull.tuned import COPYING_WORK, MOST_COPIED_CHUNKS, MOST_COPIES, THRIFT
from synth_models.fabric.scheduling.chunks import seconds
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.transfers import Transfers

SPREADING = ("allgather", "broadcast")


class MulticastTrees(NamedTuple):
    """Tree f is ``link[start[f]:start[f + 1]]``, ``parent`` the place within the tree of the link before each (-1: the
    first). ``row[v]:row[v + 1]``: the trees that leave node v."""

    start: IntArray
    link: IntArray
    parent: IntArray
    row: IntArray

    @classmethod
    def of(cls, instance: FabricInstance) -> MulticastTrees:
        """By breadth first search from every link that leaves a rank."""
        machine = instance.machine
        net, switch = machine.network, machine.is_switch.tolist()
        src, dst = net.src.tolist(), net.dst.tolist()
        row, out = rows_by(net.src, machine.nodes)
        rows, order = row.tolist(), out.tolist()
        start, link, parent, count = [0], list[int](), list[int](), [0] * machine.nodes
        for first in order:  # in order of the node that they leave
            if switch[src[first]]:
                continue
            count[src[first]] += 1
            tree, above, seen = [first], [-1], {src[first], dst[first]}
            for place, e in enumerate(tree):
                v = dst[e]
                if switch[v]:
                    for f in order[rows[v] : rows[v + 1]]:
                        if dst[f] not in seen:
                            seen.add(dst[f])
                            tree.append(f)
                            above.append(place)
            link.extend(tree)
            parent.extend(above)
            start.append(len(link))
        return cls(
            np.array(start, dtype=np.int64), np.array(link, dtype=np.int64), np.array(parent, dtype=np.int64),
            starts(count),
        )  # fmt: skip


def fits(instance: FabricInstance) -> bool:
    """Whether switches copy here, and all want all. A switch that stores without buffer copies at one moment, which
    links that take turns cannot."""
    rules, machine = instance.switching, instance.machine
    stores = rules.mode == "store_and_forward"
    at_once = stores and not rules.buffer and np.any(machine.group[machine.is_switch[machine.network.src]] >= 0)
    copies = not at_once if stores and rules.copies else rules.multicast and not stores
    return copies and instance.collective in SPREADING and bool(machine.is_switch.any())


def offer_multicast(incumbent: Incumbent) -> None:
    """Offer schedules over multicast trees: several numbers of pieces, several thrifts."""
    instance = incumbent.instance
    trees = MulticastTrees.of(instance)
    look = len(instance.machine.network.src) * len(instance.members) + len(trees.link)
    thrifts: tuple[float, ...] = THRIFT
    before, chunks = float("inf"), 1
    least = int(instance.blocks.bytes.min())
    while chunks <= min(least, MOST_COPIED_CHUNKS) and chunks * len(instance.blocks) * look <= COPYING_WORK:
        if chunks > 1 and chunks * len(instance.blocks) * len(instance.members) > MOST_COPIES:
            return
        took = []
        for thrift in thrifts:
            if incumbent.over():
                return
            took.append((_try(incumbent, trees, chunks, thrift), thrift))
        now = min(took)[0]
        if chunks >= 8:
            if now > before:
                return
            thrifts = (min(took)[1],)
        before = min(before, now)
        chunks *= 2


def _try(incumbent: Incumbent, trees: MulticastTrees, chunks: int, thrift: float) -> float:
    instance = incumbent.instance
    transfers = _transfers(instance, trees, chunks, thrift, incumbent.options.seed)
    if not len(transfers.piece):
        return float("inf")
    schedule = timed(instance, transfers)
    incumbent.offer(schedule, f"{chunks} pieces a block, copied in switches")
    return float(seconds(instance, schedule))


def _transfers(instance: FabricInstance, trees: MulticastTrees, chunks: int, thrift: float, seed: int) -> Transfers:
    """Every piece's tree, the first pieces of all blocks first; blocks in random order."""
    block, size = cut_blocks(instance.blocks.bytes, chunks)
    nth = np.concatenate([np.arange(n) for n in np.bincount(block)])
    random = np.random.default_rng([seed, chunks])
    order = np.lexsort((random.permutation(int(block.max()) + 1)[block], nth))
    block, size, nth = block[order], size[order], nth[order]
    net, wants = instance.machine.network, np.zeros(instance.machine.nodes, dtype=bool)
    wants[list(instance.members)] = True
    most = len(block) * (len(instance.members) - 1)
    piece, row, link, came, tail = _grown(
        trees,
        Links(
            net.dst.astype(np.int64),
            net.latency.astype(np.float64),
            net.bandwidth.astype(np.float64),
            instance.switching.mode == "store_and_forward",
        ),
        wants,
        instance.blocks.origin[block],
        size.astype(np.float64),
        thrift,
        most,
    )
    by = np.lexsort((nth[piece], -tail))
    priority = np.empty(len(piece), dtype=np.int64)
    priority[by] = np.arange(len(by))
    return Transfers.of_rows(block, size, piece, (row, link), before=came, priority=priority)


class Links(NamedTuple):
    """``dst``, ``latency`` (s) and ``bandwidth`` (bytes/s) of every link, shape (links,); ``hop_by_hop``: whether
    switches store and forward."""

    dst: IntArray
    latency: FloatArray
    bandwidth: FloatArray
    hop_by_hop: bool


class Part(NamedTuple):
    """The part of a tree that serves somebody: by place in the tree whether the link is ``used``, when it is reached,
    ``offset``, and how long it (and, cut through, the slowest before it) takes, ``long`` (s). Shape (widest tree,)."""

    used: BoolArray
    offset: FloatArray
    long: FloatArray


class Spread(NamedTuple):
    """How far a piece has come. Ranks that hold it: the first ``known[0]`` of ``holders``, since ``hold`` (s) and from
    the sending ``by``; ``missing``: who wants it still. Shape (nodes,). ``load``: seconds that pieces so far use every
    link, shape (links,)."""

    holders: IntArray
    known: IntArray
    hold: FloatArray
    by: IntArray
    missing: BoolArray
    load: FloatArray


@jit
def _grown(
    trees: MulticastTrees, links: Links, wants: BoolArray, origin: IntArray, size: FloatArray, thrift: float, most: int
) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray]:
    """Piece, links (as rows) and predecessor (-1: none) of every sending, and the seconds that it and what follows from
    it take; nothing where some rank cannot be reached."""
    nodes = len(wants)
    widest = 1
    for f in range(len(trees.start) - 1):
        widest = max(widest, trees.start[f + 1] - trees.start[f])
    piece, came, tail = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most)
    follows = np.zeros(most)
    row = np.zeros(most + 1, np.int64)
    flat = np.zeros(1024, np.int64)
    sent: Any = np.int64(0)  # a constant would have what takes it compiled twice
    spread = Spread(
        np.zeros(nodes, np.int64), np.zeros(1, np.int64), np.zeros(nodes), np.zeros(nodes, np.int64),
        np.zeros(nodes, np.bool_), np.zeros(len(links.dst)),
    )  # fmt: skip
    part = Part(np.zeros(widest, np.bool_), np.zeros(widest), np.zeros(widest))
    for p in range(len(origin)):
        left, first = 0, sent
        for v in range(nodes):
            spread.missing[v] = wants[v] and v != origin[p]
            left += spread.missing[v]
        spread.holders[0], spread.known[0] = origin[p], 1
        spread.hold[origin[p]], spread.by[origin[p]] = 0.0, -1
        while left:
            best, start, source = _cheapest(trees, links, spread, part, size[p], thrift)
            if best < 0:
                return piece[:0], row[:1], flat[:0], came[:0], tail[:0]
            a, n = trees.start[best], trees.start[best + 1] - trees.start[best]
            _find_part(trees, links, spread.missing, best, size[p], part)
            piece[sent], came[sent], row[sent + 1] = p, spread.by[source], row[sent]
            while row[sent] + n > len(flat):
                flat = np.concatenate((flat, np.zeros(len(flat), np.int64)))
            for k in range(n):
                if not part.used[k]:
                    continue
                e = trees.link[a + k]
                flat[row[sent + 1]] = e
                row[sent + 1] += 1
                after = part.offset[k] + links.latency[e] + part.long[k]
                tail[sent] = max(tail[sent], after)
                left -= _arrive(links, spread, e, size[p], start + after, sent)
            sent += 1
        for i in range(sent - 1, first - 1, -1):  # a predecessor comes before what follows from it
            tail[i] += follows[i]
            if came[i] >= 0:
                follows[came[i]] = max(follows[came[i]], tail[i])
    return piece[:sent].copy(), row[: sent + 1].copy(), flat[: row[sent]].copy(), came[:sent].copy(), tail[:sent].copy()


@jit
def _cheapest(
    trees: MulticastTrees, links: Links, spread: Spread, part: Part, size: float, thrift: float
) -> tuple[int, float, int]:
    """The tree of least arrival and price, when it starts (s) and from whom; -1 if none serves anybody."""
    best, best_tree, best_start, source = np.inf, -1, 0.0, -1
    for h in range(spread.known[0]):
        u = spread.holders[h]
        for f in range(trees.row[u], trees.row[u + 1]):
            if spread.hold[u] >= best:
                break
            served = _find_part(trees, links, spread.missing, f, size, part)
            if not served:
                continue
            wait, arrival, cost = 0.0, 0.0, 0.0
            for k in range(trees.start[f + 1] - trees.start[f]):
                if part.used[k]:
                    e = trees.link[trees.start[f] + k]
                    wait = max(wait, spread.load[e])
                    arrival = max(arrival, part.offset[k] + links.latency[e] + part.long[k])
                    cost += size / links.bandwidth[e]
            key = spread.hold[u] + wait + arrival + thrift * cost / served
            if key < best:
                best, best_tree, best_start, source = key, f, spread.hold[u] + wait, u
    return best_tree, best_start, source


@jit
def _arrive(links: Links, spread: Spread, e: int, size: float, when: float, sent: int) -> int:
    """Note that the piece crosses link e, and holders that this makes; how many."""
    spread.load[e] += size / links.bandwidth[e]
    v = links.dst[e]
    if not spread.missing[v]:
        return 0
    spread.missing[v] = False
    spread.hold[v], spread.by[v] = when, sent
    spread.holders[spread.known[0]] = v
    spread.known[0] += 1
    return 1


@jit
def _find_part(trees: MulticastTrees, links: Links, missing: BoolArray, f: int, size: float, part: Part) -> int:
    """Write the part of tree f that leads to ranks that miss the piece; returns how many these are."""
    a, n = trees.start[f], trees.start[f + 1] - trees.start[f]
    used, offset, long = part.used, part.offset, part.long
    served = 0
    for k in range(n):
        used[k] = missing[links.dst[trees.link[a + k]]]
        served += used[k]
    if not served:
        return 0
    for k in range(n - 1, 0, -1):
        if used[k]:
            used[trees.parent[a + k]] = True
    for k in range(n):
        e, q = trees.link[a + k], trees.parent[a + k]
        long[k] = size / links.bandwidth[e]
        offset[k] = 0.0
        if q >= 0:
            offset[k] = offset[q] + links.latency[trees.link[a + q]]
            if links.hop_by_hop:
                offset[k] += long[q]
            else:
                long[k] = max(long[k], long[q])
    return served
