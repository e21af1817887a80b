"""The check of one plan for several scenarios (:mod:`synth_models.fabric.problem.scenarios`), and of its bounds.

The schedule is replayed for ranks that are all ready at once, which says what every transfer carries. Then every
scenario runs the plan: transfers in the order of their starts, each as early as it may.

Bounds are proven by a ``scenario``, a row of a number (``of``), and the ``certificate`` of a ``bound`` in seconds for
that one alone; or by what holds ``whoever`` is late, the ``certificate`` of a ``bound`` for ranks that are all ready at
once. The latter in words: let every rank be late by L in some scenario. Of what a link carries, and a plan says how
much that is whoever is late, the first transfer has some rank's own part. In a scenario in which that rank is late by
L nothing of it crosses the link until then, nor behind it. So for each link some scenario has it end L later than if
ranks were ready at once, and bounds that say no more than how much links carry, from when on and until when
(:mod:`synth_models.fabric.check.arguments`), rise by L.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.method import Verdict
from synth.text import untrusted
from synth_models.fabric.check.route_hops import Hops, hops_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import exact, float_above
from synth_models.fabric.problem.ready import in_ticks
from synth_models.fabric.problem.scenarios import refused
from synth_models.fabric.problem.several import with_ready
from synth_models.fabric.solution import Quotient, Schedule

LATEST = 2**62  # ticks
OF_LOADS = ("cut", "prices", "gossip", "partition", "sum_rates")
MOST_STARTS = 50_000_000  # of all transfers in all scenarios

Check = Callable[[FabricInstance, Schedule], Verdict]
CheckBound = Callable[[FabricInstance, float, Mapping[str, Any]], list[str]]


def plan_verdict(instance: FabricInstance, schedule: Schedule | Quotient, on_time: Check) -> Verdict:
    """The end of the worst scenario in seconds; in the facts ``ends_s`` of each, and ``on_time_s``, the schedule's own
    end. ``on_time`` replays it for ranks that are all ready at once. Complexity: links of routes times scenarios."""
    if isinstance(schedule, Quotient):
        return Verdict(None, {}, ["of one plan for several scenarios only a list of all transfers counts"])
    if (words := refused(instance)) is not None:
        return Verdict(None, {}, [words])
    plain = on_time(instance.on_time, schedule)
    if not plain.ok:
        return Verdict(None, plain.facts, [f"with all ranks on time: {fault}" for fault in plain.faults])
    hops = hops_of(instance, schedule)
    if hops.leaves is not None or np.any(np.bincount(hops.owner[hops.arrive >= 0], minlength=schedule.transfers) != 1):
        return Verdict(None, plain.facts, ["one plan for several scenarios is of paths from a rank to a rank"])
    ready = np.stack([in_ticks(row, instance.machine.nodes, schedule.ticks_per_s) for row in instance.scenarios or ()])
    if schedule.transfers * len(ready) > MOST_STARTS:
        return Verdict(None, plain.facts, [f"more than {MOST_STARTS} transfers in all scenarios"])
    taken = np.maximum(hops.begin + hops.ticks[hops.span], hops.arrive) - schedule.start[hops.owner]
    if int(ready.max(initial=0)) + untrusted.exact_sum(taken) > LATEST:
        return Verdict(None, plain.facts, ["in some scenario it runs longer than its clock"])
    ends = [Fraction(int(tick), schedule.ticks_per_s) for tick in _ends(instance, schedule, hops, ready)]
    told = {"on_time_s": plain.value, "ends_s": [float_above(end) for end in ends]}
    return Verdict(float_above(max(ends)), plain.facts | told, [])


def _ends(instance: FabricInstance, schedule: Schedule, hops: Hops, ready: IntArray) -> IntArray:
    """The tick at which each scenario ends, shape (scenarios,). ``ready``: shape (scenarios, nodes)."""
    machine, first = instance.machine, schedule.route_start.tolist()
    offset = (hops.begin - schedule.start[hops.owner]).tolist()
    lasts = hops.ticks[hops.span].tolist()
    behind = (hops.arrive[schedule.route_start[1:] - 1] - schedule.start).tolist()
    tail = machine.network.src.tolist()
    origin = instance.blocks.origin[schedule.piece_block].tolist()
    route, piece = schedule.link.tolist(), schedule.piece.tolist()
    served = [(e,) if g < 0 else (e, machine.links + g) for e, g in enumerate(machine.group.tolist())]
    last = nobody = np.zeros(len(ready), dtype=np.int64)
    free: dict[int, IntArray] = {}  # of every link, and group behind the links, when its next transfer may begin
    come = _Come(schedule, hops, machine.network.dst.tolist(), nobody)
    for i in np.argsort(schedule.start, kind="stable").tolist():
        p, u = piece[i], tail[route[first[i]]]
        now = ready[:, u] if origin[p] in (u, EVERYONE) else nobody
        if origin[p] != u:
            now = np.maximum(now, come.there((p, u), int(schedule.start[i]), origin[p] == EVERYONE))
        uses = [(k, e) for k in range(first[i], first[i + 1]) for e in served[route[k]]]
        for k, e in uses:
            now = np.maximum(now, free[e] - offset[k]) if e in free else now
        for k, e in uses:
            free[e] = np.maximum(free.get(e, nobody), now + offset[k] + lasts[k])
        come.when[i] = now + behind[i]
        last = np.maximum(last, come.when[i])
    sums = instance.blocks.goal[instance.blocks.origin == EVERYONE]
    wanting = list(instance.members) if np.any(sums == EVERYONE) else sums
    found: IntArray = np.maximum(last, ready[:, wanting].max(axis=1, initial=0))
    return found


class _Come:
    """What has come where. ``when`` each transfer has arrived, ticks, shape (scenarios,); ``rows``: by piece and rank
    (tick in the schedule, transfer) of what comes there, the first one first; ``taken``: how many of these, and when
    all of them are there."""

    def __init__(self, schedule: Schedule, hops: Hops, head: list[int], nobody: IntArray) -> None:
        ends = schedule.route_start[1:] - 1
        self.nobody = nobody
        self.when: dict[int, IntArray] = {}
        self.rows: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.taken: dict[tuple[int, int], tuple[int, IntArray]] = {}
        columns = schedule.piece.tolist(), schedule.link[ends].tolist(), hops.arrive[ends].tolist()
        for i, (p, e, tick) in enumerate(zip(*columns, strict=True)):
            self.rows.setdefault((p, head[e]), []).append((tick, i))
        for rows in self.rows.values():
            rows.sort()

    def there(self, place: tuple[int, int], tick: int, whole: bool) -> IntArray:
        """When all that had come to a place by a tick of the schedule is there, or only the first of it; asked for
        ticks that do not fall."""
        count, found = self.taken.get(place, (0, self.nobody))
        rows = self.rows.get(place, [])
        until = len(rows) if whole else min(1, len(rows))
        while count < until and rows[count][0] <= tick:
            found = np.maximum(found, self.when[rows[count][1]])
            count += 1
        self.taken[place] = count, found
        return found


def scenarios_bound(instance: FabricInstance, certificate: Mapping[str, Any], check_bound: CheckBound) -> Fraction:
    """What the certificate proves of the worst scenario, in seconds. Raises ``ValueError`` where a part of it proves
    nothing. ``check_bound`` verifies the bound of one scenario."""
    scenarios = instance.scenarios or ()
    if not scenarios:
        raise ValueError("there is one scenario only")
    stated = untrusted.number(certificate, "bound", 0.0)
    inner = certificate["certificate"]
    if certificate["argument"] == "scenario":
        row = scenarios[untrusted.whole(certificate, "of", 0, len(scenarios) - 1)]
        faults, later = check_bound(with_ready(instance.on_time, row), stated, inner), Fraction(0)
    else:
        untrusted.choice(inner, "argument", *OF_LOADS)
        faults = check_bound(instance.on_time, stated, inner)
        latest: dict[int, Fraction] = {}
        for rank, seconds in (pair for row in scenarios for pair in row):
            latest[rank] = max(latest.get(rank, Fraction(0)), exact(seconds))
        origins = set(instance.blocks.origin.tolist())
        later = min(latest.get(rank, Fraction(0)) for rank in (instance.members if EVERYONE in origins else origins))
    if faults:
        raise ValueError(faults[0])
    return later + Fraction(stated)
