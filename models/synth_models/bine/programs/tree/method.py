"""Method ``tree_ilp`` (program): least-crossing broadcast/reduce and least-volume scatter/gather trees, proven.

Solves the flow of ``programs/tree/model.py`` for every job (once per multiset of group sizes and root group) and turns
it into an explicit tree of ranks. Scatter and gather cap the depth at D: a tree with a rank deeper than D has ranks of
depths 2..D on the way to it, so beyond one crossing for every rank outside the root's group it costs at least
D(D+1)/2 more; D grows until that exceeds the best tree found. A job the time does not suffice for gets the best
published tree and the receive bound; where that is what binds in every job, its certificate goes with it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from synth.arrays import SOLVED
from synth.errors import UnsupportedError
from synth.method import Outcome, Termination
from synth.options import RunOptions
from synth.solvers import mathprog
from synth_models.bine.bounds.global_bytes import RECEIVE
from synth_models.bine.instance import BineInstance
from synth_models.bine.parts import trees
from synth_models.bine.parts.trees import Tree, matched
from synth_models.bine.parts.units import Units, units_of
from synth_models.bine.parts.weights import receive_cost
from synth_models.bine.programs.tree import model as flow_model
from synth_models.bine.programs.tree import on_two_levels
from synth_models.bine.programs.tree.on_two_levels import NestedFlow, best_nested
from synth_models.bine.solution import join


@dataclass
class Flow:
    """A tree in numbers: ``inside, leaving, entering`` have shape (groups, levels, rounds); crossings (of blocks)
    ``value`` (None: no point), proven ``bound``."""

    value: int | None
    bound: int
    inside: Any = None
    leaving: Any = None
    entering: Any = None
    build_s: float = 0.0
    message: str | None = None


def solve(instance: BineInstance, options: RunOptions) -> Outcome:
    """Method ``tree_ilp``; parameter ``rounds`` asks for a faster tree than the problem allows (then without bound)."""
    if instance.problem != "tree":
        raise UnsupportedError("tree_ilp is for the problem tree")
    asked = options.method.get("rounds")
    volumes = instance.collective in ("scatter", "gather")
    if asked is None:
        told = "the best published tree stands in: the program did not end within the time limit"
        options.held.offer(lambda: _published(instance), math.inf, told)
    solver = _Solver(instance, options, volumes)
    parts, bound, optimal, counted, build_s, messages = [], [], True, True, 0.0, set()
    for job, groups in enumerate(instance.allocations):
        found = solver.best_tree(job, asked)
        build_s += found.build_s
        messages |= {found.message} - {None}
        parts.append(trees.on_tree(found.tree or _fallback(instance, job), instance.collective))
        optimal &= found.optimal
        counted &= found.least <= receive_cost(instance, job)
        bound.append((len(groups), found.least))
    narrower = asked is not None and any(asked < instance.round_limit(len(g)) for g in instance.allocations)
    if narrower:
        return Outcome("finished", join(parts), message=f"least for {asked} rounds" if optimal else None)
    proof, certificate = f"integer flow over (group, round), {options.solver or 'highs'}", None
    if counted:
        proof, certificate = RECEIVE, {"binding": "receive"}
    message = "; ".join(sorted(m for m in messages if m)) or None
    ended: Termination = "optimal" if optimal else "time_limit"
    return Outcome(ended, join(parts), instance.bytes_of(bound), proof, certificate, message, build_s)


class _Found(NamedTuple):
    """One job: its ``tree`` (None: no point), the ``least`` that any tree costs, in blocks times cost, whether the tree
    is ``optimal``, and what building the program took."""

    tree: Tree | None
    least: int
    optimal: bool
    build_s: float
    message: str | None


@dataclass
class _Solver:
    """Solves every different job of an instance once; ``volumes``: a message carries a block for every rank behind."""

    instance: BineInstance
    options: RunOptions
    volumes: bool
    nested: dict[tuple[Any, ...], NestedFlow] = field(default_factory=dict)
    flows: dict[tuple[int, ...], Flow] = field(default_factory=dict)

    def best_tree(self, job: int, asked: int | None) -> _Found:
        """In at most ``asked`` rounds, if that is less than the problem allows. Raises :class:`UnsupportedError`."""
        ranks, units = len(self.instance.allocations[job]), units_of(self.instance, job)
        limit = self.instance.round_limit(ranks)
        rounds = min(asked or limit, limit)
        if rounds < (ranks - 1).bit_length():
            raise UnsupportedError(f"{ranks} ranks cannot be reached in {rounds} rounds")
        return self.on_units(units, rounds) if units.nested else self.on_groups(job, units, rounds)

    def on_units(self, units: Units, rounds: int) -> _Found:
        """By the flow on two levels, nodes within groups."""
        root = int(units.of_rank[self.instance.root])
        key = (*units.key, root, rounds)
        if key not in self.nested:
            self.nested[key] = best_nested(units, root, rounds, self.volumes, self.options)
        flow = self.nested[key]
        tree = on_two_levels.decode(units, flow, self.instance.root) if flow.value is not None else None
        return _Found(tree, flow.bound, _is_optimal(flow), flow.build_s, flow.message)

    def on_groups(self, job: int, units: Units, rounds: int) -> _Found:
        """By the flow between groups."""
        groups, only = self.instance.allocations[job], len(self.instance.allocations) == 1
        ordered, sizes = canonical(groups, self.instance.root)
        base, scale = _prices(units, len(groups), self.volumes)
        key = (*sizes, rounds)
        if key not in self.flows:
            alone = self.instance.block_bytes(len(groups)) if only and not self.volumes else None
            track = alone if scale == 1 and not base else None
            self.flows[key] = best_flow(sizes, rounds, self.volumes, self.options, track)
        flow = self.flows[key]
        tree = decode(groups, ordered, flow, self.instance.root) if flow.value is not None else None
        return _Found(tree, base + scale * flow.bound, _is_optimal(flow), flow.build_s, flow.message)


def _is_optimal(flow: Flow | NestedFlow) -> bool:
    return flow.value is not None and flow.bound >= flow.value


def _prices(units: Units, ranks: int, volumes: bool) -> tuple[int, int]:
    """What a flow between groups costs: so much, and so much for every crossing. Raises :class:`UnsupportedError`."""
    if volumes and units.inside:
        raise UnsupportedError("tree_ilp scatters and gathers where bytes inside a node cost nothing")
    return units.inside * (ranks - 1), units.far - units.inside


def canonical(groups: npt.NDArray[Any], root: int) -> tuple[list[int], list[int]]:
    """Groups and their sizes, the root's group first and the others by falling size."""
    labels, counts = np.unique(groups, return_counts=True)
    own = int(groups[root])
    order = sorted(range(len(labels)), key=lambda i: (labels[i] != own, -counts[i], labels[i]))
    return [int(labels[i]) for i in order], [int(counts[i]) for i in order]


def best_flow(sizes: list[int], rounds: int, volumes: bool, options: RunOptions, track: float | None = None) -> Flow:
    """The cheapest tree for groups of these sizes, the root in the first one, in at most ``rounds`` rounds; ``track``
    as in :func:`synth.solvers.mathprog.solve`, where the flow alone makes the objective."""
    floor = sum(sizes[1:]) if volumes else len(sizes) - 1
    if len(sizes) == 1:
        return _solve_depth(sizes, rounds, 0 if volumes else None, options, 0)
    if not volumes:
        return _solve_depth(sizes, rounds, None, options, floor, track)
    depth, best = 2, Flow(None, floor)
    while True:
        depth = min(depth, rounds)
        found = _solve_depth(sizes, rounds, depth, options, floor)
        deeper = math.inf if depth >= rounds else floor + depth * (depth + 1) // 2
        if found.value is not None and (best.value is None or found.value < best.value):
            best = replace(found, bound=best.bound)
        best.bound = int(max(best.bound, min(found.bound, deeper)))
        if depth >= rounds or (best.value is not None and best.bound >= best.value) or options.out_of_time():
            return best
        depth += 2


def _solve_depth(
    sizes: list[int], rounds: int, depth: int | None, options: RunOptions, floor: int, track: float | None = None
) -> Flow:
    """The cheapest tree no deeper than ``depth``; None: the depth costs nothing."""
    started = time.monotonic()
    with mathprog.building():
        model = flow_model.build(sizes, 0, rounds, depth)
    built = time.monotonic() - started
    result = mathprog.solve(model, replace(options, relative_gap=0.0), bounded=True, track=track)
    if (
        result.termination == "infeasible" and depth is not None and depth < rounds
    ):  # the depth's limit may forbid every tree
        return Flow(None, 2**62, build_s=built)
    if result.termination not in ("optimal", "limit"):  # without one there always is a tree
        raise RuntimeError(result.message or f"the solver says that the flow is {result.termination}")
    bound = max(floor, math.ceil(result.bound - SOLVED)) if result.bound is not None else floor
    if not result.has_point:
        return Flow(None, bound, build_s=built, message="no tree within the time limit; the best published one instead")
    shape = (len(sizes), model.levels, rounds)
    blocks = (model.inside, model.leaving, model.entering)
    inside, leaving, entering = (np.array([round(v.value or 0) for v in b.values()]).reshape(shape) for b in blocks)
    value = round(result.objective or 0.0)
    return Flow(value, min(bound, value), inside, leaving, entering, built)


def decode(groups: npt.NDArray[Any], ordered: list[int], flow: Flow, root: int) -> Tree:
    """The flow as an explicit tree: senders and receivers in rank order, departures matched to other groups."""
    size, levels, rounds = len(groups), flow.inside.shape[1], flow.inside.shape[2]
    step = 1 if levels > 1 else 0
    parent, when = np.full(size, -1), np.full(size, -1)
    waiting = [[int(r) for r in np.flatnonzero(groups == g)[::-1] if r != root] for g in ordered]
    holds: dict[tuple[int, int], list[int]] = {(g, d): [] for g in range(len(ordered)) for d in range(levels)}
    holds[0, 0].append(root)
    for t in range(rounds):
        free = {cell: list(ranks) for cell, ranks in holds.items()}
        for d in range(levels):
            pairs = [(g, g, d) for g in range(len(ordered)) for _ in range(flow.inside[g, d, t])]
            if d + step < levels:
                arrive = flow.entering[:, d + step, t]
                pairs += [(g, h, d + step) for g, h in matched(list(flow.leaving[:, d, t]), list(arrive))]
            for g, h, below in pairs:
                sender, receiver = free[g, d].pop(), waiting[h].pop()
                parent[receiver], when[receiver] = sender, t
                holds[h, below].append(receiver)
    return Tree(root, parent, when)


def _published(instance: BineInstance) -> Any:
    """The best published trees of all jobs."""
    jobs = range(len(instance.allocations))
    return join([trees.on_tree(_fallback(instance, job), instance.collective) for job in jobs])


def _fallback(instance: BineInstance, job: int) -> Tree:
    """The published tree with the cheapest messages on this job."""
    ranks = len(instance.allocations[job])
    shapes, orders = (trees.bine, trees.binomial), ("halving", "doubling")
    candidates = [make(ranks, instance.root, order) for make in shapes for order in orders]
    child = np.flatnonzero(np.arange(ranks) != instance.root)
    return min(candidates, key=lambda tree: int(instance.crossings(job, child, tree.parent[child]).sum()))
