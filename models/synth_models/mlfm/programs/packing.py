"""Phases one at a time when some flows cross two spines (``programs/colouring.py`` says why maximum flow cannot do
that).

With ``p`` phases left, one phase is a choice of flows that overloads no link and takes enough of everything that the
rest still passes the load test for ``p - 1`` phases. Among these choices one that relieves the most loaded links is
taken, two-spine flows first. When the fixed routes get stuck, this phase and the routes of all later ones are chosen
together. The load test is necessary, not sufficient: a pass is a schedule, a failure proves nothing.

===========  ==================  ===========================================
symbol       code                index set, unit
===========  ==================  ===========================================
y_r          ``now``             routes, flows of this phase
s_q          ``stay``            leaves, flows inside in this phase
w_r          ``later``           routes, flows of the later phases (rerouting)
D_qr         ``State.demand``    pairs of leaves, flows left
===========  ==================  ===========================================

One-spine flows alone make a network matrix, so the relaxation is nearly whole and HiGHS needs milliseconds a phase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array, hstack

from synth.options import RunOptions
from synth_models.mlfm.instance import IntArray
from synth_models.mlfm.parts.leaf_problem import LeafProblem
from synth_models.mlfm.programs.colouring import LeafPhases

PHASE_SECONDS = 10.0
NODE_LIMIT = 2000
LIMIT, INFEASIBLE = 1, 2  # of scipy's statuses
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
    state = State(flows.copy(), problem.size**2)
    used = np.zeros((phases, problem.routes), dtype=np.int16)
    inside = np.zeros((phases, problem.leaves), dtype=np.int16)
    random = np.random.default_rng(options.seed)
    for done in range(phases):
        found = None
        for reroute in (False, True):
            if found is None and not options.out_of_time():
                found = one_phase(problem, state, phases - done, options, random, reroute, capacity)
        if found is None:
            return None
        used[done], inside[done], later = found
        state = State(later, state.inside - inside[done])
    return used, inside


def one_phase(
    problem: LeafProblem, state: State, left: int, options: RunOptions, random: np.random.Generator, reroute: bool,
    capacity: int = 1,
) -> Phase | None:  # fmt: skip
    """One phase of ``left``, or None when none is found that leaves a possible rest."""
    demand = state.demand(problem)
    active = np.flatnonzero(demand[problem.pair] > 0 if reroute else state.flows > 0)
    count, leaves = len(active), problem.leaves
    links = problem.links[active]
    load = problem.loads(state.flows)
    sender, receiver = np.divmod(problem.pair[active], leaves)
    through, kept = _link_rows(links)
    matrix = demand.reshape(leaves, leaves)
    # columns: now (count), stay (leaves), later (count, only when rerouting)
    inside = csr_array(np.eye(leaves))
    none = csr_array((len(kept), leaves))
    due = np.zeros(len(kept)) if reroute else np.maximum(0, load[kept] - (left - 1) * capacity)
    rows = [(hstack([through, none]), due, np.full(len(kept), capacity))]
    for side, total in ((sender, matrix.sum(axis=1)), (receiver, matrix.sum(axis=0))):
        least = np.maximum(0, total + state.inside - (left - 1) * problem.size)
        rows.append((hstack([_by(side, leaves), inside]), least, problem.size))
    if reroute:
        pairs, row = np.unique(problem.pair[active], return_inverse=True)
        meets = _by(row, len(pairs))
        rows = [(hstack([part, csr_array((part.shape[0], count))]), low, high) for part, low, high in rows]
        rows.append((hstack([meets, csr_array((len(pairs), leaves)), meets]), demand[pairs], demand[pairs]))
        blank = csr_array((len(kept), count + leaves))
        rows.append((hstack([blank, through]), np.zeros(len(kept)), np.full(len(kept), (left - 1) * capacity)))
    weight = np.append(load, 0)[links].sum(axis=1) / left + np.where(problem.middle[active] >= 0, TWO_SPINES, 0.1)
    gain = np.concatenate([weight + 0.1 * random.random(count), np.full(leaves, 0.05), np.zeros(count * reroute)])
    upper = [
        np.full(count, capacity) if reroute else np.minimum(state.flows[active], capacity),
        np.minimum(state.inside, problem.size),
    ]
    if reroute:
        upper.append(demand[problem.pair[active]])
    seconds = options.remaining()
    run: Any = milp
    result = run(
        -gain, integrality=np.ones(len(gain)), bounds=Bounds(0.0, np.concatenate(upper).astype(float)),
        constraints=[LinearConstraint(csr_array(part), low, high) for part, low, high in rows],
        options={"time_limit": PHASE_SECONDS if seconds is None else max(0.01, min(PHASE_SECONDS, seconds)),
                 "mip_rel_gap": 0.02, "node_limit": NODE_LIMIT},
    )  # fmt: skip
    if result.x is None:
        _must_be_an_answer(result)
        return None
    chosen = np.round(result.x).astype(np.int64)
    now, later = np.zeros(problem.routes, np.int64), np.zeros(problem.routes, np.int64)
    now[active] = chosen[:count]
    later[active] = chosen[count + leaves :] if reroute else state.flows[active] - chosen[:count]
    return now, chosen[count : count + leaves], later


def _must_be_an_answer(result: Any) -> None:
    """Raise ``RuntimeError`` unless the solver ended without a point because of a limit or because there is none.

    scipy has no status of its own for HiGHS's node limit, and none for what presolve calls unbounded or infeasible,
    which is infeasible here, where all variables have bounds."""
    known = any(words in result.message.lower() for words in ("solution limit reached", "unbounded or infeasible"))
    if result.status not in (LIMIT, INFEASIBLE) and not known:
        raise RuntimeError(f"the program of one phase failed: {result.message}")


def _by(group: npt.NDArray[np.int64], groups: int) -> csr_array:
    """The 0-1 matrix with a one for every column in the row of its group."""
    return coo_array((np.ones(len(group)), (group, np.arange(len(group)))), shape=(groups, len(group))).tocsr()


def _link_rows(links: IntArray) -> tuple[csr_array, IntArray]:
    """One row per link in use with a one for every route through it, and the links' numbers."""
    used = links >= 0
    route = np.broadcast_to(np.arange(len(links))[:, None], links.shape)[used]
    kept, row = np.unique(links[used], return_inverse=True)
    return coo_array((np.ones(len(row)), (row, route)), shape=(len(kept), len(links))).tocsr(), kept
