"""Arguments about single arrivals: what comes directly pays less than what was passed on, which comes later.

``deliveries`` (broadcast and allgather; reduce and reduce_scatter with ``backwards``): ``windows``, each with
``length`` (price of a byte on every link) and ``after`` (ticks at ``ticks_per_s``): it is paid for what crosses a link
at that moment or later. Every byte comes to every member v by some first transfer, directly from its origin u over
switches, or from another rank, which had to receive it before. Whatever way it takes, it pays all windows in which
even the earliest way (of the direct ones, or of the others) crosses the link late enough.

``sums`` (allreduce; ``backwards`` too): every byte comes to v in N - 1 direct transfers that carry nothing but their
sender's contribution, or in some transfer by a rank that had received something before.

Backwards, time is reversed: what leaves a rank enters it, and a contribution goes directly to where it is wanted, or to
a rank that must still pass it on. Both need every transfer to serve one rank only.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.text import untrusted
from synth_models.fabric.check.arguments import Argument, Needed, must_be_allreduce
from synth_models.fabric.check.payments import along_paths, transfers_pay_alone
from synth_models.fabric.check.windows import HIGHEST_PRICE, LONGEST, UNREACHABLE, Capacity, Fabric, capacity_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE

MOST_WINDOWS = 4
Windows = list[tuple[IntArray, IntArray]]


def deliveries(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What blocks pay that everyone wants (backwards: to which everyone contributes)."""
    fabric, windows = _read(instance, certificate)
    blocks = instance.blocks
    here, there = (blocks.goal, blocks.origin) if fabric.is_reversed else (blocks.origin, blocks.goal)
    if np.any(there != EVERYONE) or np.any(here == EVERYONE):
        raise ValueError(
            f"deliveries {'backwards ' if fabric.is_reversed else ''}prove nothing for {instance.collective}"
        )
    needed = 0
    for u in np.unique(here).tolist():
        source = fabric.mask([u])
        known = fabric.reach(source, fabric.delay)
        known[~fabric.is_rank | source] = UNREACHABLE
        cost = np.minimum(_direct(fabric, windows, u), _passed_on(fabric, windows, known))[fabric.members]
        cost = cost[fabric.members != u]
        if np.any(cost >= UNREACHABLE):
            raise ValueError(f"nothing can come from rank {u} to everyone")
        needed += untrusted.exact_sum(cost) * untrusted.exact_sum(blocks.bytes[here == u])
    return needed, _capacity(fabric, windows, fabric.mask(here))


def sums(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What an allreduce pays for what every member needs."""
    must_be_allreduce(instance)
    fabric, windows = _read(instance, certificate)
    known = np.full(fabric.nodes, UNREACHABLE, dtype=np.int64)
    simple = [0] * len(fabric.members)
    for u in fabric.members.tolist():
        from_u = fabric.reach(fabric.mask([u]), fabric.delay)
        from_u[u] = UNREACHABLE
        known = np.minimum(known, from_u)
        direct = _direct(fabric, windows, u)[fabric.members].tolist()
        simple = [
            total + (0 if v == u else cost)
            for total, cost, v in zip(simple, direct, fabric.members.tolist(), strict=True)
        ]
    known[~fabric.is_rank] = UNREACHABLE
    passed_on = _passed_on(fabric, windows, known)[fabric.members].tolist()
    if len(fabric.members) > 1 and any(min(pair) >= UNREACHABLE for pair in zip(simple, passed_on, strict=True)):
        raise ValueError("nothing can come to some member")
    needed = instance.bytes * sum(min(pair) for pair in zip(simple, passed_on, strict=True))
    return needed, _capacity(fabric, windows, fabric.mask(fabric.members))


ARGUMENTS: dict[str, Argument] = {"deliveries": deliveries, "sums": sums}


def _read(instance: FabricInstance, certificate: Mapping[str, Any]) -> tuple[Fabric, Windows]:
    backwards = certificate["backwards"]
    if not isinstance(backwards, (bool, np.bool_)):
        raise ValueError("backwards is neither true nor false")
    fabric = Fabric(instance, bool(backwards))
    if not transfers_pay_alone(fabric):
        raise ValueError("arrivals prove nothing where switches copy or add")
    if untrusted.whole(certificate, "ticks_per_s", 1, 10**18) != fabric.ticks_per_s:
        raise ValueError(f"ticks_per_s is not {fabric.ticks_per_s}")
    found, links = certificate["windows"], (len(fabric.tail),)
    if not isinstance(found, (list, tuple)) or not 1 <= len(found) <= MOST_WINDOWS:
        raise ValueError(f"there are not 1..{MOST_WINDOWS} windows")
    return fabric, [
        (
            untrusted.whole_numbers(window, "length", 0, HIGHEST_PRICE // MOST_WINDOWS, links),
            untrusted.whole_numbers(window, "after", 0, LONGEST, links),
        )
        for window in found
    ]


def _paid(windows: Windows, earliest: IntArray) -> IntArray:
    """Price of a byte on every link, which it begins to cross at ``earliest`` or later."""
    cost = np.zeros(len(earliest), dtype=np.int64)
    for length, after in windows:
        cost += np.where(earliest >= after, length, 0)
    return cost


def _direct(fabric: Fabric, windows: Windows, u: int) -> IntArray:
    """Least cost of a transfer from u to every node."""
    source = fabric.mask([u])
    return fabric.reach(source, _paid(windows, fabric.reach(source, fabric.delay, True)[fabric.tail]), True)


def _passed_on(fabric: Fabric, windows: Windows, known: IntArray) -> IntArray:
    """Least cost of a transfer into every node from a rank that sends at its moment ``known`` or later."""
    cost = _paid(windows, fabric.reach_from(known, fabric.delay, True)[fabric.tail])
    senders: BoolArray = known < UNREACHABLE
    to_tail = np.where(senders | ~fabric.is_rank, fabric.reach(senders, cost, True), UNREACHABLE)[fabric.tail]
    found = np.full(fabric.nodes, UNREACHABLE, dtype=np.int64)
    np.minimum.at(found, fabric.head, np.where(to_tail < UNREACHABLE, to_tail + cost, UNREACHABLE))
    return found


def _capacity(fabric: Fabric, windows: Windows, origins: BoolArray) -> Capacity:
    """All windows together: each from its moment on, until what crosses can still come to a member over switches."""
    back = Fabric(fabric.instance, not fabric.is_reversed)
    left = back.reach(fabric.mask(fabric.members), back.delay, True)[fabric.head]
    if not fabric.is_reversed:  # a link is occupied where it begins: before its latency, in reversed time after it
        left = np.where(left < UNREACHABLE, left + fabric.delay, UNREACHABLE)
    begin = fabric.reach(origins, fabric.delay)[fabric.tail]
    rows: list[tuple[Fraction, int]] = []
    for length, after in windows:
        opens = np.where(
            begin < UNREACHABLE, np.maximum(begin, after) + (fabric.delay if fabric.is_reversed else 0), UNREACHABLE
        )
        rows += capacity_of(fabric, length, opens, left, along_paths(fabric.instance))[0].rows
    return Capacity(fabric.ticks_per_s, rows)
