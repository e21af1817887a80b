"""Trees for where latency rules: from every root the ways of least latency, spread over links alike."""

from __future__ import annotations

import heapq
from collections import defaultdict

import numpy as np

from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.programs.forest.plan import Move


def near_tree(machine: Machine, members: list[int], root: int, size: int, load: dict[int, float]) -> list[Move]:
    """The moves of an out-tree of least arrival times (Dijkstra) for ``size`` bytes, each after those it waits for.

    A rank forwards what it has whole; switches cut through. ``load``: seconds that links are already wanted for, which
    count as waiting; the tree's own are added. Ranks that are no members may be passed, and branches that serve
    nobody are cut.
    """
    net = machine.network
    out: dict[int, list[int]] = defaultdict(list)
    for e in range(net.links):
        out[int(net.src[e])].append(e)
    dst, switch = net.dst.tolist(), machine.is_switch.tolist()
    latency = net.latency.tolist()
    took = (size / net.bandwidth).tolist()
    best = np.full(machine.nodes, np.inf)
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
            if v not in done and when < best[v]:
                best[v] = when
                heapq.heappush(queue, (when, v, max(slowest, took[e]), e))
    needed: set[int] = set()
    order: list[int] = []
    for member in sorted(members, key=lambda v: (best[v], v)):
        path, u = [], member
        while u != root and u not in needed:
            path.append(u)
            u = int(net.src[entered[u]])
        needed.update(path)
        order.extend(reversed(path))
    moves: list[Move] = []
    number: dict[int, int] = {}
    for v in order:
        if switch[v]:
            continue
        route, u = [], v
        while True:
            e = entered[u]
            route.append(e)
            load[e] = load.get(e, 0.0) + took[e]
            u = int(net.src[e])
            if not switch[u]:
                break
        number[v] = len(moves)
        moves.append(([(1, tuple(reversed(route)))], False, (number[u],) if u in number else ()))
    return moves
