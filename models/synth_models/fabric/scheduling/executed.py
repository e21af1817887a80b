"""The time of an executor's program whose thread blocks, steps and launch cost something.

The statement is that of :mod:`synth.exchange.block_costs`. One event a step and pass of the program's loop, in the
order in which steps become ready; links serve sends in that order. Complexity: n log n in steps times passes; where
these are more than :data:`MOST_EVENTS`, a first part of the passes is run, and the others take as long as its second
half did, a pass each.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.errors import InputError
from synth.exchange import order, places
from synth.exchange.algorithm import KINDS, Algorithm
from synth.exchange.block_costs import Costs
from synth.exchange.places import ADDING, SENDING
from synth.graph.rows import rows_by
from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.routes.search import Route, Routes
from synth_models.fabric.scheduling.transfers import Transfers

MOST_EVENTS = 60_000
LEAST_PASSES = 4  # that are run where there are too many
MOST_PASSES = 1 << 20
NOP = KINDS.index("nop")


class Links(NamedTuple):
    """Of every way, as rows ``start``: the ``resource`` (a link, or a group behind the links) that it takes, ``after``
    so many seconds and ``after_bytes`` seconds a byte, for ``seconds`` a byte; shape (uses,). Of every way, shape
    (ways,): ``latency``, ``between``: whether it leads to another box."""

    start: IntArray
    resource: IntArray
    after: FloatArray
    after_bytes: FloatArray
    seconds: FloatArray
    latency: FloatArray
    between: BoolArray


class Steps(NamedTuple):
    """Steps as the replay has them, shape (steps,) each: ``size`` in bytes of a pass, ``took``: seconds of the data at
    the block's rate, ``step``: beside that, ``share`` of the data that the first slice is, ``hop``: until it is there
    when it has been sent; ``way`` of a send, -1 for none; ``missing``: how many steps it waits for in the first pass;
    ``to``: who receives its message, ``wraps``: who is the block's first where it is the last, -1 for nobody;
    ``opens``: whether it is a block's first. ``after[after_start[i]:after_start[i + 1]]``: who waits for it, each
    until ``lag`` seconds behind its data."""

    size: FloatArray
    took: FloatArray
    step: FloatArray
    share: FloatArray
    hop: FloatArray
    way: IntArray
    missing: IntArray
    after_start: IntArray
    after: IntArray
    lag: FloatArray
    to: IntArray
    wraps: IntArray
    opens: BoolArray


class _Shape(NamedTuple):
    """What no cost changes of an algorithm on an instance: its messages and waits; of every connection, in the order of
    their numbers, the ``routes`` and whether it leads ``far``, to another box; ``way``: the connection of every step
    that sends, -1 for none."""

    messages: order.Messages
    waits: order.Before
    routes: list[list[Route]]
    far: list[bool]
    way: IntArray


SHAPED = ("tb_rank", "tb_send", "tb_channel", "step_start", "kind", "count", "dep_tb", "dep_step")
_last: tuple[FabricInstance, Algorithm, _Shape] | None = None


def executed(instance: FabricInstance, a: Algorithm, part_bytes: int, costs: Costs) -> float:
    """Seconds of a valid algorithm on parts of so many bytes. Raises :class:`InputError` where a chunk has no byte, and
    as :meth:`Routes.hops`."""
    if part_bytes < a.chunks:
        raise InputError(f"a part of {part_bytes} bytes cannot be cut into {a.chunks} chunks")
    passes = 1 if not costs.pass_bytes else min(max(1, -(-part_bytes // (a.chunks * costs.pass_bytes))), MOST_PASSES)
    shape = _shape(instance, a)
    links = links_of(instance, shape.routes, shape.far, costs)
    steps = _program(a, shape, links, part_bytes / a.chunks / passes, costs)
    resources = instance.machine.links + len(instance.machine.group_names)
    most = max(MOST_EVENTS // max(a.steps, 1), LEAST_PASSES)
    if passes <= most:
        return costs.launch + _end(steps, links, resources, passes)
    half = most // 2
    early, late = _end(steps, links, resources, half), _end(steps, links, resources, most)
    return costs.launch + late + (passes - most) * (late - early) / (most - half)


def executed_moves(instance: FabricInstance, placed: Transfers, block: IntArray, costs: Costs) -> float:
    """Seconds of moves that thread blocks make, each block in the order of the list; ``block`` of every move, -1 for
    none. A move that waits for others waits until all of what they bring is there, and has been added."""
    count = len(placed.piece)
    if not count:
        return costs.launch
    links, way = _routes(instance, placed, costs)
    size = placed.piece_bytes[placed.piece].astype(np.float64)
    order_of = np.argsort(block, kind="stable")
    same = (block[order_of[1:]] == block[order_of[:-1]]) & (block[order_of[1:]] >= 0)
    before, behind = order_of[:-1][same], order_of[1:][same]
    waited, waiting = placed.before, np.repeat(np.arange(count), np.diff(placed.before_start))
    hop = np.maximum(links.latency[way], np.where(links.between[way], max(costs.net_step, costs.step), costs.step))
    row, at = rows_by(np.concatenate([before, waited]), count)
    arrives = hop + np.where(placed.adds, size / costs.sum, 0.0)
    lag = np.concatenate([np.full(len(before), costs.step), arrives[waited]])[at]
    missing = np.bincount(np.concatenate([behind, waiting]), minlength=count).astype(np.int64)
    nobody, never = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=bool)
    steps = Steps(
        size, size / costs.block, arrives, np.ones(count), hop, way, missing, row,
        np.concatenate([behind, waiting]).astype(np.int64)[at], lag, nobody, nobody, never,
    )  # fmt: skip
    return costs.launch + _end(steps, links, instance.machine.links + len(instance.machine.group_names), 1)


def _routes(instance: FabricInstance, placed: Transfers, costs: Costs) -> tuple[Links, IntArray]:
    """The different routes of moves, trees among them, and that of every move."""
    number: dict[bytes, int] = {}
    edges = [placed.link[placed.route_start[i] : placed.route_start[i + 1]] for i in range(len(placed.piece))]
    way = np.array([number.setdefault(route.tobytes(), len(number)) for route in edges], dtype=np.int64)
    _, first = np.unique(way, return_index=True)
    routes = [tuple(edges[i].tolist()) for i in first.tolist()]
    net = instance.machine.network
    pairs = [(int(net.src[route[0]]), int(net.dst[route[-1]])) for route in routes]
    return links_of(instance, [[route] for route in routes], far_apart(instance, pairs), costs), way


def _end(steps: Steps, links: Links, resources: int, passes: int) -> float:
    found = _replayed(steps, links, resources, passes)
    if found < 0:
        raise InputError("steps wait for each other")
    return float(found)


def _shape(instance: FabricInstance, a: Algorithm) -> _Shape:
    """That of an algorithm, kept of the last one: every protocol asks for it in turn."""
    global _last
    if _last is not None:
        asked, alike, shape = _last
        if asked is instance and all(getattr(alike, name) is getattr(a, name) for name in SHAPED):
            return shape
    shape = _shaped(instance, a)
    _last = instance, a, shape
    return shape


def _shaped(instance: FabricInstance, a: Algorithm) -> _Shape:
    at = places.steps(a)
    messages = order.messages(a, at)
    sends = np.flatnonzero(SENDING[a.kind])
    block = at.block[sends]
    channels = int(a.tb_channel.max(initial=0)) + 1
    keys = (a.tb_rank[block] * a.ranks + a.tb_send[block]) * channels + a.tb_channel[block]
    found, first, of = np.unique(keys, return_index=True, return_inverse=True)
    src, dst = np.divmod(found // channels, a.ranks)
    way = np.full(a.steps, -1, dtype=np.int64)
    way[sends] = of
    amount = np.bincount(of, weights=a.count[sends], minlength=len(found))
    routes = Routes.of(instance, max(1, instance.bytes // max(a.chunks, 1)))
    chosen: dict[int, list[Route]] = {}
    for k in np.argsort(first, kind="stable").tolist():
        ends = instance.members[int(src[k])], instance.members[int(dst[k])]
        direct = routes.direct(*ends)
        chosen[k] = routes.hops(*ends) if direct is None else [direct]
        for route in chosen[k]:
            routes.take(route, int(amount[k]))
    pairs = [(instance.members[u], instance.members[v]) for u, v in zip(src.tolist(), dst.tolist(), strict=True)]
    ways = [chosen[k] for k in range(len(pairs))]
    return _Shape(messages, order.before(a, at, messages), ways, far_apart(instance, pairs), way)


def far_apart(instance: FabricInstance, pairs: list[tuple[int, int]]) -> list[bool]:
    """Whether the nodes of each pair are ranks of different boxes; where no boxes are stated, all are of one."""
    box = {rank: number for number, ranks in enumerate(instance.boxes) for rank in ranks}
    return [instance.hosts > 1 and box[u] != box[v] for u, v in pairs]


def links_of(instance: FabricInstance, ways: list[list[Route]], between: list[bool], costs: Costs) -> Links:
    """What ways over routes (trees among them), one after the other, take of the links."""
    rows: list[tuple[int, float, float, float]] = []
    start, totals = [0], []
    known: dict[tuple[tuple[Route, ...], bool], tuple[list[tuple[int, float, float, float]], float]] = {}
    for way, far in zip(ways, between, strict=True):
        if (key := (tuple(way), far)) not in known:
            known[key] = _uses(instance, way, far, costs)
        rows += known[key][0]
        start.append(len(rows))
        totals.append((known[key][1], far))
    links, after_s, after_byte, seconds = zip(*rows, strict=True) if rows else ((), (), (), ())
    latency, apart = zip(*totals, strict=True) if totals else ((), ())
    return Links(
        np.array(start, dtype=np.int64),
        np.array(links, dtype=np.int64),
        np.array(after_s, dtype=np.float64),
        np.array(after_byte, dtype=np.float64),
        np.array(seconds, dtype=np.float64),
        np.array(latency, dtype=np.float64),
        np.array(apart, dtype=bool),
    )


def _uses(
    instance: FabricInstance, way: list[Route], far: bool, costs: Costs
) -> tuple[list[tuple[int, float, float, float]], float]:
    """The rows of :class:`Links` that a way has, and its latency."""
    machine = instance.machine
    net, group, is_switch = machine.network, machine.group, machine.is_switch
    rows: list[tuple[int, float, float, float]] = []
    after, after_bytes = 0.0, 0.0
    for route in way:
        ranks = [v for e in route for v in (int(net.src[e]), int(net.dst[e])) if not is_switch[v]]
        share = (costs.net if far else costs.link) * (costs.switch if len(ranks) > 2 else 1.0)
        least = max(1 / (float(net.bandwidth[e]) * share) for e in route)
        come: dict[int, float] = {}
        for e in route:
            late = come.get(int(net.src[e]), 0.0)
            resource = int(e) if group[e] < 0 else machine.links + int(group[e])
            rows.append((resource, after + late, after_bytes, 1 / (float(net.bandwidth[e]) * share)))
            come[int(net.dst[e])] = max(come.get(int(net.dst[e]), 0.0), late + float(net.latency[e]))
        after, after_bytes = after + max(come.values()), after_bytes + least
    return rows, after


def _program(a: Algorithm, shape: _Shape, links: Links, chunk: float, costs: Costs) -> Steps:
    """The steps with what they take; a chunk has so many bytes in a pass."""
    messages, waits, way = shape.messages, shape.waits, shape.way
    size = np.where(a.kind == NOP, 0.0, a.count * chunk)
    hop, step = np.zeros(a.steps), np.where(a.kind == NOP, 0.0, costs.step)
    sends = np.flatnonzero(way >= 0)
    far = links.between[way[sends]]
    hop[sends] = np.maximum(links.latency[way[sends]], np.where(far, max(costs.net_step, costs.step), costs.step))
    share = np.ones(a.steps) if not costs.slice_bytes else np.minimum(1.0, costs.slice_bytes / np.maximum(size, 1e-9))
    to, wraps = np.full((2, a.steps), -1, dtype=np.int64)
    to[messages.send] = messages.recv
    behind = np.concatenate([np.flatnonzero(rows >= 0) for rows in (waits.same, waits.dep)])
    before = np.concatenate([rows[rows >= 0] for rows in (waits.same, waits.dep)])
    row, turn = rows_by(before, a.steps)
    missing = (waits.same >= 0).astype(np.int64) + (waits.dep >= 0) + (waits.message >= 0)
    filled = np.flatnonzero(np.diff(a.step_start))
    first, last = a.step_start[:-1][filled], a.step_start[1:][filled] - 1
    wraps[last] = first
    opens = np.zeros(a.steps, dtype=bool)
    opens[first] = True
    took = size / np.where(ADDING[a.kind], costs.sum, costs.block)
    return Steps(size, took, step, share, hop, way, missing, row, behind[turn], step[before[turn]], to, wraps, opens)


@jit
def _replayed(steps: Steps, links: Links, resources: int, passes: int) -> float:
    """When all is over; less than 0 where steps wait for each other."""
    size, way, to, wraps, hop = steps.size, steps.way, steps.to, steps.wraps, steps.hop
    count = len(size)
    waits, ready, there = np.zeros(count * passes, dtype=np.int64), np.zeros(count * passes), np.zeros(count * passes)
    for p in range(passes):
        for i in range(count):
            waits[p * count + i] = steps.missing[i] + (1 if p > 0 and steps.opens[i] else 0)
    done_by = np.zeros(resources)  # when every link has done its work
    heap: Any = [(0.0, np.int64(i)) for i in range(count) if waits[i] == 0]
    done, end = 0, 0.0
    while len(heap):
        now, node = heapq.heappop(heap)
        i = node % count
        base = node - i
        done += 1
        data = max(steps.took[i], there[node] - now)
        w = way[i]
        if w >= 0:
            for k in range(links.start[w], links.start[w + 1]):
                x, late = links.resource[k], links.after[k] + links.after_bytes[k] * size[i]
                done_by[x] = max(done_by[x], now + late) + links.seconds[k] * size[i]
                data = max(data, done_by[x] - late - now)
        end = max(end, now + data + steps.step[i])
        j = base + to[i]
        if to[i] >= 0:
            there[j] = now + data + hop[i]
            ready[j] = max(ready[j], now + data * steps.share[i] + hop[i])
            waits[j] -= 1
            if waits[j] == 0:
                heapq.heappush(heap, (ready[j], j))
        for k in range(steps.after_start[i], steps.after_start[i + 1]):
            j = base + steps.after[k]
            ready[j] = max(ready[j], now + data + steps.lag[k])
            waits[j] -= 1
            if waits[j] == 0:
                heapq.heappush(heap, (ready[j], j))
        j = base + count + wraps[i]
        if wraps[i] >= 0 and j < count * passes:
            ready[j] = max(ready[j], now + data + steps.step[i])
            waits[j] -= 1
            if waits[j] == 0:
                heapq.heappush(heap, (ready[j], j))
    return end if done == count * passes else -1.0
