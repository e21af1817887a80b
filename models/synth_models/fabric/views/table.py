"""The flat table of a schedule (``synth show --csv``): all that a replay needs beside the instance file, exactly.

Replays of a few lines are in ``tests/models/fabric/test_flat_table.py``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric import solution
from synth_models.fabric.check.route_hops import Hops, hops_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Quotient, Schedule

if TYPE_CHECKING:
    import pandas as pd


def table(instance: FabricInstance, schedule: Schedule | Quotient) -> pd.DataFrame:
    """The columns of :func:`synth_models.fabric.solution.table`, and behind them exact ones.

    ``ticks_per_s`` is the same in every row. ``start_tick``, ``end_tick``: start and last arrival. Rows of whole
    numbers, separated by spaces, an entry a link of the route: ``file_links``, its number in the instance's network
    before anything failed (of ``network.links`` where the file lists links: 0, 1, …); ``hop_src``, ``hop_dst``, the
    nodes that it joins; ``hop_start``, ``hop_ticks``, from which tick on and for how many ticks it is occupied;
    ``hop_arrive``, when all has arrived behind it, -1 where it only passes a switch. In reductions ``contributions``:
    whose contributions the transfer brings, a hexadecimal number, bit i for the i-th rank of the process group. Where
    some have several sources, ``hop_leaves``: at which tick the link's tail must hold its part, -1 where it is none.
    A quotient's transfers are listed one by one; raises :class:`InputError` where they are too many.
    """
    schedule = solution.expanded(instance, schedule)
    made = solution.table(instance, schedule)
    hops, net = hops_of(instance, schedule), instance.machine.network
    order = solution.listing(instance, schedule)
    ends = schedule.route_start
    last = np.maximum.reduceat(hops.arrive, ends[:-1]) if schedule.transfers else schedule.start
    made["ticks_per_s"] = np.full(len(order), schedule.ticks_per_s, dtype=np.int64)
    made["start_tick"] = schedule.start[order]
    made["end_tick"] = last[order]
    columns: dict[str, Any] = {
        "file_links": instance.machine.file_links[schedule.link],
        "hop_src": net.src[schedule.link],
        "hop_dst": net.dst[schedule.link],
        "hop_start": hops.begin,
        "hop_ticks": hops.ticks[hops.span],
        "hop_arrive": hops.arrive,
    }
    if hops.leaves is not None:
        columns["hop_leaves"] = hops.leaves
    for name, values in columns.items():
        texts = list(map(str, values.tolist()))
        rows = [" ".join(texts[a:b]) for a, b in pairwise(ends.tolist())]
        made[name] = [rows[i] for i in order.tolist()]
    if np.any(instance.all_blocks[0].sums):
        brought = _of_all(instance, schedule, hops)
        made["contributions"] = [f"{brought[i]:x}" for i in order.tolist()]
    return made


def _of_all(instance: FabricInstance, schedule: Schedule, hops: Hops) -> list[int]:
    """:func:`contributions`; of several collectives those of each, a bit a rank of its own group."""
    if instance.collectives is None:
        return contributions(instance, schedule, hops)
    found = [0] * schedule.transfers
    for number, part in enumerate(instance.parts):
        if np.any(part.blocks.sums):
            own, chosen = solution.part_of(instance, schedule, number)
            for i, brought in zip(chosen.tolist(), contributions(part, own, hops_of(part, own)), strict=True):
                found[i] = brought
    return found


def contributions(instance: FabricInstance, schedule: Schedule, hops: Hops) -> list[int]:
    """Whose contributions every transfer of a sum brings, a bit a member, in the schedule's order: what its rank holds
    when it starts, or what the last transfer listed before it brought to the switch that it leaves. 0 of copies."""
    net, is_switch = instance.machine.network, instance.machine.is_switch.tolist()
    kinds, of_piece = _contributing(instance), instance.blocks.origin[schedule.piece_block].tolist()
    is_sum = instance.blocks.sums[schedule.piece_block].tolist()
    piece, adds, head = schedule.piece.tolist(), schedule.adds.tolist(), net.dst[schedule.link].tolist()
    source = net.src[schedule.link[schedule.route_start[:-1]]].tolist()
    before = _listed_before(piece, source, [head[a] for a in schedule.route_start[:-1].tolist()], is_switch)
    brought = [0] * schedule.transfers
    held: dict[tuple[int, int], int] = {}
    keeps = [False] * len(is_switch) if instance.switching.adds else is_switch  # who adds nothing to what it holds
    for hop, starts in _events(schedule, hops):
        i = int(hops.owner[hop])
        if not is_sum[piece[i]]:
            continue
        own, everyone = kinds[of_piece[piece[i]]]
        if starts:
            node = int(net.src[schedule.link[hop]])
            at_rank = held.get((piece[i], node), own.get(node, 0))
            if keeps[node] and before[i] >= 0:
                brought[i] = brought[before[i]]
            else:
                brought[i] |= at_rank if adds[i] or hops.leaves is not None else everyone
            continue
        node = head[hop]
        if not keeps[node]:
            there = held.get((piece[i], node), own.get(node, 0))
            held[piece[i], node] = there | brought[i] if adds[i] else brought[i]
    return brought


def _contributing(instance: FabricInstance) -> dict[int, tuple[dict[int, int], int]]:
    """Of every kind of origin the bit of each of its ranks, and all of them."""
    bit, blocks = {member: 1 << i for i, member in enumerate(instance.members)}, instance.blocks
    found = {}
    for code in np.unique(blocks.origin).tolist():
        own = {rank: bit[rank] for rank in blocks.ranks(code, instance.members)}
        found[code] = own, sum(own.values())
    return found


def _events(schedule: Schedule, hops: Hops) -> list[tuple[int, bool]]:
    """Departures and arrivals (link of a route, whether it departs there) in order of time: at one tick copies arrive,
    then what is added, then transfers depart."""
    come = np.flatnonzero(hops.arrive >= 0)
    if hops.leaves is None:
        gone, left = schedule.route_start[:-1], schedule.start
    else:
        gone = np.flatnonzero(hops.leaves >= 0)
        left = hops.leaves[gone]
    when: IntArray = np.concatenate([left, hops.arrive[come]])
    late = np.concatenate([np.full(len(gone), 2), schedule.adds[hops.owner[come]].astype(np.int64)])
    hop, starts = np.concatenate([gone, come]), np.arange(len(when)) < len(gone)
    order = np.lexsort((late, when))
    return list(zip(hop[order].tolist(), starts[order].tolist(), strict=True))


def _listed_before(piece: list[int], source: list[int], head: list[int], is_switch: list[bool]) -> list[int]:
    """For a transfer out of a switch the last one listed before it that brings its piece there, or -1."""
    last: dict[tuple[int, int], int] = {}
    found = [-1] * len(piece)
    for i, (p, u, v) in enumerate(zip(piece, source, head, strict=True)):
        if is_switch[u]:
            found[i] = last.get((p, u), -1)
        if is_switch[v]:
            last[p, v] = i
    return found
