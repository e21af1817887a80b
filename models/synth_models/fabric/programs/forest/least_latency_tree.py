"""Trees for small messages: the routes of least latency from every root, with the load spread over equal links."""

from __future__ import annotations

import heapq
from collections import defaultdict

import numpy as np

from synth.arrays import FloatArray
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.programs.forest.tree_plan import TreeEdge


def least_latency_tree(
    machine: Machine, members: list[int], root: int, size: int, load: dict[int, float]
) -> list[TreeEdge]:
    """The edges of an out-tree of least arrival times (Dijkstra) for ``size`` bytes, each after those it waits for.

    A rank forwards what it has whole; switches cut through. ``load``: seconds that links are already wanted for, which
    count as waiting; the tree's own are added. Ranks that are no members may be passed, and branches that reach
    no member are cut.
    """
    net = machine.network
    src, switch = net.src.tolist(), machine.is_switch.tolist()
    took = (size / net.bandwidth).tolist()
    arrival, entered = _earliest(machine, root, took, load)
    edges: list[TreeEdge] = []
    number: dict[int, int] = {}
    for v in _branches(members, root, arrival, {v: src[e] for v, e in entered.items()}):
        if switch[v]:
            continue
        route, u = [], v
        while True:
            e = entered[u]
            route.append(e)
            load[e] = load.get(e, 0.0) + took[e]
            u = src[e]
            if not switch[u]:
                break
        number[v] = len(edges)
        edges.append(TreeEdge([(1, tuple(reversed(route)))], False, (number[u],) if u in number else ()))
    return edges


def _earliest(
    machine: Machine, root: int, took: list[float], load: dict[int, float]
) -> tuple[FloatArray, dict[int, int]]:
    """When every node can have what the root sends, s, shape (nodes,), and the link by which it comes. ``took``:
    seconds on every link."""
    net = machine.network
    out: dict[int, list[int]] = defaultdict(list)
    for e, u in enumerate(net.src.tolist()):
        out[u].append(e)
    dst, switch, latency = net.dst.tolist(), machine.is_switch.tolist(), net.latency.tolist()
    arrival: FloatArray = np.full(machine.nodes, np.inf)
    entered: dict[int, int] = {}
    queue: list[tuple[float, int, float, int]] = [(0.0, root, 0.0, -1)]  # time, node, the slowest link so far, link
    done: set[int] = set()
    while queue:
        now, u, slowest, link = heapq.heappop(queue)
        if u in done:
            continue
        done.add(u)
        if link >= 0:
            entered[u] = link
        if not switch[u]:
            slowest = 0.0  # all of it is here
        for e in out[u]:
            v = dst[e]
            when = now + latency[e] + max(took[e] - slowest, 0.0) + load.get(e, 0.0)
            if v not in done and when < arrival[v]:
                arrival[v] = when
                heapq.heappush(queue, (when, v, max(slowest, took[e]), e))
    return arrival, entered


def _branches(members: list[int], root: int, arrival: FloatArray, parent: dict[int, int]) -> list[int]:
    """The nodes on paths to members, each after its parent, those of early arrival first."""
    needed: set[int] = set()
    order: list[int] = []
    for member in sorted(members, key=lambda v: (arrival[v], v)):
        path, u = [], member
        while u != root and u not in needed:
            path.append(u)
            u = parent[u]
        needed.update(path)
        order.extend(reversed(path))
    return order
