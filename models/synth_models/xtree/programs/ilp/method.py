"""Method ``ilp`` (program): fewest timesteps by the time-expanded integer program, through HiGHS, Gurobi or SCIP."""

from __future__ import annotations

import time

import numpy as np

from synth.errors import SizeLimitError
from synth.family import Outcome
from synth.network import Network
from synth.network.symmetry import point_symmetries
from synth.options import RunOptions
from synth.solvers import mathprog
from synth.solvers.catalogue import require
from synth.solvers.horizon import Decision
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.programs.fewest_timesteps import fewest_timesteps, folded_words
from synth_models.xtree.programs.ilp import model as ilp_model
from synth_models.xtree.programs.joint import method as joint
from synth_models.xtree.programs.time_expansion import TimeExpansion, free_generators

LARGEST = 3_000_000  # (chunk, arc, timestep) triples; beyond it building alone would take minutes


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``ilp``. Raises :class:`SizeLimitError` for models beyond the solver's licence or beyond memory."""
    if instance.collective == "allreduce":
        return joint.solve_ilp(instance, options)
    return fewest_timesteps(instance, options, decide, require(options.solver or "highs").title)


def decide(network: Network, chunks: int, horizon: int, options: RunOptions) -> Decision:
    """Build and solve the program for one horizon."""
    started = time.monotonic()
    roots = np.repeat(np.arange(network.nodes), chunks)
    check_size(network, len(roots), horizon, LARGEST)
    folded = bool(options.method["fold"])
    with mathprog.building():
        expansion = TimeExpansion(network, roots, horizon, fold=free_generators(network) if folded else ())
        model = ilp_model.build(expansion)
        if options.method["break_chunks"] and not folded:
            ilp_model.order_chunks(model, expansion)
        if options.method["break_rotations"] and not folded:
            ilp_model.order_rotations(model, expansion, point_symmetries(network)[1:])
    built = time.monotonic()
    result = mathprog.solve(model, options, bounded=True)
    decision = Decision("limit", message=result.message, build_s=built - started, solve_s=time.monotonic() - built)
    if result.termination == "infeasible":
        decision.answer = "restricted" if folded else "infeasible"
        decision.message = folded_words(horizon) if folded else None
    elif result.has_point:
        chosen = [i for i in range(len(expansion.send)) if model.send[i].value > 0.5]
        decision.answer, decision.solution = "feasible", expansion.schedule(chosen)
    elif result.termination == "error":
        decision.answer = "error"
    return decision


def check_size(network: Network, chunks: int, horizon: int, largest: int) -> None:
    """Raise :class:`SizeLimitError` when the program would have more than ``largest`` send variables."""
    triples = chunks * len(network.arcs[0]) * horizon
    if triples > largest:
        raise SizeLimitError(
            f"the program would have about {triples} variables, more than {largest}; use pull or symmetric"
        )
