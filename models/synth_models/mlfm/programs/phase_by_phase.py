"""Phases one at a time when some flows cross two spines (``programs/colouring.py`` says why maximum flow cannot do
that).

With ``p`` phases left, one phase is a choice of flows that overloads no link and takes enough of everything that the
rest still passes the load test for ``p - 1`` phases. Among these choices one that relieves the most loaded links is
taken, two-spine flows first. When the fixed routes get stuck, this phase and the routes of all later ones are chosen
together. The load test is necessary, not sufficient: a pass is a schedule, a failure proves nothing.

===========  ==================  =========================  ======
symbol       code                index set                  unit
===========  ==================  =========================  ======
y_r          ``now``             routes, this phase         flows
s_q          ``stay``            leaves, this phase         flows
w_r          ``later``           routes, the later phases   flows
D_qr         ``State.demand``    pairs of leaves            flows
c            ``capacity``        one number                 flows
===========  ==================  =========================  ======

    (1) links now    load_e - (p - 1) c <= sum_{r through e} y_r <= c         (at least 0 when rerouting)
    (2) senders      left_q - (p - 1) size(q) <= sum_{r from q} y_r + s_q <= size(q)
    (3) receivers    the same with the routes to q
    (4) demand       sum_{r of qr} (y_r + w_r) = D_qr                         (rerouting)
    (5) links later  sum_{r through e} w_r <= (p - 1) c                       (rerouting)

There is one such program a phase, so that its rows are sparse matrices from the start and go to HiGHS by scipy.

One-spine flows alone make a network matrix, so the relaxation is nearly whole and HiGHS needs milliseconds a phase.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint
from scipy.sparse import block_array, coo_array, csr_array, eye_array

from synth.arrays import FloatArray, IntArray
from synth.options import RunOptions
from synth.solvers.whole_point import whole_point
from synth_models.mlfm.parts.leaf_problem import LeafProblem, by_group
from synth_models.mlfm.programs.colouring import LeafPhases

PHASE_SECONDS = 10.0
NODE_LIMIT = 2000
PHASE_GAP = 0.02
TWO_SPINES = 2.0  # how much more a two-spine flow counts than its load alone


@dataclass
class State:
    """What is left to send: flows on routes (R,) and inside leaves (Q,)."""

    flows: IntArray
    inside: IntArray

    def demand(self, problem: LeafProblem) -> IntArray:
        """Flows left for every pair of different leaves, shape (Q * Q,)."""
        return np.bincount(problem.pair, weights=self.flows, minlength=problem.leaves**2).astype(np.int64)


Phase = tuple[IntArray, IntArray, IntArray]  # flows now (R,), inside (Q,), flows left (R,)


def pack_phases(
    problem: LeafProblem, flows: IntArray, phases: int, options: RunOptions, capacity: int = 1
) -> LeafPhases | None:
    """Split ``flows`` into ``phases`` in which a link carries at most ``capacity`` flows: ``(used, inside)`` as
    :func:`.colouring.balanced_phases`, or None when stuck."""
    state = State(flows.copy(), problem.inside)
    used = np.zeros((phases, problem.routes), dtype=np.int16)
    inside = np.zeros((phases, problem.leaves), dtype=np.int16)
    random = np.random.default_rng(options.seed)
    for done in range(phases):
        found = None
        for reroute in (False, True):
            if found is None and not options.out_of_time():
                found = one_phase(Sums(problem, state, phases - done, capacity, reroute), options, random)
        if found is None:
            return None
        used[done], inside[done], later = found
        state = State(later, state.inside - inside[done])
    return used, inside


@dataclass(frozen=True)
class Sums:
    """What the equations of one phase sum up, over the routes that may be used (``active``)."""

    problem: LeafProblem
    state: State
    phases: int
    capacity: int
    reroute: bool

    @cached_property
    def demand(self) -> IntArray:
        """Flows left for every pair of leaves, shape (Q * Q,)."""
        return self.state.demand(self.problem)

    @cached_property
    def active(self) -> IntArray:
        """Numbers of the routes with flows left, when rerouting of all routes of pairs with flows left."""
        left = self.demand[self.problem.pair] if self.reroute else self.state.flows
        return np.flatnonzero(left > 0)

    @cached_property
    def through(self) -> tuple[csr_array, IntArray]:
        """One row per link in use with a one for every active route through it, and the links' numbers."""
        links = self.problem.links[self.active]
        used = links >= 0
        route = np.broadcast_to(np.arange(len(links))[:, None], links.shape)[used]
        kept, row = np.unique(links[used], return_inverse=True)
        return coo_array((np.ones(len(row)), (row, route)), shape=(len(kept), len(links))).tocsr(), kept


Block = tuple[csr_array | None, csr_array | None, csr_array | None, IntArray, IntArray]
"""Rows over the columns now, stay and later (None: all zero), with their lower and upper ends."""


def links_now(sums: Sums) -> Block:
    """(1): a link holds its capacity, and the later phases what it leaves to them."""
    through, kept = sums.through
    load = sums.problem.loads(sums.state.flows)[kept]
    due = np.zeros_like(load) if sums.reroute else np.maximum(0, load - (sums.phases - 1) * sums.capacity)
    return through, None, None, due, np.full(len(kept), sums.capacity)


def senders(sums: Sums) -> Block:
    """(2): a leaf starts at most one flow per server, and leaves no more to start than the later phases hold."""
    return _one_per_server(sums, sums.problem.pair // sums.problem.leaves, 1)


def receivers(sums: Sums) -> Block:
    """(3): a leaf ends at most one flow per server, and leaves no more to end than the later phases hold."""
    return _one_per_server(sums, sums.problem.pair % sums.problem.leaves, 0)


def _one_per_server(sums: Sums, end: IntArray, axis: int) -> Block:
    leaves, size = sums.problem.leaves, sums.problem.size
    left = sums.demand.reshape(leaves, leaves).sum(axis=axis) + sums.state.inside
    least = np.maximum(0, left - (sums.phases - 1) * size)
    return by_group(end[sums.active], leaves), eye_array(leaves, format="csr"), None, least, size


def demand(sums: Sums) -> Block:
    """(4): a pair's flows, now or later, are those it has left."""
    pairs, row = np.unique(sums.problem.pair[sums.active], return_inverse=True)
    meets = by_group(row, len(pairs))
    return meets, None, meets, sums.demand[pairs], sums.demand[pairs]


def links_later(sums: Sums) -> Block:
    """(5): the later phases' flows pass the load test."""
    through, kept = sums.through
    return None, None, through, np.zeros_like(kept), np.full(len(kept), (sums.phases - 1) * sums.capacity)


def relief(sums: Sums, random: np.random.Generator) -> FloatArray:
    """What is maximised: flows now on the most loaded links, over two spines first, ties by chance."""
    problem, active = sums.problem, sums.active
    load = np.append(problem.loads(sums.state.flows), 0)
    weight = load[problem.links[active]].sum(axis=1) / sums.phases
    weight += np.where(problem.middle[active] >= 0, TWO_SPINES, 0.1) + 0.1 * random.random(len(active))
    return np.concatenate([weight, np.full(problem.leaves, 0.05), np.zeros(len(active) * sums.reroute)])


def most(sums: Sums) -> FloatArray:
    """Upper bounds of the columns."""
    active, state, count = sums.active, sums.state, len(sums.active)
    now = np.full(count, sums.capacity) if sums.reroute else np.minimum(state.flows[active], sums.capacity)
    later = sums.demand[sums.problem.pair[active]] if sums.reroute else np.zeros(0)
    return np.concatenate([now, np.minimum(state.inside, sums.problem.size), later]).astype(float)


def one_phase(sums: Sums, options: RunOptions, random: np.random.Generator) -> Phase | None:
    """One phase of those left, or None when none is found that leaves a possible rest."""
    blocks = [links_now(sums), senders(sums), receivers(sums)]
    if sums.reroute:
        blocks += [demand(sums), links_later(sums)]
    parts: list[Any] = [block[: 2 + sums.reroute] for block in blocks]
    low, high = (np.concatenate([block[place] for block in blocks]) for place in (3, 4))
    gain = relief(sums, random)
    rows = LinearConstraint(block_array(parts, format="csr"), low, high)
    point = whole_point(-gain, most(sums), [rows], options, seconds=PHASE_SECONDS, gap=PHASE_GAP, node_limit=NODE_LIMIT)
    if point is None:
        return None
    problem, active = sums.problem, sums.active
    flows, stay, rerouted = np.split(point, [len(active), len(active) + problem.leaves])
    now, later = np.zeros(problem.routes, np.int64), np.zeros(problem.routes, np.int64)
    now[active] = flows
    later[active] = rerouted if sums.reroute else sums.state.flows[active] - flows
    return now, stay, later
