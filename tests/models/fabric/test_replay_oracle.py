"""The replay against one in plain Python: random machines, valid and broken schedules, both ways of switching."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from models.fabric.slow_replay import replay
from models.fabric.small_machines import random_instance, random_schedule

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.parts.exact import float_above
from synth_models.fabric.parts.timing import completion
from synth_models.fabric.solution import Schedule
from fractions import Fraction

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
        assert ticks == completion(instance, schedule)
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


@pytest.mark.parametrize("seed", range(8))
def test_random_schedules_are_judged_as_by_the_plain_replay(seed: int) -> None:
    """50 random machines a seed; what list scheduling makes of random transfers is valid, and of most of ten
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
