"""What the replay's faults say: the transfer, link and moment, and what is wrong there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.text.quantities import SECONDS, shown
from synth_models.fabric.check import contributions, gathered_hops, route_hops
from synth_models.fabric.check.occupancy import Clash, streams_at_once
from synth_models.fabric.check.route_hops import Hops
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.solution import Schedule


def route_faults(instance: FabricInstance, schedule: Schedule, hops: Hops) -> Iterator[str]:
    net, names = instance.machine.network, instance.machine.names
    shape = "no out-tree" if instance.switching.multicast else "no path"
    for i, k, what in hops.wrong.tolist():
        e = int(schedule.link[k])
        u, v = int(net.src[e]), int(net.dst[e])
        said = {
            route_hops.FROM_SWITCH: f"starts at the switch {names[u]}",
            route_hops.APART: f"its links are {shape}: none before this one leads to node {u}"
            if instance.switching.multicast
            else f"its links are {shape}: the one before does not lead to node {u}",
            route_hops.THROUGH_RANK: f"passes through rank {u}; only switches cut through",
            route_hops.TO_SWITCH: f"ends at the switch {names[v]}",
            route_hops.TWICE: f"its links are {shape}: it reaches node {v} twice",
            route_hops.SEVERAL: f"has a route of {schedule.route_start[i + 1] - schedule.route_start[i]} links, but "
            "switches that store are reached by transfers of their own",
            route_hops.TOO_LONG: f"takes longer than {route_hops.LONGEST} ticks",
            gathered_hops.NO_TREE: "the links of its several sources do not meet in one place",
            gathered_hops.NO_ADDING: f"streams meet in node {v}, which does not add",
            gathered_hops.NO_COPYING: f"parts in node {u}, which does not copy",
            gathered_hops.FROM_SWITCH: f"starts at the switch {names[u]}",
            gathered_hops.TO_SWITCH: f"ends at the switch {names[v]}",
            gathered_hops.TOO_LONG: f"takes longer than {gathered_hops.LONGEST} ticks",
        }[what]
        yield f"{_where(instance, schedule, i, e, int(schedule.start[i]))}: {said}"


def clash_faults(
    instance: FabricInstance, schedule: Schedule, hops: Hops, found: list[Clash], other_one: str = "transfer"
) -> Iterator[str]:
    machine = instance.machine
    for k, other, of_group in found:
        i, j, e = int(hops.owner[k]), int(hops.owner[other]), int(schedule.link[k])
        until = _time(schedule, int(hops.begin[other] + hops.ticks[hops.span[other]]))
        thing = f"group {_group(instance, int(machine.group[e]))}" if of_group else "the link"
        where = _where(instance, schedule, i, e, int(hops.begin[k]))
        yield f"{where}: {thing} carries {other_one} {j} until {until}"


def stream_faults(instance: FabricInstance, schedule: Schedule, hops: Hops) -> Iterator[str]:
    """Switches that copy or add more transfers at once than they can."""
    for node, most, tick, count in streams_at_once(instance.machine, schedule, hops):
        name = instance.machine.names[node]
        yield f"switch {name} at {_time(schedule, tick)}: copies or adds {count} transfers at once, {most} at most"


def _group(instance: FabricInstance, group: int) -> str:
    names = instance.machine.group_names
    return names[group] if group < len(names) else str(group)


def possession_faults(
    instance: FabricInstance, schedule: Schedule, hops: Hops, found: tuple[Any, IntArray], first: IntArray
) -> Iterator[str]:
    """What is wrong with the transfers ``first``, by the codes ``found`` of all, and ticks at which nodes are ready."""
    code, ready = found
    net, names = instance.machine.network, instance.machine.names
    for i in first.tolist():
        k = int(schedule.route_start[i])
        e, p, now = int(schedule.link[k]), int(schedule.piece[i]), int(schedule.start[i])
        u = int(net.src[e])
        what = int(code[i])
        if what == contributions.LEFT_TWICE:
            said = f"piece {p} has left the switch {names[u]} already, which makes no copies"
        elif what == contributions.INCOMPLETE:
            said = f"node {u} passes on piece {p} as complete, but its sum is not"
        elif what == contributions.NO_SUM:
            said = f"has several sources, but {instance.collective} has no sums"
        elif what == contributions.DOUBLED and len(_sources(instance, schedule, i)) > 1:
            said = f"adds a contribution to piece {p} twice"
        elif what == contributions.DOUBLED:
            said = f"adds a contribution to piece {p} that its receiver already has"
        else:
            early = now < ready[u] and not instance.machine.is_switch[u]
            own = f" of its own before it is ready ({shown(ready[u] / schedule.ticks_per_s, SECONDS)})"
            said = f"node {u} sends piece {p}{own if early else _when_there(instance, schedule, hops, u, p, now)}"
        yield f"{_where(instance, schedule, i, e, now)}: {said}"


def _sources(instance: FabricInstance, schedule: Schedule, transfer: int) -> list[int]:
    """The ranks from which a transfer starts."""
    first, end = schedule.route_start[transfer : transfer + 2].tolist()
    tails: list[int] = instance.machine.network.src[schedule.link[first:end]].tolist()
    return [v for v in tails if not instance.machine.is_switch[v]]


def _when_there(instance: FabricInstance, schedule: Schedule, hops: Hops, node: int, piece: int, now: int) -> str:
    there = (schedule.piece[hops.owner] == piece) & (instance.machine.network.dst[schedule.link] == node)
    ticks = np.sort(hops.arrive[there & (hops.arrive >= 0)])
    later = ticks[ticks > now]
    if len(later):
        return f" before it has arrived there ({_time(schedule, int(later[0]))})"
    if len(ticks):
        return f", which came at {_time(schedule, int(ticks[-1]))}: the switch has no buffer"
    return ", which it never gets"


def goal_faults(instance: FabricInstance, schedule: Schedule, missing: IntArray) -> Iterator[str]:
    for piece, rank, lacking, first in missing.tolist():
        called = instance.machine.names[rank]
        name = f"rank {rank}" + (f" ({called})" if called != str(rank) else "")
        what = f"piece {piece} of block {schedule.piece_block[piece]}"
        if lacking:
            whose = f"{lacking} contributions lack, first rank {instance.members[first]}'s"
            yield f"end: {name} does not hold the complete sum of {what}: {whose}"
        else:
            yield f"end: {name} does not hold {what} ({block_words(instance, int(schedule.piece_block[piece]))})"


def block_words(instance: FabricInstance, block: int) -> str:
    blocks = instance.blocks
    holders, wanters = (
        "all" if code == EVERYONE else f"rank{'s' * (code < 0)} {', '.join(map(str, blocks.ranks(code, ())))}"
        for code in (int(blocks.origin[block]), int(blocks.goal[block]))
    )
    if blocks.sums[block]:
        whose = "the sum" if blocks.origin[block] == EVERYONE else f"the sum over {holders}"
    else:
        whose = f"of {holders}"
    return f"{whose}, for {wanters}"


def _where(instance: FabricInstance, schedule: Schedule, transfer: int, link: int, tick: int) -> str:
    net = instance.machine.network
    return f"transfer {transfer}, link {link} ({net.src[link]}->{net.dst[link]}) at {_time(schedule, tick)}"


def _time(schedule: Schedule, tick: int) -> str:
    return f"tick {tick} ({shown(tick / schedule.ticks_per_s, SECONDS)})"
