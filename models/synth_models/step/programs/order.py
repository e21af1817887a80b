"""Program ``order``: order and overlap of a small step, exactly, as a constraint program.

Nodes i with durations d_i (picoseconds, a collective's by its quickest algorithm, which is never worse), starts s_i:

    minimise T   with   s_i + d_i <= T,   s_i >= s_k + d_k where i comes after k,   no overlap on any stream or port.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from synth.errors import SizeLimitError
from synth.method import Outcome, Termination
from synth.options import RunOptions
from synth.solvers import cpsat
from synth_models.step.bounds.strongest import strongest
from synth_models.step.instance import TICKS, StepInstance
from synth_models.step.parts.prices import quickest
from synth_models.step.solution import timetable_of

ENDED: dict[str, Termination] = {"optimal": "optimal", "limit": "time_limit"}  # by how the solver ended
MOST_DOMAINS = 1 << 62  # picoseconds: the solver adds up the lengths of all variables' domains


def _ends(model: Any, start: list[Any], long: list[int], last: Any) -> None:
    """(1): no node ends after the last end, which is the least."""
    for at, duration in zip(start, long, strict=True):
        model.add(at + duration <= last)
    model.minimize(last)


def _after(model: Any, start: list[Any], long: list[int], instance: StepInstance) -> None:
    """(2): a node starts when those before it have ended."""
    for node, before in enumerate(instance.before):
        for other in before:
            model.add(start[node] >= start[other] + long[other])


def _one_at_a_time(model: Any, start: list[Any], long: list[int], instance: StepInstance) -> None:
    """(3): the spans on a stream or a port are disjoint."""
    spans = [model.new_fixed_size_interval_var(at, d, "") for at, d in zip(start, long, strict=True)]
    on: dict[tuple[str, int, str], list[Any]] = defaultdict(list)
    for node, places in enumerate(instance.places):
        for place in places:
            on[place].append(spans[node])
    for together in on.values():
        model.add_no_overlap(together)


def build(instance: StepInstance, long: list[int]) -> tuple[Any, list[Any]]:
    """The ``CpModel`` and the starts by node."""
    from ortools.sat.python import cp_model

    model, most = cp_model.CpModel(), sum(long)
    start = [model.new_int_var(0, most - duration, "") for duration in long]
    _ends(model, start, long, model.new_int_var(max(long), most, ""))
    _after(model, start, long, instance)
    _one_at_a_time(model, start, long, instance)
    return model, start


def solve(instance: StepInstance, options: RunOptions) -> Outcome:
    """The optimum, or the best point in time. ``optimal`` is the solver's word; the bound stated is that of the
    longest path or the streams' work where that is as good, with its certificate."""
    long = quickest(instance)
    if sum(long) * (len(long) + 1) > MOST_DOMAINS:
        raise SizeLimitError(
            f"{len(long)} nodes of {sum(long) / TICKS:.3g} s in all are more than the solver can count"
        )
    model, start = build(instance, long)
    result, solver = cpsat.solve(model, options, track=1 / TICKS, alone=cpsat.IN_TURNS)
    found = timetable_of([int(solver.value(at)) for at in start]) if result.has_point else None
    own, words, certificate = strongest(instance)
    if result.bound is None or own >= result.bound:
        bound: dict[str, Any] = {"bound": own / TICKS, "bound_proof": words, "certificate": certificate}
    else:
        bound = {"bound": result.bound / TICKS, "bound_proof": "CP-SAT's bound, of quickest algorithms one at a time"}
    ended, said = ENDED.get(result.termination, "error"), cpsat.with_caveat(result.message, options)
    return Outcome(ended, found, message=said, solve_s=result.solve_s, **bound)
