"""Method ``placement`` (program): optimal hypercube positions by CP-SAT or a linearised ILP; exact for small p.

The bound is the solver's (rounded up: cuts are whole blocks), at least the edge-isoperimetric one; a job whose greedy
placement meets the latter needs no solver. Jobs beyond ``LARGEST`` ranks keep the greedy placement and that bound. For
jobs of up to 16 ranks all placements are counted besides (``bounds/positions.py``). Where no job's bound is the
solver's, the certificate goes with it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from synth.arrays import SOLVED
from synth.errors import UnsupportedError
from synth.method import Outcome, Termination
from synth.options import RunOptions
from synth.solvers import cpsat, mathprog
from synth.solvers.catalogue import takes
from synth_models.bine.bounds.global_bytes import WORDS
from synth_models.bine.bounds.positions import Positions
from synth_models.bine.instance import BineInstance
from synth_models.bine.parts.units import Units, units_of
from synth_models.bine.parts.weights import dimension_weights, isoperimetric_cut, most_inside
from synth_models.bine.programs.placement import model as placement_model
from synth_models.bine.references.placement_greedy import best_placement, cut, on_positions

LARGEST = 256  # ranks for which a program is built


def solve(instance: BineInstance, options: RunOptions) -> Outcome:
    """Method ``placement``; needs the problem butterfly."""
    if instance.problem != "butterfly":
        raise UnsupportedError("placements are for the problem butterfly")
    placements, bound, optimal, bindings = [], [], True, set[str]()
    known: dict[tuple[int, ...], tuple[Any, int, int]] = {}
    positions = Positions()
    for job, groups in enumerate(instance.allocations):
        weights = dimension_weights(instance, len(groups))
        units, count = units_of(instance, job), isoperimetric_cut(instance, job, weights)
        if units.key not in known:
            alone = 2 * instance.block_bytes(len(groups)) if len(instance.allocations) == 1 else None
            known[units.key] = place(units, weights, count, options, alone)
        placed, value, least = known[units.key]
        exact = positions.least(instance, job, weights) if max(least, value) > count else None
        bindings.add(binding := _binding(least, count, exact))
        least = exact if exact is not None and binding == "positions" else least
        placements.append(placed)
        optimal &= least >= value
        bound.append((len(groups), 2 * least))
    ended: Termination = "optimal" if optimal else "time_limit"
    binding = "solver" if positions.too_many else max(bindings)  # by their names: the solver's, then positions
    proof, certificate = f"quadratic assignment, {options.solver or 'cpsat'}", None
    if binding != "solver":
        proof, certificate = WORDS[binding], {"binding": binding}
    return Outcome(ended, on_positions(instance, placements), instance.bytes_of(bound), proof, certificate)


def _binding(least: int, count: int, exact: int | None) -> str:
    """What proves a job's bound ``least``: ``count`` is the isoperimetric one, ``exact`` that over all placements."""
    if exact is not None and exact > count:
        return "positions"
    return "solver" if least > count else "isoperimetric"


def place(
    units: Units, weights: list[int], least: int, options: RunOptions, track: float | None = None
) -> tuple[Any, int, int]:
    """Best placement found, its cut and a proven bound, both in blocks each way; ``least`` is a bound known already,
    ``track`` what a block counts in the objective where this placement alone makes it."""
    sizes, ranks = units.sizes.tolist(), len(units.of_rank)
    held = most_inside(weights, ranks)
    start = best_placement(units, np.array(weights), least, options.seed, 8, options)
    value = cut(units, start, weights)
    if track is not None:
        options.progress.note(value * track, least * track)
    if value <= least or ranks > LARGEST or options.out_of_time():
        return start, value, least
    best = start
    if takes(options.solver or "cpsat", "cp"):
        origin = int(np.argmax(start == np.argmax(sizes)))  # moved to position 0, where the model wants the largest
        hint = start[np.arange(ranks) ^ origin]
        model, at = placement_model.build_cpsat(units, weights, held, hint)
        result, solver = cpsat.solve(model, replace(options, relative_gap=0.0), track=track)
        if result.has_point:
            best = np.array([solver.value(x) for x in at.values()]).reshape(ranks, -1).argmax(axis=1)
    else:
        with mathprog.building():
            model = placement_model.build(units, weights, held)
        result = mathprog.solve(model, replace(options, relative_gap=0.0), bounded=True, track=track)
        if result.has_point:
            best = np.array([x.value for x in model.at.values()]).reshape(ranks, -1).argmax(axis=1)
    if result.termination not in ("optimal", "limit"):  # there always is a placement
        raise RuntimeError(result.message or f"the solver says that placements are {result.termination}")
    found = cut(units, best, weights)
    if found > value:
        best, found = start, value
    if result.bound is not None:
        least = max(least, math.ceil(result.bound - SOLVED))
    return best, found, min(least, found)
