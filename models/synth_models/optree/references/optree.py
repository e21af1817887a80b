"""Method ``optree`` (reference): OpTree's explicit circuits, stage by stage.

Dai, Chen, Huang, Zhang, Section IV and Figure 3, laid out for any ``N`` as described and proven in
``parts/stage_layout.py``, its circuits by ``parts/stage_circuits.py``; on a torus or mesh (Section VI-B) dimension by
dimension (``references/grid_stages.py``). Every stage takes as many wavelengths as ``stages`` counts (a smaller last
group never more), dealt to steps in order. Complexity O(N^2) circuits, constant work each; no random choice.
"""

from __future__ import annotations

import numpy as np

from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import refuse_unmeetable, require_explicit_size, require_hops
from synth_models.optree.parts.radices import best_radices
from synth_models.optree.parts.stage_circuits import staged
from synth_models.optree.parts.stage_layout import longest_hops
from synth_models.optree.references import grid_stages
from synth_models.optree.solution import Circuits


def solve(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``optree``: the best radices of ``stages``, or those given; on a grid dimension by dimension."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    require_explicit_size(instance)
    if instance.grid is not None:
        return grid_stages.solve(instance, options)
    nodes, wavelengths = instance.nodes, instance.wavelengths
    given = options.method.get("radices")
    radices = given or best_radices(nodes, wavelengths, instance.max_hops)
    if radices is None:
        require_hops(instance, longest_hops(nodes, best_radices(nodes, wavelengths) or (nodes,)), "every OpTree plan")
        raise AssertionError("a plan within the limit was overlooked")
    if given:
        radices = fitted(nodes, given)
        require_hops(instance, longest_hops(nodes, radices), f"OpTree with radices {radices}")
    message = "radices " + ", ".join(map(str, radices))
    return Outcome("finished", solution=schedule(nodes, wavelengths, radices), message=message)


def fitted(nodes: int, radices: tuple[int, ...]) -> tuple[int, ...]:
    """Given radices with the first one cut to the groups there are. Raises :class:`UnsupportedError` when the groups
    of stage 1 are the whole ring, or when the radices do not reach ``nodes`` nodes."""
    size = int(np.prod(radices[1:], dtype=object)) if len(radices) > 1 else 1
    if size >= nodes:
        raise UnsupportedError(f"radices {radices}: stages 2 and on cover {size} nodes already, the ring has {nodes}")
    if radices[0] * size < nodes:
        raise UnsupportedError(f"radices {radices} reach {radices[0] * size} nodes only, the ring has {nodes}")
    return (-(-nodes // size), *radices[1:])


def best_schedule(instance: OpTreeInstance) -> Circuits | None:
    """OpTree's schedule with the best radices; None when the instance's budgets forbid all."""
    if instance.grid is not None:
        phases = grid_stages.best_phases(instance)
        return None if phases is None else grid_stages.circuits_of(instance, phases)
    radices = best_radices(instance.nodes, instance.wavelengths, instance.max_hops)
    return None if radices is None else schedule(instance.nodes, instance.wavelengths, radices)


def schedule(nodes: int, wavelengths: int, radices: tuple[int, ...]) -> Circuits:
    """All circuits of OpTree on a ring with these radices. Rows are sorted by step."""
    return Circuits.of(*staged(nodes, wavelengths, radices)[:-1])
