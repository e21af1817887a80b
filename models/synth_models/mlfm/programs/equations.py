"""The problem of ``cpsat`` and ``ilp`` as linear equations, written once for both: it builds no model, solves nothing.

Reproduced: the problem of the MLFM paper (section 1) for any set of servers: all-to-all communication in which no link
is congested. Beyond it: failed links, spines, leaves and servers (its future work), routes through a third column, the
proof of optimality. Deviation: the problem is stated between leaves. Choose for every ordered pair of servers a phase
and an allowed route; ``programs/colouring.py`` proves that only the numbers of flows between leaves matter, and for
one-spine routes only their totals per route (``decompose=on``).

===========  ==================  ==========================================  ======
symbol       code                index set                                   unit
===========  ==================  ==========================================  ======
w_r          ``flow[r]``         allowed routes r between leaves             flows
D_qr         ``problem.demand``  ordered pairs of leaves: size(q) * size(r)  flows
P            ``phases``          number of phases                            phases
o_e          ``over[e]``         links with routes                           flows
y_rp         ``use[p, r]``       phases and routes (``decompose=off``)       flows
s_qp         ``stay[p, q]``      phases and leaves (``decompose=off``)       flows
===========  ==================  ==========================================  ======

``decompose=on``, flows per route over all phases, then phases by colouring (exact) or packing:

    (1) demand         sum_{r of qr} w_r = D_qr             "data from all of N servers"
    (2) link capacity  sum_{r through e} w_r <= P           "avoiding link congestion": one flow a phase
    (3) last tenth     sum_{r through e} w_r - o_e <= P - ceil(P / 10)
                       minimise 4 sum_{two-spine r} w_r + sum_e o_e: a wish that makes packing easier, no need

``decompose=off``, one model per P, from the bound upwards, for the tests and for doubters:

    (4) every pair     sum_{p, r of qr} y_rp = D_qr         "numbers from 0 to N - 1 appear exactly once"
    (5) own leaf       sum_p s_qp = size(q)^2               the same inside a leaf, where no link is used
    (6) no congestion  sum_{r through e} y_rp <= 1          "multiple communications pass through same link"
    (7) senders        sum_{r from q} y_rp + s_qp <= size(q)    a row of the paper's table: one transfer a server
    (8) receivers      sum_{r to q} y_rp + s_qp <= size(q)      its numbers appear once in a phase, too

Of a partial all-to-all the same equations stand between servers: every server q is a leaf of size 1, D_qr what q is to
send to r, and a pair on one leaf has a route without links (``parts/leaf_problem.py``).

A congested phase counts as the congestion-free ones it splits into (``check/replay.py``), so that what is refuted of
these is refuted for every schedule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from synth.solvers.rows import Row, ones
from synth_models.mlfm.parts.leaf_problem import LeafProblem, routes_by_link

# variables by index: a Pyomo variable or a dictionary of CP-SAT's
Variables = Any


def demand(problem: LeafProblem, flow: Variables) -> dict[tuple[int, int], Row]:
    """(1): the routes of every pair of leaves carry all its transfers."""
    return {pair: (ones(flow[r] for r in routes), "==", needed) for pair, routes, needed in _pairs(problem)}


def link_capacity(problem: LeafProblem, flow: Variables, phases: int) -> dict[int, Row]:
    """(2): a link carries at most one flow a phase."""
    return {e: (ones(flow[r] for r in routes), "<=", phases) for e, routes in routes_by_link(problem).items()}


def last_tenth(problem: LeafProblem, flow: Variables, over: Variables, phases: int) -> dict[int, Row]:
    """(3): ``over`` counts a link's flows in the last tenth of what it can carry."""
    full, through = phases - -(-phases // 10), routes_by_link(problem)
    return {e: ([*ones(flow[r] for r in routes), (-1, over[e])], "<=", full) for e, routes in through.items()}


def wish(problem: LeafProblem, flow: Variables, over: Variables) -> list[tuple[float, Any]]:
    """The objective beside (3): few two-spine flows and, second, few flows in the last tenth of any link."""
    two_spines = np.flatnonzero(problem.middle >= 0).tolist()
    return [*ones((flow[r] for r in two_spines), 4), *ones(over[e] for e in over)]


def every_pair(problem: LeafProblem, use: Variables, phases: int) -> dict[tuple[int, int], Row]:
    """(4): over all phases the flows between two leaves are the pairs of their servers."""
    times = range(phases)
    return {
        pair: (ones(use[p, r] for p in times for r in routes), "==", needed) for pair, routes, needed in _pairs(problem)
    }


def own_leaf(problem: LeafProblem, stay: Variables, phases: int) -> dict[int, Row]:
    """(5): and so are those inside every leaf."""
    return {q: (ones(stay[p, q] for p in range(phases)), "==", int(n)) for q, n in enumerate(problem.inside)}


def no_congestion(problem: LeafProblem, use: Variables, phases: int) -> dict[tuple[int, int], Row]:
    """(6): a link carries at most one flow in a phase."""
    through = routes_by_link(problem).items()
    return {(p, e): (ones(use[p, r] for r in routes), "<=", 1) for p in range(phases) for e, routes in through}


def senders(problem: LeafProblem, use: Variables, stay: Variables, phases: int) -> dict[tuple[int, int], Row]:
    """(7): a leaf starts at most one flow per server in a phase."""
    return _one_per_server(problem, problem.pair // problem.leaves, use, stay, phases)


def receivers(problem: LeafProblem, use: Variables, stay: Variables, phases: int) -> dict[tuple[int, int], Row]:
    """(8): a leaf ends at most one flow per server in a phase."""
    return _one_per_server(problem, problem.pair % problem.leaves, use, stay, phases)


def _one_per_server(
    problem: LeafProblem, end: Any, use: Variables, stay: Variables, phases: int
) -> dict[tuple[int, int], Row]:
    routes = [np.flatnonzero(end == q).tolist() for q in range(problem.leaves)]
    return {
        (p, q): (ones([*(use[p, r] for r in routes[q]), stay[p, q]]), "<=", int(size))
        for p in range(phases)
        for q, size in enumerate(problem.size)
    }


def _pairs(problem: LeafProblem) -> Iterator[tuple[tuple[int, int], range, int]]:
    """Every pair of leaves that has routes, these, and the demand."""
    for pair in np.flatnonzero(np.diff(problem.start)).tolist():
        routes = range(int(problem.start[pair]), int(problem.start[pair + 1]))
        yield divmod(pair, problem.leaves), routes, int(problem.demand[pair])
