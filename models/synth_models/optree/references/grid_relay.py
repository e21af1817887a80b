"""``relay`` on a torus or mesh (ours): all items leap and fill gaps in all dimensions at once, in the same way.

1. **A way of one item** over the torus is planned with at most ``w`` hops per step and direction
   (``references/grid_pattern.py``), for several settings of the planner; the way with the fewest steps is kept.
2. **All items go the same way**, moved by all translations of the torus. So every ring carries in a step all
   rotations of the way's circuits in its dimension, as many hops as the way has, and they get wavelengths as on one
   ring (``references/relay_wavelengths.py``). A step whose circuits get none has one hop less and the way
   is planned again.
3. **Lines** are rings folded flat: the nodes of a line, in the order 0, 2, 4, …, 5, 3, 1, make a ring. A circuit
   between two of them along the line uses only links that the way round that ring uses too, and of the hops of the
   ring in one direction no two use the same link in the same direction. So the circuits of both directions of the ring
   fit into the line where each has wavelengths of its own: ``ceil(w/2)`` and ``floor(w/2)``. ``h`` hops of the ring
   are at most ``2 h`` of the line, which the instance's longest circuit must allow.

If OpTree's stages or passing items on from neighbour to neighbour, whichever is better in each dimension, need fewer
steps (``references/grid_stages.py``), or if time runs out, that is returned: ``relay`` never needs more steps than
``optree``. It has no other guarantee. Time O(N^2) per setting, memory O(N^2).
"""

from __future__ import annotations

from itertools import product

import numpy as np

from synth.arrays import Int32Array, IntArray
from synth.options import RunOptions
from synth_models.optree.instance import Dimension, OpTreeInstance
from synth_models.optree.references.grid_pattern import find_way
from synth_models.optree.references.grid_stages import best_phases, circuits_of
from synth_models.optree.references.relay_wavelengths import colour_rotations
from synth_models.optree.solution import Circuits

SPREADS, THRIFTS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5), (0.5, 1.0, 1.5)
FEWER_NODES = 2048  # beyond it only some of the settings are tried
REPLANS = 8  # ways per setting, each with one hop less where circuits got no wavelengths
MOST_CAPACITY = 2000  # hops per step and direction that are planned
SPARE = 64  # wavelengths beyond the hops of a step that colouring may use
Colours = dict[tuple[int, int], Int32Array]


def grid_relay(instance: OpTreeInstance, options: RunOptions) -> Circuits:
    """The better of our schedule and one that takes the dimensions one after the other."""
    phases = best_phases(instance, passing=True)
    assert phases is not None  # passing on keeps to any budget
    steps = sum(phase.steps for phase in phases)
    best: tuple[IntArray, Colours] | None = None
    settings = list(product(SPREADS, THRIFTS))
    if instance.nodes > FEWER_NODES:
        settings = settings[4::3]
    for spread, thrift in settings:
        if options.out_of_time():
            break
        found = _coloured_way(instance, options, spread, thrift, steps - 1)
        if found is not None:
            best, steps = found, int(found[0][-1, 0])
    return circuits_of(instance, phases) if best is None else expand(instance, *best)


def ring_limits(instance: OpTreeInstance) -> tuple[IntArray, IntArray]:
    """Per direction the hops of one step (wavelengths) and of the longest circuit, lines as the rings they fold to."""
    budgets, longest = [], []
    wavelengths, hops = min(instance.wavelengths, MOST_CAPACITY), instance.max_hops
    for side, _, ring in instance.dimensions:
        budgets += [wavelengths, wavelengths] if ring else [(wavelengths + 1) // 2, wavelengths // 2]
        longest += 2 * [min(hops, side - 1) if ring else side - 1 if hops >= side - 1 else hops // 2]
    return np.array(budgets, dtype=np.int64), np.array(longest, dtype=np.int64)


def _coloured_way(
    instance: OpTreeInstance, options: RunOptions, spread: float, thrift: float, most: int
) -> tuple[IntArray, Colours] | None:
    """A way of at most ``most`` steps and the wavelengths of its circuits, or None."""
    sides = np.array([dimension.side for dimension in instance.dimensions], dtype=np.int64)
    limits, longest = ring_limits(instance)
    budgets = np.tile(limits, (max(1, most), 1))
    for _ in range(REPLANS):
        way = find_way(sides, budgets, longest, spread, thrift, most, options.seed)
        if way is None:
            return None
        colours: Colours = {}
        failed = False
        for step, direction in sorted({(step, direction) for step, _, direction, _ in way.tolist()}):
            hops = way[(way[:, 0] == step) & (way[:, 2] == direction), 3].tolist()
            room = min(int(limits[direction]), sum(hops) + SPARE)
            found = colour_rotations(int(sides[direction // 2]), hops, room, options.seed)
            if found is None:
                budgets[step - 1, direction] = sum(hops) - 1
                failed = True
            else:
                colours[step, direction] = found
        if not failed:
            return way, colours
    return None


def expand(instance: OpTreeInstance, way: IntArray, colours: Colours) -> Circuits:
    """The circuits of all items. Rows are sorted by step."""
    dimensions, nodes = instance.dimensions, np.arange(instance.nodes)
    taken = dict.fromkeys(colours, 0)
    unfolded = [unfold(dimension) for dimension in dimensions]
    parts = []
    for step, node, direction, hops in way.tolist():
        k, down = divmod(direction, 2)
        number = taken[step, direction]
        taken[step, direction] += 1
        ends = {}
        for name, back in (("src", -hops if not down else hops), ("dst", 0)):
            ends[name] = [
                (nodes // one.stride + node // one.stride + (back if j == k else 0)) % one.side
                for j, one in enumerate(dimensions)
            ]
        first = ends["src"][k] if not down else -ends["src"][k] % dimensions[k].side
        wavelength = colours[step, direction][number][first]
        src, dst = (_number(dimensions, unfolded, ends[name]) for name in ("src", "dst"))
        origin = _number(dimensions, unfolded, [nodes // one.stride % one.side for one in dimensions])
        turn = np.full(len(nodes), direction)
        if not dimensions[k].ring:
            turn = np.where(dst > src, 2 * k, 2 * k + 1)
            wavelength = wavelength + ((instance.wavelengths + 1) // 2 if down else 0)
        columns = (np.full(len(nodes), step), src, dst, turn, wavelength, origin)
        parts.append([column.astype(np.int32) for column in columns])
    return Circuits.of(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def unfold(dimension: Dimension) -> IntArray:
    """The place on the line of every place on the ring that it folds to; a ring's own places. Shape (side,)."""
    places = np.arange(dimension.side)
    return places if dimension.ring else np.concatenate([places[::2], places[1::2][::-1]])


def _number(dimensions: tuple[Dimension, ...], unfolded: list[IntArray], places: list[IntArray]) -> IntArray:
    """The nodes with these places."""
    total = np.zeros(len(places[0]), dtype=np.int64)
    for dimension, at, place in zip(dimensions, unfolded, places, strict=True):
        total += at[place] * dimension.stride
    return total
