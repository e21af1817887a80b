"""EPLB's rule (github.com/deepseek-ai/EPLB, commit d52c72d): groups to boxes, copies in each box, copies to its ranks.

Each packing takes what is left of the largest load to the least loaded place with room; each further copy goes to the
expert whose copies have the largest load. Ties go to the first. Numbers are 32-bit floats there and here.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from synth.arrays import IntArray
from synth.placement.question import Question

Float32Array = npt.NDArray[np.float32]


def packed(weight: Float32Array, places: int) -> list[list[int]]:
    """What every place gets, as many things each, in the order in which they came."""
    room = len(weight) // places
    if room == 1:
        return [[thing] for thing in range(places)]
    found: list[list[int]] = [[] for _ in range(places)]
    least = [(np.float32(0), place) for place in range(places)]  # of places with room: a heap
    for thing in np.argsort(-weight, kind="stable").tolist():
        total, place = heapq.heappop(least)
        found[place].append(thing)
        if len(found[place]) < room:
            heapq.heappush(least, (total + weight[thing], place))
    return found


def copied(weight: Float32Array, copies: int) -> IntArray:
    """The expert of every copy, the first ones in order, shape (copies,)."""
    count = np.ones(len(weight), np.float32)
    experts = list(range(len(weight)))
    for _ in range(copies - len(weight)):
        most = int(np.argmax(weight / count))
        experts.append(most)
        count[most] += 1
    return np.array(experts, dtype=np.int64)


def rule(question: Question) -> IntArray:
    """The rule's placement: the expert in every slot, shape (ranks, slots)."""
    weight = question.load.astype(np.float32)
    each = len(weight) // question.groups
    homes = packed(weight.reshape(question.groups, each).sum(axis=1), question.homes)
    return np.concatenate([_in_home(question, weight, groups) for groups in homes])


def _in_home(question: Question, weight: Float32Array, groups: list[int]) -> IntArray:
    """The slots of the ranks that have these groups."""
    each, ranks = len(weight) // question.groups, question.ranks // question.homes
    experts = np.concatenate([np.arange(group * each, (group + 1) * each) for group in groups])
    copies = copied(weight[experts], ranks * question.slots)
    count = np.bincount(copies, minlength=len(experts)).astype(np.float32)
    ways = packed((weight[experts] / count)[copies], ranks)
    placement: IntArray = experts[copies[np.array(ways, dtype=np.int64)]]
    return placement
