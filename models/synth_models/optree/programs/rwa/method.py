"""Method ``rwa`` (program): the fewest wavelengths of one stage, horizon by horizon from the load bound upwards."""

from __future__ import annotations

import time
from dataclasses import replace

from synth.clock.progress import Progress
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers import cpsat, horizon, mathprog
from synth.solvers.catalogue import require, takes
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import refuse_unmeetable, require_ring
from synth_models.optree.parts.one_stage import Stage, load_bound, published_wavelengths, shape_within
from synth_models.optree.programs.rwa.model import StageProgram, build, build_cpsat
from synth_models.optree.references.first_fit import first_fit
from synth_models.optree.references.optree import schedule

MOST_NODES = 64  # beyond it the program has more than a million binaries


def solve(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``rwa``: a one-stage schedule with the fewest wavelengths. Its optimality concerns one stage only, so no
    bound on the steps of all schedules is reported."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    require_ring(instance, "one stage")
    nodes, shape = instance.nodes, shape_within(instance, options, MOST_NODES, "the program")
    known = _closed_form(nodes) if shape == "ring" else first_fit(nodes, shape, longest_first=True)
    told = f"{known.wavelengths} wavelengths by {'the closed form' if shape == 'ring' else 'longest first'} stand in"
    options.held.offer(lambda: known.circuits(instance.wavelengths), known.wavelengths, told)
    hint = known if options.method.get("hint") and shape == "ring" else None
    outcome = fewest(nodes, shape, instance.max_hops, replace(options, progress=Progress()), hint)
    bound, stage = outcome.bound, outcome.solution
    outcome.bound = outcome.bound_proof = None  # they count wavelengths, not steps
    if stage is not None:
        outcome.termination = "finished"
        outcome.message = (
            f"{stage.wavelengths} wavelengths are the fewest for one stage (load bound {load_bound(nodes, shape)}, "
            f"proven {bound:g}, published {published_wavelengths(nodes, shape)})"
        )
        outcome.solution = stage.circuits(instance.wavelengths)
    if takes(options.solver or "cpsat", "cp"):
        outcome.message = cpsat.with_caveat(outcome.message, options)
    return outcome


def _closed_form(nodes: int) -> Stage:
    whole = schedule(nodes, nodes * nodes, (nodes,))
    columns = (x.tolist() for x in (whole.src, whole.dst, whole.direction, whole.wavelength))
    return Stage(tuple(zip(*columns, strict=True)))


def fewest(nodes: int, shape: str, max_hops: int, options: RunOptions, hint: Stage | None = None) -> Outcome:
    """The fewest wavelengths: ``solution`` of the outcome is a :class:`Stage`, ``bound`` counts wavelengths.

    Raises ``RuntimeError`` when the solver fails."""
    program = horizon.HorizonProgram(
        lambda wavelengths: decide(StageProgram(nodes, shape, max_hops, wavelengths), options, hint),
        by=require(options.solver or "cpsat").title,
        unit="wavelengths",
        size=lambda stage: stage.wavelengths,
    )
    return horizon.fewest(program, horizon.Proven(load_bound(nodes, shape), "link load"), options)


def decide(program: StageProgram, options: RunOptions, hint: Stage | None = None) -> horizon.Decision:
    """Are so many wavelengths enough? The solution is a :class:`Stage`."""
    started = time.monotonic()
    if takes(options.solver or "cpsat", "cp"):
        model, use = build_cpsat(program, hint)
        built = time.monotonic()
        result, solver = cpsat.solve(model, options, alone=cpsat.IN_TURNS)
        chosen = [key for key, on in use.items() if solver.boolean_value(on)] if result.has_point else None
    else:
        with mathprog.building():
            model = build(program)
        built = time.monotonic()
        result = mathprog.solve(model, options, bounded=True)
        chosen = [key for key, on in model.use.items() if on.value > 0.5] if result.has_point else None
    answer: horizon.Answer = "limit"
    if chosen is not None:
        answer = "feasible"
    elif result.termination in ("infeasible", "error"):
        answer = "infeasible" if result.termination == "infeasible" else "error"
    return horizon.Decision(
        answer,
        None if chosen is None else program.stage(chosen),
        build_s=built - started + result.transfer_s,
        solve_s=result.solve_s,
    )
