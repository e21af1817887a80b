"""The solution types of the fabric family: transfers with routes and exact start times, or one origin's and a group;
their stored form, their table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import InputError
from synth.graph.symmetry import arc_images
from synth.text.untrusted import exact_sum, flags, whole, whole_numbers
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import starts

if TYPE_CHECKING:
    import pandas as pd


MOST_TICKS = 2**62  # a time in ticks, and a sum of two of them, fits 64 bits
MOST_BYTES = 2**48
PLAN = "plan_"  # what the keys of a stored plan begin with
GENERATORS, ORDERS = "quotient_generators", "quotient_orders"  # keys of a stored quotient
MOST_GENERATORS = 64
MOST_EXPANDED = 10_000_000  # transfers of a quotient that are listed one by one


@dataclass(frozen=True)
class Schedule:
    """Transfers in continuous time.

    Times are whole *ticks*, ``ticks_per_s`` of them a second; a transfer of n bytes occupies a link of b bytes/s for
    ``ceil(n * ticks_per_s / b)`` ticks, a latency takes ``ceil(latency * ticks_per_s)``: rounded up, so that a
    schedule is never faster than its machine, and all comparisons are exact. With ticks that suit the instance
    (:mod:`synth_models.fabric.problem.clock`) nothing is rounded at all.

    ``piece_block``, ``piece_bytes``: shape (pieces,); the pieces of a block make up its bytes. ``start``, ``piece``,
    ``adds``: shape (transfers,); a transfer that adds brings a partial sum, which is added to the receiver's; others
    bring a copy (of a whole sum, in a reduction). ``link[route_start[i]:route_start[i + 1]]`` is the route of transfer
    i: a path of links, or with multicast an out-tree whose links come after those they hang on.

    ``plan``: what a method that counts in epochs or steps claims beside the seconds, as plain values and flat arrays
    with its ``kind`` (:mod:`synth_models.fabric.check.plans`); empty for others.

    ``ends``: for whoever compares schedules, the machine and the ticks until the last transfer has arrived on it, where
    list scheduling made this schedule; never packed, and not in a schedule made of this one by ``replace``.
    """

    ticks_per_s: int
    piece_block: IntArray
    piece_bytes: IntArray
    start: IntArray
    piece: IntArray
    adds: BoolArray
    route_start: IntArray
    link: IntArray
    plan: Mapping[str, Any] = field(default_factory=dict)
    ends: tuple[Machine, int] | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def transfers(self) -> int:
        """Number of transfers."""
        return len(self.start)


@dataclass(frozen=True)
class Quotient:
    """A schedule that symmetry repeats: what is sent of the origin's block, and the group that carries it to all.

    The *origin* is the first member of the process group. ``part`` is the schedule of its block alone, which is block
    0 there: of an allgather what the origin spreads, of a reduce_scatter the sum for it, of an allreduce the share of
    the sum that has the origin's place (as many equal shares as members). ``generators``: images of all nodes, shape
    (generators, nodes); ``orders``: shape (generators,). The group's elements are the products of powers of the
    generators, each power from 0 to below its order; exactly one element g carries the origin to a given member, and
    the whole schedule sends over g(e) what ``part`` sends over e, at the same ticks. Of the parallel links of one
    bandwidth and latency between two nodes the i-th goes to the i-th. Nothing here is trusted before
    :mod:`synth_models.fabric.check.quotient` has verified it.
    """

    part: Schedule
    generators: IntArray
    orders: IntArray

    def transfers_over(self, members: int) -> int:
        """Transfers of the whole schedule, which has so many members."""
        return self.part.transfers * members


def pack(schedule: Schedule | Quotient) -> dict[str, Any]:
    """Plain values and flat arrays: a quotient's are its part's, the generators and their orders."""
    if isinstance(schedule, Quotient):
        return _packed(schedule.part) | {GENERATORS: schedule.generators, ORDERS: schedule.orders}
    return _packed(schedule)


def _packed(schedule: Schedule) -> dict[str, Any]:
    """Plain values and flat arrays. Starts, pieces and routes repeat themselves from chunk to chunk, so what is stored
    is the difference of every ``start`` and ``piece`` to the one before (the first to 0) and the length of every route:
    a fourth of the space. ``adds`` and ``route_lengths`` (not all 1) only where there are any.
    """
    packed: dict[str, Any] = {"ticks_per_s": int(schedule.ticks_per_s)}
    packed |= {key: getattr(schedule, key) for key in ("piece_block", "piece_bytes", "link")}
    packed |= {f"{key}_steps": np.diff(getattr(schedule, key), prepend=0) for key in ("start", "piece")}
    if schedule.adds.any():
        packed["adds"] = schedule.adds.astype(np.int8)
    lengths = np.diff(schedule.route_start)
    if np.any(lengths != 1):
        packed["route_lengths"] = lengths
    return packed | {f"{PLAN}{key}": value for key, value in schedule.plan.items()}


def unpack(instance: FabricInstance, packed: Mapping[str, Any]) -> Schedule | Quotient:
    """The inverse of :func:`pack`. Raises ``ValueError`` on data that is no schedule."""
    if GENERATORS not in packed and ORDERS not in packed:
        return _unpacked(instance, packed, len(instance.all_blocks[0]))
    nodes = instance.machine.nodes
    orders = whole_numbers(packed, ORDERS, 1, max(len(instance.members), 1))
    if len(orders) > MOST_GENERATORS:
        raise ValueError(f"{ORDERS} has {len(orders)} entries, more than {MOST_GENERATORS}")
    generators = whole_numbers(packed, GENERATORS, 0, nodes - 1, (len(orders), nodes))
    return Quotient(_unpacked(instance, packed, 1), generators.reshape(len(orders), nodes), orders)


def _unpacked(instance: FabricInstance, packed: Mapping[str, Any], blocks: int) -> Schedule:
    """A schedule of so many blocks."""
    ticks = whole(packed, "ticks_per_s", 1, MOST_TICKS)
    block = whole_numbers(packed, "piece_block", 0, max(blocks - 1, 0))
    size = whole_numbers(packed, "piece_bytes", 1, MOST_BYTES, (len(block),))
    start = _summed(packed, "start_steps", MOST_TICKS)
    piece = _summed(packed, "piece_steps", max(len(block) - 1, 0), len(start))
    link = whole_numbers(packed, "link", 0, max(instance.machine.links - 1, 0))
    adds = flags(packed, "adds", (len(start),)) if "adds" in packed else np.zeros(len(start), dtype=bool)
    if len(start) and not len(block):
        raise ValueError("there are transfers but no pieces")
    lengths = np.ones(len(start), dtype=np.int64)
    if "route_lengths" in packed:
        lengths = whole_numbers(packed, "route_lengths", 1, max(len(link), 1), (len(start),))
    if exact_sum(lengths) != len(link):
        raise ValueError(f"{len(link)} links for routes of {exact_sum(lengths)}")
    route_start = starts(lengths)
    plan = {key.removeprefix(PLAN): value for key, value in packed.items() if key.startswith(PLAN)}
    return Schedule(ticks, block, size, start, piece, adds, route_start, link, plan)


def _summed(packed: Mapping[str, Any], key: str, most: int, count: int | None = None) -> IntArray:
    """The partial sums of what is stored under ``key``, each in ``0..most``, added without wrapping."""
    steps = whole_numbers(packed, key, -most, most, (count,))
    if np.abs(steps.astype(np.float64)).sum() < MOST_TICKS:
        return whole_numbers({key: np.cumsum(steps)}, key, 0, most)
    sums = list(accumulate(steps.tolist()))  # plain numbers, which do not wrap
    outside = next((value for value in sums if not 0 <= value <= most), None)
    if outside is not None:
        raise ValueError(f"{key} adds up to {outside}, outside 0..{most}")
    return np.array(sums, dtype=np.int64)


def expanded(instance: FabricInstance, schedule: Schedule | Quotient, most: int = MOST_EXPANDED) -> Schedule:
    """Every transfer of the schedule, member after member. Raises :class:`InputError` beyond ``most`` transfers, and
    where the generators are no symmetries."""
    if isinstance(schedule, Schedule):
        return schedule
    part, net, members = schedule.part, instance.machine.network, len(instance.members)
    count, pieces = schedule.transfers_over(members), len(part.piece_block)
    if count > most:
        raise InputError(
            f"the schedule has {count} transfers, more than the {most} that are listed one by one; the record holds "
            f"those of the first rank's block ({part.transfers}) and the symmetries that carry them to all others"
        )
    kinds = instance.machine.group >= 0, net.bandwidth, net.latency
    links, origin = part.link[None, :], np.array(instance.members[:1], dtype=np.int64)
    for image, order in zip(schedule.generators, schedule.orders.tolist(), strict=True):
        moves = arc_images(image, net.src, net.dst, kinds)
        if moves is None or len(links) * order > members:
            raise InputError("a generator is no symmetry of the machine, or there are too many: synth check says more")
        powers, places = [links], [origin]
        for _ in range(order - 1):
            powers.append(moves[powers[-1]])
            places.append(image[places[-1]])
        links, origin = np.concatenate(powers), np.concatenate(places)
    place = np.argsort(origin)
    if not np.array_equal(origin[place], np.sort(instance.members)):
        raise InputError("the symmetries do not carry the first rank to every other one: synth check says more")
    of_member = np.empty(instance.machine.nodes, dtype=np.int64)
    of_member[origin] = np.arange(members)
    links = links[of_member[list(instance.members)]]
    block = np.arange(members) if len(instance.blocks) == members else np.zeros(members, dtype=np.int64)
    routes = part.route_start[:-1] + np.arange(members)[:, None] * len(part.link)
    return Schedule(
        part.ticks_per_s,
        np.repeat(block, pieces),
        np.tile(part.piece_bytes, members),
        np.tile(part.start, members),
        (part.piece + np.arange(members)[:, None] * pieces).reshape(-1),
        np.tile(part.adds, members),
        np.append(routes.reshape(-1), members * len(part.link)).astype(np.int64),
        links.reshape(-1),
    )


def part_of(instance: FabricInstance, schedule: Schedule, number: int) -> tuple[Schedule, IntArray]:
    """What a schedule of several collectives moves of one of them, as a schedule of ``instance.parts[number]``, and the
    numbers of its transfers; of one collective the schedule. Raises ``ValueError`` for a link that only others may
    use."""
    part = instance.parts[number]
    if part is instance:
        return schedule, np.arange(schedule.transfers, dtype=np.int64)
    collective = instance.all_blocks[1]
    pieces = np.flatnonzero(collective[schedule.piece_block] == number)
    place = np.full(len(schedule.piece_block), -1, dtype=np.int64)
    place[pieces] = np.arange(len(pieces))
    chosen = np.flatnonzero(place[schedule.piece] >= 0)
    lengths = np.diff(schedule.route_start)
    there = np.full(int(instance.machine.file_links.max(initial=-1)) + 1, -1, dtype=np.int64)
    there[part.machine.file_links] = np.arange(part.machine.links)
    mine = np.zeros(schedule.transfers, dtype=bool)
    mine[chosen] = True
    link = there[instance.machine.file_links[schedule.link[np.repeat(mine, lengths)]]]
    if np.any(link < 0):
        k = int(np.flatnonzero(np.repeat(mine, lengths))[np.flatnonzero(link < 0)[0]])
        transfer = int(np.searchsorted(schedule.route_start, k, side="right")) - 1
        raise ValueError(f"transfer {transfer} uses link {schedule.link[k]} of a rank that is not in its group")
    first = int(np.searchsorted(collective, number))
    made = Schedule(
        schedule.ticks_per_s,
        schedule.piece_block[pieces] - first,
        schedule.piece_bytes[pieces],
        schedule.start[chosen],
        place[schedule.piece[chosen]],
        schedule.adds[chosen],
        starts(lengths[chosen]),
        link,
    )
    return made, chosen.astype(np.int64)


def listing(instance: FabricInstance, schedule: Schedule) -> IntArray:
    """The transfers in the order in which a table lists them: by their start. Where switches store partial sums, a
    transfer out of one carries what the last one listed before it brought: there the schedule's own order stays."""
    stores = instance.switching.mode == "store_and_forward" and bool(instance.machine.is_switch.any())
    if stores and np.any(instance.all_blocks[0].sums):
        return np.arange(schedule.transfers, dtype=np.int64)
    return np.argsort(schedule.start, kind="stable").astype(np.int64)


def table(instance: FabricInstance, schedule: Schedule) -> pd.DataFrame:
    """Columns ``start_s,piece,block,bytes,origin,src,dst,links``; for reductions ``adds``; of several collectives their
    number, ``collective``: a row a transfer in the order of :func:`listing`. ``origin`` is the rank whose data it is,
    all of several, or ``sum``; ``dst`` has several ranks for a multicast, ``src`` several for an in-tree; ``links`` are
    numbers of links, separated by spaces."""
    import pandas as pd

    net, is_switch = instance.machine.network, instance.machine.is_switch
    order = listing(instance, schedule)
    begins, ends = schedule.route_start[:-1][order], schedule.route_start[1:][order]
    links = schedule.link.tolist()
    routes = [links[a:b] for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
    heads = net.dst.tolist()
    last = [
        str(heads[route[-1]])
        if len(route) == 1
        else " ".join(str(v) for v in dict.fromkeys(heads[e] for e in route) if not is_switch[v])
        for route in routes
    ]
    sources = _sources(instance.machine, routes)
    several = any(" " in row for row in sources)
    piece = schedule.piece[order]
    block = schedule.piece_block[piece]
    blocks, collective = instance.all_blocks
    origin = blocks.origin[block]
    columns: dict[str, Any] = {
        "start_s": schedule.start[order] / schedule.ticks_per_s,
        "piece": piece,
        "block": block,
        "bytes": schedule.piece_bytes[piece],
        "origin": blocks.words(np.where(blocks.sums[block], EVERYONE, origin)),
        "src": sources if several else net.src[schedule.link[begins]] if len(order) else np.zeros(0, dtype=np.int64),
        "dst": last,
        "links": [" ".join(map(str, route)) for route in routes],
    }
    if np.any(blocks.sums):
        columns["adds"] = schedule.adds[order].astype(np.int64)
    if instance.collectives is not None:
        columns["collective"] = collective[block]
    return pd.DataFrame(columns)


def _sources(machine: Machine, routes: list[list[int]]) -> list[str]:
    """The ranks that every route begins at, separated by spaces."""
    tails, is_switch = machine.network.src.tolist(), machine.is_switch
    return [" ".join(str(u) for u in dict.fromkeys(tails[e] for e in route) if not is_switch[u]) for route in routes]
