"""``flow``: the fastest concurrent flow, its routes, and the schedule made of them that suits the size."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.parts.collective import EVERYONE
from synth_models.fabric.parts.machine import Machine
from synth_models.fabric.programs.flow import model
from synth_models.fabric.programs.flow.arcs import Arcs, arcs_of
from synth_models.fabric.programs.flow.certified import certified
from synth_models.fabric.programs.flow.routes import Routes, decomposed, images, load
from synth_models.fabric.programs.flow.search import Found, best_schedule
from synth_models.fabric.programs.flow.symmetry import Symmetries, identity, orbits, symmetries
from synth_models.fabric.solution import Schedule

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
SHARE_OF_TIME = 0.4  # of what is left, for each of the two programs
WHOLE_UP_TO = 8_000  # columns; a larger program begins with a few routes and adds what its prices ask for
DIRECT_UP_TO = 20_000  # columns, up to which the flow over routes of least latency is found too
_NONE = np.zeros(0, dtype=np.int64)
NOTHING = Schedule(1, _NONE, _NONE, _NONE, _NONE, _NONE.astype(bool), np.zeros(1, dtype=np.int64), _NONE)


@dataclass(frozen=True, eq=False)
class Fluid:
    """The fluid optimum: ``routes``, the completion ``time`` that they take without latency, ``price`` of resources
    (s of completion per s of use); ``direct``: the fastest among the flows over routes of least latency alone, and the
    largest of these ``latency``; ``least``: the time that is proven for all flows (less only where time was short)."""

    routes: Routes
    time: float
    price: FloatArray
    sources: int
    commodities: int
    direct: Routes
    latency: float
    least: float


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Schedule of pieces along the routes of a max-concurrent flow.

    Solutions: :class:`synth_models.fabric.solution.Schedule`. The flow's completion time is the least for any routing
    without latencies (Shahrokhi and Matula 1990); the pieces' size and order are the best of several tried.
    """
    blocks = instance.blocks
    if np.any(blocks.origin == EVERYONE) or np.any(blocks.goal == EVERYONE):
        return Outcome("unsupported", message=f"flow moves blocks from rank to rank; {instance.collective} does not")
    if not len(blocks):
        return Outcome("finished", NOTHING, message="nothing has to move")
    begun = time.monotonic()
    fluid = fluid_optimum(instance, options)
    if fluid is None:
        return Outcome("time_limit", message="the concurrent flow was not found within the time limit")
    proven = certified(instance, fluid.price)
    built = time.monotonic()
    routings = [("shortest routes", fluid.direct), ("fastest flow", fluid.routes)]
    least = max(fluid.time, fluid.latency, proven.seconds if proven else 0.0)
    found = best_schedule(instance, routings, least, options)
    return Outcome(
        "finished",
        found.schedule,
        bound=proven.seconds if proven else None,
        bound_proof=proven.words if proven else None,
        certificate=proven.certificate if proven else None,
        message=_told(instance, fluid, found),
        build_s=built - begun,
        solve_s=time.monotonic() - built,
    )


def fluid_optimum(instance: FabricInstance, options: RunOptions) -> Fluid | None:
    """The fastest flow as routes of the instance's machine; None where the solver ran out of time."""
    demand = _demand(instance)
    machine = instance.machine
    goals = int(np.any(demand.bytes > 0, axis=0).sum())
    if goals < len(demand.source):  # fewer commodities by goal: the reversed flow on the reversed machine
        fluid = _fluid(instance, _reversed(machine), _turned(demand), identity(machine), options)
        return fluid and replace(fluid, routes=_backwards(fluid.routes), direct=_backwards(fluid.direct))
    fold = len(demand.source) > 1
    return _fluid(instance, machine, demand, symmetries(instance) if fold else identity(machine), options)


def _fluid(
    instance: FabricInstance, machine: Machine, demand: model.Demand, group: Symmetries, options: RunOptions
) -> Fluid | None:
    arcs = arcs_of(machine, instance.switching.mode)
    kept = _representatives(demand, group)
    allowed, latency = _least_latency(instance, arcs, kept)
    program = model.build(arcs, kept, group)
    few = allowed[program.commodity, program.arc]
    direct, start = None, None
    if few.sum() <= DIRECT_UP_TO:
        direct = model.solve(arcs, kept, model.build(arcs, kept, group, allowed), _part(options), options.threads)
    if len(program.arc) > WHOLE_UP_TO:
        start = np.append(few, True) if direct is not None else model.fewest_arcs(arcs, kept, program)
    flow = model.solve(arcs, kept, program, _part(options), options.threads, start) or direct
    if flow is None:
        return None
    direct = direct or flow
    routes, short = (images(decomposed(arcs, kept, found), arcs, group, demand.source) for found in (flow, direct))
    took = _fluid_time(arcs, routes, demand, instance.switching.mode == "cut_through")
    return Fluid(routes, took, flow.price, len(demand.source), len(kept.source), short, latency, flow.least)


def _part(options: RunOptions) -> float | None:
    left = options.remaining()
    return None if left is None else SHARE_OF_TIME * left


def _least_latency(instance: FabricInstance, arcs: Arcs, demand: model.Demand) -> tuple[npt.NDArray[np.bool_], float]:
    """The arcs on routes of least latency from every source, a stop at a rank counted with the largest block's time on
    the link there; and the largest latency, stops left out, that a block cannot avoid."""
    net, link = arcs.machine.network, arcs.link
    stops = ~arcs.machine.is_switch[net.dst[link]] | (instance.switching.mode == "store_and_forward")
    block = float(instance.blocks.bytes.max(initial=1))
    weight = net.latency[link] + stops * block / net.bandwidth[link]
    from_source = _distances(arcs, weight, demand.source)
    behind = from_source[:, arcs.tail] + weight
    reached = np.isfinite(behind)
    allowed = reached & (behind <= from_source[:, arcs.head] * (1 + 1e-9))
    least = _distances(arcs, net.latency[link] + 1e-15, demand.source)[:, : demand.bytes.shape[1]]
    return allowed, float(least[demand.bytes > 0].max(initial=0.0))


def _distances(arcs: Arcs, weight: FloatArray, sources: IntArray) -> FloatArray:
    order = np.lexsort((weight, arcs.head, arcs.tail))
    tail, head = arcs.tail[order], arcs.head[order]
    first = np.concatenate([[True], (tail[1:] != tail[:-1]) | (head[1:] != head[:-1])])
    graph = csr_array((weight[order][first], (tail[first], head[first])), shape=(arcs.states, arcs.states))
    found: FloatArray = dijkstra(graph, indices=sources)
    return found


def _fluid_time(arcs: Arcs, routes: Routes, demand: model.Demand, cut_through: bool) -> float:
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
    orbit = orbits(group.node)[demand.source]
    _, first, times = np.unique(orbit, return_index=True, return_counts=True)
    return model.Demand(demand.source[first], demand.bytes[first], times.astype(np.int64))


def _turned(demand: model.Demand) -> model.Demand:
    goal = np.flatnonzero(np.any(demand.bytes > 0, axis=0))
    wanted = np.zeros((len(goal), demand.bytes.shape[1]))
    wanted[:, demand.source] = demand.bytes[:, goal].T
    return model.Demand(goal, wanted, np.ones(len(goal), dtype=np.int64))


def _reversed(machine: Machine) -> Machine:
    return Machine(machine.network.reversed(), machine.is_switch, machine.group, machine.names, machine.group_names)


def _backwards(routes: Routes) -> Routes:
    """The routes of the reversed machine as routes of the machine, sorted by source and goal again."""
    by = np.lexsort((routes.kind, -routes.share, routes.source, routes.goal))
    length = np.diff(routes.start)[by]
    start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    at = np.repeat(routes.start[1:][by] - 1 + start[:-1], length) - np.arange(start[-1])
    return Routes(routes.goal[by], routes.source[by], routes.share[by], routes.kind[by], start, routes.link[at])


def _told(instance: FabricInstance, fluid: Fluid, found: Found) -> str:
    rate = instance.bytes / 1e9
    folded = f", folded to {fluid.commodities}" if fluid.commodities < fluid.sources else ""
    name = "fluid optimum" if fluid.least >= fluid.time * (1 - 1e-6) else f"flow (no less than {fluid.least:.6g} s)"
    return (
        f"{name} {fluid.time:.6g} s ({rate / fluid.time:.6g} GB/s) from {fluid.sources} sources{folded}; "
        f"schedule {found.seconds:.6g} s ({rate / found.seconds:.6g} GB/s): {found.words}"
    )
