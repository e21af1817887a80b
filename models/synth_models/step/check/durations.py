"""How long nodes take, in picoseconds, counted by the check for itself: exact, rounded up, or down for bounds."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from synth_models.step.instance import TICKS, Computation, Operation, StepInstance


def moved(node: Operation) -> Fraction:
    """Bytes that some rank must send or take in through its port, whatever the schedule."""
    whole, n = Fraction(node.bytes), node.size
    match node.collective:
        case "broadcast" | "send":
            return whole
        case "allreduce":
            return 2 * whole * (n - 1) / n
    return whole * (n - 1) / n


def taken(instance: StepInstance, number: int, algorithm: int) -> int:
    """The duration of the node by algorithm 0 (``direct``) or 1 (``ring``)."""
    node = instance.nodes[number]
    if node.seconds is not None:
        return round(Fraction(node.seconds) * TICKS)
    assert isinstance(node, Operation)
    link, n, ring = instance.link_of[node.link], node.size, algorithm == 1
    volume, hops = moved(node), n - 1 if ring else 1
    if node.collective == "allreduce":
        hops *= 2
    elif node.collective == "send" or (node.collective == "broadcast" and n == 2):
        hops = 1
    elif node.collective == "broadcast":  # a scatter by the root, then an allgather
        volume, hops = 2 * volume * (n - 1) / n, hops + 1
    return ceil((volume / Fraction(link.bandwidth) + hops * Fraction(link.latency)) * TICKS)


def at_least(instance: StepInstance, number: int, busy: bool) -> int:
    """What the node takes whatever the schedule; ``busy``: how long its port alone is needed."""
    node = instance.nodes[number]
    if isinstance(node, Computation) or node.seconds is not None:
        return taken(instance, number, 0)
    link = instance.link_of[node.link]
    wire = moved(node) / Fraction(link.bandwidth)
    return floor((wire if busy else wire + Fraction(link.latency)) * TICKS)
