"""Step 4: the references, each ``(instance, RunOptions) -> Outcome``."""

from __future__ import annotations

from synth.method import Outcome
from synth.options import RunOptions
from toy_broadcast.instance import ToyInstance


def chain(instance: ToyInstance, options: RunOptions) -> Outcome:
    """Node v informs node v + 1: ``nodes - 1`` rounds."""
    return Outcome("finished", solution=[(v + 1, v, v + 1) for v in range(instance.nodes - 1)])


def doubling(instance: ToyInstance, options: RunOptions) -> Outcome:
    """In round t node v < 2^(t-1) informs node v + 2^(t-1): ``ceil(log2 nodes)`` rounds, which is optimal."""
    sends, known, step = [], 1, 1
    while known < instance.nodes:
        sends += [(step, v, v + known) for v in range(min(known, instance.nodes - known))]
        known, step = 2 * known, step + 1
    return Outcome("finished", solution=sends)
