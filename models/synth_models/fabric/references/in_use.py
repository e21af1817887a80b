"""What libraries run, raced against a schedule of ours: no machine is so odd that they should be quicker."""

from __future__ import annotations

from fractions import Fraction

from synth.errors import UnsupportedError
from synth.family import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.programs.forest import method as forest
from synth_models.fabric.references import bruck, direct, double_tree, pat, recursive_doubling, ring, two_level
from synth_models.fabric.references.out_trees import Candidate, quicker
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.box_routes import boxes_are_alike

IN_USE = {
    "direct": direct.solve,
    "double_tree": double_tree.solve,
    "two_level": two_level.solve,
    "recursive_doubling": recursive_doubling.solve,
    "pat": pat.solve,
    "bruck": bruck.solve,
    "ring": ring.solve,
}
MOST_MEMBERS = 32  # up to which they are quick
MOST_UNLIKE = 128  # up to which two_level is where boxes do not see the same, as behind leaf switches
SHARE = 0.3  # of the time that is left, for each


def packed(instance: FabricInstance, options: RunOptions) -> Candidate | None:
    """What ``forest`` makes of an allreduce in a part of the time, on boxes of unequal size, which
    wait for the smallest if all sum up equal parts, as its NICs carry more than the buffer. None elsewhere."""
    few = len(instance.members) <= MOST_MEMBERS
    if instance.collective != "allreduce" or not few or len(set(map(len, instance.boxes))) == 1:
        return None
    found = forest.solve(instance, options.part(SHARE))
    if found.solution is None:
        return None
    seconds = chunks.seconds(instance, found.solution)
    options.held.offer(lambda: found.solution, float(seconds), "forest")
    return Candidate(seconds, found.solution, f"as forest: {found.message}")


def raced(instance: FabricInstance, options: RunOptions, best: Candidate | None, least: Fraction) -> Candidate | None:
    """The quickest of ``best`` and what libraries run where that is quick; without a ``best`` whatever
    there is. ``least``: a lower bound, in seconds."""
    names = list(IN_USE)
    if best is not None and len(instance.members) > MOST_MEMBERS:
        unlike = len(instance.members) <= MOST_UNLIKE and not boxes_are_alike(instance.machine, instance.boxes)
        names = ["two_level"] if unlike else []
    for name in names:
        at_the_bound = best is not None and best.seconds * Fraction(1 - options.relative_gap) <= least
        if at_the_bound or (best is not None and options.out_of_time()):
            break
        try:
            found = _run(name, instance, options.part(SHARE), best)
        except UnsupportedError:
            continue
        if found.solution is not None:
            words = f"as {name}: {found.message}"
            best = quicker(best, Candidate(chunks.seconds(instance, found.solution), found.solution, words))
    return best


def _run(name: str, instance: FabricInstance, options: RunOptions, best: Candidate | None) -> Outcome:
    """What libraries run by this name; ``two_level`` ends early where it cannot be quicker than ``best``."""
    if name == "two_level" and best is not None:
        return two_level.quicker_than(best.seconds, instance, options)
    return IN_USE[name](instance, options)
