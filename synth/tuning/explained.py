"""Why a row of ``synth tune`` takes longer in the form than its best schedule."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from synth.exchange.block_costs import FREE
from synth.exchange.programs import Program
from synth.exchange.record_export import transfers_of
from synth.instance import Instance
from synth.tuning.costs import costing, tolerated
from synth.tuning.question import Question
from synth.tuning.rows import Row
from synth.tuning.runs import recorded
from synth.tuning.turns import LEAST_S

MOST_EXPLAINED = 16_000  # of a schedule that is lowered without limits, to see which costs it its time
EXPLAIN_S = 60.0  # of processor time, beyond which no further limit is lifted
COSTLY = "thread blocks, steps and the launch"
LEAST_SHARE = 0.005  # of the time, that a kind of costs is named for


def title_of(name: str, options: Mapping[str, int]) -> str:
    """A method with its parameters, in words."""
    return " ".join([name, *(f"{key}={value}" for key, value in options.items())])


def dearest(program: Program, instance: Instance) -> str:
    """Which costs take how much of a program's time: what it takes less where those of one kind are nothing, the most
    first, in words."""
    costs = program.costs
    assert costs is not None
    whole = program.seconds(instance)
    saved = {kind: 1 - replace(program, costs=costs.without(kind)).seconds(instance) / whole for kind in FREE}
    kinds = [kind for kind in sorted(saved, key=lambda kind: -saved[kind]) if saved[kind] >= LEAST_SHARE]
    said = [f"{saved[kind]:.0%} less without {kind}" for kind in kinds]
    return f"{COSTLY}: {', '.join(said)}" if said else COSTLY


def limit_of(row: Row, question: Question, left: float | None) -> str:
    """The limit of the executor that costs the row more than its best schedule, in words; empty where it does not. Of
    all schedules that are quick enough the one of the fewest transfers says it. ``left``: seconds of all that are left,
    None for no limit."""
    assert row.best is not None
    if row.scheduled is None:  # it came from another size, and nothing ran at its own
        return ""
    most = row.scheduled * tolerated(row.instance_bytes)
    if row.best.seconds <= most:
        return ""
    if row.scheduled_by in row.without:
        return row.without[row.scheduled_by]
    if row.best.program is not None and question.costs is not None:
        return dearest(row.best.program, row.instance)
    one = min(one for one in row.schedules if one.seconds <= most)
    title = title_of(one.name, dict(one.options))
    if one.transfers > MOST_EXPLAINED:
        return f"{title}: {row.refused.get(title, f'{one.transfers:,} moves, too many to lift limits')}"
    if left is not None and left < LEAST_S:
        return f"{title}: not known, the time limit has passed"
    found = transfers_of(recorded(replace(question, resume=True), row.instance, one.name, dict(one.options)))
    end = time.process_time() + EXPLAIN_S  # however busy the machine is
    words = costing(found, question.form, row.instance, most, lambda: time.process_time() < end)
    return f"{title}: {words or row.refused.get(title, f'not known after {EXPLAIN_S:g} s')}"
