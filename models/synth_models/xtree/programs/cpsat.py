"""Method ``cpsat`` (program): the time-expanded link allocation as a CP-SAT model.

The same index sets, symbols and equations as ``programs/ilp/model.py``; a node's last receipts are an exactly-one,
causality is an implication.
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
from synth_models.xtree.programs.fewest_timesteps import check_size, decision, fewest_timesteps
from synth_models.xtree.programs.joint import method as joint
from synth_models.xtree.programs.time_expansion import TimeExpansion, free_generators


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
    link_capacity(model, expansion, send)
    conservation(model, expansion, send, held)
    causality(model, expansion, send, held)
    return model, send, held


def link_capacity(model: Any, expansion: TimeExpansion, send: list[Any]) -> None:
    """(1): an arc carries at most as many chunks per timestep as it has links."""
    from ortools.sat.python.cp_model import LinearExpr

    for arcs, _, variables, coefficients in expansion.capacity_rows():
        capacity, load = expansion.capacity[arcs[0]], [send[i] for i in variables]
        if capacity == 1 and set(coefficients) == {1}:
            model.add_at_most_one(load)
        else:
            model.add(LinearExpr.weighted_sum(load, coefficients) <= capacity)


def conservation(model: Any, expansion: TimeExpansion, send: list[Any], held: list[Any]) -> None:
    """(2): what a node holds after a timestep is what it held before and what arrives; at the end it holds all."""
    from ortools.sat.python.cp_model import LinearExpr

    for _, arriving, coefficients, before, after in expansion.arrival_rows():
        literals = [send[i] for i in arriving] + ([held[before]] if before is not None else [])
        if after is None and set(coefficients) <= {1}:
            model.add_exactly_one(literals)
        else:
            signs = [*coefficients] + ([1] if before is not None else [])
            model.add(LinearExpr.weighted_sum(literals, signs) == (held[after] if after is not None else 1))


def causality(model: Any, expansion: TimeExpansion, send: list[Any], held: list[Any]) -> None:
    """(3): a chunk leaves a node only in a later timestep than it arrived."""
    for sent, before in expansion.departure_rows():
        model.add_implication(send[sent], held[before])


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
    check_size(network, len(roots), horizon)
    folded = bool(options.method["fold"])
    expansion = TimeExpansion(network, roots, horizon, fold=free_generators(network) if folded else ())
    model, send, held = build(expansion)
    if options.method["break_chunks"] and not folded:
        order_chunks(model, expansion, held)
    if options.method["break_rotations"] and not folded:
        order_rotations(model, expansion, held, point_symmetries(network)[1:])
    built = time.monotonic()
    result, solver = cpsat_solver.solve(model, options)
    seconds = built - started, time.monotonic() - built
    return decision(
        result,
        horizon,
        folded,
        seconds,
        lambda: expansion.schedule([i for i, literal in enumerate(send) if solver.boolean_value(literal)]),
    )
