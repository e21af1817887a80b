"""Method ``one_path`` (program): the fewest steps with which all items take the same path round the ring, rotated.

Horizons are tried from the lower bound (method ``bound``) upwards to what ``relay`` needs; each is a CP-SAT model of
gaps (``programs/one_path/model.py``), with one path for all items, then with as many as ``periods``. What it finds is a
schedule like any other. That it finds none proves nothing of schedules whose items take more paths. Sizes up to
``MOST_COLUMNS`` counts.

With more than one path the circuits of a step may get no wavelengths. Then the next tries do not send the same ones
together, up to ``TRIES`` times.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from synth.errors import SizeLimitError
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers import cpsat
from synth.solvers.horizon import Decision, HorizonProgram, Incumbent, Proven, fewest
from synth_models.optree.bounds.steps import lower_bound
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import refuse_unmeetable, require_explicit_size, require_ring
from synth_models.optree.programs.one_path.circuits import Sent, circuits_of, paths_of
from synth_models.optree.programs.one_path.model import OnePath, build
from synth_models.optree.references.relay import relay
from synth_models.optree.solution import Circuits

MOST_COLUMNS = 20_000
TRIES = 20
PERIODS = (1, 2)


def solve(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``one_path``."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    require_ring(instance, "one path")
    require_explicit_size(instance)
    horizon = options.method.get("horizon")
    known = relay(instance, options) if horizon is None and options.method.get("warm_start", True) else None
    steps, words, certificate = lower_bound(instance, options)
    outcome = fewest(
        HorizonProgram(
            lambda steps: decide(instance, options, steps),
            "CP-SAT",
            "steps",
            size=lambda found: found.steps,
            hold=lambda found: found,
        ),
        Proven(steps, words, certificate),
        options,
        Incumbent(known, "relay"),
        horizon=horizon,
    )
    outcome.message = cpsat.with_caveat(outcome.message, options)
    return outcome


def decide(instance: OpTreeInstance, options: RunOptions, horizon: int) -> Decision:
    """A schedule of ``horizon`` steps whose items take few paths, or that there is none, or neither in time. Raises
    :class:`SizeLimitError`."""
    decision = Decision("restricted")
    for period in PERIODS:
        if instance.nodes % period or decision.answer == "feasible":
            continue
        path = OnePath(instance.nodes, instance.wavelengths, instance.max_hops, horizon, period)
        if (size := len(path.left) + len(path.right) + len(path.sent)) > MOST_COLUMNS:
            raise SizeLimitError(
                f"the program takes up to {MOST_COLUMNS} counts; {horizon} steps need {size}; use relay"
            )
        found = _search(path, options, decision)
        if isinstance(found, Circuits):
            decision.answer, decision.solution = "feasible", found
            decision.message = f"{period} path{'s' if period > 1 else ''} for all items"
        elif found == "limit":
            decision.answer = "limit"
    if decision.answer == "restricted":
        decision.message = f"no schedule of {horizon} steps is found whose items all take one path or one of two"
    return decision


def _search(path: OnePath, options: RunOptions, decision: Decision) -> Circuits | str:
    """A schedule, or ``limit``, or ``none``; the times are added to the decision's. Raises ``RuntimeError`` where the
    solver fails."""
    if path.spare < 0:
        return "none"
    started = time.monotonic()
    model = build(path, options.seed)
    decision.build_s += time.monotonic() - started
    for _ in range(TRIES):
        result, solver = cpsat.solve(model, options, alone=cpsat.IN_TURNS)
        decision.solve_s += result.solve_s
        if result.termination == "error":
            raise RuntimeError(result.message)
        if not result.has_point:
            return "none" if result.termination == "infeasible" else "limit"
        rows = paths_of(path, solver.value)
        found = circuits_of(path, rows, options)
        if isinstance(found, Circuits):
            return found
        for step, direction in sorted(found):
            _forbid(model, path, [row for row in rows if (row.step, row.direction) == (step, direction)])
    return "limit"


def _forbid(model: object, path: OnePath, together: Sequence[Sent]) -> None:
    """Never again these circuits of two hops and more in one step of their direction."""
    kinds: dict[tuple[int, int], int] = {}
    for row in together:
        if row.hops > 1:
            key = row.hops, row.src % path.period
            kinds[key] = kinds.get(key, 0) + 1
    add = model.add  # type: ignore[attr-defined]
    for step in range(1, path.horizon + 1):
        fewer = []
        for (hops, place), often in kinds.items():
            numbers = [
                count for (t, d, h, s, _), count in path.sent.items()
                if (t, d, h, s) == (step, together[0].direction, hops, place)
            ]  # fmt: skip
            less = model.new_bool_var("")  # type: ignore[attr-defined]
            add(sum(numbers) <= often - 1).only_enforce_if(less)
            fewer.append(less)
        model.add_bool_or(fewer)  # type: ignore[attr-defined]
