"""Method ``ilp`` (program): fewest timesteps by the time-expanded integer program, through HiGHS, Gurobi or SCIP."""

from __future__ import annotations

import time
from functools import partial

from synth.method import Outcome
from synth.network.symmetry import point_symmetries
from synth.options import RunOptions
from synth.solvers import mathprog
from synth.solvers.catalogue import require
from synth.solvers.horizon import Decision
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.programs.fewest_timesteps import decision, expansion_of, fewest_timesteps, relaxation_first
from synth_models.xtree.programs.ilp.model import build
from synth_models.xtree.programs.joint import method as joint


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``ilp``. Raises :class:`SizeLimitError` for models beyond the solver's licence or beyond memory."""
    by = require(options.solver or "highs").title
    one_horizon = (
        partial(joint.decide, by=by) if instance.collective == "allreduce" else partial(relaxation_first, decide)
    )
    return fewest_timesteps(instance, options, one_horizon, by)


def decide(instance: XTreeInstance, options: RunOptions, horizon: int) -> Decision:
    """Build and solve the program for one horizon."""
    started = time.monotonic()
    folded = bool(options.method["fold"])
    with mathprog.building():
        expansion = expansion_of(instance, horizon, folded)
        rotations = point_symmetries(expansion.network)[1:] if options.method["break_rotations"] and not folded else ()
        model = build(expansion, bool(options.method["break_chunks"]) and not folded, rotations)
    built = time.monotonic()
    # 5 x 5 with C = 2 in 11 timesteps: 9 s of processor time, by the simplex 10 s in one order of the rows, in another
    # 260 s without an answer
    result = mathprog.solve(model, options, bounded=True, interior=True)
    sent = [index for index, send in model.send.items() if send.value > 0.5] if result.has_point else []
    return decision(instance, result, expansion, sent, folded, (built - started, time.monotonic() - built))
