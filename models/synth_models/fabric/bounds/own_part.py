"""A rank that wants a sum contributes to it, so none ends before such a rank is ready.

The check restates it (:mod:`synth_models.fabric.check.own_part`).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from synth.text.quantities import SECONDS, shown
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.ready import moments


def latest_own_part(links: Links, best: Proven) -> Proven:
    """What the last of these proves, or ``best``."""
    blocks, late = links.instance.blocks, moments(links.instance.ready)
    sums = blocks.goal[blocks.origin == EVERYONE]
    wanting = links.members.tolist() if np.any(sums == EVERYONE) else sums[sums >= 0].tolist()
    if len(links.members) < 2 or not wanting:
        return best
    rank = max(wanting, key=lambda rank: late.get(rank, Fraction(0)))
    seconds = late.get(rank, Fraction(0))
    if seconds <= best.seconds:
        return best
    words = f"rank {rank}'s own part of a sum that it wants is there after {shown(float(seconds), SECONDS)}"
    return Proven(seconds, "own_part", lambda: words, lambda: {"argument": "own_part", "rank": rank})
