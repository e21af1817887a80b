"""Refute a horizon by the LP relaxation, folded by the network's symmetries (method ``relaxation``, kind bound).

The program of ``programs/ilp/model.py`` with its capacities scaled by ``z``: minimise z subject to

    (6) stretched capacity  C * sum_r x[r,a,t] <= z * c[a],

(2) conservation and (3) causality of that program, and 0 <= x, h <= 1.

If the minimum exceeds 1, no schedule of T timesteps exists: a schedule would be a point with z = 1, its average over
the chunks of a node and over the symmetries would still be one, and that average is what the folded variables hold.
The LP is small (it does not grow with C, and shrinks by the size of the group), yet it refutes horizons at which the
cut bounds are silent and the integer program runs for minutes.

**Certificate.** Duals of any accuracy prove infeasibility by weak duality over the box: with integer multipliers
``p >= 0`` for (6) at z = 1 and (3), ``q`` free for (2), every feasible point satisfies ``(p,q) A x <= (p,q) b``; if the
least value of the left side over 0 <= x <= 1 exceeds the right side, there is none. The multipliers are stored as
integers, so that the check verifies the inequality exactly; a horizon counts as refuted only after it did.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth.arrays import SOLVED, FloatArray, IntArray
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.network import Network
from synth.options import RunOptions
from synth.solvers import mathprog
from synth.solvers.algebra import pyo
from synth.solvers.names import indices_of
from synth.solvers.rows import Row, add_rows, variables
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.certificates import MULTIPLIER, refuted_horizon
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.programs.ilp.model import Variables, causality, conservation, link_capacity
from synth_models.xtree.programs.time_expansion import TimeExpansion, all_generators

SCALES = (10**7, 10**10)  # multipliers are stored as whole multiples of one over this; the second if the first fails
LARGEST = 400_000  # folded variables; beyond it the LP is not tried
SIMPLEX = 20_000  # folded variables from which an interior point is taken: 8 x 8 in 16 timesteps in 25 s, not 300 s
QUICK = 60_000  # folded variables up to which the LP is a cheap first attack before an integer program


Prices = Mapping[Any, float]
"""Multipliers by the index of their row."""


@dataclass(frozen=True)
class Refutation:
    """``stretch`` is the least factor by which capacities must grow at this horizon, in floats (None: LP not solved);
    ``certificate`` is there when it refutes the horizon in exact arithmetic."""

    horizon: int
    stretch: float | None
    certificate: dict[str, Any] | None
    build_s: float
    solve_s: float

    @property
    def words(self) -> str:
        """The proof in words."""
        return f"relaxation: {self.horizon} timesteps would need {self.stretch:.4f} times the links' capacity"


def build(expansion: TimeExpansion) -> pyo.ConcreteModel:
    """The folded relaxation with elastic capacities; ``model.stretch`` is z, which is minimised."""
    model = pyo.ConcreteModel()
    model.send = variables("k a t", expansion.send, bounds=(0, 1))
    model.held = variables("k v t", expansion.held, bounds=(0, 1))
    model.stretch = pyo.Var(bounds=(0, None))
    send = dict(zip(expansion.send, model.send.values(), strict=True))
    held = dict(zip(expansion.held, model.held.values(), strict=True))
    add_rows(model, "stretched_capacity", stretched_capacity(expansion, send, model.stretch), "a t")
    add_rows(model, "conservation", conservation(expansion, send, held), "k v t")
    add_rows(model, "causality", causality(expansion, send, held), "k a t")
    model.objective = pyo.Objective(expr=model.stretch)
    return model


def stretched_capacity(expansion: TimeExpansion, send: Variables, stretch: Any) -> dict[tuple[int, int], Row]:
    """(6): an arc carries at most z times as much per timestep as it has links."""
    rows: dict[tuple[int, int], Row] = {}
    for (a, t), (load, _, capacity) in link_capacity(expansion, send).items():
        rows[a, t] = [*load, (-capacity, stretch)], "<=", 0
    return rows


def expand(network: Network, chunks: int, horizon: int) -> TimeExpansion:
    """The folded expansion: one variable per node's chunks, symmetric ones shared."""
    return TimeExpansion(network, np.arange(network.nodes), horizon, weight=chunks, fold=all_generators(network))


def refute(network: Network, chunks: int, horizon: int, options: RunOptions, largest: int = LARGEST) -> Refutation:
    """Try to refute an allgather in ``horizon`` timesteps. Uses HiGHS whatever the run's solver is (LP duals).

    An LP of more than ``largest`` folded variables is not tried."""
    started = time.monotonic()
    if network.nodes * len(network.arcs[0]) * horizon > 60 * largest:
        return Refutation(horizon, None, None, 0.0, 0.0)
    with mathprog.building():
        expansion = expand(network, chunks, horizon)
        if len(expansion.send) > largest:
            return Refutation(horizon, None, None, time.monotonic() - started, 0.0)
        model = build(expansion)
    built = time.monotonic()
    rows = (model.stretched_capacity, model.conservation, model.causality)
    result, duals = mathprog.solve_lp(model, options, rows, interior=len(expansion.send) > SIMPLEX)
    solved = time.monotonic()
    certificate = None
    if result.termination == "optimal" and result.objective is not None and result.objective > 1 + SOLVED:
        prices = [
            {index: -value for index, value in zip(indices_of(of), dual, strict=True)}
            for of, dual in zip(rows, duals, strict=True)
        ]
        certificate = verified(network, chunks, lambda scale: _certificate(expansion, prices, scale))
    return Refutation(horizon, result.objective, certificate, built - started, solved - built)


def verified(network: Network, chunks: int, at_scale: Callable[[int], dict[str, Any]]) -> dict[str, Any] | None:
    """The first of the certificates, rounded coarsely and finely, that holds in the check's exact arithmetic.

    The LP's objective and duals are floats: what they say is no proof, only what their rounding still proves is."""
    for scale in SCALES:
        certificate = at_scale(scale)
        try:
            refuted_horizon(network, chunks, certificate)
        except ValueError:
            continue
        return certificate
    return None


def _certificate(expansion: TimeExpansion, prices: Sequence[Prices], scale: int) -> dict[str, Any]:
    """The multipliers (``prices`` of the rows of (6), (2) and (3)) unfolded to all roots, arcs and nodes and rounded to
    integers.

    Arrays: ``capacity`` (arcs, T), ``conservation`` (nodes, nodes, T), ``causality`` (nodes, arcs, T), step t at index
    t - 1. A folded row's multiplier is shared equally by the rows it stands for.
    """
    chunks, nodes, arcs, horizon = len(expansion.roots), expansion.network.nodes, len(expansion.tail), expansion.horizon
    on_capacity, on_conservation, on_causality = prices
    capacity = np.zeros((arcs, horizon))
    for (a, t), price in on_capacity.items():
        group = expansion.equivalent_arcs[a]
        capacity[group, t - 1] = max(price, 0.0) / len(group)
    at_nodes = np.zeros((chunks, nodes, horizon))
    for (k, v, t), price in on_conservation.items():
        at_nodes[k, v, t - 1] = price
    on_arcs = np.zeros((chunks, arcs, horizon))
    for (k, a, t), price in on_causality.items():
        on_arcs[k, a, t - 1] = max(price, 0.0)
    conservation = expansion.node_orbits.spread(at_nodes)
    causality = expansion.arc_orbits.spread(on_arcs)
    return {
        "binding": "relaxation",
        "horizon": horizon,
        "capacity": _whole(capacity, scale),
        "conservation": _whole(conservation, scale),
        "causality": _whole(causality, scale),
    }


def _whole(values: FloatArray, scale: int) -> FloatArray | IntArray:
    """The values in whole multiples of one over ``scale``."""
    if not np.all(np.abs(values) <= MULTIPLIER / scale):
        return values  # floats: the check refuses them, as it would refuse whole numbers of that size
    return np.rint(values * scale).astype(np.int64)


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``relaxation``: raise the bound while the LP refutes it; the time limit may cut this short."""
    if instance.collective == "allreduce":
        raise UnsupportedError("the relaxation is stated for allgather and reduce_scatter; bound covers allreduce")
    network = instance.topology if instance.collective == "allgather" else instance.topology.reversed()
    bound, words, certificate = lower_bound(instance)
    outcome = Outcome("finished", bound=float(bound), bound_proof=words, certificate=certificate)
    while True:
        options.held.offer_bound(outcome.bound or 0.0, outcome.bound_proof, outcome.certificate)
        found = refute(network, instance.chunks, int(outcome.bound or 0), options)
        outcome.build_s += found.build_s
        outcome.solve_s += found.solve_s
        if found.certificate is None:
            if found.stretch is None:
                outcome.message = f"the LP for {found.horizon} timesteps was not solved (too large, or out of time)"
                if options.out_of_time():
                    outcome.termination = "time_limit"
            elif found.stretch > 1 + SOLVED:
                outcome.message = f"{found.words}, but no rounding of its multipliers proves it"
            return outcome
        outcome.bound, outcome.bound_proof, outcome.certificate = found.horizon + 1.0, found.words, found.certificate
