"""Step 4: the methods, each ``(instance, RunOptions) -> Outcome``: a bound, two references."""

from __future__ import annotations

from synth.family import Outcome
from synth.options import RunOptions
from toy_broadcast.instance import ToyInstance


def bound(instance: ToyInstance, options: RunOptions) -> Outcome:
    """``ceil(log2 nodes)``: the informed nodes at most double in a round."""
    doublings = (instance.nodes - 1).bit_length()
    proof = "informed nodes at most double in a round"
    return Outcome("finished", bound=float(doublings), bound_proof=proof, certificate={"doublings": doublings})


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
