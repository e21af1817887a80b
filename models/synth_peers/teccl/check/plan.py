"""The check of a plan in epochs: TE-CCL's rules replayed in whole numbers, and what counting proves derived again.

A plan states a length of epochs ``tau``, a number of them K, and sends. ``copied`` (allgather, broadcast; reductions
played backwards): whole chunks, ``chunk``, ``link``, ``epoch`` a send. ``fluid`` (alltoall, gather, scatter, demands):
``amount`` shares, ``unit`` to a chunk, of the data that begins at ``origin``.

Rules ▸ (Liu et al., SIGCOMM 2024, with the constants of its program). With capacity c = bandwidth * tau / chunk:
``a = ceil(alpha / tau)``, but 0 where alpha / tau is at most 1/10, ``b = ceil(1 / c) - 1``. Copied: sent in epoch k,
usable from k + a + b + 1, at a switch from k + a; over any b + 1 epochs a link begins at most (b + 1) c chunks. Fluid:
usable from k + a + 1, at most c a link and epoch. A rank sends what it holds. A switch without buffer sends what comes
in that very epoch, and only a switch that copies sends one arrival on twice; to one that does not, a chunk may go as
often in an epoch as the link takes it. A group's links together are never busy for more than the window (the longest
of its links'). All is in place at epoch K.

Shares no code with the method. Complexity: n log n in sends, with counting nodes^3 more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from synth.method import Verdict
from synth.text import untrusted
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.solution import Schedule

MOST_SENDS, MOST_EPOCHS, MOST_CHUNKS, MOST_UNITS = 2**24, 2**40, 2**20, 2**40
MOST_TAU = 2**400  # of the two numbers whose quotient an epoch's seconds are
MOST_COUNTED = 2048  # nodes, for distances between all
MOST_FAULTS = 20
UNREACHABLE = 2**60


@dataclass(frozen=True)
class Rules:
    """The instance on the grid: lists by link, nodes by number; ``blocks`` are (origin, goal, bytes), spread."""

    fluid: bool
    tau: Fraction
    chunk: Fraction
    chunks: int
    src: list[int]
    dst: list[int]
    capacity: list[Fraction]
    lag: list[int]
    window: list[int]
    group: list[int]
    keeps: list[bool]
    copies: bool
    blocks: list[tuple[int, int, int]]
    members: tuple[int, ...]


def check_epochs(instance: FabricInstance, schedule: Schedule) -> Verdict:
    """Replay the plan beside ``schedule``. Facts: ``epochs``, ``epoch_s``, ``epochs_least`` (what counting proves).

    A claim that fewer are infeasible by a solver's word is ``unverified``. Raises ``ValueError`` on what is no plan.
    """
    plan = dict(schedule.plan)
    rules = rules_of(instance, plan)
    epochs = untrusted.whole(plan, "epochs", 0, MOST_EPOCHS)
    faults: list[str] = []
    for fault in (_fluid_faults if rules.fluid else _copied_faults)(rules, plan, epochs):
        faults.append(fault)
        if len(faults) == MOST_FAULTS:
            break
    facts: dict[str, Any] = {"epochs": epochs, "epoch_s": float(rules.tau)}
    unverified: list[str] = []
    counted = untrusted.whole(plan, "counted", 0, MOST_EPOCHS)
    proven = counted_epochs(rules, plan)
    if counted > proven:
        faults.append(f"plan: states that counting proves {counted} epochs, it proves {proven}")
    else:
        facts["epochs_least"] = counted
    if "refuted" in plan:  # by a solver, which leaves nothing to compute again
        refuted = untrusted.whole(plan, "refuted", 0, MOST_EPOCHS)
        unverified.append(f"{refuted} epochs are infeasible by the word of the solver alone")
        if refuted >= epochs and not faults:
            faults.append(f"plan: {refuted} epochs are said to be infeasible, but {epochs} do")
    if counted > epochs and not faults:
        faults.append(f"plan: takes {epochs} epochs, fewer than the {counted} it states as proven")
    return Verdict(None, facts, faults, unverified)


def rules_of(instance: FabricInstance, plan: dict[str, Any]) -> Rules:
    """The rules for a ``plan`` or a proof, from its ``tau_over``, ``tau_under``, ``chunks`` and ``rule``. Raises
    ``ValueError`` where they are none for the instance."""
    tau = Fraction(untrusted.whole(plan, "tau_over", 1, MOST_TAU), untrusted.whole(plan, "tau_under", 1, MOST_TAU))
    chunks = untrusted.whole(plan, "chunks", 1, MOST_CHUNKS)
    machine, keeping = instance.machine, _stores(instance) and instance.switching.buffer
    task = _task(instance)
    fluid = all(goal != EVERYONE for _, goal, _ in task.rows)
    if untrusted.choice(plan, "rule", "copied", "fluid") != ("fluid" if fluid else "copied"):
        raise ValueError(f"{instance.collective} is planned by the other rule")
    largest = max(size for _, _, size in task.rows)
    if not fluid:
        _demand_copies(task, largest, keeping)
    chunk = Fraction(largest, chunks)
    capacity = [exact(float(b)) * tau / chunk for b in machine.network.bandwidth]
    away = _away(machine, tau)
    window = [1 if fluid else math.ceil(1 / c) for c in capacity]
    is_switch = machine.is_switch.tolist()
    lag = [away[e] + (0 if is_switch[v] and not fluid else window[e]) for e, v in enumerate(task.dst)]
    keeps = [not s or keeping for s in is_switch]
    return Rules(
        fluid, tau, chunk, chunks, task.src, task.dst, capacity, lag, window, machine.group.tolist(), keeps,
        task.copies, task.rows, instance.members,
    )  # fmt: skip


def _away(machine: Machine, tau: Fraction) -> list[int]:
    """Epochs of every link's latency; up to a tenth of one is none."""
    parts = (exact(float(alpha)) / tau for alpha in machine.network.latency)
    return [math.ceil(part) if part > Fraction(1, 10) else 0 for part in parts]


class _Task(NamedTuple):
    """What has to move, forwards: ``rows`` (origin, goal, bytes), one a block; the ends of links; and whether switches
    copy."""

    rows: list[tuple[int, int, int]]
    src: list[int]
    dst: list[int]
    copies: bool


def _demand_copies(task: _Task, largest: int, keeping: bool) -> None:
    """Raise ``ValueError`` where no plan is known of what is copied; ``keeping``: switches keep data."""
    if keeping and not task.copies:
        raise ValueError("no plan in epochs is known for switches that keep data but do not copy it")
    if any(size != largest for _, _, size in task.rows):
        raise ValueError("blocks that are copied must be of one size")


def _stores(instance: FabricInstance) -> bool:
    return instance.switching.mode == "store_and_forward"


def _task(instance: FabricInstance) -> _Task:
    """Raises ``ValueError`` where no plan in epochs is known, or nothing has to move."""
    blocks, net = instance.blocks, instance.machine.network
    rows = list(zip(blocks.origin.tolist(), blocks.goal.tolist(), blocks.bytes.tolist(), strict=True))
    src, dst = net.src.tolist(), net.dst.tolist()
    copies = instance.switching.copies if _stores(instance) else instance.switching.multicast
    if any(origin == EVERYONE for origin, _, _ in rows):  # backwards: a switch that copies would have to add
        if any(goal == EVERYONE for _, goal, _ in rows):
            raise ValueError(f"no plan in epochs is known for {instance.collective}")
        rows, copies = [(goal, EVERYONE, size) for _, goal, size in rows], False
        src, dst = dst, src
    if not rows:
        raise ValueError("nothing has to move")
    return _Task(rows, src, dst, copies)


def _copied_faults(rules: Rules, plan: dict[str, Any], epochs: int) -> Iterator[str]:
    total = len(rules.blocks) * rules.chunks
    if total > MOST_SENDS:
        raise ValueError(f"{total} chunks are too many")
    chunk = untrusted.whole_numbers(plan, "chunk", 0, total - 1)
    if len(chunk) > MOST_SENDS:
        raise ValueError(f"{len(chunk)} sends are too many")
    link = untrusted.whole_numbers(plan, "link", 0, len(rules.src) - 1, (len(chunk),))
    epoch = untrusted.whole_numbers(plan, "epoch", 0, MOST_EPOCHS, (len(chunk),))
    yield from _copied_capacity(rules, link.tolist(), epoch.tolist())
    order = np.lexsort((chunk, epoch)).tolist()
    there: dict[tuple[int, int], int] = {}  # chunk, node that keeps: since when
    for c in range(total):
        there[c, rules.blocks[c // rules.chunks][0]] = 0
    coming: dict[tuple[int, int, int], int] = defaultdict(int)  # chunk, switch, epoch: arrivals not yet sent on
    chunks, links, times = chunk.tolist(), link.tolist(), epoch.tolist()
    at = 0
    while at < len(order):
        first, k = at, times[order[at]]
        while at < len(order) and times[order[at]] == k:
            at += 1
        waiting = order[first:at]
        while waiting:  # arrivals at a switch may leave in the same epoch
            still = [i for i in waiting if not _leaves(rules, chunks[i], links[i], k, there, coming)]
            if len(still) == len(waiting):
                break
            waiting = still
        for i in waiting:
            u, v = rules.src[links[i]], rules.dst[links[i]]
            yield f"plan: in epoch {k} node {u} sends chunk {chunks[i]} to {v} without having it"
    for c in range(total):
        goal = rules.blocks[c // rules.chunks][1]
        for v in rules.members if goal == EVERYONE else (goal,):
            if there.get((c, v), UNREACHABLE) > epochs:
                yield f"plan: chunk {c} is not at rank {v} at epoch {epochs}"


def _leaves(
    rules: Rules, c: int, e: int, k: int, there: dict[tuple[int, int], int], coming: dict[tuple[int, int, int], int]
) -> bool:
    """Whether the chunk can be sent over the link in this epoch; if so, it is."""
    u, v = rules.src[e], rules.dst[e]
    if rules.keeps[u]:
        if there.get((c, u), UNREACHABLE) > k:
            return False
    elif coming[c, u, k] < 1:
        return False
    elif not rules.copies:
        coming[c, u, k] -= 1
    when = k + rules.lag[e]
    if rules.keeps[v]:
        there[c, v] = min(there.get((c, v), UNREACHABLE), when)
    else:
        coming[c, v, when] += 1
    return True


def _copied_capacity(rules: Rules, link: list[int], epoch: list[int]) -> Iterator[str]:
    sent: dict[int, list[int]] = defaultdict(list)
    for e, k in zip(link, epoch, strict=True):
        sent[e].append(k)
    busy: dict[int, list[tuple[int, Fraction]]] = defaultdict(list)
    for e, times in sorted(sent.items()):
        times.sort()
        most = math.floor(rules.window[e] * rules.capacity[e])
        for one, other in zip(times, times[most:], strict=False):
            if other - one < rules.window[e]:
                yield f"plan: link {e} begins more than {most} chunks in {rules.window[e]} epochs from {one} on"
                break
        if rules.group[e] >= 0:
            busy[rules.group[e]] += [(k, 1 / rules.capacity[e]) for k in times]
    for g, uses in sorted(busy.items()):
        span = max(w for w, other in zip(rules.window, rules.group, strict=True) if other == g)
        yield from _group_faults(g, span, sorted(uses))


def _group_faults(group: int, span: int, uses: list[tuple[int, Fraction]]) -> Iterator[str]:
    inside, first = Fraction(0), 0
    for k, part in uses:
        inside += part
        while uses[first][0] <= k - span:
            inside -= uses[first][1]
            first += 1
        if inside > span:
            yield f"plan: group {group} is busy for more than {span} epochs in the {span} up to epoch {k}"
            return


def _fluid_faults(rules: Rules, plan: dict[str, Any], epochs: int) -> Iterator[str]:
    unit = untrusted.whole(plan, "unit", 1, MOST_UNITS)
    origin = untrusted.whole_numbers(plan, "origin", 0, len(rules.keeps) - 1)
    if len(origin) > MOST_SENDS:
        raise ValueError(f"{len(origin)} sends are too many")
    link = untrusted.whole_numbers(plan, "link", 0, len(rules.src) - 1, (len(origin),)).tolist()
    epoch = untrusted.whole_numbers(plan, "epoch", 0, MOST_EPOCHS, (len(origin),)).tolist()
    amount = untrusted.whole_numbers(plan, "amount", 1, 2**60, (len(origin),)).tolist()
    yield from _fluid_capacity(rules, unit, link, epoch, amount)
    change: dict[tuple[int, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))  # origin, node: by epoch
    for s, e, k, n in zip(origin.tolist(), link, epoch, amount, strict=True):
        change[s, rules.src[e]][k] -= n
        change[s, rules.dst[e]][k + rules.lag[e]] += n
    wanted: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for s, v, size in rules.blocks:
        wanted[s, v] += Fraction(size) * unit / rules.chunk
    for (s, v), by_epoch in sorted(change.items()):
        if v == s:
            continue
        held = 0
        for k in sorted(by_epoch):
            held = by_epoch[k] + (held if rules.keeps[v] else 0)
            if held < 0:
                yield f"plan: in epoch {k} node {v} sends {-held} shares of rank {s}'s data that it does not have"
                return
    for (s, v), shares in sorted(wanted.items()):
        got = sum(n for k, n in change[s, v].items() if k <= epochs)
        if got != shares:
            yield f"plan: at epoch {epochs} rank {v} has {got} shares of rank {s}'s data, not {shares}"


def _fluid_capacity(rules: Rules, unit: int, link: list[int], epoch: list[int], amount: list[int]) -> Iterator[str]:
    load: dict[tuple[int, int], int] = defaultdict(int)
    for e, k, n in zip(link, epoch, amount, strict=True):
        load[e, k] += n
    groups: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for (e, k), n in sorted(load.items()):
        if n > rules.capacity[e] * unit:
            yield f"plan: in epoch {k} link {e} carries {n} shares, more than {float(rules.capacity[e] * unit):.6g}"
        if rules.group[e] >= 0:
            groups[rules.group[e], k] += Fraction(n) / (rules.capacity[e] * unit)
    for (g, k), part in sorted(groups.items()):
        if part > 1:
            yield f"plan: group {g} is busy for {float(part):.6g} epochs in epoch {k}"


def counted_epochs(rules: Rules, plan: dict[str, Any]) -> int:
    """What the prices or the cut around these nodes prove; without any, what the distances do."""
    nodes = len(rules.keeps)
    if nodes > MOST_COUNTED:
        raise ValueError(f"distances are not computed for more than {MOST_COUNTED} nodes")
    if "price" in plan:
        return _counted_prices(rules, plan)
    sets = {key: untrusted.whole_numbers(plan, key, 0, nodes - 1) for key in ("cut", "origins", "around", "goals")}
    cut, origins, around, goals = (set(sets[key].tolist()) for key in ("cut", "origins", "around", "goals"))
    wanted = [(s, set(rules.members if goal == EVERYONE else (goal,)), size) for s, goal, size in rules.blocks]
    if not cut:
        return _farthest(rules, wanted)
    if rules.fluid:
        some = [(s, row & goals, size) for s, row, size in wanted if s in origins & cut and row & goals - cut]
        return _counted_fluid(rules, some, cut)
    if not cut <= around:
        raise ValueError("the nodes around a cut do not contain it")
    some = [(s, row, size) for s, row, size in wanted if s in origins & cut and row - around]
    return _counted_copied(rules, some, cut, around, untrusted.whole(plan, "last", 1, MOST_SENDS))


def _farthest(rules: Rules, wanted: list[tuple[int, set[int], int]]) -> int:
    """The most epochs that anything needs to where it is wanted."""
    far = {s: _from(rules, {s}) for s in {s for s, _, _ in wanted}}
    return max(far[s][v] for s, row, _ in wanted for v in row)


def _out_of(rules: Rules, nodes: set[int]) -> list[int]:
    return [e for e, (u, v) in enumerate(zip(rules.src, rules.dst, strict=True)) if u in nodes and v not in nodes]


def _counted_copied(
    rules: Rules, some: list[tuple[int, set[int], int]], cut: set[int], around: set[int], last: int
) -> int:
    """The ``last`` chunks leave ``cut`` in epoch k or later, where its links cannot begin all others and one more by
    k - 1; for so many the links out of ``around`` need until a later epoch; then comes the last one's way."""
    volume = len(some) * rules.chunks
    first, then = _out_of(rules, cut), _out_of(rules, around)
    if last > volume or not first or not then:
        return 0
    begin = _from(rules, {s for s, _, _ in some})
    leaves = _begun(rules, first, [begin[rules.src[e]] for e in first], volume - last + 1)
    ways = [(e, rules.lag[e], _from(rules, {rules.dst[e]})) for e in first]
    between = [min(0 if e == f else lag + far[rules.src[f]] for e, lag, far in ways) for f in then]
    later = _begun(rules, then, between, last)
    everywhere = set.intersection(*(row for _, row, _ in some)) - around
    after = [(rules.lag[f], _from(rules, {rules.dst[f]})) for f in then]
    tails = [min(lag + far[w] for lag, far in after) for w in everywhere]  # each wants every one of these chunks
    return leaves + later + max(tails, default=min(rules.lag[f] for f in then))


def _begun(rules: Rules, links: list[int], head: list[int], volume: int) -> int:
    """The least epoch by which the links can have begun so many chunks, each from its ``head`` on."""
    most = [math.floor(rules.window[e] * rules.capacity[e]) for e in links]

    def enough(last: int) -> bool:
        turns = [-(-max(0, last - h + 1) // rules.window[e]) for e, h in zip(links, head, strict=True)]
        return sum(m * n for m, n in zip(most, turns, strict=True)) >= volume

    return _least(enough, 0)


def _counted_fluid(rules: Rules, some: list[tuple[int, set[int], int]], cut: set[int]) -> int:
    """All links' epochs between first arrival and last departure must carry what crosses."""
    out = _out_of(rules, cut)
    if not some or not out:
        return 0
    volume = sum((Fraction(size) / rules.chunk for _, _, size in some), Fraction(0))
    goals = {v for _, row, _ in some for v in row}
    begin = _from(rules, {s for s, _, _ in some})
    lost = []
    for e in out:
        after = _from(rules, {rules.dst[e]})
        lost.append(begin[rules.src[e]] + rules.lag[e] - 1 + min(after[v] for v in goals))

    def enough(last: int) -> bool:
        carried = (rules.capacity[e] * max(0, last - n) for e, n in zip(out, lost, strict=True))
        return sum(carried, Fraction(0)) >= volume

    return _least(enough, 1)


def _counted_prices(rules: Rules, plan: dict[str, Any]) -> int:
    """With a price of a chunk on every link, blocks that go ``away`` epochs or more pay at least their shortest
    distance; links are paid for the epochs between first arrival and last departure, of a group one."""
    if not rules.fluid:
        raise ValueError("prices prove nothing of data that is copied")
    price = untrusted.whole_numbers(plan, "price", 0, MOST_UNITS, (len(rules.src),)).tolist()
    away = untrusted.whole(plan, "away", 0, MOST_EPOCHS)
    far = {s: _from(rules, {s}) for s in {s for s, _, _ in rules.blocks}}
    some = [(s, v, size) for s, v, size in rules.blocks if far[s][v] >= away]
    cost = {s: _from(rules, {s}, price) for s in {s for s, _, _ in some}}
    worth = sum((Fraction(size) / rules.chunk * cost[s][v] for s, v, size in some), Fraction(0))
    if not worth:
        return 0
    begin, left = _from(rules, set(cost)), _from(rules, {v for _, v, _ in some}, back=True)
    paid: dict[int, tuple[Fraction, int]] = {}
    for e, (u, v) in enumerate(zip(rules.src, rules.dst, strict=True)):
        row = rules.group[e] if rules.group[e] >= 0 else -1 - e
        rate, lost = paid.get(row, (Fraction(0), UNREACHABLE))
        paid[row] = max(rate, price[e] * rules.capacity[e]), min(lost, begin[u] + rules.lag[e] - 1 + left[v])

    def enough(last: int) -> bool:
        return sum((rate * max(0, last - lost) for rate, lost in paid.values()), Fraction(0)) >= worth

    return _least(enough, 0)


def _least(enough: Any, low: int) -> int:
    """The least whole number from ``low`` on for which it is enough; 0 if there is none in reach."""
    high = MOST_EPOCHS
    if not enough(high):
        return 0
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _from(rules: Rules, nodes: set[int], length: list[int] | None = None, back: bool = False) -> list[int]:
    """Least sums of ``length`` (the lags) from any of the nodes to every node (Dijkstra), with ``back`` from every node
    to any of them; :data:`UNREACHABLE` where there is no way."""
    import heapq

    out: dict[int, list[tuple[int, int]]] = defaultdict(list)
    ends = zip(rules.src, rules.dst, rules.lag if length is None else length, strict=True)
    for u, v, n in ends:
        out[v if back else u].append((u if back else v, n))
    found = [UNREACHABLE] * len(rules.keeps)
    heap = [(0, v) for v in nodes]
    for _, v in heap:
        found[v] = 0
    while heap:
        far, u = heapq.heappop(heap)
        if far > found[u]:
            continue
        for v, n in out[u]:
            if far + n < found[v]:
                found[v] = far + n
                heapq.heappush(heap, (far + n, v))
    return found
