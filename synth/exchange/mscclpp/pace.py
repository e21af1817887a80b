"""A plan with loops at another pace: slices of other sizes, every pass does what it did."""

from __future__ import annotations

from typing import Any

from synth.errors import InputError
from synth.exchange.mscclpp.dealing import Loop
from synth.exchange.mscclpp.loops import size_faults
from synth.exchange.mscclpp.operations import LOOP
from synth.exchange.mscclpp.plan import Limits
from synth.exchange.mscclpp.reader import understood
from synth.exchange.mscclpp.schedule import Replayed
from synth.exchange.mscclpp.writer import Planned


def at_pace(made: Planned, loop: Loop, limits: Limits) -> Planned:
    """The plan with loops as :func:`synth.exchange.mscclpp.planned` makes it for ``loop``, from one made for another.

    It is read back, and its replay is that of the other: what passes do to which chunks is the same at any pace
    (:mod:`synth.exchange.mscclpp.loops`). Raises :class:`InputError` where the reader finds fault."""
    old, replay = made.replay
    chunks = replay.goal.each // old.units
    pace = loop.pace(chunks)
    before = next(op["iter_context"] for op in _loops(made.plan))
    was = before["unit_size"] // before["num_chunks"]
    stored = {
        **made.plan,
        "max_message_size": made.plan["max_message_size"] // was * pace,
        "gpus": [
            {**gpu, "threadblocks": [{**b, "ops": [_paced(op, pace) for op in b["ops"]]} for b in gpu["threadblocks"]]}
            for gpu in made.plan["gpus"]
        ],
    }
    plan = understood(stored, limits)
    if wrong := size_faults(plan):
        raise InputError(wrong, "the plan of this schedule is not right")
    return Planned(stored, made.notes, Replayed(plan, replay))


def _loops(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [op for gpu in plan["gpus"] for b in gpu["threadblocks"] for op in b["ops"] if op["name"] == LOOP]


def _paced(op: dict[str, Any], pace: int) -> dict[str, Any]:
    if op["name"] != LOOP:
        return op
    count = op["iter_context"]["num_chunks"]
    return {**op, "iter_context": {"unit_size": pace * count, "num_chunks": count}}
