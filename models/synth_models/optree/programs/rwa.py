"""Methods ``rwa`` (program), ``first_fit`` and ``longest_first`` (references): routes and wavelengths of one stage.

The stage is the one-stage all-to-all of Dai, Chen, Huang, Zhang (Lemma 1): every node sends its item straight to every
other node; a circuit takes one of the two directions and one wavelength on all its links. The fewest wavelengths
``W`` give ``ceil(W/w)`` steps. ``shape=segment`` forbids the link between node N-1 and node 0 (routes are forced).

Program, for a number of wavelengths ``W`` from the load bound upwards (symbols as in the code):

===================  ====================================================
``use[u,v,d,l]``     circuit u -> v goes in direction d on wavelength l
``routed``           every circuit takes exactly one direction and wavelength
``links``            a link, direction and wavelength carries one circuit
===================  ====================================================

Interchangeable wavelengths are told apart at the middle link: circuits that must cross it take them in order
(``break_wavelengths``). Where the load bound leaves no hop to spare, ways round are dropped (``force_short_ways``).

**Load bound.** Segment: ``floor(m/2) * ceil(m/2) = floor(m^2/4)`` circuits cross the middle link in each direction.
Ring: the shortest ways of all circuits are ``m * floor(m^2/4)`` hops, over ``2m`` directed links:
``ceil(floor(m^2/4) / 2)``. Both are reached for every ``m`` (``parts/stage_layout.py``). So the paper's
``floor(m^2/4)`` is right, and its ``ceil(m^2/8)`` is right for even ``m`` and one too many for every odd ``m``.

References route the shortest way (opposite nodes by turns) and give every circuit the first wavelength that is free
on all its links, in order of source and destination (first fit) or longest circuits first. O(m^4) time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from synth.errors import UnsupportedError
from synth.family import Outcome
from synth.kernels import jit
from synth.options import RunOptions
from synth.progress import Progress
from synth.solvers import horizon
from synth.solvers.status import SolverTermination
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import refuse_unmeetable, require_hops
from synth_models.optree.references.optree import schedule
from synth_models.optree.solution import Circuits

MOST_NODES = 64  # beyond it the program has more than a million binaries
REFERENCE_NODES = 512


@dataclass(frozen=True)
class Stage:
    """One circuit per row of an all-to-all: source, destination, direction, wavelength."""

    rows: tuple[tuple[int, int, int, int], ...]

    @property
    def wavelengths(self) -> int:
        """How many wavelengths it uses."""
        return 1 + max(row[3] for row in self.rows)


def load_bound(nodes: int, shape: str) -> int:
    """The link-load bound on the wavelengths of an all-to-all on a ``ring`` or a ``segment`` (see the module)."""
    return nodes * nodes // 4 if shape == "segment" else (nodes * nodes // 4 + 1) // 2


def published_wavelengths(nodes: int, shape: str) -> int:
    """The paper's Lemma 1: ``floor(m^2/4)`` on a line, ``ceil(m^2/8)`` on a ring."""
    return nodes * nodes // 4 if shape == "segment" else -(-nodes * nodes // 8)


def routes(nodes: int, u: int, v: int, shape: str, max_hops: int) -> list[int]:
    """Directions (0 clockwise, 1 counterclockwise) that circuit u -> v may take."""
    forward = (v - u) % nodes
    allowed = [d for d, hops in ((0, forward), (1, nodes - forward)) if hops <= max_hops]
    if shape == "segment":
        allowed = [d for d in allowed if d == (0 if v > u else 1)]
    return allowed


def links_of(nodes: int, u: int, v: int, direction: int) -> list[int]:
    """Links of a circuit; link ``k`` lies between nodes ``k`` and ``k+1``."""
    if direction == 0:
        return [(u + k) % nodes for k in range((v - u) % nodes)]
    return [(u - 1 - k) % nodes for k in range((u - v) % nodes)]


def heuristic(nodes: int, shape: str, longest_first: bool) -> Stage:
    """First fit, in order of source and destination or longest circuits first."""
    rows = [(u, v, _short_way(nodes, u, v, shape)) for u in range(nodes) for v in range(nodes) if u != v]
    if longest_first:
        rows.sort(key=lambda row: -((row[1] - row[0]) % nodes if row[2] == 0 else (row[0] - row[1]) % nodes))
    table = np.array(rows, dtype=np.int64)
    colours = _first_fit(nodes, table, published_wavelengths(nodes, shape) * 3 + 3)
    return Stage(tuple((u, v, d, int(colour)) for (u, v, d), colour in zip(rows, colours, strict=True)))


def _short_way(nodes: int, u: int, v: int, shape: str) -> int:
    if shape == "segment":
        return 0 if v > u else 1
    forward = (v - u) % nodes
    if 2 * forward == nodes:
        return min(u, v) % 2
    return 0 if 2 * forward < nodes else 1


@jit
def _first_fit(nodes: int, table: Any, most: int) -> Any:
    taken = np.zeros((2, nodes, most), np.bool_)
    colours = np.empty(len(table), np.int64)
    for i in range(len(table)):
        u, v, d = table[i]
        hops = (v - u) % nodes if d == 0 else (u - v) % nodes
        first = u if d == 0 else v
        for colour in range(most):
            free = True
            for k in range(hops):
                if taken[d, (first + k) % nodes, colour]:
                    free = False
                    break
            if free:
                for k in range(hops):
                    taken[d, (first + k) % nodes, colour] = True
                colours[i] = colour
                break
    return colours


def decide(
    nodes: int, shape: str, max_hops: int, wavelengths: int, options: RunOptions, hint: Stage | None = None
) -> tuple[SolverTermination, Stage | None, float, float]:
    """Colour one stage with ``wavelengths`` wavelengths: how the solver ended, the stage, build and solve seconds."""
    if options.solver in (None, "cpsat"):
        return _decide_cpsat(nodes, shape, max_hops, wavelengths, options, hint)
    return _decide_ilp(nodes, shape, max_hops, wavelengths, options)


def short_routes(nodes: int, u: int, v: int, shape: str, max_hops: int, wavelengths: int) -> list[int]:
    """:func:`routes` without ways round that no colouring with ``wavelengths`` can afford (``force_short_ways``).

    On a ring the shortest ways are ``nodes * floor(nodes^2/4)`` hops in sum. Where that is all that ``2 * nodes``
    links times ``wavelengths`` offer, every circuit must take a shortest way.
    """
    allowed = routes(nodes, u, v, shape, max_hops)
    if shape == "ring" and 2 * wavelengths == nodes * nodes // 4:
        allowed = [d for d in allowed if 2 * len(links_of(nodes, u, v, d)) <= nodes]
    return allowed


def _pairs(nodes: int) -> list[tuple[int, int]]:
    return [(u, v) for u in range(nodes) for v in range(nodes) if u != v]


def _decide_cpsat(
    nodes: int, shape: str, max_hops: int, wavelengths: int, options: RunOptions, hint: Stage | None
) -> tuple[SolverTermination, Stage | None, float, float]:
    from ortools.sat.python import cp_model

    from synth.solvers.cpsat import IN_TURNS
    from synth.solvers.cpsat import solve as run_solver

    started = time.monotonic()
    model = cp_model.CpModel()
    use = {
        (u, v, d, wave): model.new_bool_var("")
        for u, v in _pairs(nodes)
        for d in short_routes(nodes, u, v, shape, max_hops, wavelengths)
        for wave in range(wavelengths)
    }  # fmt: skip
    on_link: dict[tuple[int, int, int], list[Any]] = {}
    of_pair: dict[tuple[int, int], list[Any]] = {}
    for (u, v, d, wave), variable in use.items():
        of_pair.setdefault((u, v), []).append(variable)
        for link in links_of(nodes, u, v, d):
            on_link.setdefault((d, link, wave), []).append(variable)
    for variables in of_pair.values():
        model.add_exactly_one(variables)
    for variables in on_link.values():
        model.add_at_most_one(variables)
    for key in _fixed(nodes, shape, max_hops, wavelengths):
        model.add(use[key] == 1)
    if hint is not None:
        chosen = set(hint.rows)
        for key, variable in use.items():
            model.add_hint(variable, key in chosen)
    build_s = time.monotonic() - started
    result, solver = run_solver(model, options, alone=IN_TURNS)
    stage = None
    if result.has_point:
        stage = Stage(tuple(key for key, variable in use.items() if solver.boolean_value(variable)))
    return result.termination, stage, build_s, result.solve_s


def _fixed(nodes: int, shape: str, max_hops: int, wavelengths: int) -> list[tuple[int, int, int, int]]:
    """``break_wavelengths``: circuits that must all cross one link, in each direction, take wavelengths in order.

    The link is the middle one; crossing circuits with a choice of direction are left out.
    """
    middle = nodes // 2 - 1
    fixed = []
    for d in (0, 1):
        forced = [
            (u, v) for u, v in _pairs(nodes)
            if short_routes(nodes, u, v, shape, max_hops, wavelengths) == [d] and middle in links_of(nodes, u, v, d)
        ]  # fmt: skip
        fixed += [(u, v, d, wave) for wave, (u, v) in enumerate(forced[:wavelengths])]
    return fixed


def build(nodes: int, shape: str, max_hops: int, wavelengths: int) -> Any:
    """The integer program as a Pyomo model (feasibility: zero objective). Calls no solver."""
    import pyomo.environ as pyo
    from pyomo.core.expr.numeric_expr import LinearExpression

    keys = [
        (u, v, d, wave)
        for u, v in _pairs(nodes)
        for d in short_routes(nodes, u, v, shape, max_hops, wavelengths)
        for wave in range(wavelengths)
    ]  # fmt: skip
    model = pyo.ConcreteModel()
    model.K = pyo.RangeSet(0, len(keys) - 1)
    model.use = pyo.Var(model.K, domain=pyo.Binary)
    model.keys = keys
    on_link: dict[tuple[int, int, int], list[Any]] = {}
    of_pair: dict[tuple[int, int], list[Any]] = {}
    for k, (u, v, d, wave) in enumerate(keys):
        of_pair.setdefault((u, v), []).append(model.use[k])
        for link in links_of(nodes, u, v, d):
            on_link.setdefault((d, link, wave), []).append(model.use[k])

    def routed(_: Any, u: int, v: int) -> Any:
        """Lemma 1's all-to-all: every circuit once."""
        return _sum(LinearExpression, of_pair[u, v]) == 1

    def links(_: Any, d: int, link: int, wave: int) -> Any:
        """A wavelength of a link carries one circuit."""
        return _sum(LinearExpression, on_link[d, link, wave]) <= 1

    model.routed = pyo.Constraint(list(of_pair), rule=routed)
    model.links = pyo.Constraint(list(on_link), rule=links)
    for key in _fixed(nodes, shape, max_hops, wavelengths):
        model.use[keys.index(key)].setlb(1)
    model.nothing = pyo.Objective(expr=0.0 * model.use[0])
    return model


def _sum(expression: Any, variables: list[Any]) -> Any:
    return expression(linear_coefs=[1] * len(variables), linear_vars=variables)


def _decide_ilp(
    nodes: int, shape: str, max_hops: int, wavelengths: int, options: RunOptions
) -> tuple[SolverTermination, Stage | None, float, float]:
    from synth.solvers.mathprog import building
    from synth.solvers.mathprog import solve as run_solver

    started = time.monotonic()
    with building():
        model = build(nodes, shape, max_hops, wavelengths)
    build_s = time.monotonic() - started
    result = run_solver(model, options, bounded=True)
    stage = None
    if result.has_point:
        stage = Stage(tuple(key for k, key in enumerate(model.keys) if model.use[k].value > 0.5))
    return result.termination, stage, build_s + result.transfer_s, result.solve_s


def fewest(nodes: int, shape: str, max_hops: int, options: RunOptions, hint: Stage | None = None) -> Outcome:
    """The fewest wavelengths: ``solution`` of the outcome is a :class:`Stage`, ``bound`` counts wavelengths.

    Raises ``RuntimeError`` when the solver fails."""
    from synth.solvers.catalogue import require

    def decided(wavelengths: int) -> horizon.Decision:
        termination, stage, build_s, solve_s = decide(nodes, shape, max_hops, wavelengths, options, hint)
        answer: horizon.Answer = "limit"
        if stage is not None:
            answer = "feasible"
        elif termination in ("infeasible", "error"):
            answer = "infeasible" if termination == "infeasible" else "error"
        return horizon.Decision(answer, stage, build_s=build_s, solve_s=solve_s)

    return horizon.fewest(
        decided, horizon.Proven(load_bound(nodes, shape), "link load"), options,
        by=require(options.solver or "cpsat").title, unit="wavelengths", size=lambda stage: stage.wavelengths,
    )  # fmt: skip


def solve(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``rwa``: a one-stage schedule with the fewest wavelengths. Its optimality concerns one stage only, so no
    bound on the steps of all schedules is reported."""
    from synth.solvers.cpsat import with_caveat

    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    shape, nodes = _prepare(instance, options, MOST_NODES, "the program")
    hint = None
    if options.method.get("hint") and shape == "ring":
        whole = schedule(nodes, nodes * nodes, (nodes,))
        hint = Stage(
            tuple(zip(*(x.tolist() for x in (whole.src, whole.dst, whole.direction, whole.wavelength)), strict=True))
        )
    outcome = fewest(nodes, shape, instance.max_hops, replace(options, progress=Progress()), hint)
    bound, stage = outcome.bound, outcome.solution
    outcome.bound = outcome.bound_proof = None  # they count wavelengths, not steps
    if stage is not None:
        outcome.termination = "finished"
        outcome.message = (
            f"{stage.wavelengths} wavelengths are the fewest for one stage (load bound {load_bound(nodes, shape)}, "
            f"proven {bound:g}, published {published_wavelengths(nodes, shape)})"
        )
        outcome.solution = _circuits(instance, stage)
    if options.solver in (None, "cpsat"):
        outcome.message = with_caveat(outcome.message, options)
    return outcome


def solve_first_fit(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``first_fit``."""
    return _solve_heuristic(instance, options, longest_first=False)


def solve_longest_first(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``longest_first``."""
    return _solve_heuristic(instance, options, longest_first=True)


def _solve_heuristic(instance: OpTreeInstance, options: RunOptions, longest_first: bool) -> Outcome:
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    shape, nodes = _prepare(instance, options, REFERENCE_NODES, "first fit")
    stage = heuristic(nodes, shape, longest_first)
    message = f"{stage.wavelengths} wavelengths (load bound {load_bound(nodes, shape)})"
    return Outcome("finished", _circuits(instance, stage), message=message)


def _prepare(instance: OpTreeInstance, options: RunOptions, most: int, what: str) -> tuple[str, int]:
    shape, nodes = str(options.method.get("shape", "ring")), instance.nodes
    if nodes > most:
        raise UnsupportedError(f"{what} colours the one-stage circuits of up to {most} nodes, not {nodes}")
    require_hops(instance, nodes - 1 if shape == "segment" else nodes // 2, f"one stage on a {shape}")
    return shape, nodes


def _circuits(instance: OpTreeInstance, stage: Stage) -> Circuits:
    src, dst, direction, wavelength = (np.array(column) for column in zip(*stage.rows, strict=True))
    order = np.argsort(wavelength, kind="stable")
    step = 1 + wavelength // instance.wavelengths
    return Circuits.of(*(x[order] for x in (step, src, dst, direction, wavelength % instance.wavelengths, src)))
