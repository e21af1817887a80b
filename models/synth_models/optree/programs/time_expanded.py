"""Method ``time_expanded`` (program): the fewest steps of any schedule, store-and-forward at every node (CP-SAT).

The step model of Dai, Chen, Huang, Zhang (one item per wavelength, link, direction and step; a circuit keeps its
wavelength) without their restriction to all-to-all inside groups. For a horizon ``T``:

==================================  ======================  ==================================================
symbol                              code                    meaning (all binary)
==================================  ======================  ==================================================
``x[t,d,u,h,o]``                    ``send[t,d,u,h,o]``     in step t item o goes from node u over h hops
``c[t,d,u,h,l]``                    ``lit[t,d,u,h,l]``      in step t wavelength l carries a circuit from u, h hops
==================================  ======================  ==================================================

- every node receives every other item exactly once (a second copy is never needed);
- a node sends what it received in an earlier step, or its own item;
- as many circuits from u over h hops as items sent that way (``match``);
- on every link, direction and wavelength at most one circuit (``links``); no big-M anywhere.

Horizons are tried from the lower bound (method ``bound``) upwards to what ``relay`` needs. Each is first sought among
schedules that repeat themselves under a rotation of the ring by ``g`` nodes, for the divisors ``g`` of N in ascending
order: what is found there is a schedule like any other. Only the model without rotations (``g = N``) proves a horizon
infeasible. Sizes up to ``MOST_BINARIES`` binaries in ``send``.

One thread seeks rotating schedules by the strategy that finds them soonest and proves by all of CP-SAT's strategies in
turns (one alone gets stuck), which repeats by seed; several threads race each other and do not.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from synth.errors import SizeLimitError, UnsupportedError
from synth.family import Outcome
from synth.options import RunOptions
from synth.solvers.horizon import Decision, Proven, fewest
from synth_models.optree.bounds.steps import lower_bound
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import refuse_unmeetable
from synth_models.optree.parts.carrying import Prices, price
from synth_models.optree.references.relay import relay
from synth_models.optree.solution import Circuits

MOST_BINARIES = 300_000
WITHOUT_LP = {"linearization_level": 0}


def solve(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``time_expanded``."""
    from synth.solvers.cpsat import with_caveat

    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    horizon = options.method.get("horizon")
    if (binaries := _binaries(instance, horizon or 1)) > MOST_BINARIES:
        raise UnsupportedError(_too_large(instance, horizon or 1, binaries))
    known = relay(instance, options) if horizon is None and options.method.get("warm_start", True) else None
    steps, words, certificate = lower_bound(instance, options)
    undecided = False

    def decided(steps: int) -> Decision:
        nonlocal undecided
        parts = 1
        if known is not None:  # keep some of the time for the horizons between this one and relay's
            parts = known.steps - steps if undecided else min(2, known.steps - steps)
        decision = decide(instance, _share(options, max(1, parts)), steps)
        undecided = undecided or decision.answer == "limit"
        return decision

    outcome = fewest(
        decided, Proven(steps, words, certificate), options, by="CP-SAT", unit="steps", size=lambda found: found.steps,
        incumbent=known, origin="relay", horizon=horizon, seek=True,
    )  # fmt: skip
    outcome.message = with_caveat(outcome.message, options)
    return outcome


def _share(options: RunOptions, parts: int) -> RunOptions:
    """The options with a ``parts``-th of the time that is left."""
    remaining = options.remaining()
    if remaining is None or parts == 1:
        return options
    return replace(options, time_limit_s=max(0.01, remaining / parts), started=time.monotonic())


def _binaries(instance: OpTreeInstance, horizon: int) -> int:
    return 2 * horizon * instance.nodes**2 * instance.max_hops


def _too_large(instance: OpTreeInstance, horizon: int, binaries: int) -> str:
    return (
        f"the time-expanded program takes up to {MOST_BINARIES} binaries; {horizon} steps on {instance.nodes} "
        f"nodes need {binaries}; use relay and bound"
    )


def decide(instance: OpTreeInstance, options: RunOptions, horizon: int) -> Decision:
    """A schedule of ``horizon`` steps, or proven infeasible, or neither in time. Raises :class:`SizeLimitError`."""
    from synth.solvers.cpsat import IN_TURNS
    from synth.solvers.cpsat import solve as run_solver

    nodes = instance.nodes
    if (binaries := _binaries(instance, horizon)) > MOST_BINARIES:
        raise SizeLimitError(_too_large(instance, horizon, binaries))
    decision = Decision("limit")
    for period in (g for g in range(1, nodes + 1) if nodes % g == 0):
        started = time.monotonic()
        model, send, lit = build(instance, horizon, period)
        decision.build_s += time.monotonic() - started
        share = options
        if period < nodes:  # half of the time for the class in which most is found
            share = _share(options, 2 if period == 1 else 8)
        result, solver = run_solver(model, share, alone=IN_TURNS if period == nodes else WITHOUT_LP)
        decision.solve_s += result.solve_s
        if result.has_point:
            decision.answer, decision.solution = "feasible", _read(instance, horizon, period, send, lit, solver)
            if period < nodes:
                decision.message = f"found among schedules that repeat every {period} nodes"
        elif result.termination == "error":
            decision.answer, decision.message = "error", result.message
        elif result.termination == "infeasible" and period == nodes:
            decision.answer = "infeasible"
        if decision.answer != "limit":
            break
    return decision


def build(instance: OpTreeInstance, horizon: int, period: int) -> tuple[Any, dict[Any, Any], dict[Any, Any]]:
    """The CP-SAT model and its variables ``send`` and ``lit``; ``period`` rotations of which repeat. Calls no solver.

    Keys of ``send`` are canonical, see :func:`canonical`.
    """
    from ortools.sat.python import cp_model

    nodes, wavelengths, reach = instance.nodes, instance.wavelengths, instance.max_hops
    model = cp_model.CpModel()
    steps, ways, lengths = range(1, horizon + 1), (0, 1), range(1, reach + 1)
    send: dict[Any, Any] = {}
    for t in steps:
        for d in ways:
            for u in range(period):
                for h in lengths:
                    for o in range(nodes):
                        target = (u + h if d == 0 else u - h) % nodes
                        if o != target and (t > 1 or o == u):
                            send[t, d, u, h, o] = model.new_bool_var("")
    lit = {
        (t, d, u, h, wave): model.new_bool_var("")
        for t in steps for d in ways for u in range(nodes) for h in lengths for wave in range(wavelengths)
    }  # fmt: skip

    def sent(t: int, d: int, u: int, h: int, o: int) -> Any:
        return send.get(canonical(t, d, u, h, o, nodes, period))

    def arrivals(t: int, v: int, o: int) -> list[Any]:
        found = [sent(t, d, (v - h if d == 0 else v + h) % nodes, h, o) for d in ways for h in lengths]
        return [variable for variable in found if variable is not None]

    def received_once() -> None:
        for v in range(period):
            for o in range(nodes):
                if o != v:
                    model.add_exactly_one([variable for t in steps for variable in arrivals(t, v, o)])

    def held_before() -> None:
        for u in range(period):
            for o in range(nodes):
                if o == u:
                    continue
                earlier: list[Any] = []
                for t in steps:
                    for d in ways:
                        for h in lengths:
                            variable = sent(t, d, u, h, o)
                            if variable is not None:
                                model.add_bool_or([*earlier, variable.negated()])
                    earlier += arrivals(t, u, o)

    def match() -> None:
        for t in steps:
            for d in ways:
                for u in range(nodes):
                    for h in lengths:
                        items = [v for v in (sent(t, d, u, h, o) for o in range(nodes)) if v is not None]
                        model.add(sum(items) == sum(lit[t, d, u, h, wave] for wave in range(wavelengths)))

    def links() -> None:
        for t in steps:
            for d in ways:
                for wave in range(wavelengths):
                    for link in range(nodes):  # link v: between v and v+1; h hops from u cover u..u+h-1 or u-h..u-1
                        model.add_at_most_one(
                            lit[t, d, (link - k if d == 0 else link + 1 + k) % nodes, h, wave]
                            for h in lengths for k in range(h)
                        )  # fmt: skip

    def pays() -> None:
        for prices in dear_prices(instance, horizon):
            least = least_cost(instance, prices)
            for o in range(period):
                hops: list[Any] = []
                weights: list[int] = []
                for t in steps:
                    for d in ways:
                        for h in lengths:
                            for u in range(nodes):
                                variable = sent(t, d, u, h, o)
                                if variable is not None:
                                    hops.append(variable)
                                    weights.append(prices[t - 1] * h)
                model.add(cp_model.LinearExpr.weighted_sum(hops, weights) >= least)

    received_once()
    held_before()
    match()
    links()
    pays()
    return model, send, lit


def dear_prices(instance: OpTreeInstance, horizon: int) -> list[list[int]]:
    """Whole-number prices of the steps for the redundant constraints: equal ones, and the dearest found."""
    search = Prices({instance.nodes: 1}, horizon, instance.max_hops)
    search.settle(30, 1e-6)
    dear = [round(1000 * float(price)) for price in search.best]
    return [[1] * horizon, dear]


def least_cost(instance: OpTreeInstance, prices: list[int]) -> int:
    """What one item pays at least (``bounds/steps.py``); whole numbers far below 2^53, so exact."""
    rest, _, _ = price(instance.nodes, np.array(prices, dtype=float), instance.max_hops)
    return min(10**9, round(float(rest[0, instance.nodes])))


def canonical(t: int, d: int, u: int, h: int, o: int, nodes: int, period: int) -> tuple[int, int, int, int, int]:
    """The key of the rotation with its source below ``period``."""
    back = u - u % period
    return t, d, u - back, h, (o - back) % nodes


def _read(
    instance: OpTreeInstance, horizon: int, period: int, send: dict[Any, Any], lit: dict[Any, Any], solver: Any
) -> Circuits:
    nodes = instance.nodes
    rows = []
    for t in range(1, horizon + 1):
        for d in (0, 1):
            for u in range(nodes):
                for h in range(1, instance.max_hops + 1):
                    waves = [
                        wave for wave in range(instance.wavelengths) if solver.boolean_value(lit[t, d, u, h, wave])
                    ]
                    keys = ((canonical(t, d, u, h, o, nodes, period), o) for o in range(nodes))
                    items = [o for key, o in keys if key in send and solver.boolean_value(send[key])]
                    target = (u + h if d == 0 else u - h) % nodes
                    rows += [(t, u, target, d, wave, o) for wave, o in zip(waves, items, strict=True)]
    return Circuits.of(*zip(*rows, strict=True))
