"""Reversal: what spreads pieces on the reversed machine, played backwards, sums them up on the machine itself.

A schedule that brings every piece from one rank to all others, each receiving it once, is an out-tree per piece. With
every link and every transfer turned around, and the order too, it is an in-tree: every rank adds what its children
brought to its own contribution and passes it on once, so that every contribution counts once. Reduce-scatter is so
made from allgather, reduce from broadcast, and allreduce from both.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.blocks import Blocks
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.scheduling.list_scheduling import waiting_for
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

SPREADS = {"reduce_scatter": "allgather", "reduce": "broadcast", "allreduce": "allgather"}
BACKWARDS = {"reduce_scatter": "allgather", "reduce": "broadcast", "gather": "scatter", "scatter": "gather"}


def reversed_instance(instance: FabricInstance) -> FabricInstance:
    """A reduction as the spreading that it is when played backwards: on the machine turned around, the blocks going
    from their goal to everyone; a gather likewise as a scatter, a scatter as a gather. For an allreduce the blocks have
    no origin yet: every piece may have a root of its own.

    For :func:`synth_models.fabric.scheduling.list_scheduling.timed` and for methods that look at ``machine``,
    ``members``, ``blocks`` and ``switching``; its ``network`` is still that of the file.
    """
    there = copy(instance)  # not checked again: a share of an allreduce need not be a whole number of bytes
    there.__dict__["collective"] = (SPREADS | BACKWARDS)[instance.collective]
    blocks = instance.blocks
    there.__dict__["members"] = instance.members
    there.__dict__["machine"] = instance.machine.reversed()
    there.__dict__["blocks"] = Blocks(blocks.goal, blocks.origin, blocks.bytes)
    return there


def reversed_transfers(there: FabricInstance, spread: Transfers, schedule: Schedule | None = None) -> Transfers:
    """The reduction that ``spread``, transfers on the machine of ``there = reversed_instance(instance)``, is backwards.

    ``schedule`` (of ``timed(there, spread)``) gives the order in time: who arrived last goes first. Without it the
    priorities are turned around. Raises ``ValueError`` for a route that branches, and where a rank receives a piece
    twice.
    """
    _, target = ends(there.machine, spread)
    seen = np.zeros((len(spread.piece_bytes), there.machine.nodes), dtype=bool)
    seen[spread.piece, target] = True
    if np.count_nonzero(seen) < len(target):
        raise ValueError("a rank receives a piece twice: backwards, its contribution would count twice")
    priority = -spread.priority
    if schedule is not None:
        priority = -arrivals(there, spread, schedule)
    priority = (priority - priority.min(initial=0)).astype(np.int64)
    return replace(reversed_in_time(spread), adds=np.ones(len(priority), dtype=bool), priority=priority)


def reversed_in_time(transfers: Transfers) -> Transfers:
    """The same on the machine turned around: every route from its end on, and what waited is waited for."""
    row = np.repeat(np.arange(len(transfers.piece)), np.diff(transfers.route_start))
    at = transfers.route_start[:-1][row] + transfers.route_start[1:][row] - 1 - np.arange(len(row))
    before_start, before = waiting_for(transfers)
    return replace(transfers, link=transfers.link[at], before_start=before_start, before=before)


def joined(machine: Machine, up: Transfers, down: Transfers, later: bool = True) -> Transfers:
    """Summing up, then spreading out, as one set of transfers; both speak of the same pieces.

    A transfer of ``down`` that waits for none of ``down`` starts at the root of its piece: it waits for all of ``up``
    that bring the piece there. With ``later``, everything of ``up`` goes before anything of ``down`` where both want a
    link; otherwise their priorities are compared as they are.
    """
    count = len(up.piece)
    nodes = machine.nodes
    _, to = ends(machine, up)
    origin, _ = ends(machine, down)
    arriving = up.piece * nodes + to
    order = np.argsort(arriving, kind="stable")
    keys = down.piece * nodes + origin
    first, last = (np.searchsorted(arriving[order], keys, side) for side in ("left", "right"))
    waits = np.diff(down.before_start) > 0
    begin = np.where(waits, down.before_start[:-1] + count, first)  # in what follows: ``up`` in order, then ``before``
    lengths = np.where(waits, np.diff(down.before_start), last - first)
    at = np.repeat(begin - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
    flat: IntArray = np.concatenate([order, down.before + count])[at]
    offset = int(up.priority.max(initial=-1)) + 1 - int(down.priority.min(initial=0)) if later else 0
    return replace(
        up,
        piece=np.concatenate([up.piece, down.piece]),
        adds=np.concatenate([up.adds, down.adds]),
        priority=np.concatenate([up.priority, down.priority + offset]),
        route_start=np.concatenate([up.route_start, up.route_start[-1] + down.route_start[1:]]),
        link=np.concatenate([up.link, down.link]),
        before_start=np.concatenate([up.before_start, up.before_start[-1] + np.cumsum(lengths)]),
        before=np.concatenate([up.before, flat]),
    )


def ends(machine: Machine, transfers: Transfers) -> tuple[IntArray, IntArray]:
    """First and last node of every route, shape (transfers,) each. Raises ``ValueError`` for one that branches."""
    net = machine.network
    inner = np.ones(len(transfers.link), dtype=bool)
    inner[transfers.route_start[:-1]] = False
    at = np.flatnonzero(inner)
    if np.any(net.dst[transfers.link[at - 1]] != net.src[transfers.link[at]]):
        raise ValueError("a route branches: it has no reversal")
    first, last = transfers.link[transfers.route_start[:-1]], transfers.link[transfers.route_start[1:] - 1]
    return net.src[first].astype(np.int64), net.dst[last].astype(np.int64)


def arrivals(instance: FabricInstance, transfers: Transfers, schedule: Schedule) -> IntArray:
    """When every transfer has arrived at the end of its path, in ticks of ``schedule``, shape (transfers,).

    Of a schedule that ``timed`` made from these transfers, hop by hop or not.
    """
    ticks = schedule.ticks_per_s
    machine = instance.machine
    latency = clock.latencies(machine, ticks)
    sizes, size_row = np.unique(transfers.piece_bytes, return_inverse=True)
    table, link_row = clock.duration_table(machine, ticks, sizes)
    lengths = np.diff(transfers.route_start)
    took = table[link_row[transfers.link], np.repeat(size_row.reshape(-1)[transfers.piece], lengths)]
    first, last = transfers.route_start[:-1], transfers.route_start[1:] - 1
    if instance.switching.mode == "store_and_forward":
        hop: IntArray = schedule.start[last] + latency[transfers.link[last]] + took[last]
        return hop
    if not len(first):
        return np.zeros(0, dtype=np.int64)
    whole: IntArray = (
        schedule.start + np.add.reduceat(latency[transfers.link], first) + np.maximum.reduceat(took, first)
    )
    return whole
