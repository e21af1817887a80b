"""``flow``: the fastest concurrent flow, its routes, and the schedule made of them that suits the size."""

from __future__ import annotations

import time

import numpy as np

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.bounds.cuts import box_cut
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.plans.straight import Crowd
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.programs.flow import traffic_flow
from synth_models.fabric.programs.flow.certified_bound import certified
from synth_models.fabric.programs.flow.fluid_optimum import Fluid, fluid_optimum
from synth_models.fabric.programs.flow.search import Draft, best_draft
from synth_models.fabric.programs.flow.tuned import NEAR
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.solution import Schedule

_NONE = np.zeros(0, dtype=np.int64)
NOTHING = Schedule(1, _NONE, _NONE, _NONE, _NONE, _NONE.astype(bool), np.zeros(1, dtype=np.int64), _NONE)


def propose(instance: FabricInstance, options: RunOptions, incumbent: Incumbent) -> Outcome:
    """Schedule of pieces along the routes of a max-concurrent flow.

    Solutions: :class:`synth_models.fabric.solution.Schedule`. The flow's completion time is the least for any routing
    without latencies (Shahrokhi and Matula 1990); the pieces' size and order are the best of several tried. No flow is
    looked for where the incumbent is near enough (:func:`_enough`).
    """
    blocks = instance.blocks
    if instance.traffic is not None and len(blocks):
        return traffic_flow.propose(instance, options)
    if np.any(blocks.origin == EVERYONE) or np.any(blocks.goal == EVERYONE):
        return Outcome("unsupported", message=f"flow moves blocks from rank to rank; {instance.collective} does not")
    if not len(blocks):
        return Outcome("finished", NOTHING, message="nothing has to move")
    begun = time.monotonic()
    if _enough(incumbent):
        return Outcome("finished", message="no flow was looked for")
    fluid = fluid_optimum(instance, options)
    if fluid is None:
        return Outcome("time_limit", message="the concurrent flow was not found within the time limit")
    proven = certified(instance, fluid.price)
    if proven:
        options.held.offer_bound(proven.seconds, proven.words, proven.certificate)
    built = time.monotonic()
    least = max(fluid.time, fluid.latency, proven.seconds if proven else 0.0)
    found = best_draft(instance, fluid.routings, least, options)
    return Outcome(
        "finished",
        found.schedule,
        bound=proven.seconds if proven else None,
        bound_proof=proven.words if proven else None,
        certificate=proven.certificate if proven else None,
        message=_told(instance, fluid, found),
        build_s=built - begun,
        solve_s=time.monotonic() - built,
    )


def _enough(incumbent: Incumbent) -> bool:
    """Whether what others sent straight from rank to rank is so near a bound that a flow is not worth looking for, or
    there are too many blocks for one."""
    instance, time = incumbent.instance, incumbent.time
    if time is None:
        return False
    least = box_cut(instance)
    if least is not None and least.seconds >= time * (1 - chunks.WORTH):
        return True
    crowd = Crowd.of(instance)
    if not crowd.straight:
        return False
    part = NEAR if crowd.many and crowd.small else chunks.WORTH
    return (crowd.many and crowd.alone) or time * (1 - part) <= quick_bound(instance)


def _told(instance: FabricInstance, fluid: Fluid, found: Draft) -> str:
    rate = instance.bytes / 1e9
    folded = f", folded to {fluid.commodities}" if fluid.commodities < fluid.sources else ""
    name = "fluid optimum" if fluid.least >= fluid.time * (1 - 1e-6) else f"flow (no less than {fluid.least:.6g} s)"
    return (
        f"{name} {fluid.time:.6g} s ({rate / fluid.time:.6g} GB/s) from {fluid.sources} sources{folded}; "
        f"schedule {found.seconds:.6g} s ({rate / found.seconds:.6g} GB/s): {found.words}"
    )
