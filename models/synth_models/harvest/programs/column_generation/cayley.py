"""All Cayley graphs of a group that leads from every GPU to every other, rated for every step.

Few ports have few of them (2,080 for 64 GPUs and two ports), so that none need be searched for. Annealing makes
topologies for one interval at a time, and a schedule whose intervals all end elsewhere than in the best one known needs
several at once: here the shortest path is over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth_models.harvest.programs.column_generation.lifts import Lift
from synth_models.harvest.programs.column_generation.search import Demand, seconds

MOST_WORK = 30_000_000  # topologies times links times steps; some seconds


def cayley_targets(lift: Lift, ports: int, steps: int) -> IntArray | None:
    """Where the links of the first GPU lead, shape (topologies, ports), itself for an idle port; None where they are
    too many to rate that many steps on each, or the group leads not everywhere."""
    number = comb(lift.gpus + ports - 1, ports)
    if len(lift.sources) > 1 or number * lift.gpus * ports * steps > MOST_WORK:
        return None
    return np.array(list(combinations_with_replacement(range(lift.gpus), ports)), dtype=np.int64)


def cayley_seconds(
    lift: Lift, targets: IntArray, demands: Sequence[Demand], hop_delay: float, stop: Callable[[], bool]
) -> FloatArray | None:
    """Seconds of every demand without its alpha, shape (demands, topologies); None where time is up."""
    found = np.empty((len(demands), len(targets)))
    for column, one in enumerate(targets):
        if stop():
            return None
        for row, demand in enumerate(demands):
            found[row, column] = seconds(lift, demand, one[None, :], hop_delay)
    return found
