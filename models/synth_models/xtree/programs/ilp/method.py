"""Method ``ilp`` (program): fewest timesteps by the time-expanded integer program, through HiGHS, Gurobi or SCIP."""

from __future__ import annotations

import time

import numpy as np

from synth.family import Outcome
from synth.network import Network
from synth.network.symmetry import point_symmetries
from synth.options import RunOptions
from synth.solvers import mathprog
from synth.solvers.catalogue import require
from synth.solvers.horizon import Decision
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.programs.fewest_timesteps import check_size, decision, fewest_timesteps
from synth_models.xtree.programs.ilp import model as ilp_model
from synth_models.xtree.programs.joint import method as joint
from synth_models.xtree.programs.time_expansion import TimeExpansion, free_generators


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``ilp``. Raises :class:`SizeLimitError` for models beyond the solver's licence or beyond memory."""
    if instance.collective == "allreduce":
        return joint.solve_ilp(instance, options)
    return fewest_timesteps(instance, options, decide, require(options.solver or "highs").title)


def decide(network: Network, chunks: int, horizon: int, options: RunOptions) -> Decision:
    """Build and solve the program for one horizon."""
    started = time.monotonic()
    roots = np.repeat(np.arange(network.nodes), chunks)
    check_size(network, len(roots), horizon)
    folded = bool(options.method["fold"])
    with mathprog.building():
        expansion = TimeExpansion(network, roots, horizon, fold=free_generators(network) if folded else ())
        model = ilp_model.build(expansion)
        if options.method["break_chunks"] and not folded:
            ilp_model.order_chunks(model, expansion)
        if options.method["break_rotations"] and not folded:
            ilp_model.order_rotations(model, expansion, point_symmetries(network)[1:])
    built = time.monotonic()
    # 5 x 5 with C = 2 in 11 timesteps: 9 s of processor time, by the simplex 10 s in one order of the rows, in another
    # 260 s without an answer
    result = mathprog.solve(model, options, bounded=True, interior=True)
    seconds = built - started, time.monotonic() - built
    return decision(
        result,
        horizon,
        folded,
        seconds,
        lambda: expansion.schedule([i for i, sent in model.send.items() if sent.value > 0.5]),
    )
