"""The check of the mlfm family: the replay of all phases and the objective.

Imports nothing from the methods. Every ordered pair of ranks (a rank and itself included, as in the paper's N x N
table) must be sent exactly once, of a partial all-to-all every pair exactly as often as it is asked for; in a phase a
rank sends and receives at most once; every route must exist, obey the instance's route rule and use no failed part.

The objective counts the congestion-free phases that a schedule stands for: a phase whose links carry one flow each
counts once, any other as many times as there are congestion-free phases into which its flows split (any part of a
phase is a phase, so only the links matter). With one-spine routes these are exactly as many as the flows L on its worst
link, by König; with two-spine routes they may be more, and ``check/congested_phases.py`` counts them. Hence no value
lies below the fewest congestion-free phases, and what is proven of these (a bound, a refuted number) holds for every
value. The time of a phase is another matter: its links share their bandwidth, so it lasts as long as L messages take.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.kernels import jit
from synth.method import Verdict
from synth_models.mlfm.check.congested_phases import congestion_free_phases
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.solution import Phases

NO_SUCH_RANK, RECEIVES_TWICE, NOT_OWED, NO_SPINE, NOT_JOINED, FAILED = range(1, 7)
TWO_SPINES, NO_SUCH_LEAF, NO_THIRD_COLUMN, INSIDE_LEAF = range(7, 11)
KINDS = 11  # of faults in a phase, see _words
SHOWN = 4  # faults of each kind that are put in words


class _Machine(NamedTuple):
    """``leaf``: of every rank, shape (ranks,). ``spines``: the two columns of each, shape (spines, 2). ``alive``: as
    :func:`working_links`, shape (leaves, columns). ``detours``: whether routes over two spines are allowed."""

    leaf: Int32Array
    spines: Int32Array
    alive: BoolArray
    detours: bool


class _Routes(NamedTuple):
    """The routes of some phases, shape (phases, ranks) each; see :class:`synth_models.mlfm.solution.Rows`."""

    dest: Int32Array
    spine: Int32Array
    middle: Int32Array
    second: Int32Array


class _Tally(NamedTuple):
    """What the replay gathers: transfers still ``owed``, shape (ranks, ranks); flows over every link in all phases,
    shape (links,); the load of the ``worst`` link of every phase; a ``log`` of the first faults as (phase, sender,
    receiver), shape (kinds, faults, 3), and how many there are of each of the ``kinds``; and the numbers of
    ``transfers`` and of those over ``two_spines``, shape (1,) each."""

    owed: npt.NDArray[np.uint16]
    total_load: IntArray
    worst: IntArray
    log: IntArray
    kinds: IntArray
    transfers: IntArray
    two_spines: IntArray


def check_phases(instance: MLFMInstance, solution: Phases) -> Verdict:
    """Replay all phases; the value is the number of congestion-free phases that they split into.

    Facts: phases, transfers, worst and mean worst link load, two-spine transfers, time in seconds
    (``latency + L * message_bytes / bandwidth`` a phase) and throughput per server in bytes/s, of a partial all-to-all
    that of the server with most to send or to receive.
    """
    ranks = instance.ranks
    facts: dict[str, Any] = {"phases": solution.phases, "ranks": ranks}
    if solution.ranks != ranks:
        return Verdict(None, facts, [f"the phases are for {solution.ranks} servers, the job has {ranks}"])
    alive = working_links(instance)
    spines = instance.spine_columns.astype(np.int32)
    leaf = instance.server_leaf.astype(np.int32)
    owed = _owed(instance)
    total_load = np.zeros(2 * alive.size, dtype=np.int64)
    worst = np.zeros(solution.phases, dtype=np.int64)
    needed = 0
    log = np.zeros((KINDS, SHOWN, 3), dtype=np.int64)
    kinds = np.zeros(KINDS, dtype=np.int64)
    transfers, two_spines = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    machine = _Machine(leaf, spines, alive, instance.routes == "detour")
    tally = _Tally(owed, total_load, worst, log, kinds, transfers, two_spines)
    for rows in solution.rows():
        routes = _Routes(rows.dest, rows.spine, rows.middle, rows.second)
        _replay(routes, rows.first, machine, tally)
        if not kinds.any():
            needed += _phases_needed(routes, worst[rows.first : rows.first + len(rows.dest)], machine)
    found = [(*map(int, log[kind, n]), kind) for kind in range(KINDS) for n in range(min(SHOWN, kinds[kind]))]
    faults = [_words(instance, kind, phase, x, y) for phase, x, y, kind in sorted(found)]
    if kinds.sum() > len(found):
        faults.append(f"and {kinds.sum() - len(found)} more faults in the phases")
    missing = int(owed.sum(dtype=np.int64))
    if missing:
        x, y = divmod(int(np.argmax(owed > 0)), ranks)
        what = "pairs" if instance.demand is None else "transfers"
        faults.append(
            f"{missing} of {instance.transfers} {what} are never sent, "
            f"the first from {instance.server_name(x)} to {instance.server_name(y)}"
        )
    facts |= {
        "transfers": int(transfers[0]),
        "worst_link_load": int(worst.max(initial=0)),
        "mean_worst_link_load": round(float(np.maximum(worst, 1).mean()), 6) if solution.phases else 0.0,
        "two_spine_transfers": int(two_spines[0]),
        "most_flows_on_a_link": int(total_load.max(initial=0)),
    }
    if faults:
        return Verdict(None, facts, faults)
    units = int(np.maximum(worst, 1).sum())  # in which every link carries its flows of a phase one after the other
    seconds = solution.phases * instance.latency + units * instance.message_bytes / instance.bandwidth
    facts |= {
        "time_s": seconds,
        "throughput_bytes_per_s": instance.busiest * instance.message_bytes / seconds,
        "share_of_bandwidth": round(instance.busiest * instance.message_bytes / seconds / instance.bandwidth, 6),
    }
    return Verdict(float(needed), facts)


def _owed(instance: MLFMInstance) -> npt.NDArray[np.uint16]:
    """How often every rank is to send to every other, shape (ranks, ranks)."""
    if instance.demand is None:
        return np.ones((instance.ranks, instance.ranks), dtype=np.uint16)
    owed = np.zeros((instance.ranks, instance.ranks), dtype=np.uint16)
    rank = {tuple(server): number for number, server in enumerate(instance.servers.tolist())}
    for pair in instance.demand:
        if pair.source in rank and pair.target in rank:
            owed[rank[pair.source], rank[pair.target]] += pair.count
    return owed


def _phases_needed(routes: _Routes, worst: IntArray, machine: _Machine) -> int:
    """The congestion-free phases that these phases split into; ``worst`` holds the load of every phase's worst link."""
    loads = np.maximum(worst, 1)
    total = int(loads.sum())
    for p in np.flatnonzero((loads > 1) & (routes.middle >= 0).any(axis=1)).tolist():
        total += congestion_free_phases(_links(routes, p, machine)) - int(loads[p])
    return total


def working_links(instance: MLFMInstance) -> BoolArray:
    """``[leaf, column]``: whether the cable from the leaf to the spine of its own and that column works, both ways."""
    columns = instance.d + 1
    alive = np.ones((instance.d, columns, columns), dtype=np.bool_)
    for j in range(columns):
        alive[:, j, j] = False
    for a, b in instance.failed.spines:
        alive[:, a, b] = alive[:, b, a] = False
    for i, j in instance.failed.leaves:
        alive[i, j] = False
    for link in instance.failed.links:
        i, j = link.leaf
        a, b = link.spine
        alive[i, j, b if j == a else a] = False
    return alive.reshape(instance.d * columns, columns)


@jit
def _other(column: int, spine: int, spines: Int32Array) -> int:
    """The column that a spine joins to ``column``, or -1 when the spine does not exist or touch it."""
    if spine < 0 or spine >= len(spines):
        return -1
    if spines[spine, 0] == column:
        return spines[spine, 1]  # type: ignore[no-any-return]
    if spines[spine, 1] == column:
        return spines[spine, 0]  # type: ignore[no-any-return]
    return -1


@jit
def _hop(start: int, spine: int, end: int, machine: _Machine, used: IntArray) -> int:
    """Write the two links of leaf -> spine -> leaf into ``used``; 0, or the code of what is wrong."""
    alive = machine.alive
    columns = alive.shape[1]
    there, back = _other(start % columns, spine, machine.spines), _other(end % columns, spine, machine.spines)
    if there < 0 or back < 0:
        return NOT_JOINED
    if not alive[start, there] or not alive[end, back]:
        return FAILED
    used[0] = start * columns + there
    used[1] = alive.size + end * columns + back
    return 0


@jit
def _replay(routes: _Routes, first: int, machine: _Machine, tally: _Tally) -> None:
    """Run the phases of ``routes``, the first of which is phase ``first``, and enter them into ``tally``."""
    ranks = len(machine.leaf)
    received = np.full(ranks, -1, np.int64)
    load = np.zeros(2 * machine.alive.size, np.int32)
    used = np.empty(4, np.int64)
    for p in range(routes.dest.shape[0]):
        load[:] = 0
        for x in range(ranks):
            y = routes.dest[p, x]
            if y == -1:
                continue
            fault, links, there = 0, 0, 0 <= y < ranks
            if not there:
                fault = NO_SUCH_RANK  # in a call of a kernel numba would compile that again for this number alone
            elif received[y] == p:
                fault = RECEIVES_TWICE
            elif tally.owed[x, y] == 0:
                fault = NOT_OWED
            else:
                fault, links = _travel(routes, p, x, machine, used)
            if there:
                received[y] = p
                if tally.owed[x, y] > 0:
                    tally.owed[x, y] -= 1
            if fault:
                _note(tally, fault, first + p, x, y)
                continue
            tally.transfers[0] += 1
            tally.two_spines[0] += links == 4
            for i in range(links):
                load[used[i]] += 1
        for e in range(len(load)):
            tally.total_load[e] += load[e]
            tally.worst[first + p] = max(tally.worst[first + p], load[e])


@jit
def _travel(routes: _Routes, p: int, x: int, machine: _Machine, used: IntArray) -> tuple[int, int]:
    """The code of what is wrong with the route of rank x in phase p, 0 for nothing, and how many links it has, which
    are written into ``used``."""
    start, end = machine.leaf[x], machine.leaf[routes.dest[p, x]]
    spine, via, second = routes.spine[p, x], routes.middle[p, x], routes.second[p, x]
    columns = machine.alive.shape[1]
    if start == end and (spine != -1 or via != -1 or second != -1):
        return INSIDE_LEAF, 0
    if via != -1 or second != -1:
        if not machine.detours:
            return TWO_SPINES, 0
        if via < 0 or via >= machine.alive.shape[0]:
            return NO_SUCH_LEAF, 0
        if via % columns == start % columns or via % columns == end % columns:
            return NO_THIRD_COLUMN, 0
        fault = _hop(start, spine, via, machine, used)
        return (fault if fault else _hop(via, second, end, machine, used[2:])), 4
    if spine == -1:
        return (NO_SPINE if start != end else 0), 0
    return _hop(start, spine, end, machine, used), 2


@jit
def _note(tally: _Tally, fault: int, phase: int, x: int, y: int) -> None:
    """Count a fault, and keep it if it is among the first of its kind."""
    n = tally.kinds[fault]
    if n < tally.log.shape[1]:
        tally.log[fault, n, 0], tally.log[fault, n, 1], tally.log[fault, n, 2] = phase, x, y
    tally.kinds[fault] = n + 1


@jit
def _links(routes: _Routes, p: int, machine: _Machine) -> IntArray:
    """The links of every rank's transfer in phase p, which is faultless, shape (ranks, 4), -1 where absent."""
    leaf = machine.leaf
    links = np.full((len(leaf), 4), -1, np.int64)
    for x in range(len(leaf)):
        dest, spine, middle = routes.dest[p, x], routes.spine[p, x], routes.middle[p, x]
        if dest < 0 or spine < 0:
            continue
        stop = middle if middle >= 0 else leaf[dest]
        _hop(leaf[x], spine, stop, machine, links[x])
        if middle >= 0:
            _hop(stop, routes.second[p, x], leaf[dest], machine, links[x][2:])
    return links


def _words(instance: MLFMInstance, fault: int, phase: int, x: int, y: int) -> str:
    where = f"phase {phase}: server {instance.server_name(x)}"
    if fault == NO_SUCH_RANK:
        return f"{where} sends to rank {y}, which does not exist"
    target = instance.server_name(y)
    return (
        f"{where} to {target}: "
        + {
            RECEIVES_TWICE: f"{target} receives a second transfer in this phase",
            NOT_OWED: "this pair was sent before"
            if instance.demand is None
            else "no (more) such transfer is asked for",
            NO_SPINE: "no spine is named between two different leaves",
            NOT_JOINED: "a spine on the route does not join its leaves",
            FAILED: "a link on the route has failed",
            TWO_SPINES: "crosses two spines, the instance allows minimal routes only",
            NO_SUCH_LEAF: "the leaf between its spines does not exist",
            NO_THIRD_COLUMN: "the leaf between its spines is not in a third column",
            INSIDE_LEAF: "a route is named inside a leaf, where none is needed",
        }[fault]
    )
