"""The check of the mlfm family: the replay of all phases and the objective.

Imports nothing from the methods. Every ordered pair of ranks (a rank and itself included, as in the paper's N x N
table) must be sent exactly once, of a partial all-to-all every pair exactly as often as it is asked for; in a phase a
rank sends and receives at most once; every route must exist, obey the instance's route rule and use no failed part.

The objective counts the congestion-free phases that a schedule stands for: a phase whose links carry one flow each
counts once, any other as many times as there are congestion-free phases into which its flows split (any part of a
phase is a phase, so only the links matter). With one-spine routes these are exactly as many as the flows L on its worst
link, by König; with two-spine routes they may be more, and ``check/splitting.py`` counts them. Hence no value lies
below the fewest congestion-free phases, and what is proven of these (a bound, a refuted number) holds for every value.
The time of a phase is another matter: its links share their bandwidth, so it lasts as long as L messages take.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.family import Verdict
from synth.kernels import jit
from synth_models.mlfm.check.splitting import congestion_free_phases
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.solution import Phases, Rows

KINDS = 11  # of faults in a phase, see _words
SHOWN = 4  # faults of each kind that are put in words


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
    counts = np.zeros(2, dtype=np.int64)  # transfers, two-spine transfers
    machine, state = (leaf, spines, alive, instance.routes == "detour"), (owed, total_load, worst, log, kinds, counts)
    for rows in solution.rows():
        _replay((rows.dest, rows.spine, rows.middle, rows.second), rows.first, machine, state)
        if not kinds.any():
            needed += _phases_needed(rows, worst, leaf, spines, alive)
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
        "transfers": int(counts[0]),
        "worst_link_load": int(worst.max(initial=0)),
        "mean_worst_link_load": round(float(np.maximum(worst, 1).mean()), 6) if solution.phases else 0.0,
        "two_spine_transfers": int(counts[1]),
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


def _owed(instance: MLFMInstance) -> Any:
    """How often every rank is to send to every other, shape (ranks, ranks)."""
    if instance.demand is None:
        return np.ones((instance.ranks, instance.ranks), dtype=np.uint16)
    owed = np.zeros((instance.ranks, instance.ranks), dtype=np.uint16)
    rank = {tuple(server): number for number, server in enumerate(instance.servers.tolist())}
    for pair in instance.demand:
        if pair.source in rank and pair.target in rank:
            owed[rank[pair.source], rank[pair.target]] += pair.count
    return owed


def _phases_needed(rows: Rows, worst: Any, leaf: Any, spines: Any, alive: Any) -> int:
    """The congestion-free phases that these phases split into; ``worst`` holds the load of every phase's worst link."""
    loads = np.maximum(worst[rows.first : rows.first + len(rows.dest)], 1)
    total = int(loads.sum())
    for p in np.flatnonzero((loads > 1) & (rows.middle >= 0).any(axis=1)):
        links = _links(rows.dest[p], rows.spine[p], rows.middle[p], rows.second[p], leaf, spines, alive)
        total += congestion_free_phases(links) - int(loads[p])
    return total


def working_links(instance: MLFMInstance) -> Any:
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
def _other(column: int, spine: int, spines: Any) -> int:
    """The column that a spine joins to ``column``, or -1 when the spine does not exist or touch it."""
    if spine < 0 or spine >= len(spines):
        return -1
    if spines[spine, 0] == column:
        return spines[spine, 1]  # type: ignore[no-any-return]
    if spines[spine, 1] == column:
        return spines[spine, 0]  # type: ignore[no-any-return]
    return -1


@jit
def _hop(start: int, spine: int, end: int, spines: Any, alive: Any, used: Any, place: int) -> int:
    """Write the two links of leaf -> spine -> leaf into ``used[place:]``; 0, or the code of what is wrong."""
    columns = alive.shape[1]
    there, back = _other(start % columns, spine, spines), _other(end % columns, spine, spines)
    if there < 0 or back < 0:
        return 5
    if not alive[start, there] or not alive[end, back]:
        return 6
    used[place] = start * columns + there
    used[place + 1] = alive.size + end * columns + back
    return 0


@jit
def _replay(rows: Any, first: int, machine: Any, state: Any) -> None:
    """Run some phases; ``state`` gathers pairs still owed, loads and faults, :func:`check_phases` names its parts."""
    dest, spine, middle, second = rows
    leaf, spines, alive, detours = machine
    owed, total_load, worst, log, kinds, counts = state
    ranks, columns = len(leaf), alive.shape[1]
    received = np.full(ranks, -1, np.int64)
    load = np.zeros(2 * alive.size, np.int32)
    used = np.empty(4, np.int64)
    for p in range(dest.shape[0]):
        load[:] = 0
        for x in range(ranks):
            y = dest[p, x]
            if y == -1:
                continue
            fault = links = 0
            if y < 0 or y >= ranks:
                fault = 1
            else:
                start, end = leaf[x], leaf[y]
                if received[y] == p:
                    fault = 2
                elif owed[x, y] == 0:
                    fault = 3
                elif start == end and (spine[p, x] != -1 or middle[p, x] != -1 or second[p, x] != -1):
                    fault = 10
                elif middle[p, x] != -1 or second[p, x] != -1:
                    via = middle[p, x]
                    if not detours:
                        fault = 7
                    elif via < 0 or via >= alive.shape[0]:
                        fault = 8
                    elif via % columns == start % columns or via % columns == end % columns:
                        fault = 9
                    else:
                        fault = _hop(start, spine[p, x], via, spines, alive, used, 0)
                        if fault == 0:
                            fault = _hop(via, second[p, x], end, spines, alive, used, 2)
                        links = 4
                elif spine[p, x] == -1:
                    if start != end:
                        fault = 4
                else:
                    fault = _hop(start, spine[p, x], end, spines, alive, used, 0)
                    links = 2
                received[y] = p
                if owed[x, y] > 0:
                    owed[x, y] -= 1
            if fault:
                n = kinds[fault]
                if n < log.shape[1]:
                    log[fault, n, 0], log[fault, n, 1], log[fault, n, 2] = first + p, x, y
                kinds[fault] = n + 1
                continue
            counts[0] += 1
            counts[1] += links == 4
            for i in range(links):
                load[used[i]] += 1
        for e in range(len(load)):
            total_load[e] += load[e]
            worst[first + p] = max(worst[first + p], load[e])


@jit
def _links(dest: Any, spine: Any, middle: Any, second: Any, leaf: Any, spines: Any, alive: Any) -> Any:
    """The links of every rank's transfer in one faultless phase, shape (ranks, 4), -1 where absent."""
    links = np.full((len(leaf), 4), -1, np.int64)
    for x in range(len(leaf)):
        if dest[x] < 0 or spine[x] < 0:
            continue
        stop = middle[x] if middle[x] >= 0 else leaf[dest[x]]
        _hop(leaf[x], spine[x], stop, spines, alive, links[x], 0)
        if middle[x] >= 0:
            _hop(stop, second[x], leaf[dest[x]], spines, alive, links[x], 2)
    return links


def _words(instance: MLFMInstance, fault: int, phase: int, x: int, y: int) -> str:
    where = f"phase {phase}: server {instance.server_name(x)}"
    if fault == 1:
        return f"{where} sends to rank {y}, which does not exist"
    target = instance.server_name(y)
    return (
        f"{where} to {target}: "
        + {
            2: f"{target} receives a second transfer in this phase",
            3: "this pair was sent before" if instance.demand is None else "no (more) such transfer is asked for",
            4: "no spine is named between two different leaves",
            5: "a spine on the route does not join its leaves",
            6: "a link on the route has failed",
            7: "crosses two spines, the instance allows minimal routes only",
            8: "the leaf between its spines does not exist",
            9: "the leaf between its spines is not in a third column",
            10: "a route is named inside a leaf, where none is needed",
        }[fault]
    )
