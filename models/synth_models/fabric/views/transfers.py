"""A schedule as an executor needs it: moves of pieces from rank to rank, switches and links left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import InputError
from synth.exchange.transfers import EVERYONE, Demand, Ticks, Transfers, in_order, seconds
from synth.kernels import jit
from synth.text.quantities import counted
from synth_models.fabric.check.route_hops import Hops, hops_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import SHARED_OUT
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.solution import Quotient, Schedule, expanded

MOST_SHOWN = 4
_NO_FORM = "no file here says how an executor runs them; `synth show RECORD --csv` lists every transfer"


def transfers(instance: FabricInstance, schedule: Schedule | Quotient) -> Transfers:
    """The schedule as moves between the members, numbered by their place in the process group.

    A route of a cut-through transfer is one move a leaf; hops of pieces that switches store are put together to moves.
    Where switches add, one of the ranks does instead, and what one switch does is said by ``together``. Raises
    :class:`InputError` for a demand, for routes that are none, where ranks outside the group forward or switches that
    store add, for sums that no rank on their way could make, and for a quotient of too many transfers.
    """
    if instance.collective == "demand":
        raise InputError(
            "a demand is no collective that an executor knows: its chunks are of one size (alltoall is one); "
            "`synth export` and `synth run` take it"
        )
    if instance.traffic is not None:
        raise InputError(f"blocks with several holders or wanters: {_NO_FORM}; `synth run` runs them")
    return _listed(instance, schedule)


def demands(instance: FabricInstance, schedule: Schedule | Quotient) -> Transfers:
    """The same, also for a demand, whose parts are its rows, and for blocks of several holders or wanters."""
    return _listed(instance, schedule)


def _listed(instance: FabricInstance, schedule: Schedule | Quotient) -> Transfers:
    if instance.collectives is not None:
        raise InputError(f"several collectives at once: {_NO_FORM}")
    schedule = expanded(instance, schedule)
    hops = hops_of(instance, schedule)
    if hops.wrong_count:
        raise InputError(f"{hops.wrong_count} routes are none: synth check says which")
    place = np.full(instance.machine.nodes, -1, dtype=np.int64)
    place[list(instance.members)] = np.arange(len(instance.members))
    moves = _moves(instance, schedule, hops)
    moves, piece, part, offset, size = _in_shares(schedule, moves, *_pieces(instance, schedule, place))
    _demand_members(instance, moves.src, moves.dst)
    start_s, end_s = seconds(schedule.ticks_per_s, moves.start, moves.end)
    n = len(instance.members)
    return in_order(
        Transfers(
            name=instance.name,
            collective="demand" if instance.traffic is not None else instance.collective,
            ranks=n,
            root=None if instance.the_root is None else int(place[instance.the_root]),
            part_bytes=instance.bytes // n if instance.collective in SHARED_OUT else instance.bytes,
            piece_part=part,
            piece_offset=offset,
            piece_bytes=size,
            piece=piece,
            src=place[moves.src],
            dst=place[moves.dst],
            adds=moves.adds,
            start_s=start_s,
            end_s=end_s,
            channel_hint=_ways(moves.src, moves.dst, schedule.link[schedule.route_start[:-1]][moves.owner]),
            ticks=Ticks(moves.start, moves.end, schedule.ticks_per_s),
            **_whose(instance, place),
            together=_together(instance, schedule, moves),
            summed=_words(schedule, hops),
            outlet=_outlets(instance.machine, schedule)[moves.owner],
        )
    )


def _outlets(machine: Machine, schedule: Schedule) -> IntArray:
    """The link over which every transfer begins, or the group of links that take turns with it."""
    first = schedule.link[schedule.route_start[:-1]]
    found: IntArray = np.where(machine.group[first] >= 0, machine.links + machine.group[first], first)
    return found


def _whose(instance: FabricInstance, place: IntArray) -> dict[str, Any]:
    """Whose the parts of a demand are: its rows, or blocks with the ranks that begin and end with them."""
    blocks, members = instance.blocks, list(instance.members)
    if instance.collective == "demand":
        return {"demand": Demand(place[blocks.origin], place[blocks.goal], blocks.bytes)}
    if instance.traffic is None:
        return {}
    codes = (blocks.origin, blocks.goal)
    begins, ends = (blocks.masks(code, members, instance.machine.nodes)[:, members] for code in codes)
    first = np.where(blocks.sums, EVERYONE, np.argmax(begins, axis=1))
    return {"demand": Demand(first, np.argmax(ends, axis=1), blocks.bytes), "begins": begins, "ends": ends}


def _several(schedule: Schedule, hops: Hops) -> IntArray:
    """The transfers with several sources."""
    if hops.leaves is None:
        return np.zeros(0, dtype=np.int64)
    found: IntArray = np.flatnonzero(np.bincount(hops.owner[hops.leaves >= 0], minlength=schedule.transfers) > 1)
    return found


def _words(schedule: Schedule, hops: Hops) -> str:
    """What switches add, in words."""
    several = _several(schedule, hops)
    return f"{counted(len(several), 'transfer')} (first {several[0]}) added up in switches" if len(several) else ""


class _RankTransfers(NamedTuple):
    """What goes from rank to rank, shape (rows,) each: the transfer that it is of (``owner``), its ends, the ticks at
    which it leaves and has arrived, whether the receiver adds it, and which share of its piece it is, -1 for all."""

    owner: IntArray
    src: IntArray
    dst: IntArray
    start: IntArray
    end: IntArray
    adds: BoolArray
    share: IntArray


def _moves(instance: FabricInstance, schedule: Schedule, hops: Hops) -> _RankTransfers:
    """The moves of all routes."""
    row, src, start = _forwarded(instance, schedule, hops)
    owner = hops.owner[row].astype(np.int64)
    dst = instance.machine.network.dst[schedule.link[row]].astype(np.int64)
    found = _RankTransfers(
        owner, src, dst, start, hops.arrive[row], schedule.adds[owner], np.full(len(row), -1, np.int64)
    )
    several = _several(schedule, hops)
    if not len(several):
        return found
    came = _arrivals(schedule, found, several)
    summed = [_summed(instance, schedule, hops, i, came) for i in several.tolist()]
    hubs = {int(schedule.piece[one.transfer]) for one in summed if len(one.ends) > 1}
    few = len(hubs) < len(instance.members)  # pieces for all to add one
    rows = [row for one in summed for row in one.moves(int(schedule.piece_bytes[schedule.piece[one.transfer]]), few)]
    sums = _RankTransfers(*(np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)))  # type: ignore[arg-type]
    plain = ~np.isin(owner, several)
    joint = (np.concatenate([a[plain], b]) for a, b in zip(found, sums, strict=True))
    return _RankTransfers(*joint)._replace(adds=np.concatenate([found.adds[plain], sums.adds.astype(bool)]))


class _Sum(NamedTuple):
    """A route of several sources: the ranks that it leaves and the ticks when, those that it comes to and when, and
    the ranks that can add it up instead of its switches, all equally well."""

    transfer: int
    piece: int
    sources: dict[int, int]
    ends: dict[int, int]
    adders: list[int]

    def moves(self, size: int, few: bool) -> Iterator[tuple[int, int, int, int, int, bool, int]]:
        """Rows of :class:`_RankTransfers`: all others' parts to an adder, and what it then has to all others behind
        the hub. The adders take pieces in turn; where those are ``few``, each takes a share of every one (of ``size``
        bytes)."""
        count = len(self.adders)
        for share in range(count if few and size >= count > 1 else 1):
            adder = self.adders[(self.piece + share) % count]
            mark = share if few and size >= count > 1 else -1
            for v, tick in self.sources.items():
                if v != adder:
                    yield self.transfer, v, adder, tick, self.ends[adder], True, mark
            for v, tick in self.ends.items():
                if v != adder:
                    yield self.transfer, adder, v, self.ends[adder], tick, False, mark


Came = dict[tuple[int, int], list[tuple[int, int]]]  # by piece and node: transfers that bring it, and when


def _arrivals(schedule: Schedule, moves: _RankTransfers, several: IntArray) -> Came:
    """What brings the pieces of transfers with several sources anywhere."""
    found: Came = {}
    piece = schedule.piece[moves.owner]
    rows = np.isin(piece, schedule.piece[several])
    columns = (column[rows].tolist() for column in (piece, moves.dst, moves.owner, moves.end))
    for number, node, owner, tick in zip(*columns, strict=True):
        found.setdefault((number, node), []).append((owner, tick))
    return found


def _summed(instance: FabricInstance, schedule: Schedule, hops: Hops, i: int, came: Came) -> _Sum:
    """The route of a transfer with several sources. Raises :class:`InputError` where no rank on its way can add: what
    an adder has must be what the switches got of it, so nothing else may come to it while the sum is under way."""
    net, at = instance.machine.network, slice(int(schedule.route_start[i]), int(schedule.route_start[i + 1]))
    assert hops.leaves is not None
    route, leaves, arrive = schedule.link[at], hops.leaves[at], hops.arrive[at]
    sources = {int(net.src[route[k]]): int(leaves[k]) for k in np.flatnonzero(leaves >= 0).tolist()}
    ends = {int(net.dst[route[k]]): int(arrive[k]) for k in np.flatnonzero(arrive >= 0).tolist()}
    ends = {v: tick for v, tick in ends.items() if not instance.machine.is_switch[v]}
    adders = list(ends)
    if len(ends) > 1 or adders[0] in sources:
        adders = _adders(i, int(schedule.piece[i]), sources, ends, came)
    elif not schedule.adds[i]:
        raise InputError(f"transfer {i}: its sum replaces what {instance.machine.names[adders[0]]} has: {_NO_FORM}")
    return _Sum(i, int(schedule.piece[i]), sources, ends, adders)


def _adders(i: int, piece: int, sources: dict[int, int], ends: dict[int, int], came: Came) -> list[int]:
    """The ranks that can add up what transfer i brings of a piece. Raises :class:`InputError` where none can."""
    first = [v for v in sorted(sources) if ends.get(v) == min(ends.values())]
    if not first:
        raise InputError(f"transfer {i}: none of the ranks that its sum comes to first has added to it: {_NO_FORM}")
    others = {v: [tick for owner, tick in came[piece, v] if owner != i] for v in first}
    found = [v for v in first if not any(sources[v] < tick <= ends[v] for tick in others[v])]
    if not found:
        raise InputError(f"transfer {i}: other sums come to ranks while theirs is under way: {_NO_FORM}")
    return found


def _in_shares(
    schedule: Schedule, moves: _RankTransfers, part: IntArray, offset: IntArray
) -> tuple[_RankTransfers, IntArray, IntArray, IntArray, IntArray]:
    """The moves, each of one share, the share of each among those of all pieces, and of every share its part, offset
    and bytes."""
    count = np.ones(len(part), dtype=np.int64)
    np.maximum.at(count, schedule.piece[moves.owner], moves.share + 1)
    times = np.where(moves.share < 0, count[schedule.piece[moves.owner]], 1)
    row = np.repeat(np.arange(len(times)), times)
    turn = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
    nth = np.where(moves.share[row] < 0, turn, moves.share[row])
    of = np.repeat(np.arange(len(count)), count)
    turn = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
    low, high = (schedule.piece_bytes[of] * (turn + k) // count[of] for k in (0, 1))
    columns: Any = (column[row] for column in moves)
    kept = _RankTransfers(*columns)
    piece = (np.cumsum(count) - count)[schedule.piece[kept.owner]] + nth
    return kept, piece, part[of], offset[of] + low, high - low


def _together(instance: FabricInstance, schedule: Schedule, moves: _RankTransfers) -> IntArray | None:
    """The streams that one switch of a box adds or copies, by the number of their transfer."""
    net, is_switch = instance.machine.network, instance.machine.is_switch
    if not schedule.transfers:
        return None
    box = np.full(instance.machine.nodes, -1, dtype=np.int64)
    for number, ranks in enumerate(instance.boxes):
        box[list(ranks)] = number
    length = np.diff(schedule.route_start)
    owner = np.repeat(np.arange(schedule.transfers), length)
    tails, heads = (side[schedule.link].astype(np.int64) for side in (net.src, net.dst))
    one = np.ones(schedule.transfers, dtype=bool)  # every link joins a rank and this switch
    switch = np.where(is_switch[heads], heads, tails)
    one[owner[(is_switch[heads] == is_switch[tails]) | (switch != switch[schedule.route_start[owner]])]] = False
    inside = one[moves.owner] & (box[moves.src] == box[moves.dst])
    one[moves.owner[~inside]] = False
    adders = np.unique(np.stack([moves.owner, moves.share, moves.dst])[:, moves.adds], axis=1)[:2]
    several, times = np.unique(adders, axis=1, return_counts=True)
    one[several[0, times > 1]] = False  # copies, added up at several
    one[np.bincount(moves.owner, minlength=len(one)) < 2] = False
    found: IntArray = np.where(one[moves.owner], moves.owner, -1)
    return found if (found >= 0).any() else None


def _forwarded(instance: FabricInstance, schedule: Schedule, hops: Hops) -> tuple[IntArray, IntArray, IntArray]:
    """Rows of hops that end at a rank, the rank each comes from and the tick at which it left there."""
    net, is_switch = instance.machine.network, instance.machine.is_switch
    first = schedule.link[schedule.route_start[:-1]]
    came = np.arange(schedule.transfers, dtype=np.int64)
    if is_switch[net.src[first]].any():
        head = net.dst[first].astype(np.int64)
        reduces = bool(instance.blocks.sums.any())
        if reduces and _sums_in_switches(schedule.piece, net.src[first].astype(np.int64), head, is_switch):
            raise InputError("sums are formed in switches; a message from rank to rank carries one rank's")
        order = np.lexsort((schedule.start, schedule.piece))
        came = _first_hop(
            schedule.piece,
            schedule.start,
            hops.arrive[schedule.route_start[:-1]],
            net.src[first].astype(np.int64),
            head,
            is_switch,
            order,
            reduces,
        )
        if came.min(initial=0) < 0:
            raise InputError("a switch sends what never came there: synth check says where")
    row = np.flatnonzero((hops.arrive >= 0) & ~is_switch[net.dst[schedule.link]])
    begin = came[hops.owner[row]]
    return row, net.src[first[begin]].astype(np.int64), schedule.start[begin]


def _sums_in_switches(piece: IntArray, src: IntArray, dst: IntArray, is_switch: BoolArray) -> bool:
    """Whether a piece comes to a switch twice, in the order of the list, before it leaves there."""
    comes, leaves = np.flatnonzero(is_switch[dst]), np.flatnonzero(is_switch[src])
    hop = np.concatenate([comes, leaves])
    node = np.concatenate([dst[comes], src[leaves]])
    came = np.repeat([True, False], [len(comes), len(leaves)])
    order = np.lexsort((hop, piece[hop], node))
    node, hop, came = node[order], hop[order], came[order]
    same = (node[1:] == node[:-1]) & (piece[hop[1:]] == piece[hop[:-1]])
    return bool(np.any(same & came[1:] & came[:-1]))


@jit
def _first_hop(
    piece: IntArray, start: IntArray, arrive: IntArray, src: IntArray, dst: IntArray, is_switch: BoolArray,
    order: IntArray, reduces: bool,
) -> IntArray:  # fmt: skip
    """For every single hop the hop with which its data left a rank, -1 for none. In a reduction what leaves a switch is
    the last listed before it that came there, otherwise the latest that has arrived (as the check has it)."""
    nodes = len(is_switch)
    first = np.full(len(piece), -1, dtype=np.int64)
    n = 0
    while n < len(order):
        end = n
        while end < len(order) and piece[order[end]] == piece[order[n]]:
            end += 1
        group = np.sort(order[n:end]) if reduces else order[n:end]
        last = np.full(nodes, -1, dtype=np.int64)
        for a in range(len(group)):
            i = group[a]
            if not is_switch[src[i]]:
                first[i] = i
            elif reduces:
                if last[src[i]] >= 0:
                    first[i] = first[last[src[i]]]
            else:
                best = np.int64(-1)
                for b in range(len(group)):
                    j = group[b]
                    if start[j] >= start[i]:
                        break
                    if dst[j] == src[i] and arrive[j] <= start[i] and (best < 0 or arrive[j] > arrive[best]):
                        best = j
                if best >= 0:
                    first[i] = first[best]
            if is_switch[dst[i]]:
                last[dst[i]] = i
        n = end
    return first


def _demand_members(instance: FabricInstance, src: IntArray, dst: IntArray) -> None:
    outside = sorted(set(np.unique(np.concatenate([src, dst])).tolist()) - set(instance.members))
    if outside:
        names = ", ".join(instance.machine.names[v] for v in outside[:MOST_SHOWN])
        more = f" and {len(outside) - MOST_SHOWN} more" if len(outside) > MOST_SHOWN else ""
        raise InputError(
            f"the schedule relays through {names}{more}, outside the process group: an executor runs on the group's "
            "ranks alone (solve the instance without relay)"
        )


def _pieces(instance: FabricInstance, schedule: Schedule, place: IntArray) -> tuple[IntArray, IntArray]:
    """Part and offset in it of every piece: the pieces of a block lie one after the other in the order of their
    numbers."""
    block, n = schedule.piece_block, len(instance.members)
    order = np.argsort(block, kind="stable")
    ends = np.cumsum(schedule.piece_bytes[order])
    begins = ends - schedule.piece_bytes[order]
    of_block = np.searchsorted(block[order], np.arange(len(instance.blocks)))
    offset = np.empty(len(block), dtype=np.int64)
    if len(block):
        offset[order] = begins - begins[np.minimum(of_block, len(block) - 1)][block[order]]
    origin, goal = (place[np.maximum(ends, 0)] for ends in (instance.blocks.origin, instance.blocks.goal))
    whole = np.zeros_like(origin)
    part = {
        "allgather": origin, "gather": origin, "reduce_scatter": goal, "scatter": goal, "alltoall": origin * n + goal,
        "demand": np.arange(len(instance.blocks), dtype=np.int64),
        "traffic": np.arange(len(instance.blocks), dtype=np.int64),
    }.get(instance.collective, whole)  # fmt: skip
    return part[block], offset


def _ways(src: IntArray, dst: IntArray, first: IntArray) -> IntArray:
    """Which of the first links between two ranks a move takes, numbered from 0; -1 where there is but one."""
    if not len(src):
        return np.zeros(0, dtype=np.int64)
    rows, inverse = np.unique(np.stack([src, dst, first], axis=1), axis=0, return_inverse=True)
    new = np.concatenate([[True], np.any(rows[1:, :2] != rows[:-1, :2], axis=1)])
    begin = np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0))
    alone = np.bincount(np.cumsum(new) - 1)[np.cumsum(new) - 1] == 1
    number = np.where(alone, -1, np.arange(len(rows)) - begin)
    found: IntArray = number[inverse.reshape(-1)]
    return found
