"""Schedules of several collectives one after the other, each left as it is."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from synth_models.fabric.check.route_hops import hops_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.ready import Ready, moments
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.problem.several import links_in, with_ready
from synth_models.fabric.scheduling.hop_times import hop_times
from synth_models.fabric.scheduling.late_start import first_ticks
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

MOST_TICKS = 2**61


def end_seconds(instance: FabricInstance, schedule: Schedule) -> list[Fraction]:
    """When the last transfer of every collective has arrived."""
    hops = hops_of(instance, schedule)
    of = instance.all_blocks[1][schedule.piece_block][schedule.piece]
    last = np.zeros(len(instance.parts), dtype=np.int64)
    np.maximum.at(last, of[hops.owner], hops.arrive)
    return [Fraction(int(tick), schedule.ticks_per_s) for tick in last]


def in_turn(instance: FabricInstance, schedules: Sequence[Schedule], order: Sequence[int]) -> Schedule | None:
    """The collectives in this order, as a library runs them: each begins when it is released, its ranks are ready,
    and all have ended that it comes after, or that share a rank, a link or a group of links with it and come before it.
    None where their clocks have no common tick, or times rounded to one's own would be others in that."""
    assert instance.collectives is not None
    moving = [(part, own) for part, own in zip(instance.parts, schedules, strict=True) if own.transfers]
    ticks = lcm(*(own.ticks_per_s for _, own in moving))
    if any(own.ticks_per_s != ticks and not clock.suits(part.machine, own.ticks_per_s) for part, own in moving):
        return None
    ends: dict[int, Fraction] = {}
    taken: list[tuple[set[int], Fraction]] = []
    begins = [Fraction(0)] * len(schedules)
    for number in order:
        part, own, one = instance.parts[number], schedules[number], instance.collectives[number]
        release = max([exact(one.release), *(ends[k] for k in one.after or ()), _late(part, own, one.ready)])
        uses = _uses(instance, part, own)
        begin = max([release, *(end for used, end in taken if used & uses)])
        begin = Fraction(-(-(begin * ticks).numerator // (begin * ticks).denominator), ticks)
        hops = hops_of(part, own)
        begins[number] = begin
        ends[number] = max(
            [begin + Fraction(int(hops.arrive.max(initial=0)), own.ticks_per_s), *moments(one.ready).values()]
        )
        taken.append((uses, ends[number]))
    if max(end for _, end in taken) * ticks > MOST_TICKS:
        return None
    return _at(instance, schedules, ticks, [int(begin * ticks) for begin in begins])


def _late(part: FabricInstance, schedule: Schedule, ready: Ready | None) -> Fraction:
    """By how much a collective has to begin later so that no rank sends of its own before it is ready."""
    if ready is None:
        return Fraction(0)
    moves = Transfers.of_schedule(schedule)
    hops = hop_times(part.machine, moves, schedule.ticks_per_s, False)
    first = first_ticks(with_ready(part, ready), moves, hops, schedule.ticks_per_s)
    return Fraction(int((first - schedule.start).max(initial=0)), schedule.ticks_per_s)


def _uses(instance: FabricInstance, part: FabricInstance, schedule: Schedule) -> set[int]:
    """What a collective occupies: its ranks, then links, then groups of links and switches that count streams."""
    machine = instance.machine
    links = links_in(machine, part.machine)[np.unique(schedule.link)]
    groups = machine.group[links]
    ends = np.concatenate([machine.network.src[links], machine.network.dst[links]])
    limited = ends[machine.abilities.streams[ends] > 0]
    found = set(part.members) | set(limited.tolist())
    found |= set((machine.nodes + links).tolist())
    return found | set((machine.nodes + machine.links + groups[groups >= 0]).tolist())


def _at(instance: FabricInstance, schedules: Sequence[Schedule], ticks: int, begins: Sequence[int]) -> Schedule:
    """The schedules as one, each begun at its tick."""
    rows: dict[str, list[Any]] = {
        name: [] for name in ("piece_block", "piece_bytes", "start", "piece", "adds", "length", "link")
    }
    blocks = pieces = 0
    for part, own, begin in zip(instance.parts, schedules, begins, strict=True):
        rows["piece_block"].append(own.piece_block + blocks)
        rows["piece_bytes"].append(own.piece_bytes)
        rows["start"].append(own.start * (ticks // own.ticks_per_s) + begin)
        rows["piece"].append(own.piece + pieces)
        rows["adds"].append(own.adds)
        rows["length"].append(np.diff(own.route_start))
        rows["link"].append(links_in(instance.machine, part.machine)[own.link])
        blocks += len(part.blocks)
        pieces += len(own.piece_block)
    whole: dict[str, Any] = {name: np.concatenate(columns) for name, columns in rows.items()}
    route_start = starts(whole.pop("length"))
    return Schedule(ticks_per_s=ticks, route_start=route_start, **whole)
