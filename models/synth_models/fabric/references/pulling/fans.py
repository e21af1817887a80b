"""Trees for switches that copy: one sending of a piece serves every rank that the switches on its way can reach.

A *fan* is what leaves a rank over one of its links: an out-tree through switches to ranks. Every piece grows a tree of
fans from its origin, at each step the one of least (arrival + ``thrift`` times the link seconds it takes for a rank
that it serves), where waiting counts by what links are wanted for already; with much thrift a piece passes a slow link
once and is copied on the other side. Order in time is list scheduling, the longest way to go first.

Only where a switch may send what has arrived over several links (``copies``, or ``multicast``), and only for data that
all want: nothing adds up in a switch, so there is no reversal.

Complexity: per piece fans x (holders x links of a fan).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.parts.chunks import seconds
from synth_models.fabric.parts.timing import Transfers, timed
from synth_models.fabric.references.pulling.board import rows_of
from synth_models.fabric.references.pulling.game import cut_blocks
from synth_models.fabric.references.pulling.tries import Tries
from synth_models.fabric.solution import IntArray

SPREADING = ("allgather", "broadcast")
THRIFT = (1e4, 30.0, 0.0)
MOST_CHUNKS = 64
MOST_TRANSFERS = 60_000  # hops of a schedule
WORK = 4e8  # looks at a link that the trees of one schedule may take
WORTH = 0.998  # more pieces are tried while they bring at least this


@dataclass(frozen=True, eq=False)
class Fans:
    """Fan f is ``link[start[f]:start[f + 1]]``, ``parent`` the place within the fan of the link before each (-1: the
    first). ``row[v]:row[v + 1]``: the fans that leave node v."""

    start: IntArray
    link: IntArray
    parent: IntArray
    row: IntArray

    @classmethod
    def of(cls, instance: FabricInstance) -> Fans:
        """By breadth first search from every link that leaves a rank."""
        machine = instance.machine
        net, switch = machine.network, machine.is_switch.tolist()
        src, dst = net.src.tolist(), net.dst.tolist()
        row, out = rows_of(net.src, machine.nodes)
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
            np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
        )  # fmt: skip


def fits(instance: FabricInstance) -> bool:
    """Whether switches copy here, and all want all."""
    rules = instance.switching
    copies = rules.copies if rules.mode == "store_and_forward" else rules.multicast
    return copies and instance.collective in SPREADING and bool(instance.machine.is_switch.any())


def fanned(tries: Tries) -> None:
    """Offer schedules of fans: several numbers of pieces, several thrifts."""
    instance = tries.instance
    fans = Fans.of(instance)
    look = len(instance.machine.network.src) * len(instance.members) + len(fans.link)
    thrifts: tuple[float, ...] = THRIFT
    before, chunks = float("inf"), 1
    least = int(instance.blocks.bytes.min())
    while chunks <= min(least, MOST_CHUNKS) and chunks * len(instance.blocks) * look <= WORK:
        if chunks > 1 and chunks * len(instance.blocks) * len(instance.members) > MOST_TRANSFERS:
            return
        took = []
        for thrift in thrifts:
            if tries.over():
                return
            took.append((_try(tries, fans, chunks, thrift), thrift))
        now = min(took)[0]
        if chunks >= 8:
            if now > before * WORTH:
                return
            thrifts = (min(took)[1],)
        before = min(before, now)
        chunks *= 2


def _try(tries: Tries, fans: Fans, chunks: int, thrift: float) -> float:
    instance = tries.instance
    transfers = _transfers(instance, fans, chunks, thrift, tries.options.seed)
    if not len(transfers.piece):
        return float("inf")
    schedule = timed(instance, transfers)
    tries.offer(schedule, f"{chunks} pieces a block, copied in switches")
    return float(seconds(instance, schedule))


def _transfers(instance: FabricInstance, fans: Fans, chunks: int, thrift: float, seed: int) -> Transfers:
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
        fans.start, fans.link, fans.parent, fans.row, net.dst.astype(np.int64), net.latency.astype(np.float64),
        net.bandwidth.astype(np.float64), wants, instance.switching.mode == "store_and_forward",
        instance.blocks.origin[block], size.astype(np.float64), thrift, most,
    )  # fmt: skip
    before_start = np.concatenate([[0], np.cumsum(came >= 0)]).astype(np.int64)
    by = np.lexsort((nth[piece], -tail))
    priority = np.empty(len(piece), dtype=np.int64)
    priority[by] = np.arange(len(by))
    return Transfers(
        block, size, piece, np.zeros(len(piece), dtype=bool), priority, row, link, before_start, came[came >= 0]
    )


@jit
def _grown(
    fan_start: Any,
    fan_link: Any,
    fan_parent: Any,
    fan_row: Any,
    dst: Any,
    latency: Any,
    bandwidth: Any,
    wants: Any,
    hop_by_hop: Any,
    origin: Any,
    size: Any,
    thrift: Any,
    most: Any,
) -> Any:
    """Piece, links (as rows) and predecessor (-1: none) of every sending, and the seconds that it and what follows from
    it take; nothing where some rank cannot be reached."""
    nodes, links = len(wants), len(dst)
    widest = 1
    for f in range(len(fan_start) - 1):
        widest = max(widest, fan_start[f + 1] - fan_start[f])
    piece, came, tail = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most)
    follows = np.zeros(most)
    row = np.zeros(most + 1, np.int64)
    flat = np.zeros(1024, np.int64)
    sent = 0
    load = np.zeros(links)
    hold, by, holders = np.zeros(nodes), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    missing = np.zeros(nodes, np.bool_)
    used, offset, long = np.zeros(widest, np.bool_), np.zeros(widest), np.zeros(widest)
    for p in range(len(origin)):
        left, first = 0, sent
        for v in range(nodes):
            missing[v] = wants[v] and v != origin[p]
            left += missing[v]
        holders[0], count = origin[p], 1
        hold[origin[p]], by[origin[p]] = 0.0, -1
        while left:
            best, best_fan, best_start, source = np.inf, -1, 0.0, -1
            for h in range(count):
                u = holders[h]
                for f in range(fan_row[u], fan_row[u + 1]):
                    a, n = fan_start[f], fan_start[f + 1] - fan_start[f]
                    if hold[u] >= best:
                        break
                    served = _shape(
                        fan_link, fan_parent, a, n, dst, latency, bandwidth, missing, hop_by_hop, size[p],
                        used, offset, long,
                    )  # fmt: skip
                    if not served:
                        continue
                    wait, arrival, cost = 0.0, 0.0, 0.0
                    for k in range(n):
                        if used[k]:
                            e = fan_link[a + k]
                            wait = max(wait, load[e])
                            arrival = max(arrival, offset[k] + latency[e] + long[k])
                            cost += size[p] / bandwidth[e]
                    key = hold[u] + wait + arrival + thrift * cost / served
                    if key < best:
                        best, best_fan, best_start, source = key, f, hold[u] + wait, u
            if best_fan < 0:
                return piece[:0], row[:1], flat[:0], came[:0], tail[:0]
            a, n = fan_start[best_fan], fan_start[best_fan + 1] - fan_start[best_fan]
            _shape(
                fan_link, fan_parent, a, n, dst, latency, bandwidth, missing, hop_by_hop, size[p], used, offset, long
            )
            piece[sent], came[sent], row[sent + 1] = p, by[source], row[sent]
            for k in range(n):
                if not used[k]:
                    continue
                e = fan_link[a + k]
                if row[sent + 1] == len(flat):
                    flat = np.concatenate((flat, np.zeros(len(flat), np.int64)))
                flat[row[sent + 1]] = e
                row[sent + 1] += 1
                load[e] += size[p] / bandwidth[e]
                after = offset[k] + latency[e] + long[k]
                tail[sent] = max(tail[sent], after)
                v = dst[e]
                if missing[v]:
                    missing[v] = False
                    left -= 1
                    hold[v], by[v] = best_start + after, sent
                    holders[count] = v
                    count += 1
            sent += 1
        for i in range(sent - 1, first - 1, -1):  # a predecessor comes before what follows from it
            tail[i] += follows[i]
            if came[i] >= 0:
                follows[came[i]] = max(follows[came[i]], tail[i])
    return piece[:sent].copy(), row[: sent + 1].copy(), flat[: row[sent]].copy(), came[:sent].copy(), tail[:sent].copy()


@jit
def _shape(
    fan_link: Any,
    fan_parent: Any,
    a: Any,
    n: Any,
    dst: Any,
    latency: Any,
    bandwidth: Any,
    missing: Any,
    hop_by_hop: Any,
    size: Any,
    used: Any,
    offset: Any,
    long: Any,
) -> Any:
    """Which links of a fan lead to ranks that miss the piece, when each is reached and how long it (and, cut through,
    the slowest before it) takes, in seconds; returns how many ranks are served."""
    served = 0
    for k in range(n):
        used[k] = missing[dst[fan_link[a + k]]]
        served += used[k]
    if not served:
        return 0
    for k in range(n - 1, 0, -1):
        if used[k]:
            used[fan_parent[a + k]] = True
    for k in range(n):
        e, q = fan_link[a + k], fan_parent[a + k]
        long[k] = size / bandwidth[e]
        offset[k] = 0.0
        if q >= 0:
            offset[k] = offset[q] + latency[fan_link[a + q]]
            if hop_by_hop:
                offset[k] += long[q]
            else:
                long[k] = max(long[k], long[q])
    return served
