"""The fluid optimum of an instance, and flows that are nearly as fast over shorter routes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from synth.arrays import BoolArray, FloatArray
from synth.graph.shortest_paths import PathTrees
from synth.graph.symmetry import orbits_of_group
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.node_symmetries import Symmetries, identity, symmetries
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.programs.flow import model
from synth_models.fabric.programs.flow.arcs import Arcs, arcs_of
from synth_models.fabric.programs.flow.flow_routes import FlowPaths, decomposed, images, load
from synth_models.fabric.programs.flow.tuned import (
    DETOURS,
    DETOURS_UP_TO,
    NEARER_UP_TO,
    SHARE_OF_TIME,
    WHOLE_UP_TO,
)


@dataclass(frozen=True, eq=False)
class Fluid:
    """The fluid optimum.

    ``routes`` and the completion ``time`` that they take without latency, s; ``least``, the time that is proven for all
    flows (less than ``time`` only where the solver's time was short); ``price`` of resources, s of completion per s of
    use; ``sources`` and how many ``commodities`` were left of them after folding; ``nearer``: the fastest flows over
    routes of least latency, or with short detours, by name; ``latency``: what some block cannot avoid, s.
    """

    routes: FlowPaths
    time: float
    least: float
    price: FloatArray
    sources: int
    commodities: int
    nearer: tuple[tuple[str, FlowPaths], ...]
    latency: float

    @property
    def routings(self) -> tuple[tuple[str, FlowPaths], ...]:
        """All routes by name."""
        return (*self.nearer, ("fastest flow", self.routes))


def fluid_optimum(instance: FabricInstance, options: RunOptions) -> Fluid | None:
    """The fastest flow as routes of the instance's machine; None where the solver ran out of time."""
    demand = _demand(instance)
    machine = instance.machine
    goals = int(np.any(demand.bytes > 0, axis=0).sum())
    if goals < len(demand.source):  # fewer commodities by goal: the reversed flow on the reversed machine
        fluid = _fluid(instance, machine.reversed(), _reversed_demand(demand), identity(machine), options)
        if fluid is None:
            return None
        nearer = tuple((name, _reversed_routes(routes)) for name, routes in fluid.nearer)
        return replace(fluid, routes=_reversed_routes(fluid.routes), nearer=nearer)
    fold = len(demand.source) > 1
    return _fluid(instance, machine, demand, symmetries(instance) if fold else identity(machine), options)


def _fluid(
    instance: FabricInstance, machine: Machine, demand: model.Demand, group: Symmetries, options: RunOptions
) -> Fluid | None:
    arcs = arcs_of(machine, instance.switching.mode)
    kept = _representatives(demand, group)
    program = model.build(arcs, kept, group)

    def solved(allowed: BoolArray) -> model.Flow | None:
        return _solve(arcs, kept, model.build(arcs, kept, group, allowed), options)

    detour, latency = _detours(instance, arcs, kept)
    fewest = detour <= 0
    nearest = None
    if fewest[program.commodity, program.arc].sum() <= NEARER_UP_TO:
        nearest = solved(fewest)
    start = None
    if len(program.arc) > WHOLE_UP_TO:
        few = np.append(fewest[program.commodity, program.arc], True)
        start = model.fewest_arcs(arcs, kept, program) if nearest is None else few
    fastest = _solve(arcs, kept, program, options, start)
    flow = fastest or nearest
    if flow is None:
        return None
    nearer = [] if nearest is None else [("shortest routes", nearest)]
    unit = float(machine.network.latency.max(initial=0.0))
    if nearest is not None and len(program.arc) <= DETOURS_UP_TO:
        nearer += _with_detours(nearest, flow, lambda factor: solved(detour <= factor * unit))

    def routed(found: model.Flow) -> FlowPaths:
        return images(decomposed(arcs, kept, found), arcs, group, demand.source)

    routes = routed(flow)
    return Fluid(
        routes,
        _fluid_time(arcs, routes, demand, instance.switching.mode == "cut_through"),
        flow.least if fastest is not None else 0.0,
        flow.price,
        len(demand.source),
        len(kept.source),
        tuple((name, routed(found)) for name, found in nearer),
        latency,
    )


def _with_detours(
    nearest: model.Flow, fastest: model.Flow, solved: Callable[[float], model.Flow | None]
) -> Iterator[tuple[str, model.Flow]]:
    """Flows that may take longer and longer detours, each faster than those before, until one is as fast as any."""
    best = nearest.time
    for factor in DETOURS:
        if best <= fastest.time * (1 + 1e-6):
            return
        found = solved(factor)
        if found is not None and found.time < best * (1 - 1e-6):
            best = found.time
            yield f"detours of {factor:g}", found


def _solve(
    arcs: Arcs, demand: model.Demand, program: model.Program, options: RunOptions, start: BoolArray | None = None
) -> model.Flow | None:
    """The program's flow, found in a part of the time that is left."""
    part = options.part(SHARE_OF_TIME)
    found = model.solve(arcs, demand, program, part.remaining(), options.threads, start)
    part.out_of_time()  # if it is, the clock cut the run
    return found


def _detours(instance: FabricInstance, arcs: Arcs, demand: model.Demand) -> tuple[FloatArray, float]:
    """Seconds by which a route over an arc to its head is longer than the shortest from the source, shape (commodities,
    arcs), a stop at a rank counted with the largest block's time on the link there; and the largest latency, stops left
    out, that a block cannot avoid."""
    net, link = arcs.machine.network, arcs.link
    stops = ~arcs.machine.is_switch[net.dst[link]] | (instance.switching.mode == "store_and_forward")
    block = float(instance.blocks.bytes.max(initial=1))
    weight = net.latency[link] + stops * block / net.bandwidth[link]
    paths = PathTrees(arcs.states, arcs.tail, arcs.head)
    from_source = paths.distances(weight, demand.source)
    behind = from_source[:, arcs.tail] + weight
    head = from_source[:, arcs.head]
    detour = np.where(np.isfinite(behind), behind, np.inf) - np.where(np.isfinite(head), head, 0.0) * (1 + 1e-9)
    least = paths.distances(net.latency[link] + 1e-15, demand.source)[:, : demand.bytes.shape[1]]
    return detour, float(least[demand.bytes > 0].max(initial=0.0))


def _fluid_time(arcs: Arcs, routes: FlowPaths, demand: model.Demand, cut_through: bool) -> float:
    row = np.searchsorted(demand.source, routes.source)
    amount = routes.share * demand.bytes[row, routes.goal]
    return float(load(routes, arcs.machine, amount, cut_through).max(initial=0.0))


def _demand(instance: FabricInstance) -> model.Demand:
    blocks = instance.blocks
    source, row = np.unique(blocks.origin, return_inverse=True)
    wanted = np.zeros((len(source), instance.machine.nodes))
    np.add.at(wanted, (row, blocks.goal), blocks.bytes.astype(float))
    return model.Demand(source, wanted, np.ones(len(source), dtype=np.int64))


def _representatives(demand: model.Demand, group: Symmetries) -> model.Demand:
    orbit = orbits_of_group(group.node)[demand.source]
    _, first, times = np.unique(orbit, return_index=True, return_counts=True)
    return model.Demand(demand.source[first], demand.bytes[first], times.astype(np.int64))


def _reversed_demand(demand: model.Demand) -> model.Demand:
    goal = np.flatnonzero(np.any(demand.bytes > 0, axis=0))
    wanted = np.zeros((len(goal), demand.bytes.shape[1]))
    wanted[:, demand.source] = demand.bytes[:, goal].T
    return model.Demand(goal, wanted, np.ones(len(goal), dtype=np.int64))


def _reversed_routes(routes: FlowPaths) -> FlowPaths:
    """The routes of the reversed machine as routes of the machine, sorted by source and goal again."""
    by = np.lexsort((routes.kind, -routes.share, routes.source, routes.goal))
    length = np.diff(routes.start)[by]
    start = starts(length)
    at = np.repeat(routes.start[1:][by] - 1 + start[:-1], length) - np.arange(start[-1])
    return FlowPaths(routes.goal[by], routes.source[by], routes.share[by], routes.kind[by], start, routes.link[at])
