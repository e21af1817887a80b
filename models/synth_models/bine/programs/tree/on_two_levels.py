"""Solve the flow on two levels (``nested.py``) and turn it into a tree of ranks."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from synth.arrays import SOLVED
from synth.errors import UnsupportedError
from synth.options import RunOptions
from synth.solvers import mathprog
from synth_models.bine.parts.trees import Tree, matched
from synth_models.bine.parts.units import Units
from synth_models.bine.programs.tree import nested

LARGEST = 400_000  # variables


@dataclass
class NestedFlow:
    """A tree in numbers, by (kind,) unit, depth and round; its cost ``value`` (None: no point), proven ``bound``, both
    in blocks times cost."""

    value: int | None
    bound: int
    model: Any = None
    build_s: float = 0.0
    message: str | None = None


def best_nested(units: Units, root: int, rounds: int, volumes: bool, options: RunOptions) -> NestedFlow:
    """The cheapest tree from a rank of unit ``root``. Scatter and gather (``volumes``) limit how deep a rank may lie, D
    near and D far: on the way to a deeper one lie ranks at depths 2..D+1 of that kind, each of which costs that much
    more than the least it can, so it costs at least near D(D+1)/2 more than the least of all; D grows until that
    exceeds the best tree found."""
    if not volumes:
        return _solve(units, root, rounds, None, 0, options)
    if units.inside:
        raise UnsupportedError("tree_ilp scatters and gathers where bytes inside a node cost nothing")
    outside = np.where(units.group == units.group[root], units.near, units.far)
    outside[root] = 0
    floor = int(units.sizes @ outside)
    depth, best = 2, NestedFlow(None, floor)
    while True:
        depth = min(depth, rounds)
        found = _solve(units, root, rounds, depth, floor, options)
        deeper = math.inf if depth >= rounds else floor + units.near * depth * (depth + 1) // 2
        if found.value is not None and (best.value is None or found.value < best.value):
            best = replace(found, bound=best.bound)
        best.bound = int(max(best.bound, min(found.bound, deeper)))
        if depth >= rounds or (best.value is not None and best.bound >= best.value) or options.out_of_time():
            return best
        depth += 1


def _solve(units: Units, root: int, rounds: int, depth: int | None, floor: int, options: RunOptions) -> NestedFlow:
    count = len(units.group) * rounds * (1 if depth is None else (depth + 1) ** 2) * 6
    if count > LARGEST:
        raise UnsupportedError(f"the flow over {len(units.group)} nodes would have about {count} variables")
    started = time.monotonic()
    with mathprog.building():
        model = nested.build(units, root, rounds, depth)
    built = time.monotonic() - started
    result = mathprog.solve(model, replace(options, relative_gap=0.0), bounded=True)
    if result.termination == "infeasible" and depth is not None and depth < rounds:
        return NestedFlow(None, 2**62, build_s=built)
    if result.termination not in ("optimal", "limit"):  # without a limit on depths there always is a tree
        raise RuntimeError(result.message or f"the solver says that the flow is {result.termination}")
    bound = max(floor, math.ceil(result.bound - SOLVED)) if result.bound is not None else floor
    if not result.has_point:
        return NestedFlow(None, bound, None, built, "no tree within the time limit; the best published one instead")
    value = round(result.objective or 0.0)
    return NestedFlow(value, min(bound, value), model, built)


def decode(units: Units, flow: NestedFlow, root: int) -> Tree:
    """The flow as an explicit tree: senders and receivers in rank order, departures matched to arrivals."""
    model, size = flow.model, len(units.of_rank)
    count = {name: {index: round(x.value or 0) for index, x in getattr(model, name).items()}
             for name in ("inside", "leaving", "entering")}  # fmt: skip
    parent, when = np.full(size, -1), np.full(size, -1)
    everyone = range(len(units.group))
    waiting = [[r for r in np.flatnonzero(units.of_rank == u)[::-1].tolist() if r != root] for u in everyone]
    holds: dict[tuple[int, Any], list[int]] = {(u, depth): [] for u in everyone for depth in model.depths}
    holds[int(units.of_rank[root]), (0, 0)].append(root)
    groups = [np.flatnonzero(units.group == g).tolist() for g in range(int(units.group.max()) + 1)]
    for t in range(1, model.rounds + 1):
        free = {cell: list(ranks) for cell, ranks in holds.items()}
        for depth in model.depths:
            for u, w, to in _sends(model, count, groups, depth, t):
                sender, receiver = free[u, depth].pop(), waiting[w].pop()
                parent[receiver], when[receiver] = sender, t - 1
                holds[w, to].append(receiver)
    return Tree(root, parent, when)


def _sends(
    model: Any, count: dict[str, dict[Any, int]], groups: list[list[int]], depth: Any, t: int
) -> list[tuple[int, int, Any]]:
    """The messages of ranks at a depth in a round: (unit that sends, unit that receives, depth there)."""
    everyone = range(sum(map(len, groups)))
    sends = [(u, u, depth) for u in everyone for _ in range(count["inside"][u, *depth, t])]
    for kind in nested.KINDS:
        to = nested.below(model, kind, depth)
        if to is None:
            continue
        leave = [count["leaving"][kind, u, *depth, t] for u in everyone]
        arrive = [count["entering"][kind, u, *to, t] for u in everyone]
        pairs = _near(groups, leave, arrive) if kind == nested.NEAR else _far(groups, leave, arrive)
        sends += [(u, w, to) for u, w in pairs]
    return sends


def _near(groups: list[list[int]], leave: list[int], arrive: list[int]) -> list[tuple[int, int]]:
    """Pairs of different units of one group."""
    found = []
    for group in groups:
        pairs = matched([leave[u] for u in group], [arrive[u] for u in group])
        found += [(group[a], group[b]) for a, b in pairs]
    return found


def _far(groups: list[list[int]], leave: list[int], arrive: list[int]) -> list[tuple[int, int]]:
    """Pairs of units of different groups."""
    out = [[u for u in group for _ in range(leave[u])] for group in groups]
    into = [[u for u in group for _ in range(arrive[u])] for group in groups]
    pairs = matched([len(units) for units in out], [len(units) for units in into])
    return [(out[a].pop(), into[b].pop()) for a, b in pairs]
