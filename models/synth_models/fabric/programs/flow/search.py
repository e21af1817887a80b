"""The schedule that suits the size: several sizes of pieces and several rules, the best kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.parts.timing import completion, timed
from synth_models.fabric.programs.flow.pieces import Plan, cut, planned, transfers
from synth_models.fabric.programs.flow.routes import Routes
from synth_models.fabric.programs.flow.rules import RULES, Rule, priorities
from synth_models.fabric.solution import Schedule

MOST_TRANSFERS = 2_000_000
MOST_SHARE_OF_TIME = 0.5
CLOSE = 1.0005


@dataclass(frozen=True, eq=False)
class Found:
    """A schedule, its time in seconds, and how it was made."""

    schedule: Schedule
    seconds: float
    words: str


def best_schedule(instance: FabricInstance, routes: Routes, fluid_s: float, options: RunOptions) -> Found:
    """The best schedule found within a part of the time limit; at least one is always made."""
    until = None if options.time_limit_s is None else options.started + MOST_SHARE_OF_TIME * options.time_limit_s
    best: Found | None = None
    for plan, most_bytes, rule, words in _tries(instance, routes, options):
        pieces = cut(plan, most_bytes)
        schedule = timed(instance, transfers(pieces, priorities(pieces, rule, options.seed)))
        seconds = completion(instance, schedule) / schedule.ticks_per_s

        if best is None or seconds < best.seconds:
            best = Found(schedule, seconds, words)
            options.progress.note(seconds)
        if best.seconds <= CLOSE * fluid_s or (until is not None and time.monotonic() > until):
            break
    assert best is not None
    return best


def _tries(instance: FabricInstance, routes: Routes, options: RunOptions) -> Iterator[tuple[Plan, float, Rule, str]]:
    largest = int(instance.blocks.bytes.max(initial=1))
    given = options.method.get("chunks")
    plan = planned(instance, routes)
    if given is None:
        for rule in RULES[:2]:
            yield planned(instance, routes, whole=True), largest, rule, f"one route a pair, {rule.name}"
    chunks = [given] if given else [1, 4, 16, 64, 256, 1024]
    for count in chunks:
        size = -(-largest // count)
        if np.sum(np.maximum(1, plan.bytes / size) * np.diff(plan.first_hop)[plan.path]) > MOST_TRANSFERS:
            break
        for rule in RULES:
            yield plan, size, rule, f"pieces of at most {size} bytes, {rule.name}"
