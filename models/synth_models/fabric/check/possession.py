"""Who has which piece, or which contributions to it, when: the events of every piece in order of time.

At a tick, what arrives is there before what starts; among arrivals copies come before additions, so that adding to a
sum that is being replaced is a fault in any order of the file. All transfers last at least one tick, so whatever
arrives by a tick has started before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.kernels import jit
from synth_models.fabric.check import without_kernels
from synth_models.fabric.check.contributions import (
    LEFT_TWICE,
    NO_SUM,
    NOT_THERE,
    Ends,
    Events,
    HandsOn,
    all_sums,
    note_lack,
)
from synth_models.fabric.check.route_hops import Hops
from synth_models.fabric.check.rows import rows_by
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.rows import rows_of
from synth_models.fabric.solution import Schedule

MOST_KEPT = 20


@dataclass(frozen=True)
class Held:
    """What the replay found.

    ``code``: what is wrong with each transfer, 0 for nothing, shape (transfers,). ``missing``: rows (piece, rank,
    contributions that lack, position in the group of the first of them) of the first that are not at their goal;
    ``missing_count``: how many. ``longest_chain``: transfers in the longest row of which each brings what the next one
    sends. ``redundant``: arrivals at ranks that had all of it.
    """

    code: npt.NDArray[np.int8]
    missing: IntArray
    missing_count: int
    longest_chain: int
    redundant: int


def held(instance: FabricInstance, schedule: Schedule, hops: Hops, ready: IntArray) -> Held:
    """Replay piece by piece; one piece's state is in memory at a time. ``ready``: tick from which a node has its own
    part, shape (nodes,)."""
    machine, blocks, switching = instance.machine, instance.blocks, instance.switching
    net, pieces = machine.network, len(schedule.piece_block)
    sums = blocks.sums
    reduces = bool(np.any(sums))
    if without_kernels.wanted(len(schedule.link)) and not ready.any():
        simple = _held_by_arrays(instance, schedule, hops, reduces)
        if simple is not None:
            return simple
    piece = schedule.piece.astype(np.int32)
    of, start, source = _departures(instance, schedule, hops)
    sent_start, sent = rows_by(piece[of], pieces, start, np.zeros(0, dtype=bool))
    reached = np.repeat(piece, np.diff(schedule.route_start))
    reached[hops.arrive < 0] = -1
    late = schedule.adds[hops.owner] if np.any(schedule.adds) else np.zeros(0, dtype=bool)
    come_start, come = rows_by(reached, pieces, hops.arrive, late)
    head = net.dst[schedule.link]
    code = np.zeros(schedule.transfers, dtype=np.int8)
    missing = np.zeros((MOST_KEPT, 4), dtype=np.int64)
    place = np.full(machine.nodes, -1, dtype=np.int64)
    place[list(instance.members)] = np.arange(len(instance.members))
    ends = _ends(instance, schedule, place, ready)
    events = Events(sent_start, sent, come_start, come, start, source, of, hops.arrive, hops.owner, head)
    adds_up = reduces and bool(switching.adds) and switching.mode == "store_and_forward"
    passes_on = np.zeros_like(machine.is_switch) if adds_up else machine.is_switch  # others add up what they hold
    several = np.bincount(of, minlength=schedule.transfers) > 1
    code[several & ~ends.is_sum[schedule.piece]] = NO_SUM
    found = 0, 0, 0
    if not np.all(ends.is_sum):
        found = _copies(events, ends, switching.buffer, switching.copies, code, missing)
    if reduces:
        first = net.src[schedule.link[schedule.route_start[:-1]]]
        came = _came_before(piece, first, head, schedule.route_start, passes_on, pieces)
        hands_on = HandsOn(schedule.route_start, schedule.adds, several, came, switching.buffer, switching.copies)
        found = all_sums(instance, events, ends._replace(is_switch=passes_on), hands_on, code, missing, found)
    count, chain, redundant = found
    return Held(code, missing[: min(count, MOST_KEPT)], int(count), int(chain), int(redundant))


def _ends(instance: FabricInstance, schedule: Schedule, place: IntArray, ready: IntArray) -> Ends:
    """Who holds and wants each piece; sets of ranks are numbered in the order of their codes."""
    blocks = instance.blocks
    code = np.stack([blocks.origin, blocks.goal])
    least = int(code.min(initial=0))  # codes are nodes, and few below 0
    there = np.bincount(code.reshape(-1) - least) > 0
    start, flat = rows_of([blocks.ranks(code, instance.members) for code in (np.flatnonzero(there) + least).tolist()])
    holders, wanters = (np.cumsum(there) - 1)[code - least][:, schedule.piece_block]
    is_sum = blocks.sums[schedule.piece_block]
    return Ends(holders, wanters, is_sum, start, flat, place, instance.machine.is_switch, ready)


def _held_by_arrays(instance: FabricInstance, schedule: Schedule, hops: Hops, reduces: bool) -> Held | None:
    """What :func:`held` finds of a schedule without faults; None where it may have some, and where switches hold data,
    transfers have several sources, or members are more than bits in a word."""
    machine, pieces = instance.machine, len(schedule.piece_block)
    members = np.array(instance.members, dtype=np.int64)
    few = len(members) <= without_kernels.BITS and pieces * machine.nodes <= without_kernels.MOST_HELD
    if (
        not few
        or instance.ready
        or hops.leaves is not None
        or instance.switching.mode != "cut_through"
        or not schedule.transfers
    ):
        return None
    origin, goal = (part[schedule.piece_block] for part in (instance.blocks.origin, instance.blocks.goal))
    if instance.blocks.sets or (reduces and np.any(origin != EVERYONE)):
        return None
    has, wanted_at = np.zeros((pieces, machine.nodes), dtype=np.uint64), np.zeros((pieces, machine.nodes), dtype=bool)
    full, everyone = 1, np.flatnonzero(goal < 0)
    if reduces:
        has[:, members] = np.uint64(1) << np.arange(len(members), dtype=np.uint64)
        full = 2 ** len(members) - 1
    else:
        has[np.arange(pieces), origin] = 1
    wanted_at[np.ix_(everyone, members)] = True
    one = np.flatnonzero(goal >= 0)
    wanted_at[one, goal[one]] = True
    comes = np.flatnonzero(hops.arrive >= 0)
    of = np.concatenate([np.arange(schedule.transfers), hops.owner[comes]]).astype(np.int64)
    leaves = np.arange(len(of)) < schedule.transfers
    first = schedule.link[schedule.route_start[:-1]]
    node = np.concatenate([machine.network.src[first], machine.network.dst[schedule.link[comes]]]).astype(np.int64)
    time = np.concatenate([schedule.start, hops.arrive[comes]])
    events = without_kernels.Events(schedule.piece[of], time, leaves, of, node)
    found = without_kernels.everything_held(has, full, wanted_at, schedule.adds, events)
    if found is None:
        return None
    none = np.zeros((0, 4), dtype=np.int64)
    return Held(np.zeros(schedule.transfers, dtype=np.int8), none, 0, *found)


def _departures(instance: FabricInstance, schedule: Schedule, hops: Hops) -> tuple[Int32Array, IntArray, Int32Array]:
    """Transfer, tick and node of every departure."""
    src = instance.machine.network.src
    if hops.leaves is None:
        of = np.arange(schedule.transfers, dtype=np.int32)
        return of, schedule.start, src[schedule.link[schedule.route_start[:-1]]]
    rows = np.flatnonzero(hops.leaves >= 0)
    return hops.owner[rows], hops.leaves[rows], src[schedule.link[rows]]


def _came_before(
    piece: Int32Array, source: Int32Array, head: Int32Array, route_start: IntArray, is_switch: BoolArray, pieces: int
) -> Int32Array:
    """For a hop out of a switch the last transfer listed before it that brings its piece there, or -1: in a reduction
    a switch may hold several partial sums of a piece and adds none to another."""
    if not np.any(is_switch[source]):
        return np.full(len(piece), -1, dtype=np.int32)
    rows, order = rows_by(piece, pieces, np.arange(len(piece)), np.zeros(0, dtype=bool))
    found: Int32Array = _last_into(rows, order, source, head[route_start[:-1]], is_switch)
    return found


@jit
def _last_into(
    rows: IntArray, order: Int32Array, source: Int32Array, head: Int32Array, is_switch: BoolArray
) -> Int32Array:
    came = np.full(len(source), -1, dtype=np.int32)
    last = np.full(len(is_switch), -1, dtype=np.int64)
    of_piece = np.full(len(is_switch), -1, dtype=np.int64)
    for p in range(len(rows) - 1):
        for n in range(rows[p], rows[p + 1]):
            i = order[n]
            if of_piece[source[i]] == p:
                came[i] = last[source[i]]
            if is_switch[head[i]]:
                last[head[i]], of_piece[head[i]] = i, p
    return came


@jit
def _copies(
    events: Events, ends: Ends, buffer: bool, copies: bool, code: npt.NDArray[np.int8], missing: IntArray
) -> tuple[int, int, int]:
    """Pieces that are no sums. A holder that is not ready may hand on what it has got from another. A switch that
    stores may send on what has come (with ``buffer``) or what comes at that very tick, and without ``copies`` once for
    every time that it has come."""
    sent_start, sent, come_start, come, start, source, of, arrive, owner, head = events  # named once, as in _sums
    holders, wanters, is_sum, start_of, flat, _, is_switch, ready = ends
    nodes = len(is_switch)
    chain = np.zeros(len(code), dtype=np.int32)
    here = np.full(nodes, -1, dtype=np.int64)  # the last piece that a node has had,
    depth = np.zeros(nodes, dtype=np.int32)  # over how many transfers it came,
    at = np.zeros(nodes, dtype=np.int64)  # when (a switch),
    parcels = np.zeros(nodes, dtype=np.int64)  # and how often it can still leave (a switch)
    own = np.full(nodes, -1, dtype=np.int64)  # the last piece that a node holds itself and has not got before
    lost, longest, redundant = 0, 0, 0
    for p in range(len(holders)):
        if is_sum[p]:
            continue
        for v in flat[start_of[holders[p]] : start_of[holders[p] + 1]]:
            here[v], depth[v], own[v] = p, 0, p
        n, last = sent_start[p], come_start[p + 1]
        a = come_start[p]
        while n < sent_start[p + 1] or a < last:
            if a < last and (n == sent_start[p + 1] or arrive[come[a]] <= start[sent[n]]):
                k = come[a]
                v, i = head[k], owner[k]
                a += 1
                if is_switch[v]:
                    if here[v] != p or (not buffer and at[v] != arrive[k]):
                        parcels[v] = 0
                    parcels[v] += 1
                    here[v], depth[v], at[v] = p, chain[i], arrive[k]
                elif here[v] != p or (own[v] == p and arrive[k] < ready[v]):
                    here[v], depth[v], own[v] = p, chain[i], -1
                else:
                    redundant += 1
                continue
            i, u, now = of[sent[n]], source[sent[n]], start[sent[n]]
            n += 1
            if here[u] != p or (is_switch[u] and not buffer and at[u] != now) or (own[u] == p and now < ready[u]):
                code[i] = NOT_THERE
            elif is_switch[u] and not copies:
                if parcels[u] == 0:
                    code[i] = LEFT_TWICE
                else:
                    parcels[u] -= 1
            chain[i] = 1 + (depth[u] if here[u] == p else 0)
            longest = max(longest, chain[i])
        for v in flat[start_of[wanters[p]] : start_of[wanters[p] + 1]]:
            if here[v] != p:
                lost = note_lack(missing, lost, p, v, 0, 0)
    return lost, longest, redundant
