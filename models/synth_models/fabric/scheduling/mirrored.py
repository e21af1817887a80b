"""Schedules with time reversed: a reduction as its broadcast backwards, exactly, where no transfers then meet."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from synth.arrays import IntArray
from synth.schedule.collective import REDUCING
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.from_afar import FEW
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.reversal import arrivals, reversed_instance, reversed_transfers
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule


def mirrored(there: FabricInstance, spread: Transfers, schedule: Schedule, backwards: bool = False) -> Schedule | None:
    """The reduction that ``schedule``, of ``timed(there, spread)``, is with time reversed; None where switches store
    and forward, or some transfers would meet; ``backwards``: it was timed for that, and none do.

    A transfer comes to a link earlier, with time reversed, by the link's latency and by what its slowest link takes
    longer than this one. Where that is so for all transfers on a link (and in a group), none of them meet."""
    machine = there.machine
    if there.switching.mode == "store_and_forward" or not len(spread.link):
        return None
    sooner = clock.latencies(machine, schedule.ticks_per_s)[spread.link] + _longer_elsewhere(there, spread, schedule)
    groups = np.where(machine.group >= 0, machine.group, -1)
    for resource in () if backwards else (spread.link, groups[spread.link]):
        some = np.zeros(int(resource.max()) + 2, dtype=np.int64)
        some[resource] = sooner
        if np.any((some[resource] != sooner) & (resource >= 0)):
            return None
    back, came = reversed_transfers(there, spread), arrivals(there, spread, schedule)
    columns = (back.piece, back.adds, back.route_start, back.link)
    return Schedule(schedule.ticks_per_s, back.piece_block, back.piece_bytes, came.max(initial=0) - came, *columns)


def _longer_elsewhere(there: FabricInstance, spread: Transfers, schedule: Schedule) -> IntArray:
    """Ticks that a transfer takes longer on its slowest link than on each, shape (links of routes,)."""
    sizes, size_row = np.unique(spread.piece_bytes, return_inverse=True)
    table, link_row = clock.duration_table(there.machine, schedule.ticks_per_s, sizes)
    lengths = np.diff(spread.route_start)
    took = table[link_row[spread.link], np.repeat(size_row.reshape(-1)[spread.piece], lengths)]
    longer: IntArray = np.repeat(np.maximum.reduceat(took, spread.route_start[:-1]), lengths) - took
    return longer


def opposite(machine: Machine) -> IntArray | None:
    """Of every link the one that leads back, with the same bandwidth and latency, shape (links,); None where one has
    none, or links take turns."""
    net = machine.network
    here = np.stack([net.src, net.dst, net.bandwidth, net.latency]).astype(float)
    there = here[[1, 0, 2, 3]]
    order, back = np.lexsort(here), np.lexsort(there)
    if np.any(here[:, order] != there[:, back]) or np.any(machine.group >= 0):
        return None
    found = np.empty(len(order), dtype=np.int64)
    found[order] = back
    return found


def backwards(instance: FabricInstance, mirror: FabricInstance, schedule: Schedule) -> Schedule:
    """A schedule of the ``mirror``, the collective of :data:`BACKWARDS` on the same machine, with time reversed.

    Raises ``ValueError`` where the two are not each other's mirror, links do not come in equal opposite pairs, or
    transfers would meet."""
    twin = opposite(instance.machine)
    if twin is None or instance.switching != mirror.switching or not _same_links(instance.machine, mirror.machine):
        raise ValueError("the machine is not the same, or has links without an equal one back")
    there, own, other = reversed_instance(instance), instance.blocks, mirror.blocks
    swapped = own.origin, own.goal, own.bytes, np.array(instance.members)
    given = other.goal, other.origin, other.bytes, np.array(mirror.members)
    if there.collective != mirror.collective or not all(map(np.array_equal, swapped, given)):
        raise ValueError(f"its blocks are not those of {instance.collective} with origins and goals exchanged")
    turned = replace(schedule, link=twin[schedule.link])
    found = mirrored(there, Transfers.of_schedule(turned), turned)
    if found is None:
        raise ValueError("with time reversed, transfers would meet")
    return replace(found, adds=np.full(schedule.transfers, instance.collective in REDUCING))


def _same_links(one: Machine, other: Machine) -> bool:
    """Whether two machines have the same links, by number."""
    names = ("src", "dst", "bandwidth", "latency")
    return all(np.array_equal(getattr(one.network, name), getattr(other.network, name)) for name in names)


def timed_one_way(instance: FabricInstance, there: FabricInstance, transfers: Transfers) -> Schedule | None:
    """A broadcast, or if ``there`` is its reversed instance a reduction, of transfers that fill gaps; None where such a
    reduction cannot be mirrored."""
    found = timed(there, transfers, in_cells=True)
    if len(transfers.piece) <= FEW:
        found = min(found, timed(there, transfers), key=partial(chunks.seconds, there))
    return found if there is instance else mirrored(there, transfers, found)


def there_and_back(instance: FabricInstance, down: Transfers) -> Schedule | None:
    """An allreduce that sums up as ``down`` spreads, with time reversed, and then spreads: one timetable for both.
    ``None`` where the machine is not the same backwards."""
    if opposite(instance.machine) is None:
        return None
    return up_and_down(instance, timed(instance, down, in_cells=True))


def up_and_down(instance: FabricInstance, found: Schedule) -> Schedule | None:
    """The same from the broadcast's schedule."""
    twin = opposite(instance.machine)
    if twin is None:
        return None
    turned = replace(found, link=twin[found.link])
    up = mirrored(reversed_instance(instance), Transfers.of_schedule(turned), turned)
    if up is None:
        return None
    came = int(arrivals(instance, Transfers.of_schedule(found), found).max(initial=0))
    return Schedule(
        found.ticks_per_s, found.piece_block, found.piece_bytes, np.concatenate([up.start, found.start + came]),
        np.concatenate([up.piece, found.piece]), np.concatenate([up.adds, found.adds]),
        np.concatenate([up.route_start, up.route_start[-1] + found.route_start[1:]]),
        np.concatenate([up.link, found.link]),
    )  # fmt: skip
