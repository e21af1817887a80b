"""The replay against one in plain Python: random machines, valid and broken schedules, both ways of switching."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import some_of
from models.fabric.slow_replay import replay
from models.fabric.small_machines import random_instance, random_schedule, schedule_of

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_above
from synth_models.fabric.scheduling.list_scheduling import completion
from synth_models.fabric.solution import Schedule

KINDS = {
    "cut": "its pieces have",
    "adds": "has no sums",
    "link": "the link carries",
    "group": "group ",
    "doubled": "already has",
    "incomplete": "as complete",
    "missing": "end: ",
}


def compare(instance: FabricInstance, schedule: Schedule) -> set[str]:
    """Both replays, which must agree; returns the oracle's faults."""
    verdict = check_schedule(instance, schedule)
    faults, ticks = replay(instance, schedule)
    assert bool(faults) == bool(verdict.faults), (faults, verdict.faults)
    if faults:
        assert verdict.value is None
        text = "\n".join(verdict.faults)
        assert any(KINDS[kind] in text for kind in faults & KINDS.keys()) or not faults & KINDS.keys(), (faults, text)
    else:
        assert verdict.value == float_above(Fraction(ticks, schedule.ticks_per_s))
        assert ticks == completion(instance, schedule) == completion(instance, replace(schedule))  # noted, computed
    return faults


def mutated(chooser: random.Random, instance: FabricInstance, schedule: Schedule) -> Schedule:
    """One random change."""
    fields: dict[str, Any] = {
        name: getattr(schedule, name).copy()
        for name in ("piece_block", "piece_bytes", "start", "piece", "adds", "route_start", "link")
    }
    count = schedule.transfers
    i, j = (chooser.randrange(count) for _ in range(2))
    what = chooser.choice(
        ["earlier", "later", "link", "piece", "swap", "drop", "double", "bytes", "block", "adds", "order", "clock"]
    )
    rows = list(range(count))
    match what:
        case "earlier":
            fields["start"][i] = max(0, fields["start"][i] - chooser.choice([1, 1, 5]))
        case "later":
            fields["start"][i] += chooser.choice([1, 1, 50])
        case "link":
            fields["link"][chooser.randrange(len(fields["link"]))] = chooser.randrange(instance.machine.links)
        case "piece":
            fields["piece"][i] = chooser.randrange(len(fields["piece_block"]))
        case "swap":
            fields["piece"][[i, j]] = fields["piece"][[j, i]]
        case "drop":
            rows.remove(i)
        case "double":
            rows.append(i)
            fields["start"] = np.append(fields["start"], 0)
        case "bytes":
            fields["piece_bytes"][chooser.randrange(len(fields["piece_bytes"]))] += 1
        case "block":
            fields["piece_block"][chooser.randrange(len(fields["piece_block"]))] = chooser.randrange(
                len(instance.blocks)
            )
        case "adds":
            fields["adds"][i] ^= True
        case "order":
            chooser.shuffle(rows)
        case "clock":
            return replace(schedule, ticks_per_s=schedule.ticks_per_s + 1)
    cuts = fields["route_start"]
    routes = [fields["link"][cuts[r] : cuts[r + 1]] for r in rows]
    starts = fields["start"][rows]
    if what == "double":
        starts[-1] = max(starts) + chooser.randint(0, 60)
    return replace(
        schedule,
        piece_block=fields["piece_block"],
        piece_bytes=fields["piece_bytes"],
        start=starts,
        piece=fields["piece"][rows],
        adds=fields["adds"][rows],
        route_start=np.cumsum([0, *map(len, routes)]).astype(np.int64),
        link=np.concatenate([*routes, np.zeros(0, dtype=np.int64)]),
    )


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", some_of(range(6)))
def test_random_schedules_are_judged_as_by_the_plain_replay(seed: int) -> None:
    """50 random machines a seed; what list scheduling makes of random transfers is valid, and of ten
    mutations each both replays say the same."""
    chooser = random.Random(seed)
    met: Counter[str] = Counter()
    for _ in range(50):
        instance = random_instance(chooser)
        schedule = random_schedule(chooser, instance)
        assert compare(instance, schedule) == set(), instance
        for _ in range(10):
            broken = mutated(chooser, instance, schedule)
            met.update(compare(instance, broken) or {"valid"})
    assert met["valid"] > 20
    assert len(met) >= 8, met


def rows_of(schedule: Schedule) -> list[list[Any]]:
    cuts, links = schedule.route_start.tolist(), schedule.link.tolist()
    columns = (schedule.start.tolist(), schedule.piece.tolist(), cuts, cuts[1:], schedule.adds.tolist())
    return [[start, piece, links[a:b], adds] for start, piece, a, b, adds in zip(*columns, strict=False)]


def caught(instance: FabricInstance, schedule: Schedule, rows: list[list[Any]]) -> bool:
    pieces = list(zip(schedule.piece_block.tolist(), schedule.piece_bytes.tolist(), strict=True))
    return bool(compare(instance, schedule_of(pieces, rows, schedule.ticks_per_s)))


@pytest.mark.parametrize("seed", some_of(range(4)))
def test_every_mutation_of_a_schedule_without_slack_is_caught(seed: int) -> None:
    """Here nothing moves that is not needed: every transfer that is dropped, brings another piece or goes elsewhere
    breaks the schedule; and where routes are single links list schedules start everything as early as they can, so
    that a tick earlier breaks them too."""
    chooser = random.Random(1000 + seed)
    tried: Counter[str] = Counter()
    while min(tried[kind] for kind in ("earlier", "dropped", "doubled", "elsewhere", "swapped", "bytes")) < 20:
        instance = random_instance(chooser)
        if instance.switching.mode != "cut_through" or instance.relay:
            continue
        schedule = random_schedule(chooser, instance, useless=0.0)
        rows, dst = rows_of(schedule), instance.machine.network.dst.tolist()
        ranks = set(instance.machine.ranks.tolist())
        assert not caught(instance, schedule, rows)
        to_all = instance.collective in ("allgather", "broadcast")  # every rank gets every piece once
        for i, (start, piece, route, adds) in enumerate(rows):
            rest = rows[:i] + rows[i + 1 :]
            if start and not instance.machine.is_switch.any():
                tried["earlier"] += 1
                assert caught(instance, schedule, [*rest, [start - 1, piece, route, adds]])
            if adds or to_all or instance.collective == "allreduce":
                tried["dropped"] += 1
                assert caught(instance, schedule, rest)
            if adds:
                tried["doubled"] += 1
                late = 10 + max(row[0] for row in rows) + 1000 * schedule.ticks_per_s
                assert caught(instance, schedule, [*rows, [late, piece, route, True]])
            if to_all:
                k = chooser.randrange(len(route))
                e = chooser.randrange(instance.machine.links)
                if dst[e] != dst[route[k]]:
                    tried["elsewhere"] += 1
                    assert caught(instance, schedule, [*rest, [start, piece, [*route[:k], e, *route[k + 1 :]], adds]])
                other = chooser.choice(rows)
                if other[1] != piece and {dst[e] for e in other[2]} & ranks != {dst[e] for e in route} & ranks:
                    tried["swapped"] += 1
                    without = [row for row in rest if row is not other]
                    mine, theirs = [start, other[1], route, adds], [other[0], piece, other[2], other[3]]
                    assert caught(instance, schedule, [*without, mine, theirs])
        for p in range(len(schedule.piece_bytes)):
            tried["bytes"] += 1
            changed = schedule.piece_bytes.copy()
            changed[p] += chooser.choice([1, -1] if changed[p] > 1 else [1])
            assert compare(instance, replace(schedule, piece_bytes=changed)) == {"cut"}
