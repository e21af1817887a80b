"""Method ``relay`` (ours): items leap ahead in both directions while the gaps behind them are filled.

1. Where steps are many, ``2T >= w - 1`` for the leap bound ``T``, a graph gives the way of one item round the ring that
   takes ``T`` steps, the fewest possible (``references/relay_graph.py``, with the theorem).
2. Otherwise, for growing horizons, from the least that prices do not refute, a way is planned, with at most ``w`` hops
   per step and direction (``references/relay_pattern.py``), or where that fails and steps are few, sought by a
   whole-number program (``references/relay_program.py``).
3. All items go the same way, rotated, so every link carries at most ``w`` circuits per step; the circuits get
   wavelengths (``references/relay_wavelengths.py``). Where that fails the step gets one hop less and the way is
   planned again; at last it gets as few hops as always find wavelengths in blocks.

If the graph's way, the ring algorithm in both directions or OpTree's own schedule (``optree``) needs fewer steps, or if
time runs out, the best of these is returned; two wavelengths on an odd ring are a case of their own
(``references/relay_two.py``). So ``relay`` takes ``T`` steps where the theorem holds and never more than ``optree`` or
``floor(N/2)``. Circuits never exceed the instance's longest circuit. Memory O(N^2) for the result; time O(N^2) by the
graph, otherwise O(T * N * reach) per horizon tried plus O(N^2).
"""

from __future__ import annotations

import numpy as np

from synth.arrays import Int32Array
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import refuse_unmeetable, require_explicit_size
from synth_models.optree.parts.carrying_cost import Prices
from synth_models.optree.parts.leaps import leap_bound
from synth_models.optree.parts.radices import best_radices, count_steps
from synth_models.optree.references.grid_relay import grid_relay
from synth_models.optree.references.optree import schedule
from synth_models.optree.references.relay_graph import graph_pattern
from synth_models.optree.references.relay_pattern import Pattern, Reception, find_pattern, usable_hops
from synth_models.optree.references.relay_program import program_pattern
from synth_models.optree.references.relay_two import odd_ring
from synth_models.optree.references.relay_wavelengths import colour_rotations, safe_load
from synth_models.optree.solution import CLOCKWISE, COUNTERCLOCKWISE, Circuits

MOST_CAPACITY = 300  # hops per step and direction that are planned; the knapsacks grow with their square
REPLANS = 9  # plans per horizon, each with one hop less in the steps whose circuits got no wavelengths
SAFE_REPLANS = 3  # further plans, in which such steps get no more hops than always find wavelengths
Colours = dict[tuple[int, bool], Int32Array]


def solve(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``relay``."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    require_explicit_size(instance)
    found = relay(instance, options)
    if options.out_of_time():
        return Outcome("time_limit", found, message="out of time before the last plan: the best schedule so far")
    return Outcome("finished", found)


def relay(instance: OpTreeInstance, options: RunOptions) -> Circuits:
    """The best of our schedule, OpTree's and the ring algorithm in both directions; on a grid see ``grid_relay.py``."""
    if instance.grid is not None:
        return grid_relay(instance, options)
    nodes, wavelengths = instance.nodes, instance.wavelengths
    if wavelengths == 2 and nodes % 2 and min(nodes - 1, instance.max_hops) >= 2:
        return odd_ring(nodes)
    by_graph = graph_pattern(nodes, wavelengths, instance.max_hops, nodes // 2 - 1)
    colours, failed = ({}, set()) if by_graph is None else _coloured(by_graph, wavelengths, options.seed)
    pattern, colours = both_ways(nodes) if by_graph is None or failed else (by_graph, colours)
    if pattern.steps <= leap_bound(nodes, wavelengths):
        return expand(pattern, colours)
    radices = best_radices(nodes, wavelengths, instance.max_hops)
    other = pattern.steps if radices is None else count_steps(nodes, wavelengths, radices)
    ours = plan_steps(instance, options, min(other, pattern.steps) - 1)
    if ours is None and radices is not None and other < pattern.steps:
        return schedule(nodes, wavelengths, radices)
    return expand(*(ours or (pattern, colours)))


def both_ways(nodes: int) -> tuple[Pattern, Colours]:
    """The ring algorithm in both directions at once, ``floor(N/2)`` steps with one wavelength and one hop."""
    steps = range(1, nodes // 2 + 1)
    colours = {(step, clockwise): np.zeros((1, nodes), np.int32) for step in steps for clockwise in (True, False)}
    if nodes % 2 == 0:
        del colours[nodes // 2, False]
    return Pattern(nodes, [Reception(step, step - 1, step, 1, True) for step in steps]), colours


def plan_steps(instance: OpTreeInstance, options: RunOptions, most: int) -> tuple[Pattern, Colours] | None:
    """A pattern of at most ``most`` steps and the wavelengths of its circuits, or None."""
    nodes, wavelengths = instance.nodes, instance.wavelengths
    capacity = min(wavelengths, MOST_CAPACITY)
    reach = usable_hops(capacity, instance.max_hops)
    horizon = _first_horizon(nodes, capacity, reach, most)
    safe = safe_load(nodes, wavelengths)

    def fits(hops: list[int]) -> bool:
        return colour_rotations(nodes, hops, wavelengths, options.seed) is not None

    def unfit(pattern: Pattern) -> set[tuple[int, bool]]:
        return _coloured(pattern, wavelengths, options.seed)[1]

    while horizon <= most and not options.out_of_time():
        capacities = [capacity] * horizon
        for attempt in range(REPLANS + SAFE_REPLANS):
            pattern = find_pattern(nodes, capacities, instance.max_hops, options, fits if attempt == 0 else None)
            if pattern is None and attempt == 0:
                continue
            if pattern is None:
                break
            colours, failed = _coloured(pattern, wavelengths, options.seed)
            if not failed:
                return pattern, colours
            for step in {step for step, _ in failed}:
                fewer = capacities[step - 1] - 1
                capacities[step - 1] = fewer if attempt < REPLANS else min(fewer, safe)
        pattern = program_pattern(nodes, capacity, instance.max_hops, horizon, unfit, options)
        if pattern is not None:
            return pattern, _coloured(pattern, wavelengths, options.seed)[0]
        horizon += 1
    return None


def _first_horizon(nodes: int, capacity: int, reach: int, most: int) -> int:
    """The least horizon up to ``most + 1`` that prices do not refute, by bisection (longer ones are easier)."""
    low, high, stride = -(-(nodes - 1) // (2 * capacity)) - 1, most + 1, 1  # low is refuted, high is not tried
    growing = True
    while high - low > 1:
        horizon = min(low + stride, high - 1) if growing else (low + high) // 2
        if Prices({nodes: 1}, horizon, reach).search(2.0 * capacity, 25):
            low, stride = horizon, stride * 2
        else:
            high, growing = horizon, False
    return high


def _coloured(pattern: Pattern, wavelengths: int, seed: int) -> tuple[Colours, set[tuple[int, bool]]]:
    """The wavelengths of the pattern's circuits, and the steps and directions whose circuits get none."""
    colours = colour(pattern, wavelengths, seed)
    found = {key: own for key, own in colours.items() if own is not None}
    return found, set(colours) - set(found)


def colour(pattern: Pattern, wavelengths: int, seed: int) -> dict[tuple[int, bool], Int32Array | None]:
    """Wavelengths of the circuits of every (step, clockwise), as :func:`colour_rotations` gives them; counterclockwise
    circuits are clockwise ones on the ring read backwards. Circuits stand in the order of ``pattern.whole()``."""
    hops: dict[tuple[int, bool], list[int]] = {}
    for step, _, _, length, clockwise in pattern.whole():
        hops.setdefault((step, clockwise), []).append(length)
    return {key: colour_rotations(pattern.nodes, lengths, wavelengths, seed) for key, lengths in hops.items()}


def expand(pattern: Pattern, colours: Colours) -> Circuits:
    """All rotations of a pattern with their wavelengths. Rows are sorted by step."""
    nodes = pattern.nodes
    taken = dict.fromkeys(colours, 0)
    rows = []
    for step, src, dst, _, clockwise in pattern.whole():
        rows.append((step, src, dst, CLOCKWISE if clockwise else COUNTERCLOCKWISE, taken[step, clockwise]))
        taken[step, clockwise] += 1
    rows.sort()
    table, turn = np.array(rows, dtype=np.int64), np.arange(nodes)
    wavelength = np.empty((len(rows), nodes), dtype=np.int32)
    for i, (step, src, _, direction, number) in enumerate(rows):
        clockwise = direction == CLOCKWISE
        start = (src + turn) % nodes if clockwise else -(src + turn) % nodes
        wavelength[i] = colours[step, clockwise][number][start]
    sources, targets = ((table[:, k][:, None] + turn) % nodes for k in (1, 2))
    return Circuits.of(
        np.repeat(table[:, 0], nodes),
        sources.ravel(),
        targets.ravel(),
        np.repeat(table[:, 3], nodes),
        wavelength.ravel(),
        np.tile(turn, len(rows)),
    )
