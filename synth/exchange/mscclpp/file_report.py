"""A plan's file judged for a person: what it is, what is wrong with it, what else is worth knowing."""

from __future__ import annotations

from pathlib import Path

from synth.errors import Fault, InputError, UnsupportedError
from synth.exchange.mscclpp.loops import replays
from synth.exchange.mscclpp.plan import ExecutionPlan, each
from synth.exchange.mscclpp.reader import read

MULTIPROCESSORS = 108  # of an A100: thread blocks of a gpu that run at once


def judge(path: Path, collective: str | None = None) -> tuple[str, tuple[Fault, ...], tuple[str, ...]]:
    """A plan in one line, its faults, and notes; ``collective`` overrules what it says it is.

    Raises :class:`InputError` for a file that breaks the format's rules, and for one that breaks none but cannot be
    judged, which the message then says.
    """
    plan = read(path)
    try:
        faults, replay = replays(plan, collective)
    except UnsupportedError as error:
        text = f"keeps the format's rules, but cannot be judged, as it cannot be replayed: {error}"
        raise InputError(text, str(path)) from None
    most = max(len(gpu.blocks) for gpu in plan.gpus)
    notes = []
    if most > MULTIPROCESSORS:
        notes.append(f"{most} thread blocks of a gpu must run at once; an A100 has {MULTIPROCESSORS} multiprocessors")
    if any(op.name == "flush" for gpu in plan.gpus for block in gpu.blocks for op in each(block)):
        notes.append("flush counts here as done; the executor (1f5f065d) flushes no channel for it: pwsf does")
    return described(plan, replay.goal.collective, len(replay.moves)), tuple(faults), tuple(notes)


def described(plan: ExecutionPlan, collective: str, moves: int) -> str:
    """A plan in one line."""
    blocks = [list(each(block)) for gpu in plan.gpus for block in gpu.blocks]
    return (
        f"{collective} {'in place' if plan.in_place else 'out of place'}, {len(plan.gpus)} gpus, {len(blocks)} thread "
        f"blocks, {sum(map(len, blocks)):,} operations, at most {max(map(len, blocks), default=0)} in one, "
        f"{moves:,} moves from gpu to gpu"
    )
