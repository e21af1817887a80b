"""Method ``slots`` (reference, ours): blocks straight from rank to rank, by a timetable where the machine has one.

On a balanced fat tree a slot has a spine switch for each rank at a leaf switch (:mod:`.fat_tree_slots`), on a balanced
dragonfly slots are the points of an affine plane (:mod:`.affine_slots`). Where blocks are very many and small, or ranks
many and boxes of their own, what goes far goes first (:mod:`synth_models.fabric.plans.straight`). The quickest is kept.

Complexity: a transfer a block, or a few. Guarantee: none; on the machines named it is near what leaves a box.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

from synth.errors import UnsupportedError
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.bounds.cuts import box_cut
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.out_trees import Candidate, empty, quicker
from synth_models.fabric.plans.straight import Crowd, straight_pairs
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.references.slots.affine_slots import affine_slots
from synth_models.fabric.references.slots.fat_tree_slots import fat_tree_slots
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.back_and_forth import again
from synth_models.fabric.solution import Schedule

KNOWN = ("alltoall", "gather", "scatter", "demand")
STRAIGHT = "blocks straight from rank to rank, what goes far first"
IN_SLOTS = "blocks straight from rank to rank, in slots by the lines of an affine plane"
SPINES = "blocks straight from rank to rank, in slots with a spine switch for each rank at a leaf switch"
LACKING = (
    "slots needs a balanced fat tree or dragonfly, very many small blocks, or many ranks that are boxes of their own"
)


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``slots``."""
    if instance.collective not in KNOWN:
        return Outcome("unsupported", message=f"slots is no algorithm for {instance.collective}")
    if not len(instance.blocks):
        return empty(instance)
    best = _behind_leaves(instance, options)
    least = None if best is None else box_cut(instance)
    if best is None or least is None or least.seconds < best.seconds * (1 - chunks.WORTH):
        straight = _straight(instance, options)
        best = best if straight is None else quicker(best, straight)
    if best is None:
        return Outcome("unsupported", message=LACKING)
    least = least or box_cut(instance)
    found = Outcome("finished", best.schedule, message=best.words + chunks.hurried(options))
    if least is not None:
        found = replace(
            found, bound=float_below(least.seconds), bound_proof=str(least), certificate=least.certificate()
        )
    return found


def _behind_leaves(instance: FabricInstance, options: RunOptions) -> Candidate | None:
    """An alltoall in slots on a fat tree, if this is one; the run holds it."""
    try:
        found = fat_tree_slots(instance)
    except UnsupportedError:
        return None
    return None if found is None else _held(instance, options, found, SPINES)


def _straight(instance: FabricInstance, options: RunOptions) -> Candidate | None:
    """Blocks sent straight from rank to rank, very many small ones or between many ranks that are boxes of their own:
    the quicker of slots, where there are any, and of what goes far first, timed again. None for others, and where a
    pair of ranks has no direct route. The run holds it."""
    crowd = Crowd.of(instance)
    if not crowd.straight:
        return None
    least = quick_bound(instance)
    try:
        slots = affine_slots(instance)
        if slots is not None and _near(instance, slots, least):
            return _held(instance, options, slots, IN_SLOTS)
        found = straight_pairs(instance)
        if crowd.many or crowd.small:
            found = again(instance, options, found, least=least, rounded=not crowd.small)
    except UnsupportedError:
        return None
    if slots is not None and chunks.seconds(instance, slots) <= chunks.seconds(instance, found):
        return _held(instance, options, slots, IN_SLOTS)
    return _held(instance, options, found, STRAIGHT)


def _held(instance: FabricInstance, options: RunOptions, found: Schedule, words: str) -> Candidate:
    seconds = chunks.seconds(instance, found)
    options.held.offer(partial(replace, found), float(seconds), words)
    return Candidate(seconds, found, words)


def _near(instance: FabricInstance, found: Schedule, least: Fraction) -> bool:
    """Whether a schedule takes no more than :data:`~synth_models.fabric.scheduling.chunks.WORTH` of its time above a
    lower bound."""
    return chunks.seconds(instance, found) * (1 - chunks.WORTH) <= least
