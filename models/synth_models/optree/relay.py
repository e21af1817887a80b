"""Method ``relay`` (ours): items leap ahead in both directions while the gaps behind them are filled.

1. The wavelengths are split into bins (:mod:`synth_models.optree.wavelengths`), which gives the hops one item may use
   per step and direction when all items move alike.
2. For growing horizons, from the least that prices do not refute, a way of one item round the ring is planned
   (:mod:`synth_models.optree.pattern`).
3. The way is rotated to all items, every step's circuits are packed into the bins, and wavelengths follow.

If OpTree's own schedule (``optree``) needs fewer steps, as it does where nearly everything fits into one step, that
one is returned. So ``relay`` never needs more steps than ``optree``; it has no other guarantee, but it meets the
lower bound on many rings. Circuits never exceed the instance's longest circuit. Memory O(N^2) for the result; time
O(T * N * reach) per horizon tried plus O(N^2).
"""

from __future__ import annotations

import numpy as np
from synth_models.optree.gaps import Prices
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.limits import refuse_unmeetable, require_explicit_size
from synth_models.optree.optree import best_schedule
from synth_models.optree.pattern import Pattern, find_pattern, usable_hops
from synth_models.optree.solution import CLOCKWISE, COUNTERCLOCKWISE, Circuits
from synth_models.optree.wavelengths import bins, pack_circuits, wavelength_of_start, wavelengths_of

from synth.family import Outcome
from synth.options import RunOptions


def solve(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``relay``."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    require_explicit_size(instance)
    circuits = relay(instance, options)
    if circuits is None:
        return Outcome("time_limit", message="no way round the ring was planned within the limit")
    return Outcome("finished", solution=circuits)


def relay(instance: OpTreeInstance, options: RunOptions) -> Circuits | None:
    """The better of our schedule and OpTree's; None only when time ran out before either."""
    other = best_schedule(instance)
    most = other.steps - 1 if other is not None else instance.nodes
    if most < 1:
        return other
    ours = plan_steps(instance, options, most)
    return other if ours is None else expand(instance, ours)


def plan_steps(instance: OpTreeInstance, options: RunOptions, most: int) -> Pattern | None:
    """A pattern of at most ``most`` steps whose steps fit into the bins, or None."""
    nodes = instance.nodes
    sizes = bins(nodes, instance.wavelengths)
    capacity = min(sum(sizes), nodes * nodes // 8 + nodes)  # more than one step could ever use
    reach = usable_hops(capacity, instance.max_hops)
    horizon = -(-(nodes - 1) // (2 * capacity))
    while horizon <= most and not options.out_of_time():
        if not Prices({nodes: 1}, horizon, reach).search(2.0 * capacity, 25):
            pattern = find_pattern(nodes, capacity, min(instance.max_hops, sizes[0]), horizon, options)
            if pattern is not None and all(places is not None for places in _packed(pattern, sizes).values()):
                return pattern
        horizon += 1
    return None


def _packed(pattern: Pattern, sizes: tuple[int, ...]) -> dict[tuple[int, bool], list[tuple[int, int]] | None]:
    """Bins and places of the circuits of every step and direction."""
    hops: dict[tuple[int, bool], list[int]] = {}
    for step, _, _, length, clockwise in pattern.whole():
        hops.setdefault((step, clockwise), []).append(length)
    return {key: pack_circuits(lengths, sizes) for key, lengths in hops.items()}


def expand(instance: OpTreeInstance, pattern: Pattern) -> Circuits:
    """All rotations of a pattern with their wavelengths. Rows are sorted by step."""
    nodes = instance.nodes
    sizes = bins(nodes, instance.wavelengths)
    first = np.concatenate([[0], np.cumsum([wavelengths_of(nodes, size) for size in sizes])])
    by_size = {size: wavelength_of_start(nodes, size) for size in set(sizes)}
    places = _packed(pattern, sizes)
    taken = dict.fromkeys(places, 0)
    rows = []  # step, src, dst, direction, bin, where the bin's arc starts
    for step, src, dst, _, clockwise in pattern.whole():
        packed = places[step, clockwise]
        assert packed is not None
        box, offset = packed[taken[step, clockwise]]
        taken[step, clockwise] += 1
        # counterclockwise arcs are clockwise ones on the ring read backwards
        start = (src - offset) if clockwise else (-src - offset)
        rows.append((step, src, dst, CLOCKWISE if clockwise else COUNTERCLOCKWISE, box, start))
    rows.sort()
    table = np.array(rows, dtype=np.int64)
    turn = np.arange(nodes)
    count = len(rows)
    wavelength = np.empty((count, nodes), dtype=np.int32)
    for i, (_, _, _, direction, box, start) in enumerate(rows):
        arc = (start + (turn if direction == CLOCKWISE else -turn)) % nodes
        wavelength[i] = by_size[sizes[box]][arc] + first[box]
    src, dst = ((table[:, k][:, None] + turn) % nodes for k in (1, 2))
    return Circuits.of(
        np.repeat(table[:, 0], nodes), src.ravel(), dst.ravel(), np.repeat(table[:, 3], nodes), wavelength.ravel(),
        np.tile(turn, count),
    )  # fmt: skip
