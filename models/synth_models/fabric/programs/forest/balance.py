"""Switches that take in more than they let out, or less: the best capacity that can be used without copying in them.

A route through a switch uses as much capacity into it as out of it. Where a machine has as much of both (links in
opposite pairs) the cuts can be reached; where it has not, the cuts overlook this, and the most that routes can do is a
linear program: capacities c' <= c that balance at every switch, and a flow of the same value x times the roots' weight
to every member within c' (with x per root and unit weight; x as great as can be):

    maximise x                                                                             over c', f >= 0, c' <= c
    (1) balance        sum_{e out of v} c'_e - sum_{e into v} c'_e = 0                     of an inner node v
    (2) conservation   sum_{e out of v} f_{d,e} - sum_{e into v} f_{d,e} = weight_v x      of a sink d, a node v
    (3) within         f_{d,e} <= c'_e                                                     of a sink d, an edge e

=================  ==============================  ======================  ===================
page               code                            index set               unit
=================  ==============================  ======================  ===================
c_e                ``cap``                         edges e                 units of capacity
c'_e               first columns                   edges e                 units of capacity
f_{d,e}            the columns behind              sinks d, edges e        units of capacity
x                  last column                     one number              units a root's weight
weight_v           ``weight``                      nodes v                 --
=================  ==============================  ======================  ===================

Its solution is rounded to whole units that balance exactly. The rate is then computed again from the rounded
capacities: rounding lowers the rate, which stays exact.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.solvers import model_file
from synth.solvers.lp import linprog
from synth.solvers.names import all_named
from synth_models.fabric.programs.forest.capacities import Fluid
from synth_models.fabric.programs.forest.tuned import GRAIN, MOST_VARIABLES


def balance(fluid: Fluid) -> bool:
    """Reduce capacities until every inner node lets out what it takes in; False if that was so, or is too large.
    A solver's amounts may be below 0 by its tolerance, times a scale that makes this many units.

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
    wanted[tail, head] = np.clip(np.floor(best * GRAIN + 1e-4), 0, cap[tail, head] * GRAIN).astype(np.int64)
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
    inner = np.flatnonzero(~member).tolist()
    equations = [*balances(inner, tail, head), *conservation(weight, tail, head, sinks)]
    entries = [(n, column, value) for n, terms in enumerate(equations) for column, value in terms]
    rows, cols, values = (np.array(x) for x in zip(*entries, strict=True))
    equal = coo_array((values, (rows, cols)), shape=(len(equations), columns)).tocsr()
    upper_rows = within(count, len(sinks))
    cost = np.full(columns, 0.0)
    scale = float(cap.max())
    cost[:count] = 1e-6 / count
    cost[-1] = -1.0
    upper = np.concatenate([cap[tail, head] / scale, np.full(columns - count, np.inf)])
    words: dict[str, Any] = {
        "c": cost, "A_ub": upper_rows, "b_ub": np.zeros(count * len(sinks)), "A_eq": equal,
        "b_eq": np.zeros(len(equations)),
        "bounds": np.stack([np.zeros(columns), upper], axis=1),
    }  # fmt: skip

    def names() -> tuple[list[str], list[str]]:
        flows = list(product(sinks, range(count)))
        columns = [*all_named("capacity", "e", range(count)), *all_named("flow", "d e", flows), "amount"]
        ends = [(sink, v) for sink in sinks for v in range(nodes) if v != sink]
        rows = all_named("balance", "v", inner) + all_named("conservation", "d v", ends)
        return columns, all_named("within", "d e", flows) + rows

    point: FloatArray | None = model_file.offer("linprog", words, names)
    if point is None:
        point = linprog(**words, method="highs").x
    return None if point is None else np.asarray(point[:count] * scale)


Terms = list[tuple[int, float]]  # columns and coefficients of a row


def _out_less_in(v: int, tail: IntArray, head: IntArray, first: int) -> Terms:
    """What leaves a node over edges less what enters it; the edges' columns begin at ``first``."""
    out = [(first + e, 1.0) for e in np.flatnonzero(tail == v).tolist()]
    return out + [(first + e, -1.0) for e in np.flatnonzero(head == v).tolist()]


def balances(inner: list[int], tail: IntArray, head: IntArray) -> Iterator[Terms]:
    """(1): as much capacity leads out of an inner node as into it."""
    for v in inner:
        yield _out_less_in(v, tail, head, 0)


def conservation(weight: IntArray, tail: IntArray, head: IntArray, sinks: list[int]) -> Iterator[Terms]:
    """(2): of the flow to a sink a node lets out what it takes in, and a root x times its weight more."""
    count = len(tail)
    x = count * (len(sinks) + 1)
    for i, sink in enumerate(sinks):
        for v in range(len(weight)):
            if v != sink:
                source = [(x, -float(weight[v]))] if weight[v] else []
                yield _out_less_in(v, tail, head, count * (i + 1)) + source


def within(count: int, sinks: int) -> Any:
    """(3): the flow to a sink stays within the capacities, as rows <= 0."""
    flows = np.arange(count, count * (sinks + 1))
    value = np.concatenate([np.ones(len(flows)), -np.ones(len(flows))])
    row = np.tile(np.arange(len(flows)), 2)
    column = np.concatenate([flows, (flows - count) % count])
    return coo_array((value, (row, column)), shape=(len(flows), count * (sinks + 1) + 1)).tocsr()


def _balanced(wanted: IntArray, member: BoolArray) -> IntArray:
    """The whole amounts ``wanted`` less what inner nodes take in or let out too much, until all balance (amounts only
    ever fall). What is too much goes off a shortest path, to a member or an inner node that lacks what the other has
    too much; there is one, as nothing leads into all that leads to a node (out of all that it leads to)."""
    kept = wanted.copy()
    while True:
        surplus = kept.sum(axis=0) - kept.sum(axis=1)
        uneven = np.flatnonzero((surplus != 0) & ~member)
        if not len(uneven):
            return kept
        v = int(uneven[0])
        along = kept.T if surplus[v] > 0 else kept
        path = _to_nearest(along, v, member, np.sign(surplus) == -np.sign(surplus[v]))
        left = [abs(int(surplus[w])) for w in (path[0], path[-1]) if not member[w]]
        less = min(*left, *(int(along[u, w]) for u, w in pairwise(path)))
        for u, w in pairwise(path):
            along[u, w] -= less


def _to_nearest(along: IntArray, v: int, member: BoolArray, lacks: BoolArray) -> list[int]:
    """A shortest path from a node over positive amounts to a member or a node that lacks; of several to members first,
    then by the largest amounts."""
    came = {v: v}
    queue = deque([v])
    while True:
        u = queue.popleft()
        for w in sorted(np.flatnonzero(along[u]).tolist(), key=lambda w: (not member[w], -int(along[u, w]), w)):
            if w in came:
                continue
            came[w] = u
            if member[w] or lacks[w]:
                path = [w]
                while path[-1] != v:
                    path.append(came[path[-1]])
                return path[::-1]
            queue.append(w)
