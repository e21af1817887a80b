"""Method ``cpsat`` (program): the time-expanded link allocation as a CP-SAT model.

The same index sets and rows as ``programs/ilp/model.py``; a node's receipts are an exactly-one, causality is
an implication. ``h[k,v,t]`` is tied to arrivals by the same balance.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from synth.family import Outcome
from synth.network import Network
from synth.network.symmetry import point_symmetries
from synth.options import RunOptions
from synth.solvers import cpsat as cpsat_solver
from synth.solvers.horizon import Decision
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.programs.fewest_timesteps import fewest_timesteps, folded_words
from synth_models.xtree.programs.ilp.method import check_size
from synth_models.xtree.programs.joint import method as joint
from synth_models.xtree.programs.time_expansion import TimeExpansion, free_generators

LARGEST = 3_000_000


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``cpsat``. Raises :class:`SizeLimitError` beyond memory."""
    if instance.collective == "allreduce":
        outcome = joint.solve_cpsat(instance, options)
    else:
        outcome = fewest_timesteps(instance, options, decide, "CP-SAT")
    outcome.message = cpsat_solver.with_caveat(outcome.message, options)
    return outcome


def build(expansion: TimeExpansion) -> tuple[Any, list[Any], list[Any]]:
    """The model with its ``send`` and ``held`` literals."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    send = [model.new_bool_var("") for _ in expansion.send]
    held = [model.new_bool_var("") for _ in expansion.held]
    for arcs, _, variables, coefficients in expansion.capacity_rows():
        capacity = expansion.capacity[arcs[0]]
        if capacity == 1 and set(coefficients) == {1}:
            model.add_at_most_one([send[i] for i in variables])
        else:
            load = cp_model.LinearExpr.weighted_sum([send[i] for i in variables], coefficients)
            model.add(load <= capacity)
    for _, arriving, coefficients, before, after in expansion.arrival_rows():
        literals = [send[i] for i in arriving] + ([held[before]] if before is not None else [])
        if after is None and set(coefficients) <= {1}:
            model.add_exactly_one(literals)
        else:
            signs = [*coefficients] + ([1] if before is not None else [])
            right = held[after] if after is not None else 1
            model.add(cp_model.LinearExpr.weighted_sum(literals, signs) == right)
    for sent, before in expansion.departure_rows():
        model.add_implication(send[sent], held[before])
    return model, send, held


def order_chunks(model: Any, expansion: TimeExpansion, held: list[Any]) -> None:
    """Symmetry breaking among the chunks of a node, see :meth:`TimeExpansion.chunk_order_rows`."""
    for later, earlier in expansion.chunk_order_rows():
        model.add_implication(held[later], held[earlier])


def order_rotations(model: Any, expansion: TimeExpansion, held: list[Any], group: list[Any]) -> None:
    """Symmetry breaking among rotations and reflections, see :meth:`TimeExpansion.rotation_order_rows`."""
    for mine, theirs in expansion.rotation_order_rows(group):
        model.add(sum(held[i] for i in mine) <= sum(held[i] for i in theirs))


def decide(network: Network, chunks: int, horizon: int, options: RunOptions) -> Decision:
    """Build and solve the model for one horizon."""
    from ortools.sat.python import cp_model  # noqa: F401  (its import is not part of building)

    started = time.monotonic()
    roots = np.repeat(np.arange(network.nodes), chunks)
    check_size(network, len(roots), horizon, LARGEST)
    folded = bool(options.method["fold"])
    expansion = TimeExpansion(network, roots, horizon, fold=free_generators(network) if folded else ())
    model, send, held = build(expansion)
    if options.method["break_chunks"] and not folded:
        order_chunks(model, expansion, held)
    if options.method["break_rotations"] and not folded:
        order_rotations(model, expansion, held, point_symmetries(network)[1:])
    built = time.monotonic()
    result, solver = cpsat_solver.solve(model, options)
    decision = Decision("limit", message=result.message, build_s=built - started, solve_s=time.monotonic() - built)
    if result.termination == "infeasible":
        decision.answer = "restricted" if folded else "infeasible"
        decision.message = folded_words(horizon) if folded else None
    elif result.has_point:
        chosen = [i for i, literal in enumerate(send) if solver.boolean_value(literal)]
        decision.answer, decision.solution = "feasible", expansion.schedule(chosen)
    elif result.termination == "error":
        decision.answer = "error"
    return decision
