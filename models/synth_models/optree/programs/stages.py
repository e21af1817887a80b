"""Method ``stages`` (program): the number of OpTree's stages and their radices with the fewest steps, exactly.

Dai, Chen, Huang, Zhang, Section IV, choose one radix ``N^(1/k)`` for all stages and sum real numbers; here radices
are whole numbers, may differ, and every stage costs the exact number of steps its circuits need for any ``N``
(``parts/stage_layout.py``, with proofs).

=====================  ==================  ===================================  ==========
paper                  code                meaning                              unit
=====================  ==================  ===================================  ==========
``N``, ``w``           nodes, wavelengths  ring size, wavelengths per direction  --
``k``                  len(radices)        number of stages                      --
``m``                  radix               groups of stage 1 / subgroups         --
``N/m^j``              size                nodes of a (full) subgroup            nodes
``z[s,m]``             ``use[s, m]``       size, radix (0: the ring stage)      0/1
=====================  ==================  ===================================  ==========

Both ways of solving minimise over all chains ``1 = s_k | s_(k-1) | .. | s_1 < N``::

    ring(ceil(N/s_1), s_1) + sum over j >= 2 of segment(s_(j-1)/s_j, s_j)

- **dynamic program** (``parts/radices.py``): ``best[m*s] = min over m >= 2 of best[s] + segment(m, s)``, O(N log N)
  constant-time costs;
- **integer program** (Pyomo): a shortest path from size 1 to the whole ring, one binary ``use`` per arc (size, radix)
  with its steps, and one per closing ring stage (radix 0). Sizes up to ``PROGRAM_NODES`` nodes.

      (1) conserved   arcs out of a size - arcs into it = 1 for size 1, else 0
      (2) closed      sum of the closing ring stages = 1

Radices whose circuits would exceed the instance's longest circuit are left out of both.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.errors import SizeLimitError, UnsupportedError
from synth.kernels import jit
from synth.method import Outcome, Termination
from synth.options import RunOptions
from synth.solvers.rows import Row, ones
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import refuse_unmeetable, require_ring
from synth_models.optree.parts.radices import best_radices
from synth_models.optree.parts.stage_layout import ring_wavelengths, segment_wavelengths
from synth_models.optree.solution import StepCount

PROGRAM_NODES = 20_000
Variables = Mapping[tuple[int, int], Any]
"""By size and radix."""


def solve(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``stages``. The optimum over OpTree's plans, which bounds no other algorithm: no bound is reported."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    require_ring(instance, "the choice of stages")
    if options.method.get("by", "dynamic") == "program":
        return _solve_program(instance, options)
    radices = best_radices(instance.nodes, instance.wavelengths, instance.max_hops)
    if radices is None:
        raise _no_plan(instance)
    return Outcome("finished", solution=StepCount("stages", radices), message=_best_words("dynamic program"))


def _best_words(by: str) -> str:
    return f"the best of all radices, proven by {by}; other algorithms may need fewer steps"


def _no_plan(instance: OpTreeInstance) -> UnsupportedError:
    return UnsupportedError(
        f"every OpTree plan needs circuits of more than {instance.max_hops} hops, all that the "
        f"{instance.limiting_budget} allows; relay keeps to any length"
    )


@jit
def _arcs(nodes: int, wavelengths: int, max_hops: int) -> IntArray:
    """All arcs of the program as rows (size, radix, steps); radix 0 marks the ring stage that closes a plan."""
    count = nodes
    for size in range(1, nodes):
        count += (nodes - 1) // size
    rows = np.empty((count, 3), np.int64)
    used = 0
    for size in range(1, nodes):
        groups = (nodes - 1) // size + 1
        if (groups // 2) * size <= max_hops:
            rows[used] = size, 0, (ring_wavelengths(groups, size) - 1) // wavelengths + 1
            used += 1
        for radix in range(2, (nodes - 1) // size + 1):
            if (radix - 1) * size <= max_hops:
                rows[used] = size, radix, (segment_wavelengths(nodes, radix, size) - 1) // wavelengths + 1
                used += 1
    return rows[:used]


def build(instance: OpTreeInstance) -> Any:
    """The integer program as a Pyomo model: shortest path over group sizes. Calls no solver."""
    from synth.solvers.algebra import pyo
    from synth.solvers.rows import add_rows, linear, variables

    arcs = _arcs(instance.nodes, instance.wavelengths, instance.max_hops).tolist()
    model = pyo.ConcreteModel()
    model.use = variables("s m", [(size, radix) for size, radix, _ in arcs], domain=pyo.Binary)
    use = dict(model.use.items())
    add_rows(model, "conserved", conserved(use), "s")
    add_rows(model, "closed", closed(use), "")
    model.steps = pyo.Objective(expr=linear((steps, use[size, radix]) for size, radix, steps in arcs))
    return model


def conserved(use: Variables) -> dict[int, Row]:
    """(1): one plan leaves size 1; every other size it reaches it leaves."""
    into: dict[int, list[Any]] = {}
    out: dict[int, list[Any]] = {}
    for (size, radix), variable in use.items():
        out.setdefault(size, []).append(variable)
        into.setdefault(size * radix, []).append(variable)  # 0: the whole ring
    sizes = sorted((set(into) | set(out)) - {0})
    return {s: (ones(out.get(s, ())) + ones(into.get(s, ()), -1), "==", int(s == 1)) for s in sizes}


def closed(use: Variables) -> dict[None, Row]:
    """(2): exactly one ring stage."""
    return {None: (ones(variable for (_, radix), variable in use.items() if radix == 0), "==", 1)}


def _solve_program(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    from synth.solvers.mathprog import building
    from synth.solvers.mathprog import solve as run_solver

    if instance.nodes > PROGRAM_NODES:
        raise SizeLimitError(
            f"the integer program takes up to {PROGRAM_NODES} nodes; the dynamic program (by=dynamic) takes all"
        )
    if best_radices(instance.nodes, instance.wavelengths, instance.max_hops) is None:
        raise _no_plan(instance)
    started = time.monotonic()
    with building():
        model = build(instance)
    build_s = time.monotonic() - started
    result = run_solver(model, options, bounded=True)
    kind: Termination
    if not result.has_point:
        kind = "error" if result.termination == "error" else "time_limit"
        return Outcome(kind, message=result.message or "no plan found in time", build_s=build_s, solve_s=result.solve_s)
    taken = {size: radix for (size, radix), used in model.use.items() if used.value > 0.5}
    size, radices = 1, []
    while taken[size]:
        radices.append(taken[size])
        size *= taken[size]
    radices.append(-(-instance.nodes // size))
    plan = StepCount("stages", tuple(reversed(radices)))
    proven = result.termination == "optimal"
    message = _best_words("integer program") if proven else "stopped before the plan was proven best"
    kind = "finished" if proven else "time_limit"
    return Outcome(kind, solution=plan, message=message, build_s=build_s + result.transfer_s, solve_s=result.solve_s)
