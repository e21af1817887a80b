"""A plan placed again, backwards in time and forwards: what must be early for others goes first.

Backwards the pieces that arrive last are placed first, so that each begins as late as it can. In the order of these
beginnings they are placed again: pieces whose ways are long, or lead over busy links, no longer come last (forward-
backward improvement, Tormos and Lova, "A competitive heuristic solution technique for resource-constrained project
scheduling", Annals of Operations Research 2001). Backwards only an order is made: where a route's links have unequal
bandwidths its times are about right.
"""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.plans.demands.balanced_plan import Plan
from synth_models.fabric.plans.demands.layout import RouteTable
from synth_models.fabric.plans.demands.timeline import placed_along
from synth_models.fabric.problem.rows import starts


def placed_again(plan: Plan, resources: int) -> Plan:
    """The plan with the same pieces on the same ways, each as early as links are free in the new order; as it was where
    that is no quicker. ``resources``: links and groups of the machine."""
    pieces, transfers, routes = plan.pieces, plan.transfers, plan.routes
    count = len(pieces.bytes)
    in_order = np.lexsort((transfers.start, transfers.piece))
    way, hops = transfers.route[in_order], np.bincount(transfers.piece, minlength=count)
    row = starts(hops)
    turned = np.repeat(row[:-1] + row[1:] - 1, hops) - np.arange(row[-1])
    none = np.zeros(count, dtype=np.int64)
    back = placed_along(
        _latest_first(transfers.piece, transfers.end, count), pieces.bytes, none, none, row,
        way[turned], _backwards(routes), resources,
    )  # fmt: skip
    order = _latest_first(back.piece, back.end, count)
    made = placed_along(order, pieces.bytes, none, none, row, way, routes, resources)
    ticks = int(made.end.max(initial=0))
    return plan._replace(transfers=made, ticks=ticks) if ticks < plan.ticks else plan


def _latest_first(piece: IntArray, end: IntArray, count: int) -> IntArray:
    """The pieces, shape (count,), by the end of the last transfer of each."""
    last = np.zeros(count, dtype=np.int64)
    np.maximum.at(last, piece, end)
    found: IntArray = np.argsort(-last, kind="stable")
    return found


def _backwards(routes: RouteTable) -> RouteTable:
    """The routes from their ends: what is occupied late is occupied early."""
    owner = np.repeat(np.arange(len(routes.latency)), np.diff(routes.used))
    return routes._replace(offset=routes.latency[owner] - routes.offset)
