"""A routing of a given topology with as small a largest load as time allows, in whole numbers.

Four ways, each folded by the symmetries that are found; the best one stays.

1. *Trees* (:mod:`synth_models.topology.parts.folds`).
2. *Shortest paths*: the linear program of the maximum concurrent flow, over arcs on shortest paths only.
3. *Detours*: trees of paths of any length, where the shortest do not suffice for the mean load.
4. *All paths*: the linear program over all arcs, where they do not and it is small.

Where the program over shortest paths is too large, trees of these few hops are soon left for detours.

A point of a linear program becomes whole numbers by handing on what each node needs to the arcs that enter it, in the
proportions of the point, from the farthest node to the source.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.clock.deadline import OutOfTime
from synth.options import RunOptions
from synth.solvers.lp import INTERIOR, linprog
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.parts.arcs import Arcs, arcs_of
from synth_models.topology.parts.folds import ROUNDS, Folded, folded, rows, tree_flows
from synth_models.topology.parts.renumberings import offered
from synth_models.topology.solution import Topology

LARGEST_PROGRAM = 100_000  # variables
SCALE = 720_720  # parts of a unit in a rounded routing: what 1, 2, …, 16 all divide, so that thirds stay exact
NOTHING = 1e-9  # a flow this small is none
TIGHT = 1e-6  # relative: as good as the mean load


def routed(
    instance: TopologyInstance,
    circuits: IntArray,
    options: RunOptions,
    *,
    exact: bool = True,
) -> tuple[Fraction, Topology] | None:
    """The largest load and the topology of these circuits with its routing, for the objective ``hops`` 0 and the
    circuits alone; None where a node is out of reach.

    Without ``exact`` trees alone route, the first of them. What is found on the way is offered to ``options.held``.
    """
    folds = folds_of(instance, circuits)
    if (folds.away < 0).any():
        return None
    if instance.objective == "hops":
        return Fraction(0), Topology(circuits)
    best = _Best(circuits, folds, options if instance.objective == "load" else options.part())  # of a mix none is held
    shortest = _on_shortest(folds)
    large = shortest.sum() > LARGEST_PROGRAM
    for flow, rounds in tree_flows(folds, options, most=ROUNDS[0 if large else -1]):
        best.keep(flow, rounds)
    steps: list[Callable[[], None]]
    steps = [lambda: _program(best, shortest), lambda: _detours(best), lambda: _program(best, _on_all(folds))]
    if not exact:
        steps = [lambda: _detours(best, ROUNDS[1])] if large else []
    for step in steps:
        if not best.tight and not options.out_of_time():
            step()
    return best.load, best.topology


def folds_of(instance: TopologyInstance, circuits: IntArray) -> Folded:
    """The topology of these circuits folded by the symmetries that are found."""
    return folded(arcs_of(instance, circuits), offered(instance, circuits))


class _Best:
    """The best routing so far of these circuits, with its largest load."""

    def __init__(self, circuits: IntArray, folds: Folded, options: RunOptions) -> None:
        self.circuits, self.folds, self.options = circuits, folds, options
        self.load, self.topology = Fraction(1 << 62), Topology(circuits)

    @property
    def tight(self) -> bool:
        """Whether all arcs carry the mean load, so that no routing is better."""
        return self.load <= self.folds.mean * (1 + TIGHT)

    def keep(self, flow: IntArray, scale: int) -> None:
        """Keep the flow, shape (sources, arcs) in parts of ``scale``, if it is better."""
        load = self.folds.load(flow, scale)
        if load < self.load:
            topology = Topology(self.circuits, scale, self.folds.symmetries, rows(self.folds, flow))
            self.load, self.topology = load, topology
            self.options.held.offer(lambda: topology, float(load), "the best routing so far stands in")


def _program(best: _Best, over: Any) -> None:
    """The linear program over these arcs, if it is not too large and ends in time."""
    if over.sum() > LARGEST_PROGRAM:
        return
    point = None
    with best.options.in_time(), suppress(OutOfTime):
        point = concurrent_flow(best.folds, over)
    if point is not None:
        best.keep(whole(best.folds, point), SCALE)


def _detours(best: _Best, most: int = ROUNDS[-1]) -> None:
    """Trees over paths of any length, at most so many of each source."""
    for flow, rounds in tree_flows(best.folds, best.options, detours=True, most=most):
        best.keep(flow, rounds)


def _on_shortest(folds: Folded) -> Any:
    """Which arcs lie on shortest paths from each source, shape (sources, arcs)."""
    return folds.away[:, folds.arcs.head] == folds.away[:, folds.arcs.tail] + 1


def _on_all(folds: Folded) -> Any:
    """All arcs but those that lead back to the source."""
    return folds.arcs.head[None] != folds.sources[:, None]


def concurrent_flow(folds: Folded, over: Any) -> FloatArray:
    """The flows of every source, shape (sources, arcs), over the arcs that each may use, with the least largest load.

    Variables are flows and the load; a row for each source and node says that a unit stays there, one for each orbit
    of arcs that it carries no more than the load. Raises :class:`OutOfTime`.
    """
    from scipy.sparse import coo_array

    arcs, n = folds.arcs, folds.arcs.nodes
    source, arc = np.nonzero(over)
    flows = np.arange(len(arc))
    into, out = source * n + arcs.head[arc], source * n + arcs.tail[arc]
    kept = arcs.tail[arc] != folds.sources[source]
    place = np.concatenate([into, out[kept]]), np.concatenate([flows, flows[kept]])
    signs = np.concatenate([np.ones(len(arc)), -np.ones(int(kept.sum()))])
    stays = np.ones((len(folds.sources), n))
    stays[np.arange(len(folds.sources)), folds.sources] = 0
    balance = coo_array((signs, place), shape=(stays.size, len(arc) + 1)).tocsr()
    orbit = np.arange(len(folds.room))
    spots = np.concatenate([folds.of[arc], orbit]), np.concatenate([flows, np.full(len(orbit), len(arc))])
    values = np.concatenate([folds.weight[source], -folds.room])
    limit = coo_array((values, spots), shape=(len(orbit), len(arc) + 1)).tocsr()
    cost = np.zeros(len(arc) + 1)
    cost[-1] = 1.0
    found = linprog(cost, A_ub=limit, b_ub=np.zeros(len(orbit)), A_eq=balance, b_eq=stays.ravel(), method=INTERIOR)
    flow = np.zeros(over.shape)
    if found.x is None:
        raise OutOfTime
    flow[source, arc] = np.maximum(found.x[:-1], 0)
    return flow


def whole(folds: Folded, point: FloatArray) -> IntArray:
    """The flows of a point, shape (sources, arcs), as whole numbers in which every node but the source keeps
    :data:`SCALE`."""
    return np.stack([_whole_of(folds, s, point[s]) for s in range(len(folds.sources))])


def _whole_of(folds: Folded, s: int, flow: FloatArray) -> IntArray:
    arcs, n = folds.arcs, folds.arcs.nodes
    entering: list[list[int]] = [[] for _ in range(n)]
    used = np.flatnonzero(flow > NOTHING).tolist()
    for arc in used:
        entering[arcs.head[arc]].append(arc)
    order = _upstream(arcs, used, int(folds.sources[s]), flow)
    if order is None:  # some node has no path in what is left: the tree of shortest paths serves
        return _by_tree(folds, s)
    found = np.zeros(len(flow), dtype=np.int64)
    need = [SCALE] * n
    for node, lost in order:
        arcs_in = [arc for arc in entering[node] if arc not in lost]
        total = sum(float(flow[arc]) for arc in arcs_in)
        left, share = need[node], total
        for arc in arcs_in:
            part = left if arc == arcs_in[-1] else min(left, round(left * float(flow[arc]) / share))
            found[arc] = part
            need[arcs.tail[arc]] += part
            left, share = left - part, max(share - float(flow[arc]), NOTHING)
    return found


def _upstream(arcs: Arcs, used: list[int], source: int, flow: FloatArray) -> list[tuple[int, set[int]]] | None:
    """The nodes but the source, each after all that it hands on to, with the arcs that are left out so that there is
    such an order: of a cycle that of least flow. None where a node is cut off."""
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(arcs.nodes))
    graph.add_edges_from(
        (int(arcs.tail[arc]), int(arcs.head[arc]), {"arc": arc, "flow": float(flow[arc])}) for arc in used
    )
    lost: set[int] = set()
    while True:
        try:
            cycle = [graph.edges[u, v] | {"ends": (u, v)} for u, v in nx.find_cycle(graph, source)]
        except nx.NetworkXNoCycle:
            break
        least = min(edge["flow"] for edge in cycle)
        for edge in cycle:
            graph.edges[edge["ends"]]["flow"] -= least
            flow[edge["arc"]] -= least
            if flow[edge["arc"]] <= NOTHING:
                lost.add(edge["arc"])
                graph.remove_edge(*edge["ends"])
    if len(nx.descendants(graph, source)) < arcs.nodes - 1:
        return None
    return [(node, lost) for node in reversed(list(nx.topological_sort(graph))) if node != source]


def _by_tree(folds: Folded, s: int) -> IntArray:
    """All units of a source over a tree of shortest paths."""
    arcs, away = folds.arcs, folds.away[s]
    found, need = np.zeros(len(arcs.tail), dtype=np.int64), [SCALE] * arcs.nodes
    first = {int(arcs.head[a]): a for a in np.flatnonzero(away[arcs.head] == away[arcs.tail] + 1).tolist()}
    for node in np.argsort(-away, kind="stable").tolist():
        if away[node]:
            arc = first[node]
            found[arc] = need[node]
            need[arcs.tail[arc]] += need[node]
    return found
