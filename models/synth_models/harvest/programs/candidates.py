"""Method ``candidates``: the best schedule over candidate topologies, a shortest path over (step, topology).

Optimal over the candidates that :mod:`synth_models.harvest.parts.topologies` lists and the hop limits that the profiles
list; a topology outside may be better, so no bound is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable

from synth.arrays import FloatArray, IntArray
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.delays import Delays
from synth_models.harvest.parts.ratings import Ratings
from synth_models.harvest.parts.shortest_path import shortest_schedule
from synth_models.harvest.references.baselines import hold_ring


def solve(instance: HarvestInstance, options: RunOptions) -> Outcome:
    """The schedule of least time over the candidates: a shortest path over (step, topology).

    Complexity: O(steps * candidates) per pass after the profiles, with delays that depend on what changes O(steps *
    candidates^2); as many passes as new programs are wanted.
    """
    hold_ring(instance, options, "the rating of topologies")
    ratings = Ratings(instance, options)
    delays = Delays(instance, ratings.topologies)

    def search(cost: FloatArray) -> tuple[IntArray, Iterable[tuple[int, int]]]:
        _, chosen = shortest_schedule(cost, delays.before)
        return chosen, enumerate(chosen.tolist())

    chosen = ratings.settle(search)
    return Outcome("finished", ratings.schedule(chosen), message=ratings.tried())
