"""Phases one at a time when some flows cross two spines (:mod:`.colouring` says why maximum flow cannot do that).

With ``p`` phases left, one phase is a choice of flows that uses no link twice and takes enough of everything that the
rest still passes the load test for ``p - 1`` phases: every link with ``p`` flows left must be used, every leaf
must start and end at least what exceeds ``(p - 1) * size``. Among these choices the one that relieves the most loaded
links is taken, two-spine flows first. The rest may also be routed anew, phase by phase, when the fixed routes get stuck.
The load test is necessary, not sufficient: a pass is a schedule, a failure proves nothing.

===========  ==============================  ===========================
symbol       code                            index set, unit
===========  ==============================  ===========================
y_r          ``now[r]``                      routes, flows of this phase
w_r          ``later[r]``                    routes, flows of the later phases
s_q, v_q     ``stay[q]``, ``stay_later[q]``  leaves, flows inside
D_qr         ``State.demand``                pairs of leaves, flows
===========  ==============================  ===========================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synth.options import RunOptions
from synth.solvers import cpsat
from synth_models.mlfm.instance import IntArray
from synth_models.mlfm.routes import LeafProblem

PHASE_SECONDS = 10.0


@dataclass
class State:
    """What is left to send: flows on routes (R,), their sums per pair (Q * Q,) and flows inside leaves (Q,)."""

    flows: IntArray
    inside: IntArray

    def demand(self, problem: LeafProblem) -> IntArray:
        """Flows left for every pair of different leaves, shape (Q * Q,)."""
        return np.bincount(problem.pair, weights=self.flows, minlength=problem.leaves**2).astype(np.int64)


def pack_phases(problem: LeafProblem, flows: IntArray, phases: int, options: RunOptions) -> tuple[IntArray, IntArray] | None:
    """Split ``flows`` into ``phases``; ``(used, inside)`` as in :func:`.colouring.balanced_phases`, or None when stuck."""
    state = State(flows.copy(), problem.size**2)
    used = np.zeros((phases, problem.routes), dtype=np.int64)
    inside = np.zeros((phases, problem.leaves), dtype=np.int64)
    for done in range(phases):
        left = phases - done
        found = _one_phase(problem, state, left, options, reroute=False)
        if found is None:
            found = _one_phase(problem, state, left, options, reroute=True)
        if found is None:
            return None
        now, stay, later = found
        used[done], inside[done] = now, stay
        state = State(later, state.inside - stay)
    return used, inside


def _one_phase(
    problem: LeafProblem, state: State, left: int, options: RunOptions, reroute: bool
) -> tuple[IntArray, IntArray, IntArray] | None:
    """Flows of this phase on routes and inside leaves and what is left on routes, or None."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    demand = state.demand(problem)
    active = np.flatnonzero(demand[problem.pair] > 0 if reroute else state.flows > 0)
    now = {int(r): model.new_bool_var("") for r in active}
    later: dict[int, Any] = {}
    if reroute:
        later = {int(r): model.new_int_var(0, int(demand[problem.pair[r]]), "") for r in active}
        by_pair: dict[int, list[int]] = {}
        for r in now:
            by_pair.setdefault(int(problem.pair[r]), []).append(r)
        for pair, routes in by_pair.items():
            model.add(sum(now[r] for r in routes) + sum(later[r] for r in routes) == int(demand[pair]))
    stay = [model.new_int_var(0, int(min(n, s)), "") for n, s in zip(state.inside, problem.size, strict=True)]
    _links(model, problem, state, left, now, later)
    _leaves(model, problem, state, demand, left, now, stay)
    load = np.append(problem.loads(state.flows), 0)
    weight = (load[problem.links].sum(axis=1) * 8) // left + np.where(problem.middle >= 0, 16, 1)
    model.maximize(sum(int(weight[r]) * var for r, var in now.items()))
    seconds = options.remaining()
    limit = PHASE_SECONDS if seconds is None else min(PHASE_SECONDS, seconds)
    result, solver = cpsat.solve(model, RunOptions(limit, 0.02, options.threads, options.seed))
    if not result.has_point:
        return None
    chosen, rest = np.zeros(problem.routes, np.int64), np.zeros(problem.routes, np.int64)
    for r, var in now.items():
        chosen[r] = solver.value(var)
        rest[r] = solver.value(later[r]) if reroute else state.flows[r] - chosen[r]
    return chosen, np.array([solver.value(var) for var in stay]), rest


def _links(model: Any, problem: LeafProblem, state: State, left: int, now: dict[int, Any], later: dict[int, Any]) -> None:
    """A link carries one flow now and at most ``left - 1`` later."""
    through: dict[int, list[int]] = {}
    for r in now:
        for e in problem.links[r].tolist():
            if e >= 0:
                through.setdefault(e, []).append(r)
    load = problem.loads(state.flows)
    for e, routes in through.items():
        if later:
            model.add_at_most_one(now[r] for r in routes)
            model.add(sum(later[r] for r in routes) <= left - 1)
        elif load[e] >= left:
            model.add_exactly_one(now[r] for r in routes)
        else:
            model.add_at_most_one(now[r] for r in routes)


def _leaves(
    model: Any, problem: LeafProblem, state: State, demand: IntArray, left: int, now: dict[int, Any], stay: list[Any]
) -> None:
    """A leaf starts and ends at most one flow per server now, and at most ``left - 1`` times that later."""
    count = problem.leaves
    matrix = demand.reshape(count, count)
    starts: list[list[Any]] = [[] for _ in range(count)]
    ends: list[list[Any]] = [[] for _ in range(count)]
    for r, var in now.items():
        q, other = divmod(int(problem.pair[r]), count)
        starts[q].append(var)
        ends[other].append(var)
    for q in range(count):
        size = int(problem.size[q])
        for side, total in ((starts[q], matrix[q].sum()), (ends[q], matrix[:, q].sum())):
            least = int(total) + int(state.inside[q]) - (left - 1) * size
            model.add_linear_constraint(sum(side) + stay[q], max(0, least), size)
