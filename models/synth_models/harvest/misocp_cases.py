"""One interval solved as many small programs, one for every choice of hop limits of its steps.

Whatever the best topology is, each step has a hop limit on it: 1, 2, … ``layers``, or more. A case fixes these limits,
so the latency is a constant, a step with a limit has few flows, and one without a limit needs no flows by hop: it pays
``layers + 1`` hops, the fewest it can have, and routes of any length. Every topology is in one of the cases at no more
than its time, so the least bound of all cases is a bound on the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from synth_models.harvest.misocp_blocks import Block
from synth_models.harvest.misocp_model import Limits

MOST_CASES = 64
FEWEST_BLOCKS = 3  # with fewer different steps one program is quicker
WIDE = 1.15  # ratio of cutoff to bound; below it one program is quicker
LAYERS = 3  # limits beyond are one case, until a topology needs them


@dataclass
class Case:
    """Hop ``limits`` of the blocks (None: more than the layers) and what is proven for them, in seconds."""

    limits: Limits
    bound: float


def worthwhile(blocks: Sequence[Block]) -> bool:
    """Whether the interval is split into cases: several different steps, but not so many that cases are countless."""
    return len(blocks) >= FEWEST_BLOCKS and (LAYERS + 1) ** len(blocks) <= MOST_CASES


def limits_of(blocks: Sequence[Block], layers: int, gpus: int) -> list[Limits]:
    """All choices of limits; no route is longer than ``gpus - 1`` hops."""
    each: list[int | None] = [*range(1, min(layers, gpus - 1) + 1)]
    if layers < gpus - 1:
        each.append(None)
    return list(product(each, repeat=len(blocks)))


def opened(
    choices: Sequence[Limits], relaxation: Callable[[Limits], float | None], cutoff: float, unsolved: float
) -> list[Case]:
    """The cases whose linear relaxation does not exceed the cutoff, those of the highest bound first: they are short
    and their topologies lower the cutoff of the others. ``relaxation`` returns infinity for an infeasible case and None
    for one not solved, which stays at the bound ``unsolved``."""
    cases = []
    for limits in choices:
        found = relaxation(limits)
        bound = unsolved if found is None else max(found, unsolved)
        if bound <= cutoff:
            cases.append(Case(limits, bound))
    return sorted(cases, key=lambda case: -case.bound)
