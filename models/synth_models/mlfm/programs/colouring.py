"""From flows per route to phases of transfers: the decomposition that makes the programs scale, and why it is exact.

**Servers do not matter (lift).** If P phases of flows between leaves are given, in which a leaf starts and ends at
most as many flows as it has servers and each pair of leaves (q, r) meets size(q) * size(r) times, then servers can
always be named. Sources: for leaf q join each phase to size(r) copies of every destination leaf r, each copy with
size(q) of the flows; phases and copies have degree at most size(q), so König colours the flows with q's servers, and
every copy gets each of them once. Destinations: for leaf r join each phase to the source servers, which have degree
size(r) after that; König again names r's servers. Hence the problem between servers and the one between leaves have
the same optimum.

**Loads decide (balanced colouring), for one-spine routes.** A flow then uses a leaf's output and one of its up-links, a
down-link and its leaf's input: two laminar families, one on either side of a bipartite multigraph. Such a 0-1 matrix
is a network matrix, so flows split into P phases with every family member's share rounded up or down (de Werra 1971).
So P phases suffice exactly when no link carries more than P flows and P >= N, and one phase at a time is found by
maximum flow with the rounded shares as limits. (For blocks one may also fix a layer shift per phase and solve the
columns alone; that needs phases in multiples of the layers and never fewer than this, so it is not used.)

With two spines a flow uses four links, the matrix is no network matrix any more and phases are packed one at a time
by a small program (``programs/phase_by_phase.py``), with the load as a proven bound but no promise to reach it.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from ortools.graph.python import max_flow

from synth.arrays import AnyIntArray, IntArray
from synth.graph.edge_colouring import edge_colours
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.parts.leaf_problem import LeafProblem, with_routes
from synth_models.mlfm.solution import PhaseTable

LeafPhases = tuple[AnyIntArray, AnyIntArray]  # (phases, R) and (phases, Q)


def balanced_phases(problem: LeafProblem, flows: IntArray, phases: int, link_capacity: int = 1) -> LeafPhases:
    """Split one-spine ``flows`` (R,) into ``phases`` in which every link carries at most ``link_capacity``.

    Returns ``(used, inside)``: flows of every phase on every route, shape (phases, R), and inside every leaf, shape
    (phases, Q). Raises ``ValueError`` when a link's flows exceed ``phases * link_capacity``, when ``phases`` < N or
    when a route with flow crosses two spines.
    """
    chosen = np.flatnonzero(flows)
    if (problem.middle[chosen] >= 0).any():
        raise ValueError("balanced colouring takes one-spine routes")
    if phases < problem.busiest or problem.loads(flows).max(initial=0) > phases * link_capacity:
        raise ValueError("some leaf or link carries more than the phases hold")
    left = flows[chosen].copy()
    inside_left = problem.inside
    network = _Network(problem, chosen)
    used = np.zeros((phases, problem.routes), dtype=np.int16)
    inside = np.zeros((phases, problem.leaves), dtype=np.int16)
    for done in range(phases):
        now, stay = network.share(left, inside_left, phases - done)
        used[done, chosen], inside[done] = now, stay
        left, inside_left = left - now, inside_left - stay
    return used, inside


class _Network:
    """The two laminar trees as a flow network: start, leaf outputs, up-links, down-links, leaf inputs, end."""

    def __init__(self, problem: LeafProblem, chosen: IntArray) -> None:
        leaves = problem.leaves
        q, r = np.divmod(problem.pair[chosen], leaves)
        up, up_of = np.unique(problem.links[chosen, 0], return_inverse=True)
        down, down_of = np.unique(problem.links[chosen, 1], return_inverse=True)
        up_leaf, down_leaf = np.zeros(len(up), np.int64), np.zeros(len(down), np.int64)
        up_leaf[up_of], down_leaf[down_of] = q, r
        at = np.cumsum([0, leaves, len(up), len(down), leaves]).tolist()
        out, ups, downs, into = (np.arange(a, b) for a, b in pairwise(at))
        self.start, self.end, self.nodes = at[-1], at[-1] + 1, at[-1] + 4
        self.tail = np.concatenate([np.full(leaves, self.start), out[up_leaf], ups[up_of], downs, into, out])
        self.head = np.concatenate([out, ups, downs[down_of], into[down_leaf], np.full(leaves, self.end), into])
        # which rows of (flows, inside) every arc sums up, as (arc, row) pairs
        first = np.cumsum([0, leaves, len(up), len(chosen), len(down), leaves, leaves]).tolist()
        rows, own = np.arange(len(chosen)), len(chosen) + np.arange(leaves)
        every = np.arange(leaves)
        sums = [(0, q, rows), (0, every, own), (1, up_of, rows), (2, rows, rows), (3, down_of, rows), (4, r, rows)]
        sums += [(4, every, own), (5, every, own)]
        self.arc = np.concatenate([first[layer] + arcs for layer, arcs, _ in sums])
        self.row = np.concatenate([summed for _, _, summed in sums])
        _, _, of_flows, behind_flows, _, of_inside, behind_inside = first
        self.flow_arcs, self.inside_arcs = slice(of_flows, behind_flows), slice(of_inside, behind_inside)

    def share(self, flows: IntArray, inside: IntArray, phases: int) -> tuple[IntArray, IntArray]:
        """One phase of ``phases`` equal ones: every arc's total over ``phases``, rounded down or up."""
        total = np.bincount(self.arc, weights=np.concatenate([flows, inside])[self.row], minlength=len(self.tail))
        low = total.astype(np.int64) // phases
        high = -(-total.astype(np.int64) // phases)
        source, sink = self.nodes - 2, self.nodes - 1
        gain = np.zeros(self.nodes, dtype=np.int64)
        np.add.at(gain, self.head, low)
        np.subtract.at(gain, self.tail, low)
        plus, minus = np.flatnonzero(gain > 0), np.flatnonzero(gain < 0)
        solver = max_flow.SimpleMaxFlow()
        arcs = solver.add_arcs_with_capacity(self.tail, self.head, high - low)
        solver.add_arc_with_capacity(self.end, self.start, int(high.sum()))
        solver.add_arcs_with_capacity(np.full(len(plus), source), plus, gain[plus])
        solver.add_arcs_with_capacity(minus, np.full(len(minus), sink), -gain[minus])
        status = solver.solve(source, sink)
        if status != solver.OPTIMAL or solver.optimal_flow() != int(gain[plus].sum()):
            raise RuntimeError("no balanced share of the flows: the laminar families are wrong")
        amount = low + solver.flows(arcs)
        return amount[self.flow_arcs], amount[self.inside_arcs]


def name_servers(instance: MLFMInstance, problem: LeafProblem, phases: LeafPhases) -> PhaseTable:
    """Phases of transfers between servers from phases of flows between leaves (the lift above)."""
    if problem.alone:
        return _as_named(problem, phases)
    used, inside = phases
    count, leaves = used.shape[0], problem.leaves
    p, route = np.nonzero(used)
    repeat = used[p, route]
    p_in, leaf_in = np.nonzero(inside)
    repeat_in = inside[p_in, leaf_in]
    phase = np.concatenate([np.repeat(p, repeat), np.repeat(p_in, repeat_in)])
    number = np.concatenate([np.repeat(route, repeat), np.full(int(repeat_in.sum()), -1)])
    pair = np.concatenate([np.repeat(problem.pair[route], repeat), np.repeat(leaf_in * (leaves + 1), repeat_in)])
    if not np.array_equal(np.bincount(pair, minlength=leaves**2), problem.demand):
        raise RuntimeError("the phases do not meet the demand between leaves")
    q, r = np.divmod(pair, leaves)
    place = np.searchsorted(problem.leaf, instance.server_leaf)
    # copies: the flows of a pair in any order, size(q) to each copy
    order = np.argsort(pair, kind="stable")
    begin = np.concatenate([[0], np.cumsum(problem.demand)])[:-1]
    within = np.empty(len(pair), dtype=np.int64)
    within[order] = np.arange(len(pair)) - begin[pair[order]]
    copy = within // problem.size[q]
    src = np.empty(len(pair), dtype=np.int64)
    dst = np.empty(len(pair), dtype=np.int64)
    most = int(problem.size.max())
    for leaf in range(leaves):
        mine = np.flatnonzero(q == leaf)
        colour = edge_colours(phase[mine], r[mine] * most + copy[mine], count, leaves * most, int(problem.size[leaf]))
        src[mine] = np.flatnonzero(place == leaf)[colour]
    for leaf in range(leaves):
        mine = np.flatnonzero(r == leaf)
        colour = edge_colours(phase[mine], src[mine], count, instance.ranks, int(problem.size[leaf]))
        dst[mine] = np.flatnonzero(place == leaf)[colour]
    dest = np.full((count, instance.ranks), -1, dtype=np.int64)
    chosen = np.full((count, instance.ranks), -1, dtype=np.int64)
    dest[phase, src], chosen[phase, src] = dst, number
    return with_routes(problem, dest, chosen)


def _as_named(problem: LeafProblem, phases: LeafPhases) -> PhaseTable:
    """The same where every server stands as a leaf of its own, so that flows name their servers."""
    used, inside = phases
    dest, chosen = (np.full(inside.shape, -1, dtype=np.int64) for _ in range(2))
    p, route = np.nonzero(used)
    source, target = np.divmod(problem.pair[route], problem.leaves)
    dest[p, source], chosen[p, source] = target, route
    p, own = np.nonzero(inside)
    dest[p, own] = own
    return with_routes(problem, dest, chosen)
