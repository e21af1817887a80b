"""The concurrent flow as a linear program over flat arrays, solved by HiGHS.

Shahrokhi and Matula: The maximum concurrent flow problem, Journal of the ACM 37 (1990), with commodities aggregated by
source, groups of links that share time, and folded by symmetry: of every orbit of sources one commodity is kept, and of
every orbit of resources one capacity row, into which a source counts as often as its orbit has members. Averaging any
flow over the group shows that nothing is lost.

| in the equations | here | indexed by | unit |
|---|---|---|---|
| x | ``flow`` | (source, arc) | bytes / ``unit_bytes`` |
| T | ``time``, the last column | – | s / ``unit_s`` |
| D | ``Demand.bytes`` | (source, goal) | bytes |
| u | ``Arcs.use`` | (resource, arc) | s per byte |

    (1) flow conservation   sum_{a into v} x[s,a] - sum_{a out of v} x[s,a] = D[s,v]        for v other than s
    (2) link capacity       sum_s sum_a u[r,a] x[s,a] <= T                                  for every link and group r
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import highspy
import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.graph.shortest_paths import PathTrees
from synth.graph.symmetry import orbits_of_group
from synth.solvers import model_file
from synth.solvers.names import all_named
from synth_models.fabric.plans.node_symmetries import Symmetries
from synth_models.fabric.programs.flow.arcs import Arcs
from synth_models.fabric.programs.flow.tuned import INTERIOR_FROM

OPTIMAL = 1e-9  # relative: how near the proof a flow counts as the fastest
PRIMAL = 4  # HiGHS's number for the primal simplex method


@dataclass(frozen=True, eq=False)
class Demand:
    """What every source sends: ``source`` (commodities,) nodes; ``bytes`` (commodities, nodes); ``times``
    (commodities,): how many sources each stands for."""

    source: IntArray
    bytes: FloatArray
    times: IntArray


@dataclass(frozen=True, eq=False)
class Program:
    """minimise ``cost @ x`` over ``low <= rows @ x <= high``, ``x >= 0``.

    Columns: one per (commodity, arc) that may be used, by ``commodity`` and ``arc``, then the time. The last rows are
    the capacity rows, one for each orbit of resources: ``orbit``, shape (resources,), is the row of every resource
    among them, ``orbit_size``, shape (orbits,), how many share it.
    """

    rows: csc_array[Any]
    low: FloatArray
    high: FloatArray
    cost: FloatArray
    commodity: IntArray
    arc: IntArray
    orbit: IntArray
    orbit_size: IntArray
    unit_bytes: float
    unit_s: float


@dataclass(frozen=True, eq=False)
class Flow:
    """``bytes``: shape (commodities, arcs); ``time``: s; ``price``: shape (resources,), s of completion per s of use:
    the multipliers of the capacity rows, which sum to 1; ``least``: s that prices prove for all flows."""

    bytes: FloatArray
    time: float
    price: FloatArray
    least: float


def build(arcs: Arcs, demand: Demand, group: Symmetries, allowed: BoolArray | None = None) -> Program:
    """The program; ``allowed``, shape (commodities, arcs), leaves out arcs (all others are variables)."""
    unit_bytes = float(demand.bytes.max())
    unit_s = unit_bytes / float(arcs.machine.network.bandwidth.max())
    use_it = arcs.head[None, :] != demand.source[:, None]  # nothing comes back to its source
    if allowed is not None:
        use_it = use_it & allowed
    commodity, arc = np.nonzero(use_it)
    conserved, wanted = flow_conservation(arcs, demand, commodity, arc, unit_bytes)
    shared, orbit, size = link_capacity(arcs, demand, group, commodity, arc, unit_bytes / unit_s)
    columns = len(arc) + 1
    stacked = coo_array(
        (
            np.concatenate([conserved.data, shared.data]),
            (
                np.concatenate([conserved.coords[0], shared.coords[0] + len(wanted)]),
                np.concatenate([conserved.coords[1], shared.coords[1]]),
            ),
        ),
        shape=(len(wanted) + len(size), columns),
    )
    cost = np.zeros(columns)
    cost[-1] = 1.0
    return Program(
        stacked.tocsc(),
        np.concatenate([wanted, np.full(len(size), -highspy.kHighsInf)]),
        np.concatenate([wanted, np.zeros(len(size))]),
        cost,
        commodity,
        arc,
        orbit,
        size,
        unit_bytes,
        unit_s,
    )


def flow_conservation(
    arcs: Arcs, demand: Demand, commodity: IntArray, arc: IntArray, unit_bytes: float
) -> tuple[coo_array[Any], FloatArray]:
    """(1): x(into v) - x(out of v) = D(s, v) for every source s and every state v but the source."""
    count, at = len(demand.source), np.arange(len(arc))
    head, tail = commodity * arcs.states + arcs.head[arc], commodity * arcs.states + arcs.tail[arc]
    own = np.arange(count) * arcs.states + demand.source
    keep = np.ones(count * arcs.states, dtype=bool)
    keep[own] = False
    row = np.cumsum(keep) - 1
    wanted = np.zeros((count, arcs.states))
    wanted[:, : arcs.machine.nodes] = demand.bytes / unit_bytes
    into, out = keep[head], keep[tail]
    entries = coo_array(
        (
            np.concatenate([np.ones(int(into.sum())), -np.ones(int(out.sum()))]),
            (np.concatenate([row[head[into]], row[tail[out]]]), np.concatenate([at[into], at[out]])),
        ),
        shape=(int(keep.sum()), len(arc) + 1),
    )
    return entries, wanted.reshape(-1)[keep]


def link_capacity(
    arcs: Arcs, demand: Demand, group: Symmetries, commodity: IntArray, arc: IntArray, scale: float
) -> tuple[coo_array[Any], IntArray, IntArray]:
    """(2): sum over sources and arcs of u(resource, arc) x(s, arc) <= T for every link and every group; of every orbit
    O of resources the sum of its rows divided by ``|O|``, a source counted for its whole orbit."""
    named = orbits_of_group(resource_images(arcs, group))
    _, number, size = np.unique(named, return_inverse=True, return_counts=True)
    use = arcs.use.tocoo()
    folded = csr_array(
        (use.data * scale / size[number[use.coords[0]]], (number[use.coords[0]], use.coords[1])),
        shape=(len(size), arcs.use.shape[1]),
    ).tocsc()
    entry = folded[:, arc].tocoo()
    times = demand.times[commodity[entry.coords[1]]]
    entries = coo_array(
        (
            np.concatenate([entry.data * times, -np.ones(len(size))]),
            (
                np.concatenate([entry.coords[0], np.arange(len(size))]),
                np.concatenate([entry.coords[1], np.full(len(size), len(arc))]),
            ),
        ),
        shape=(len(size), len(arc) + 1),
    )
    return entries, number.astype(np.int64), size.astype(np.int64)


def resource_images(arcs: Arcs, group: Symmetries) -> IntArray:
    """Images of links and groups, shape (elements, resources)."""
    machine = arcs.machine
    count = len(machine.group_names)
    if not count:
        return group.link
    images = np.tile(np.arange(count), (len(group), 1))
    used = np.flatnonzero(machine.group >= 0)
    images[:, machine.group[used]] = machine.group[group.link[:, used]]
    return np.concatenate([group.link, images + machine.links], axis=1)


def short_routes(arcs: Arcs, program: Program) -> FloatArray:
    """The second objective, among the fastest flows: few hops, little latency, little use of links; per column."""
    net = arcs.machine.network
    latency, slowness = net.latency, net.bandwidth.min() / net.bandwidth
    typical = float(latency.mean()) or 1.0
    stops = ~arcs.machine.is_switch[net.dst]
    cost = latency / typical + 0.5 * stops + 0.25 * slowness + 0.05
    return np.append(cost[arcs.link[program.arc]], 0.0)


def solve(
    arcs: Arcs, demand: Demand, program: Program, seconds: float | None, threads: int, start: BoolArray | None = None
) -> Flow | None:
    """The fastest flow, of those one with short routes; None where the solver found none in ``seconds``.

    ``start``, shape (columns,): columns to begin with. Columns are added then along shortest routes at the multipliers'
    prices, until these prices prove that no column is missing (Dantzig and Wolfe, by arcs instead of paths); what is
    found until the time is over is returned with its ``least`` time.
    """
    end = time.monotonic() + (1e9 if seconds is None else seconds)
    columns = len(program.cost)
    inside = np.ones(columns, dtype=bool) if start is None else start.copy()
    order = np.flatnonzero(inside)
    highs: Any = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", threads)
    if len(order) > INTERIOR_FROM:
        highs.setOptionValue("solver", "ipm")
    highs.passModel(_as_highs(program, order))
    model_file.offer("highs", highs, partial(names, arcs, demand, program, order))
    best: Flow | None = None
    done = False
    while not done:
        highs.setOptionValue("time_limit", highs.getRunTime() + max(end - time.monotonic(), 0.1))
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return best
        solution = highs.getSolution()
        values = np.array(solution.col_value)
        duals = np.abs(np.array(solution.row_dual)[len(program.low) - len(program.orbit_size) :])
        price = (duals / program.orbit_size)[program.orbit]
        least, missing = _shortest_routes(arcs, demand, program, price)
        took = float(values[_last(order, columns)]) * program.unit_s
        best = Flow(_bytes(arcs, demand, program, order, values), took, price, max(least, best.least if best else 0.0))
        new = np.flatnonzero(missing & ~inside)
        done = best.least >= took * (1 - OPTIMAL) or not len(new)
        if not done:
            inside[new] = True
            order = np.concatenate([order, new])
            _add(highs, program, new)
            highs.setOptionValue("solver", "simplex")
            highs.setOptionValue("simplex_strategy", PRIMAL)
    assert best is not None
    return _shorter(highs, arcs, demand, program, order, best, end)


def names(arcs: Arcs, demand: Demand, program: Program, order: IntArray) -> tuple[list[str], list[str]]:
    """Of the columns in this order, by source and arc, and of the rows."""
    flows = list(zip(demand.source[program.commodity].tolist(), program.arc.tolist(), strict=True))
    columns = [*all_named("flow", "s a", flows), "time"]
    states = [(s, v) for s in demand.source.tolist() for v in range(arcs.states) if v != s]
    rows = all_named("flow_conservation", "s v", states)
    return [columns[i] for i in order], rows + all_named("link_capacity", "r", range(len(program.orbit_size)))


def fewest_arcs(arcs: Arcs, demand: Demand, program: Program) -> BoolArray:
    """The columns of one route of fewest arcs from every source to every state, and the time: something to begin with,
    shape (columns,)."""
    _, found = _shortest_routes(arcs, demand, program, np.zeros(arcs.resources))
    found[-1] = True
    return found


def _shorter(highs: Any, arcs: Arcs, demand: Demand, program: Program, order: IntArray, best: Flow, end: float) -> Flow:
    """Of the flows that are as fast, one with short routes, if it is found in time."""
    columns = len(program.cost)
    at = _last(order, columns)
    highs.setOptionValue("solver", "simplex")
    highs.setOptionValue("time_limit", highs.getRunTime() + max(end - time.monotonic(), 0.1))
    highs.changeColBounds(at, 0.0, best.time / program.unit_s * (1 + 1e-9))
    highs.changeColsCost(len(order), np.arange(len(order), dtype=np.int32), short_routes(arcs, program)[order])
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return best
    values = np.array(highs.getSolution().col_value)
    return replace(best, bytes=_bytes(arcs, demand, program, order, values))


def _last(order: IntArray, columns: int) -> int:
    """Where the column of the time is."""
    return int(np.flatnonzero(order == columns - 1)[0])


def _bytes(arcs: Arcs, demand: Demand, program: Program, order: IntArray, values: FloatArray) -> FloatArray:
    found = np.zeros((len(demand.source), len(arcs.link)))
    flows = order < len(program.arc)
    at = order[flows]
    found[program.commodity[at], program.arc[at]] = np.maximum(values[flows], 0.0) * program.unit_bytes
    return found


def _shortest_routes(arcs: Arcs, demand: Demand, program: Program, price: FloatArray) -> tuple[float, BoolArray]:
    """The seconds that prices of seconds on resources prove, and the columns of one shortest route from every source to
    every state, shape (columns,)."""
    cost: FloatArray = arcs.use.T @ price
    typical = float(cost.max(initial=0.0)) or 1.0
    weight = cost + 1e-9 * typical  # of routes that cost the same, one with few arcs
    paths = PathTrees(arcs.states, arcs.tail, arcs.head)
    _, entered = paths.trees(weight, demand.source)
    used = np.zeros((len(demand.source), len(arcs.link)), dtype=bool)
    commodity, state = np.nonzero(entered >= 0)
    used[commodity, entered[commodity, state]] = True
    missing = np.append(used[program.commodity, program.arc], False)
    distance = paths.distances(cost + 1e-300, demand.source)[:, : demand.bytes.shape[1]]
    wanted = demand.bytes > 0
    paid = np.where(wanted, demand.bytes * np.where(wanted, distance, 0.0), 0.0).sum(axis=1)
    return float(paid @ demand.times), missing


def _as_highs(program: Program, order: IntArray) -> Any:
    lp: Any = highspy.HighsLp()
    rows = program.rows[:, order]
    lp.num_col_, lp.num_row_ = len(order), len(program.low)
    lp.col_cost_ = program.cost[order]
    lp.col_lower_ = np.zeros(len(order))
    lp.col_upper_ = np.full(len(order), highspy.kHighsInf)
    lp.row_lower_, lp.row_upper_ = program.low, program.high
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = rows.indptr.astype(np.int32)
    lp.a_matrix_.index_ = rows.indices.astype(np.int32)
    lp.a_matrix_.value_ = rows.data
    return lp


def _add(highs: Any, program: Program, new: IntArray) -> None:
    rows = program.rows[:, new]
    count = len(new)
    highs.addCols(
        count,
        program.cost[new],
        np.zeros(count),
        np.full(count, highspy.kHighsInf),
        rows.nnz,
        rows.indptr[:-1].astype(np.int32),
        rows.indices.astype(np.int32),
        rows.data,
    )
