"""Method ``slots`` (reference, ours): blocks straight from rank to rank, by a timetable where the machine has one.

On a balanced fat tree a slot has a spine switch for each rank at a leaf switch (:mod:`.fat_tree_slots`), on a balanced
dragonfly slots are the points of an affine plane (:mod:`.affine_slots`). Where blocks are very many and small, or ranks
many and boxes of their own, what goes far goes first (:mod:`synth_models.fabric.plans.straight`). The quickest is kept.

Complexity: a transfer a block, or a few. Guarantee: none; on the machines named it is near what leaves a box.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.bounds.cuts import box_cut
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.plans.out_trees import empty
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
    incumbent = Incumbent(instance, options)
    _behind_leaves(incumbent)
    least = None if incumbent.best is None else box_cut(instance)
    if incumbent.time is None or least is None or least.seconds < incumbent.time * (1 - chunks.WORTH):
        _straight(incumbent)
    if incumbent.best is None:
        return Outcome("unsupported", message=LACKING)
    least = least or box_cut(instance)
    found = Outcome("finished", incumbent.best, message=incumbent.told + chunks.hurried(options))
    if least is not None:
        found = replace(
            found, bound=float_below(least.seconds), bound_proof=str(least), certificate=least.certificate()
        )
    return found


def _behind_leaves(incumbent: Incumbent) -> None:
    """Offer an alltoall in slots on a fat tree, if this is one."""
    with suppress(UnsupportedError):
        incumbent.offer(fat_tree_slots(incumbent.instance), SPINES)


def _straight(incumbent: Incumbent) -> None:
    """Offer blocks sent straight from rank to rank, very many small ones or between many ranks that are boxes of their
    own: slots, where there are any, and what goes far first, timed again. None of others, and where a pair of ranks has
    no direct route."""
    instance = incumbent.instance
    crowd = Crowd.of(instance)
    if not crowd.straight:
        return
    least, found = quick_bound(instance), None
    try:
        slots = affine_slots(instance)
        if slots is None or not _near(instance, slots, least):
            found = straight_pairs(instance)
            if crowd.many or crowd.small:
                found = again(instance, incumbent.options, found, least=least, rounded=not crowd.small)
    except UnsupportedError:
        return
    incumbent.offer(slots, IN_SLOTS)
    incumbent.offer(found, STRAIGHT)


def _near(instance: FabricInstance, found: Schedule, least: Fraction) -> bool:
    """Whether a schedule takes no more than :data:`~synth_models.fabric.scheduling.chunks.WORTH` of its time above a
    lower bound."""
    return chunks.seconds(instance, found) * (1 - chunks.WORTH) <= least
