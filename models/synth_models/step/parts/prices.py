"""What a collective takes by an algorithm, and the least that any takes, in picoseconds.

All ranks hang on one switch by a port of bandwidth b a direction, latency h (Hockney 1994). Of a buffer of B bytes
among n ranks a rank must take in, or send, (n - 1)/n B of an allgather, reduce_scatter or alltoall, twice that of an
allreduce, all of a broadcast or send. ``direct``: pieces straight to their ranks, one behind the other through the
ports, so each of its phases costs one latency. ``ring``: NCCL's, a latency a step.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from synth_models.step.instance import TICKS, Computation, LinkClass, Operation, StepInstance

ALGORITHMS = ("direct", "ring")


def share(operation: Operation) -> Fraction:
    """The bytes through the busiest port, at least."""
    n = operation.size
    part = {"allreduce": Fraction(2 * (n - 1), n), "broadcast": Fraction(1), "send": Fraction(1)}
    return operation.bytes * part.get(operation.collective, Fraction(n - 1, n))


def by_algorithm(operation: Operation, link: LinkClass, algorithm: str) -> int:
    """Duration of the collective by one of :data:`ALGORITHMS`. A broadcast by ``direct`` is a scatter followed by an
    allgather; by ``ring`` it is scattered and passed on around the ring."""
    if operation.seconds is not None:
        return _given(operation.seconds)
    n, rate, latency = operation.size, Fraction(link.bandwidth), Fraction(link.latency)
    moved = share(operation)
    if operation.collective == "send":
        steps = 1
    elif operation.collective == "broadcast":
        moved = 2 * operation.bytes * Fraction(n - 1, n)
        steps = 2 if algorithm == "direct" else n
        if n == 2:
            moved, steps = Fraction(operation.bytes), 1
    elif operation.collective == "allreduce":
        steps = 2 if algorithm == "direct" else 2 * (n - 1)
    else:
        steps = 1 if algorithm == "direct" else n - 1
    if operation.collective == "alltoall" and algorithm == "ring":
        steps = n - 1
    exact = (moved / rate + steps * latency) * TICKS
    return -(-exact.numerator // exact.denominator)


def quickest(instance: StepInstance) -> list[int]:
    """The duration of every node, a collective's by the quickest algorithm (``direct``)."""
    return durations(instance, ["direct"] * len(instance.nodes))


def durations(instance: StepInstance, algorithms: list[str]) -> list[int]:
    """The duration of every node, a collective's by its algorithm."""
    return [
        _given(node.seconds)
        if isinstance(node, Computation)
        else by_algorithm(node, instance.link_of[node.link], algorithm)
        for node, algorithm in zip(instance.nodes, algorithms, strict=True)
    ]


def least(instance: StepInstance, busy: bool = False) -> list[int]:
    """What every node takes at least by any schedule of its collective: bytes through a port, and one latency; with
    ``busy`` the bytes alone, for which a port must be used."""
    found = []
    for node in instance.nodes:
        if node.seconds is not None:
            found.append(_given(node.seconds))
            continue
        link = instance.link_of[node.link]
        exact = (share(node) / Fraction(link.bandwidth) + (0 if busy else Fraction(link.latency))) * TICKS
        found.append(exact.numerator // exact.denominator)
    return found


@lru_cache(1 << 16)
def _given(seconds: float) -> int:
    """A stated duration in picoseconds."""
    return round(Fraction(seconds) * TICKS)
