"""Switches that take in more than they let out, or less: the best capacity that can be used without copying in them.

A route through a switch uses as much capacity into it as out of it. Where a machine has as much of both (links in
opposite pairs) the cuts can be reached; where it has not, the cuts overlook this, and the most that routes can do is a
linear program: capacities c' <= c that balance at every switch, and a flow of the same value x times the roots' weight
to every member within c' (with x per root and unit weight; x as great as can be). Its solution is rounded to whole
units that balance exactly. The rate is then computed again from the rounded capacities: rounding lowers the rate, which
stays exact.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.solvers import writing
from synth.solvers.lp import linprog
from synth.solvers.names import all_named
from synth_models.fabric.programs.forest.capacities import Fluid

MOST_VARIABLES = 60_000
GRAIN = 2520  # units that one unit of capacity is cut into before rounding


def balance(fluid: Fluid) -> bool:
    """Reduce capacities until every inner node lets out what it takes in; False if that was so, or is too large.

    Called before the rate is set; the unit becomes finer.
    """
    cap, nodes = fluid.capacity[:-1, :-1], fluid.nodes
    member = np.zeros(nodes, dtype=bool)
    member[fluid.members] = True
    uneven = (cap.sum(axis=0) != cap.sum(axis=1)) & ~member
    if not uneven.any():
        return False
    tail, head = np.nonzero(cap)
    count, sinks = len(tail), fluid.members.tolist()
    roots = np.flatnonzero(fluid.weight)
    if count * (len(sinks) + 1) > MOST_VARIABLES:
        return False
    best = _program(cap, fluid.weight, tail, head, sinks, member)
    if best is None:
        return False
    for parts in fluid.shares.values():
        parts[:] = [(amount * GRAIN, route) for amount, route in parts]
    fluid.unit /= GRAIN
    wanted = np.zeros_like(cap)
    wanted[tail, head] = np.minimum(np.floor(best * GRAIN + 1e-4), cap[tail, head] * GRAIN).astype(np.int64)
    kept = _balanced(wanted, member)
    for (u, v), parts in fluid.shares.items():
        left = int(kept[u, v])
        for i, (amount, route) in enumerate(parts):
            parts[i] = (min(amount, left), route)
            left -= parts[i][0]
        parts[:] = [part for part in parts if part[0]]
    fluid.capacity[:-1, :-1] = kept
    return len(roots) > 0


def _program(
    cap: IntArray, weight: IntArray, tail: IntArray, head: IntArray, sinks: list[int], member: BoolArray
) -> FloatArray | None:
    """The capacities c' of the linear program, shape (edges,); of all optima one that uses little."""
    count, nodes = len(tail), len(cap)
    columns = count * (len(sinks) + 1) + 1  # c', a flow per sink, x
    entries: list[tuple[int, int, float]] = []
    rhs_rows = 0
    for v in np.flatnonzero(~member).tolist():  # balance
        for e in np.flatnonzero(tail == v).tolist():
            entries.append((rhs_rows, e, 1.0))
        for e in np.flatnonzero(head == v).tolist():
            entries.append((rhs_rows, e, -1.0))
        rhs_rows += 1
    for i, sink in enumerate(sinks):  # conservation: out - in = weight * x everywhere but at the sink
        base = count * (i + 1)
        for v in range(nodes):
            if v == sink:
                continue
            for e in np.flatnonzero(tail == v).tolist():
                entries.append((rhs_rows, base + e, 1.0))
            for e in np.flatnonzero(head == v).tolist():
                entries.append((rhs_rows, base + e, -1.0))
            if weight[v]:
                entries.append((rhs_rows, columns - 1, -float(weight[v])))
            rhs_rows += 1
    rows, cols, values = (np.array(x) for x in zip(*entries, strict=True))
    equal = coo_array((values, (rows, cols)), shape=(rhs_rows, columns)).tocsr()
    flows = np.arange(count, columns - 1)
    within = coo_array(
        (
            np.concatenate([np.ones(len(flows)), -np.ones(len(flows))]),
            (np.tile(np.arange(len(flows)), 2), np.concatenate([flows, (flows - count) % count])),
        ),
        shape=(len(flows), columns),
    ).tocsr()
    cost = np.full(columns, 0.0)
    scale = float(cap.max())
    cost[:count] = 1e-6 / count
    cost[-1] = -1.0
    upper = np.concatenate([cap[tail, head] / scale, np.full(columns - count, np.inf)])
    words: dict[str, Any] = {
        "c": cost, "A_ub": within, "b_ub": np.zeros(len(flows)), "A_eq": equal, "b_eq": np.zeros(rhs_rows),
        "bounds": np.stack([np.zeros(columns), upper], axis=1),
    }  # fmt: skip
    inner = np.flatnonzero(~member).tolist()

    def names() -> tuple[list[str], list[str]]:
        flows = list(product(sinks, range(count)))
        columns = [*all_named("capacity", "e", range(count)), *all_named("flow", "d e", flows), "amount"]
        ends = [(sink, v) for sink in sinks for v in range(nodes) if v != sink]
        rows = all_named("balance", "v", inner) + all_named("conservation", "d v", ends)
        return columns, all_named("within", "d e", flows) + rows

    writing.offer("linprog", words, names)
    found: Any = linprog(**words, method="highs")
    return None if found.x is None else np.asarray(found.x[:count] * scale)


def _balanced(wanted: IntArray, member: BoolArray) -> IntArray:
    """The whole amounts ``wanted`` less what inner nodes take in or let out too much, node by node until all balance
    (amounts only ever fall); links of members first, because nothing has to follow there."""
    kept = wanted.copy()
    while True:
        surplus = kept.sum(axis=0) - kept.sum(axis=1)
        uneven = np.flatnonzero((surplus != 0) & ~member)
        if not len(uneven):
            return kept
        v = int(uneven[0])
        side = kept[:, v] if surplus[v] > 0 else kept[v]
        left = abs(int(surplus[v]))
        for u in sorted(np.flatnonzero(side).tolist(), key=lambda u: (not member[u], -int(side[u]), u)):
            less = min(left, int(side[u]))
            side[u] -= less
            left -= less
