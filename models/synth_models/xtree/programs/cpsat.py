"""Method ``cpsat`` (program): the time-expanded link allocation as a CP-SAT model.

The equations are those of ``programs/ilp/model.py``: a sum of literals that is 1 becomes an exactly-one, one that is at
most 1 an at-most-one, and causality an implication.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from synth.graph.symmetry import Permutation
from synth.method import Outcome
from synth.network.symmetry import point_symmetries
from synth.options import RunOptions
from synth.solvers import cpsat as cpsat_solver
from synth.solvers.horizon import Decision
from synth.solvers.names import name_variables
from synth.solvers.rows import Row
from synth.time_expanded.windows import TimedIndex
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.programs.fewest_timesteps import decision, expansion_of, fewest_timesteps, relaxation_first
from synth_models.xtree.programs.ilp import model as equations
from synth_models.xtree.programs.joint import method as joint
from synth_models.xtree.programs.time_expansion import TimeExpansion


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``cpsat``. Raises :class:`SizeLimitError` beyond memory."""
    by = "CP-SAT"
    one_horizon = (
        partial(joint.decide, by=by) if instance.collective == "allreduce" else partial(relaxation_first, decide)
    )
    outcome = fewest_timesteps(instance, options, one_horizon, by)
    outcome.message = cpsat_solver.with_caveat(outcome.message, options)
    return outcome


def decide(instance: XTreeInstance, options: RunOptions, horizon: int) -> Decision:
    """Build and solve the model for one horizon."""
    from ortools.sat.python import cp_model  # noqa: F401  (its import is not part of building)

    started = time.monotonic()
    folded = bool(options.method["fold"])
    expansion = expansion_of(instance, horizon, folded)
    rotations = point_symmetries(expansion.network)[1:] if options.method["break_rotations"] and not folded else ()
    model, send = build(expansion, bool(options.method["break_chunks"]) and not folded, rotations)
    built = time.monotonic()
    result, solver = cpsat_solver.solve(model, options)
    sent = [index for index, literal in send.items() if solver.boolean_value(literal)] if result.has_point else []
    return decision(instance, result, expansion, sent, folded, (built - started, time.monotonic() - built))


def build(
    expansion: TimeExpansion, order: bool = False, images: Sequence[Permutation] = ()
) -> tuple[Any, dict[TimedIndex, Any]]:
    """The model with its ``send`` literals; with (4) if ``order``, (5) for ``images``."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    send = {index: model.new_bool_var("") for index in expansion.send}
    held = {index: model.new_bool_var("") for index in expansion.held}
    name_variables(model, "send", "k a t", send)
    name_variables(model, "held", "k v t", held)
    _add(model, equations.link_capacity(expansion, send).values())
    _add(model, equations.conservation(expansion, send, held).values())
    _imply(model, equations.causality(expansion, send, held).values())
    if order:
        _imply(model, equations.order_of_chunks(expansion, held).values())
    cpsat_solver.add_rows(model, equations.order_of_images(expansion, held, images).values())
    return model, send


def _add(model: Any, rows: Iterable[Row]) -> None:
    """Rows as CP-SAT likes them."""
    from ortools.sat.python.cp_model import LinearExpr

    for terms, sense, right in rows:
        factors, literals = zip(*terms, strict=True)
        if right == 1 and set(factors) == {1}:
            (model.add_exactly_one if sense == "==" else model.add_at_most_one)(literals)
        elif sense == "==" and right == 0:  # what was there and what arrives is what is there
            model.add(LinearExpr.weighted_sum(literals[:-1], factors[:-1]) == literals[-1])
        else:
            total = LinearExpr.weighted_sum(literals, factors)
            model.add(total == right if sense == "==" else total <= right)


def _imply(model: Any, rows: Iterable[Row]) -> None:
    """Rows that say of two literals that the first implies the second."""
    for terms, _, _ in rows:
        (_, one), (_, other) = terms
        model.add_implication(one, other)
