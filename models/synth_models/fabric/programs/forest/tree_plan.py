"""From trees to transfers: what every tree sends in which order, cut into pieces and given priorities.

:class:`PackedTrees` say of every tree its edges (capacity from one member to another, up or down) and which edges each
one waits for; pieces of a tree's share all take the same edges, each over one of the routes that the capacity is made
of, dealt out in proportion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.kernels import jit
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import picked, starts
from synth_models.fabric.scheduling.transfers import Transfers

Options = list[tuple[int, tuple[int, ...]]]  # amounts and routes, in proportion to which pieces are dealt out


class TreeEdge(NamedTuple):
    """Capacity from one member to another that a tree uses: its routes, whether what comes is added to what is there,
    and the edges of the tree that it waits for."""

    options: Options
    adds: bool
    before: tuple[int, ...]


@dataclass
class PackedTrees:
    """``trees``: block, weight within the block, and edges, each after those that it waits for."""

    blocks: list[int] = field(default_factory=list)
    weights: list[Fraction] = field(default_factory=list)
    edges: list[list[TreeEdge]] = field(default_factory=list)

    def add(self, block: int, weight: Fraction, edges: list[TreeEdge]) -> None:
        """One tree more."""
        self.blocks.append(block)
        self.weights.append(weight)
        self.edges.append(edges)

    @property
    def hops(self) -> int:
        """The most edges that wait for each other."""
        most = 0
        for edges in self.edges:
            level: list[int] = []
            for edge in edges:
                level.append(1 + max((level[i] for i in edge.before), default=0))
            most = max(most, max(level, default=0))
        return most


def down(parent: Sequence[int], options: dict[tuple[int, int], Options], nodes: Sequence[int]) -> list[TreeEdge]:
    """The edges of an out-tree, the root's first."""
    children: dict[int, list[int]] = {}
    for v, p in enumerate(parent):
        children.setdefault(int(p), []).append(v)
    edges: list[TreeEdge] = []
    queue = [(v, -1) for v in children.get(-1, [])]
    for u, entered in queue:
        for v in children.get(u, []):
            queue.append((v, len(edges)))
            edges.append(TreeEdge(options[nodes[u], nodes[v]], False, (entered,) if entered >= 0 else ()))
    return edges


def up(parent: Sequence[int], options: dict[tuple[int, int], Options], nodes: Sequence[int]) -> list[TreeEdge]:
    """The edges of an in-tree, the root's last; ``options[parent, child]`` are the routes from the child."""
    below: dict[int, list[int]] = {}
    children: dict[int, list[int]] = {}
    for v, p in enumerate(parent):
        children.setdefault(int(p), []).append(v)
    order = list(children.get(-1, []))
    for u in order:
        order.extend(children.get(u, []))
    edges: list[TreeEdge] = []
    for v in reversed(order):
        p = int(parent[v])
        if p >= 0:
            below.setdefault(p, []).append(len(edges))
            edges.append(TreeEdge(options[nodes[p], nodes[v]], True, tuple(below.get(v, ()))))
    return edges


def up_and_down(inward: list[TreeEdge], outward: list[TreeEdge]) -> list[TreeEdge]:
    """An in-tree and then an out-tree from its root; the root's first edges wait for all that enter it."""
    needed = {i for edge in inward for i in edge.before}
    last = tuple(i for i in range(len(inward)) if i not in needed)
    shift = len(inward)
    return inward + [
        edge._replace(before=tuple(i + shift for i in edge.before) if edge.before else last) for edge in outward
    ]


@dataclass
class Table:
    """A plan as flat arrays, made once for all numbers of chunks. Edges between the same two members share
    the routes of the capacity between them, which are one list."""

    block: IntArray
    weight: list[Fraction]
    tree_start: IntArray  # edges of a tree
    adds: BoolArray
    before_start: IntArray
    before: IntArray  # numbers within the tree
    pair: IntArray  # capacity that an edge uses
    option_start: IntArray  # options of a capacity
    amount: IntArray
    route_start: IntArray  # links of an option
    link: IntArray
    tail: IntArray  # longest time from an edge's start to the end of its tree: latencies (ns), and
    drain: IntArray  # bytes' times: ns for 2**20 bytes


class _Capacity(NamedTuple):
    """Capacity between two members in a :class:`Table`: its number, its least latency (ns), and how long its slowest
    link takes for 2**20 bytes (ns)."""

    number: int
    latency: float
    slowness: float


def table_of(plan: PackedTrees, machine: Machine) -> Table:
    """Flat arrays of a plan."""
    latency = (machine.network.latency * 1e9).tolist()
    slowness = (2**20 / machine.network.bandwidth * 1e9).tolist()
    tree_start, before_start, option_start, route_start = [0], [0], [0], [0]
    adds: list[bool] = []
    before: list[int] = []
    amount: list[int] = []
    link: list[int] = []
    tails: list[float] = []
    drains: list[float] = []
    pairs: list[int] = []
    seen: dict[int, _Capacity] = {}
    for edges in plan.edges:
        for options, adding, waits in edges:
            adds.append(adding)
            before.extend(waits)
            before_start.append(len(before))
            if id(options) not in seen:
                for share, route in options:
                    amount.append(share)
                    link.extend(route)
                    route_start.append(len(link))
                option_start.append(len(amount))
                seen[id(options)] = _Capacity(
                    len(seen),
                    min(sum(latency[e] for e in route) for _, route in options),
                    max(max(slowness[e] for e in route) for _, route in options),
                )
            pairs.append(seen[id(options)].number)
        tree_start.append(len(adds))
        tail, drain = [0.0] * len(edges), [0.0] * len(edges)
        for i in range(len(edges) - 1, -1, -1):
            own = seen[id(edges[i].options)]
            tail[i] += own.latency
            drain[i] += own.slowness
            for j in edges[i].before:
                tail[j], drain[j] = max(tail[j], tail[i]), max(drain[j], drain[i])
        tails.extend(tail)
        drains.extend(drain)
    return Table(
        block=np.array(plan.blocks, dtype=np.int64),
        weight=plan.weights,
        tree_start=np.array(tree_start, dtype=np.int64),
        adds=np.array(adds, dtype=bool),
        before_start=np.array(before_start, dtype=np.int64),
        before=np.array(before, dtype=np.int64),
        pair=np.array(pairs, dtype=np.int64),
        option_start=np.array(option_start, dtype=np.int64),
        amount=np.array(amount, dtype=np.int64),
        route_start=np.array(route_start, dtype=np.int64),
        link=np.array(link, dtype=np.int64),
        tail=np.array(tails).astype(np.int64),
        drain=np.array(drains).astype(np.int64),
    )


def pieces_of(table: Table, block_bytes: IntArray, per_block: float) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cut every block into about ``per_block`` pieces, every tree's share evenly.

    Returns tree, bytes, number within its tree and how many the tree has, per piece; sizes differ by a byte where the
    numbers allow it.
    """
    rows: list[tuple[int, int, int, int]] = []
    for block in np.unique(table.block).tolist():
        trees = np.flatnonzero(table.block == block).tolist()
        size = int(block_bytes[block])
        total = sum(table.weight[t] for t in trees)
        passed, done = Fraction(0), 0
        for t in trees:
            passed += table.weight[t]
            upto = int(size * passed / total) if t != trees[-1] else size
            share = upto - done
            count = min(share, max(1, round(per_block * float(table.weight[t] / total))))
            for i in range(count):
                rows.append((t, (i + 1) * share // count - i * share // count, i, count))
            done = upto
    found = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return found[:, 0], found[:, 1], found[:, 2], found[:, 3]


def transfers_of(
    table: Table, block_bytes: IntArray, per_block: float, fluid_ns: float, haste: float
) -> tuple[Transfers, IntArray]:
    """The transfers of all pieces, and the edge of each one.

    Priority: the moment at which a piece of its number would start if all flowed evenly, less ``haste`` times what is
    still before it down its tree.
    """
    tree, size, number, count = pieces_of(table, block_bytes, per_block)
    edges = np.diff(table.tree_start)[tree]
    first = starts(edges)
    edge, option = _edges_and_options(tree, size, first, table.tree_start, table.pair, table.option_start, table.amount)
    piece = np.repeat(np.arange(len(tree), dtype=np.int64), edges)
    before_start, before = picked((table.before_start, table.before), edge)
    before = before + np.repeat(first[piece], np.diff(before_start))
    due = (number[piece] / count[piece]) * fluid_ns
    rest = table.tail[edge] + table.drain[edge] * (size[piece] / 2**20)
    with np.errstate(over="ignore", invalid="ignore"):  # links that no clock can time; the schedule is refused later
        urgency = np.nan_to_num((due - haste * rest) * 16)
    priority = np.clip(urgency, -(2.0**62), 2.0**62).astype(np.int64)
    rows = table.block[tree], size, piece, picked((table.route_start, table.link), option)
    adds = table.adds[edge]
    return Transfers.of_rows(*rows, before=(before_start, before), priority=priority, adds=adds), edge


@jit
def _edges_and_options(
    tree: IntArray,
    size: IntArray,
    first: IntArray,
    tree_start: IntArray,
    pair: IntArray,
    option_start: IntArray,
    amount: IntArray,
) -> tuple[IntArray, IntArray]:
    """Edge and route of every transfer: at every edge the option that is most behind its share takes the piece."""
    total = first[-1]
    edge = np.empty(total, dtype=np.int64)
    option = np.empty(total, dtype=np.int64)
    credit = np.zeros(len(amount), dtype=np.float64)
    for p in range(len(tree)):
        base = tree_start[tree[p]]
        for k in range(first[p + 1] - first[p]):
            m = base + k
            a, b = option_start[pair[m]], option_start[pair[m] + 1]
            best = a
            if b - a > 1:
                whole = 0.0
                for o in range(a, b):
                    whole += amount[o]
                for o in range(a, b):
                    credit[o] += size[p] * amount[o] / whole
                    if credit[o] > credit[best] + 1e-9:
                        best = o
                credit[best] -= size[p]
            edge[first[p] + k] = m
            option[first[p] + k] = best
    return edge, option


def seconds_of(plan: PackedTrees, machine: Machine, block_bytes: IntArray) -> Fraction:
    """Seconds that the plan's fluid takes: the time of its busiest link, exactly."""
    total: dict[int, Fraction] = {}
    for block, weight in zip(plan.blocks, plan.weights, strict=True):
        total[block] = total.get(block, Fraction(0)) + weight
    used: dict[int, Fraction] = {}
    options_of: dict[int, Options] = {}
    for block, weight, edges in zip(plan.blocks, plan.weights, plan.edges, strict=True):
        share = int(block_bytes[block]) * weight / total[block]
        for edge in edges:
            used[id(edge.options)] = used.get(id(edge.options), Fraction(0)) + share
            options_of[id(edge.options)] = edge.options
    load: dict[int, Fraction] = {}
    for key, amount in used.items():
        whole = sum(part for part, _ in options_of[key])
        for part, route in options_of[key]:
            for e in route:
                load[e] = load.get(e, Fraction(0)) + amount * part / whole
    net, group = machine.network, machine.group
    times = {e: amount / exact(float(net.bandwidth[e])) for e, amount in load.items()}
    turns: dict[int, Fraction] = {}
    for e, took in times.items():
        if group[e] >= 0:
            turns[int(group[e])] = turns.get(int(group[e]), Fraction(0)) + took
    return max([*times.values(), *turns.values()], default=Fraction(0))


def stopping_at_ranks(transfers: Transfers, machine: Machine) -> Transfers:
    """The transfers, those whose routes pass ranks (relays) as one transfer from rank to rank after the other."""
    inner = ~machine.is_switch[machine.network.dst[transfers.link]]
    inner[transfers.route_start[1:] - 1] = False
    if not inner.any():
        return transfers
    cuts = np.flatnonzero(inner) + 1
    route_start = np.sort(np.concatenate([transfers.route_start, cuts]))
    owner = np.searchsorted(transfers.route_start, route_start[:-1], side="right") - 1
    first = np.searchsorted(owner, np.arange(len(transfers.piece)), side="left")
    last = np.searchsorted(owner, np.arange(len(transfers.piece)), side="right") - 1
    before: list[IntArray] = []
    for i, who in enumerate(owner.tolist()):
        if i == first[who]:
            before.append(last[transfers.before[transfers.before_start[who] : transfers.before_start[who + 1]]])
        else:
            before.append(np.array([i - 1], dtype=np.int64))
    priority = transfers.priority[owner] * (int(np.bincount(owner).max()) + 1) + np.arange(len(owner)) - first[owner]
    routes, waits = (route_start, transfers.link), (starts([len(row) for row in before]), np.concatenate(before))
    rows = transfers.piece_block, transfers.piece_bytes, transfers.piece[owner], routes
    return Transfers.of_rows(*rows, before=waits, priority=priority, adds=transfers.adds[owner])
