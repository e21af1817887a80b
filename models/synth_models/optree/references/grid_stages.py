"""OpTree on a torus or mesh: one dimension after the other, each with its best stages (reference).

Dai, Chen, Huang, Zhang, Section VI-B: OpTree along every row, then along every column. The paper says no more; here it
is laid out for any number of dimensions, rings or lines:

* **Phases.** A phase runs along the rings or lines of one dimension. Before it every node holds the items of the nodes
  that differ from it only in dimensions already done, ``c`` in number, so a phase is an allgather among ``n`` nodes
  that hold ``c`` items each, on all rings of the dimension at once.
* **Items that share wavelengths** (``sharing``, the default): a stage that needs ``W`` wavelengths for one item needs
  ``c W`` for all and takes ``ceil(c W / w)`` steps, with the radices that are best for ``c`` items. One after the other
  (``sharing=off``) they take ``c`` times the steps of one item, so an ``n x n`` torus takes ``n + 1`` times the steps
  of a ring of ``n`` nodes; sharing takes at most that.
* **Lines.** Stage 1 is an all-to-all of groups along the line; its last group may be smaller, with the positions
  beyond the last node clamped to it as in ``parts/stage_layout.py``. Later stages stay inside segments, as on a ring.
* **Order.** The dimensions are taken in every order, at most six, and the one with the fewest steps is kept, of several
  the one that begins with the last dimension (the rows).

Complexity O(N^2) circuits, constant work each; no random choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from synth.arrays import Int32Array
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.optree.instance import Dimension, OpTreeInstance
from synth_models.optree.parts.passing_on import passing_on
from synth_models.optree.parts.radices import best_radices, count_steps
from synth_models.optree.parts.stage_circuits import staged
from synth_models.optree.solution import Circuits


@dataclass(frozen=True)
class Phase:
    """The stages along one dimension, for ``items`` items a node; with ``rounds`` > 1 one item after the other. Without
    radices the items are passed on from neighbour to neighbour (``parts/passing_on.py``; ``relay`` only)."""

    dimension: int
    items: int
    radices: tuple[int, ...]
    rounds: int
    steps: int


def solve(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``optree`` on a grid."""
    if options.method.get("radices"):
        raise UnsupportedError("radices are those of one ring; on a grid every dimension takes its best ones")
    phases = best_phases(instance, bool(options.method.get("sharing", True)))
    if phases is None:
        raise UnsupportedError(
            f"every OpTree plan needs circuits of more than {instance.max_hops} hops, all that the "
            f"{instance.limiting_budget} allows; relay keeps to any length"
        )
    words = [
        f"dimension {phase.dimension}: {phase.items} items a node, radices {', '.join(map(str, phase.radices))}, "
        f"{phase.steps} steps"
        for phase in phases
    ]
    return Outcome("finished", solution=circuits_of(instance, phases), message="; ".join(words))


def best_phases(instance: OpTreeInstance, sharing: bool = True, passing: bool = False) -> list[Phase] | None:
    """The phases of the best order; None when the budgets forbid all plans of a dimension. With ``passing`` a dimension
    may also pass items on, which every budget allows, if that takes fewer steps."""
    orders = permutations(reversed(range(len(instance.dimensions))))
    plans = [found for order in orders if (found := _phases(instance, order, sharing, passing)) is not None]
    return min(plans, key=lambda phases: sum(phase.steps for phase in phases), default=None)


def _phases(instance: OpTreeInstance, order: tuple[int, ...], sharing: bool, passing: bool) -> list[Phase] | None:
    phases, items, wavelengths = [], 1, instance.wavelengths
    for k in order:
        side, _, ring = instance.dimensions[k]
        shared, rounds = (items, 1) if sharing else (1, items)
        radices = best_radices(side, wavelengths, instance.max_hops, shared, ring)
        if radices is not None:
            phases.append(
                Phase(k, items, radices, rounds, rounds * count_steps(side, wavelengths, radices, shared, ring))
            )
        if passing:
            steps = int(passing_on(side, wavelengths, items, ring)[0][-1])
            if radices is None:
                phases.append(Phase(k, items, (), 1, steps))
            elif steps < phases[-1].steps:
                phases[-1] = Phase(k, items, (), 1, steps)
        elif radices is None:
            return None
        items *= side
    return phases


def circuits_of(instance: OpTreeInstance, phases: list[Phase]) -> Circuits:
    """All circuits of the phases. Rows are sorted by step."""
    done: list[Dimension] = []
    parts: list[list[Int32Array]] = []
    step = 0
    for phase in phases:
        dimension = instance.dimensions[phase.dimension]
        shared = phase.items // phase.rounds
        if phase.radices:
            local = staged(dimension.side, instance.wavelengths, phase.radices, shared, dimension.ring)
        else:
            local = passing_on(dimension.side, instance.wavelengths, phase.items, dimension.ring)
        each = phase.steps // phase.rounds
        begun, *ends, copy = local
        for turn in range(phase.rounds):
            columns = [begun + step + turn * each, *ends, copy + turn]
            parts.append(_on_every_line(instance, phase.dimension, done, columns))
        step += phase.steps
        done.append(dimension)
    return Circuits.of(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _on_every_line(
    instance: OpTreeInstance, k: int, done: list[Dimension], columns: list[Int32Array]
) -> list[Int32Array]:
    """The circuits of one line as those of all lines of dimension ``k``; ``copy`` counts the nodes that differ in the
    dimensions done."""
    dimension = instance.dimensions[k]
    nodes = np.arange(instance.nodes)
    bases = nodes[nodes // dimension.stride % dimension.side == 0][None, :]
    home = bases - sum((bases // one.stride % one.side * one.stride for one in done), np.zeros_like(bases))
    offsets = np.zeros(1, dtype=np.int64)
    for one in done:
        offsets = (offsets[:, None] + np.arange(one.side) * one.stride).ravel()
    step, src, dst, direction, wavelength, origin, copy = (column.astype(np.int64)[:, None] for column in columns)
    rows = [
        step,
        bases + src * dimension.stride,
        bases + dst * dimension.stride,
        direction + 2 * k,
        wavelength,
        home + origin * dimension.stride + offsets[copy],
    ]
    shape = (len(step), bases.shape[1])
    return [np.broadcast_to(row, shape).ravel().astype(np.int32) for row in rows]
