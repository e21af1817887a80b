"""All Cayley graphs of a group that leads from every GPU to every other, rated for every step.

Few ports have few of them (2,080 for 64 GPUs and two ports), so that none need be searched for. Annealing makes
topologies for one interval at a time, and a schedule whose intervals all end elsewhere than in the best one known needs
several at once: here the shortest path is over all of them.

Two ports with one partner a GPU are rated exactly over routes of few hops: by symmetry a route of i links of the first
kind and j of the second loads every link of these kinds with i and j, so the least load mixes two routes at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.kernels import jit
from synth_models.harvest.programs.column_generation.congestion import NEVER
from synth_models.harvest.programs.column_generation.lifts import Lift
from synth_models.harvest.programs.column_generation.search import Demand, seconds

MOST_WORK = 30_000_000  # topologies times links times steps; some seconds
MOST_PAIRS = 600_000_000  # two ports and one partner: topologies times GPUs; some seconds
AT_ONCE = 4096  # topologies between two looks at the clock
LONGER = 4  # hops above the fewest within which routes are mixed


def cayley_targets(lift: Lift, ports: int, demands: Sequence[Demand]) -> IntArray | None:
    """Where the links of the first GPU lead, shape (topologies, ports), itself for an idle port; None where they are
    too many to rate all these demands on each, or the group leads not everywhere."""
    number = comb(lift.gpus + ports - 1, ports)
    work, most = number * lift.gpus * ports * len(demands), MOST_WORK
    if _paired(ports, demands):
        work, most = number * lift.gpus, MOST_PAIRS
    if len(lift.sources) > 1 or work > most:
        return None
    return np.array(list(combinations_with_replacement(range(lift.gpus), ports)), dtype=np.int64)


def _paired(ports: int, demands: Sequence[Demand]) -> bool:
    """Whether there are two ports, and one partner a GPU in every step."""
    return ports == 2 and all(len(demand.ends) == 1 for demand in demands)


def cayley_seconds(
    lift: Lift, targets: IntArray, demands: Sequence[Demand], hop_delay: float, stop: Callable[[], bool]
) -> FloatArray | None:
    """Seconds of every demand without its alpha, shape (demands, topologies); None where time is up."""
    found = np.empty((len(demands), len(targets)))
    if _paired(targets.shape[1], demands):
        following = lift.moved[lift.by]
        partner = np.array([demand.ends[0] for demand in demands])
        unit = np.array([demand.steps[0, 1] * demand.volume[0] for demand in demands])
        for first in range(0, len(targets), AT_ONCE):
            if stop():
                return None
            part = slice(first, first + AT_ONCE)
            _rate_pairs(following, targets[part], partner, unit, hop_delay, 2 * lift.gpus.bit_length(), found[:, part])
        return found
    for column, one in enumerate(targets):
        if stop():
            return None
        for row, demand in enumerate(demands):
            found[row, column] = seconds(lift, demand, one[None, :], hop_delay)
    return found


@jit
def _rate_pairs(
    following: IntArray,
    targets: IntArray,
    partner: IntArray,
    unit: FloatArray,
    hop_delay: float,
    most: int,
    found: FloatArray,
) -> None:
    """Write into ``found`` (demands, topologies) the seconds of one pair each, from the first GPU to its ``partner``,
    with ``unit`` seconds a unit of load; NEVER where it is more than ``most`` hops away. ``following`` (gpus, gpus) has
    the images of every GPU as the first one moves."""
    gpus = len(following)
    # fewest and most links of the first kind among the routes of so many hops to every GPU
    fewest, largest = np.empty((most + 1, gpus), np.int64), np.empty((most + 1, gpus), np.int64)
    one, two = np.empty(2 * LONGER + 2), np.empty(2 * LONGER + 2)
    for topology in range(len(targets)):
        fewest[:] = most + 1
        largest[:] = -1
        fewest[0, 0] = largest[0, 0] = 0
        for hop in range(most):
            for at in range(gpus):
                if largest[hop, at] < 0:
                    continue
                for port in range(2):
                    to = following[at, targets[topology, port]]
                    fewest[hop + 1, to] = min(fewest[hop + 1, to], fewest[hop, at] + 1 - port)
                    largest[hop + 1, to] = max(largest[hop + 1, to], largest[hop, at] + 1 - port)
        for demand in range(len(partner)):
            end, least, load, points, begin = partner[demand], NEVER, NEVER, 0, 0
            for hop in range(1, most + 1):
                if begin > 0 and hop > begin + LONGER:
                    break
                if largest[hop, end] < 0:
                    continue
                begin = begin if begin > 0 else hop
                for links in (fewest[hop, end], largest[hop, end]):
                    one[points], two[points] = links, hop - links
                    load = min(load, max(one[points], two[points]))
                    apart = one[points] - two[points]
                    for other in range(points):
                        there = one[other] - two[other]
                        if apart * there < 0:
                            load = min(load, (apart * one[other] - there * one[points]) / (apart - there))
                    points += 1
                least = min(least, hop_delay * hop + unit[demand] * load)
            found[demand, topology] = least
