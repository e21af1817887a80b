"""From a flow to routes: paths per (source, goal) with shares, and their images under the symmetries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.graph.rows import rows_by
from synth.kernels import jit
from synth_models.fabric.plans.node_symmetries import Symmetries
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import picked
from synth_models.fabric.programs.flow.arcs import Arcs
from synth_models.fabric.programs.flow.model import Demand, Flow

SLIVER = 1e-9  # of the most bytes that a source sends to one goal: less is given to the pair's other routes


@dataclass(frozen=True, eq=False)
class FlowPaths:
    """Paths from sources to goals. ``source``, ``goal`` (nodes), ``share`` (of the pair's bytes, sums to 1 per pair),
    ``kind`` (equal for images of one path): shape (paths,). ``link[start[i]:start[i + 1]]``: the links of path i.
    Sorted by source, then goal."""

    source: IntArray
    goal: IntArray
    share: FloatArray
    kind: IntArray
    start: IntArray
    link: IntArray

    def __len__(self) -> int:
        return len(self.source)


def decomposed(arcs: Arcs, demand: Demand, flow: Flow) -> FlowPaths:
    """Paths of every commodity, the shortest first; bytes that go round in circles are left out."""
    source, goal, share, start, links = [], [], [], [np.zeros(1, dtype=np.int64)], []
    out_start, out_arc = rows_by(arcs.tail, arcs.states)
    total = 0
    for c, s in enumerate(demand.source.tolist()):
        ends, amounts, first, path = _paths(
            int(s),
            demand.bytes[c],
            flow.bytes[c],
            arcs.head,
            arcs.tail,
            arcs.states,
            out_start,
            out_arc,
            SLIVER * float(demand.bytes[c].max()),
        )
        if arcs.states > arcs.machine.nodes:
            first, path = _without_circles(arcs, first, path)
        source.append(np.full(len(ends), s, dtype=np.int64))
        goal.append(ends)
        share.append(amounts)
        start.append(first[1:] + total)
        links.append(arcs.link[path])
        total += len(path)
    goals, shares = np.concatenate(goal), np.concatenate(share)
    sources = np.concatenate(source)
    kinds = np.arange(len(goals), dtype=np.int64)
    return _sorted(FlowPaths(sources, goals, shares, kinds, np.concatenate(start), np.concatenate(links)), arcs)


def images(routes: FlowPaths, arcs: Arcs, group: Symmetries, sources: IntArray) -> FlowPaths:
    """The routes of every source: those of its orbit's representative, mapped by every symmetry that leads there."""
    if len(group) == 1:
        return routes
    reps, first = np.unique(routes.source, return_index=True)
    last = np.append(first[1:], len(routes))
    parts: list[tuple[IntArray, IntArray]] = []
    lengths = np.diff(routes.start)
    for rep, a, b in zip(reps.tolist(), first.tolist(), last.tolist(), strict=True):
        element = np.flatnonzero(np.isin(group.node[:, rep], sources))
        paths = np.arange(a, b)
        parts.append((np.repeat(element, len(paths)), np.tile(paths, len(element))))
    by, path = (np.concatenate(column) for column in zip(*parts, strict=True))
    several = np.bincount(group.node[:, reps].reshape(-1), minlength=arcs.machine.nodes)
    source = group.node[by, routes.source[path]]
    length = lengths[path]
    start = np.concatenate([[0], np.cumsum(length)])
    at = np.repeat(routes.start[path] - start[:-1], length) + np.arange(start[-1])
    link = group.link[np.repeat(by, length), routes.link[at]]
    share = routes.share[path] / several[source]
    return _sorted(FlowPaths(source, group.node[by, routes.goal[path]], share, routes.kind[path], start, link), arcs)


def load(routes: FlowPaths, machine: Machine, amount: FloatArray, cut_through: bool) -> FloatArray:
    """Seconds for which every resource is used, shape (resources,), if path i carries amount[i] bytes; a group that one
    transfer crosses twice is used for the longer time."""
    seconds = link_seconds(machine, routes, amount)
    groups = len(machine.group_names)
    if not groups:
        return seconds
    group = machine.group[routes.link]
    inside = np.flatnonzero(group >= 0)
    path = np.repeat(np.arange(len(routes)), np.diff(routes.start))
    ends = (
        ~machine.is_switch[machine.network.dst[routes.link]] if cut_through else np.ones(len(routes.link), dtype=bool)
    )
    hop = np.concatenate([[0], np.cumsum(ends)[:-1]])
    keys, at = np.unique(hop[inside] * groups + group[inside], return_inverse=True)
    longest = np.zeros(len(keys))
    np.maximum.at(longest, at, amount[path[inside]] / machine.network.bandwidth[routes.link[inside]])
    shared: FloatArray = np.bincount(keys % groups, longest, groups).astype(np.float64)
    return np.concatenate([seconds, shared])


def link_seconds(machine: Machine, routes: FlowPaths, amount: FloatArray) -> FloatArray:
    """Seconds for which every link is used, shape (links,), if path i carries amount[i] bytes."""
    each = np.repeat(amount, np.diff(routes.start)) / machine.network.bandwidth[routes.link]
    seconds: FloatArray = np.bincount(routes.link, each, machine.links).astype(np.float64)
    return seconds


def _sorted(routes: FlowPaths, arcs: Arcs) -> FlowPaths:
    """By source, goal, then share (the largest first); equal paths of a pair become one."""
    length = np.diff(routes.start)
    widest = int(length.max(initial=1))
    padded = np.full((len(routes), widest), -1, dtype=np.int64)
    row = np.repeat(np.arange(len(routes)), length)
    padded[row, np.arange(len(routes.link)) - routes.start[row]] = routes.link
    table = np.column_stack([routes.source, routes.goal, padded])
    order = np.lexsort(table.T[::-1])
    same = np.concatenate([[False], np.all(table[order][1:] == table[order][:-1], axis=1)])
    number = np.empty(len(routes), dtype=np.int64)
    number[order] = np.cumsum(~same) - 1
    first = order[~same]
    share = np.bincount(number, routes.share).astype(np.float64)
    source, goal = routes.source[first], routes.goal[first]
    pair = source * arcs.machine.nodes + goal
    share /= np.bincount(np.unique(pair, return_inverse=True)[1], share)[np.unique(pair, return_inverse=True)[1]]
    by = np.lexsort((routes.kind[first], -share, goal, source))
    kept = first[by]
    rows = picked((routes.start, routes.link), kept)
    return FlowPaths(source[by], goal[by], share[by], routes.kind[kept], *rows)


def _without_circles(arcs: Arcs, start: IntArray, path: IntArray) -> tuple[IntArray, IntArray]:
    """The paths without what lies between two visits of one node (in two states of it)."""
    kept: list[int] = []
    begins = [0]
    node = arcs.machine.network.dst[arcs.link]
    for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        simple: list[int] = []
        at: dict[int, int] = {}
        for arc in path[a:b].tolist():
            v = int(node[arc])
            if v in at:
                del simple[at[v] :]
                at = {u: place for u, place in at.items() if place <= at[v]}
            else:
                simple.append(arc)
                at[v] = len(simple)
        kept += simple
        begins.append(len(kept))
    return np.array(begins, dtype=np.int64), np.array(kept, dtype=np.int64)


@jit
def _paths(
    source: int,
    wanted: FloatArray,
    flow: FloatArray,
    head: IntArray,
    tail: IntArray,
    states: int,
    out_start: IntArray,
    out_arc: IntArray,
    sliver: float,
) -> tuple[IntArray, FloatArray, IntArray, IntArray]:
    """Goal, bytes and arcs of every path of one commodity: repeatedly the path of fewest arcs to each goal in the
    rest of the flow. O(paths * arcs)."""
    left = flow.copy()
    goals = [np.int64(0) for _ in range(0)]
    amounts = [np.float64(0) for _ in range(0)]
    start = [np.int64(0)]
    path = [np.int64(0) for _ in range(0)]
    came = np.empty(states, dtype=np.int64)
    queue = np.empty(states, dtype=np.int64)
    for goal in range(len(wanted)):
        rest = wanted[goal]
        paths = 0
        least = sliver
        while rest > SLIVER * wanted[goal]:
            came[:] = -1
            queue[0] = source
            begin, end = 0, 1
            while begin < end and came[goal] < 0:
                u = queue[begin]
                begin += 1
                for k in range(out_start[u], out_start[u + 1]):
                    a = out_arc[k]
                    if left[a] > least and came[head[a]] < 0 and head[a] != source:
                        came[head[a]] = a
                        queue[end] = head[a]
                        end += 1
            if came[goal] < 0:
                if paths > 0 or least < 0:
                    break
                least = -np.inf  # too little for the solver to see: any shortest path
                continue
            amount = rest
            v = goal
            length = 0
            while v != source:
                amount = min(amount, left[came[v]]) if least >= 0 else rest
                v = tail[came[v]]
                length += 1
            v = goal
            first = len(path)
            for _ in range(length):
                path.append(np.int64(0))
            for k in range(length - 1, -1, -1):
                path[first + k] = came[v]
                left[came[v]] -= amount
                v = tail[came[v]]
            rest -= amount
            paths += 1
            goals.append(np.int64(goal))
            amounts.append(amount)
            start.append(np.int64(len(path)))
    return np.array(goals), np.array(amounts), np.array(start), np.array(path)
