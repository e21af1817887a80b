"""``flow``: the fastest concurrent flow, its routes, and the schedule made of them that suits the size."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from synth.errors import UnsupportedError
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.bounds.cuts import box_cut
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.programs.flow.certified_bound import certified
from synth_models.fabric.programs.flow.fluid_optimum import Fluid, fluid_optimum
from synth_models.fabric.programs.flow.search import Found, best_schedule
from synth_models.fabric.references.affine_slots import affine_slots
from synth_models.fabric.references.fat_tree_slots import fat_tree_slots
from synth_models.fabric.references.first_schedule import hold_first, unless_held_is_quicker
from synth_models.fabric.references.joint_timing import solve_parts
from synth_models.fabric.references.straight import straight_pairs
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.back_and_forth import again
from synth_models.fabric.solution import Schedule

MANY = 300_000  # blocks, of which the flow is found slowly
MANY_ALONE = 64  # ranks that are boxes of their own
STRAIGHT = "blocks straight from rank to rank, what goes far first"
IN_SLOTS = "blocks straight from rank to rank, in slots by the lines of an affine plane"
SPINES = "blocks straight from rank to rank, in slots with a spine switch for each rank at a leaf switch"
NEAR = Fraction(1, 6)  # of the time above a lower bound: nearer schedules are not looked for among so many
_NONE = np.zeros(0, dtype=np.int64)
NOTHING = Schedule(1, _NONE, _NONE, _NONE, _NONE, _NONE.astype(bool), np.zeros(1, dtype=np.int64), _NONE)


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Schedule of pieces along the routes of a max-concurrent flow.

    Solutions: :class:`synth_models.fabric.solution.Schedule`. The flow's completion time is the least for any routing
    without latencies (Shahrokhi and Matula 1990); the pieces' size and order are the best of several tried.
    """
    if instance.collectives is not None:
        return solve_parts(instance, options, "flow", solve)
    blocks = instance.blocks
    if np.any(blocks.origin == EVERYONE) or np.any(blocks.goal == EVERYONE):
        return Outcome("unsupported", message=f"flow moves blocks from rank to rank; {instance.collective} does not")
    if not len(blocks):
        return Outcome("finished", NOTHING, message="nothing has to move")
    begun = time.monotonic()
    hold_first(instance, options, "the flow")
    straight = _behind_leaves(instance, options) or _straight(instance, options)
    if straight is not None:
        return straight
    fluid = fluid_optimum(instance, options)
    if fluid is None:
        return Outcome("time_limit", message="the concurrent flow was not found within the time limit")
    proven = certified(instance, fluid.price)
    if proven:
        options.held.offer_bound(proven.seconds, proven.words, proven.certificate)
    built = time.monotonic()
    least = max(fluid.time, fluid.latency, proven.seconds if proven else 0.0)
    found = best_schedule(instance, fluid.routings, least, options)
    outcome = Outcome(
        "finished",
        found.schedule,
        bound=proven.seconds if proven else None,
        bound_proof=proven.words if proven else None,
        certificate=proven.certificate if proven else None,
        message=_told(instance, fluid, found),
        build_s=built - begun,
        solve_s=time.monotonic() - built,
    )
    return unless_held_is_quicker(instance, options, outcome)


def _behind_leaves(instance: FabricInstance, options: RunOptions) -> Outcome | None:
    """Have the run hold an alltoall in slots on a fat tree; return it where it is near what has to leave a box."""
    try:
        found = fat_tree_slots(instance)
    except UnsupportedError:
        return None
    if found is None:
        return None
    seconds = chunks.seconds(instance, found)
    options.held.offer(partial(replace, found), float(seconds), SPINES)
    least = box_cut(instance)
    if least is None or least.seconds < seconds * (1 - chunks.WORTH):
        return None
    message = f"{SPINES}; no flow was looked for"
    bound = float_below(least.seconds)
    return Outcome("finished", found, bound, str(least), least.certificate(), message=message)


def _straight(instance: FabricInstance, options: RunOptions) -> Outcome | None:
    """Have the run hold blocks sent straight from rank to rank, very many small ones or between many ranks that are
    boxes of their own; return that where it is near a lower bound, or where there are too many of these for a flow."""
    net, blocks = instance.machine.network, instance.blocks
    many = len(blocks) >= MANY
    small = bool(blocks.bytes.max(initial=0) <= net.bandwidth.min() * net.latency.max(initial=0.0))
    alone = len(instance.boxes) == len(instance.members) >= MANY_ALONE and bool(instance.machine.is_switch.any())
    if not alone and not (many and small):
        return None
    least = quick_bound(instance)
    passes = partial(again, instance, options, least=least, rounded=not small) if many or small else None
    try:
        found, words = _sent_straight(instance, least, passes)
    except UnsupportedError:
        return None
    options.held.offer(partial(replace, found), float(chunks.seconds(instance, found)), words)
    near = _near(instance, found, least, NEAR if many and small else chunks.WORTH)
    if not near and not (many and alone):
        return None
    return Outcome("finished", found, message=f"{words}; no flow was looked for")


def _sent_straight(
    instance: FabricInstance, least: Fraction, passes: Callable[[Schedule], Schedule] | None
) -> tuple[Schedule, str]:
    """The quicker of slots, where there are any, and of what goes far first, after these ``passes``; with its name.
    Raises :class:`UnsupportedError` where a pair of ranks has no direct route."""
    slots = affine_slots(instance)
    if slots is not None and _near(instance, slots, least, chunks.WORTH):
        return slots, IN_SLOTS
    found = straight_pairs(instance)
    found = passes(found) if passes else found
    if slots is not None and chunks.seconds(instance, slots) <= chunks.seconds(instance, found):
        return slots, IN_SLOTS
    return found, STRAIGHT


def _near(instance: FabricInstance, found: Schedule, least: Fraction, part: Fraction) -> bool:
    """Whether a schedule takes no more than this ``part`` of its time above a lower bound."""
    return chunks.seconds(instance, found) * (1 - part) <= least


def _told(instance: FabricInstance, fluid: Fluid, found: Found) -> str:
    rate = instance.bytes / 1e9
    folded = f", folded to {fluid.commodities}" if fluid.commodities < fluid.sources else ""
    name = "fluid optimum" if fluid.least >= fluid.time * (1 - 1e-6) else f"flow (no less than {fluid.least:.6g} s)"
    return (
        f"{name} {fluid.time:.6g} s ({rate / fluid.time:.6g} GB/s) from {fluid.sources} sources{folded}; "
        f"schedule {found.seconds:.6g} s ({rate / found.seconds:.6g} GB/s): {found.words}"
    )
