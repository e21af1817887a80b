"""Methods ``first_fit`` and ``longest_first`` (references): one stage, coloured greedily.

Every circuit of the all-to-all (``parts/one_stage.py``) goes the shortest way, opposite nodes by turns, and gets the
first wavelength that is free on all its links, in order of source and destination (first fit) or longest circuits
first. O(m^4) time; no guarantee beyond validity; nothing is random.
"""

from __future__ import annotations

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import refuse_unmeetable, require_ring
from synth_models.optree.parts.one_stage import Stage, load_bound, shape_within

MOST_NODES = 512


def solve_first_fit(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``first_fit``."""
    return _solve(instance, options, longest_first=False)


def solve_longest_first(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``longest_first``."""
    return _solve(instance, options, longest_first=True)


def _solve(instance: OpTreeInstance, options: RunOptions, longest_first: bool) -> Outcome:
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    require_ring(instance, "one stage")
    shape = shape_within(instance, options, MOST_NODES, "first fit")
    stage = first_fit(instance.nodes, shape, longest_first)
    message = f"{stage.wavelengths} wavelengths (load bound {load_bound(instance.nodes, shape)})"
    return Outcome("finished", stage.circuits(instance.wavelengths), message=message)


def first_fit(nodes: int, shape: str, longest_first: bool) -> Stage:
    """First fit, in order of source and destination or longest circuits first."""
    rows = [(u, v, _short_way(nodes, u, v, shape)) for u in range(nodes) for v in range(nodes) if u != v]
    if longest_first:
        rows.sort(key=lambda row: -_hops(nodes, *row))
    taken = [[0] * nodes for _ in range(2)]  # by direction and link: the wavelengths, as bits of one number
    return Stage(tuple((u, v, d, _first_free(taken[d], *((u, v) if d == 0 else (v, u)))) for u, v, d in rows))


def _first_free(taken: list[int], first: int, end: int) -> int:
    """Take, and return, the first wavelength that is free on all links from node ``first`` to node ``end``."""
    links = range(first, end) if first < end else (*range(first, len(taken)), *range(end))
    held = 0
    for link in links:
        held |= taken[link]
    free = ~held & (held + 1)
    for link in links:
        taken[link] |= free
    return free.bit_length() - 1


def _hops(nodes: int, u: int, v: int, direction: int) -> int:
    return (v - u) % nodes if direction == 0 else (u - v) % nodes


def _short_way(nodes: int, u: int, v: int, shape: str) -> int:
    if shape == "segment":
        return 0 if v > u else 1
    forward = (v - u) % nodes
    if 2 * forward == nodes:
        return min(u, v) % 2
    return 0 if 2 * forward < nodes else 1
