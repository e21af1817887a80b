"""Method ``search`` (ours): order and overlap, by list scheduling whose priorities are shaken.

Priorities begin as the longest tails, as the order of issue, and as the longest paths before, with what nothing waits
for last: a pipeline's backward passes first, its weight gradients where it would idle. Steps are placed from their end
to their beginning too, the longest tail first. Each move adds noise to the priorities of the best timetable so far of
its direction, in turn, of a scale that falls and rises again; what is no worse is kept. It stops at the bound of the
longest path and of the streams' work, or the run's relative gap from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.step.bounds.strongest import strongest
from synth_models.step.instance import StepInstance
from synth_models.step.parts.lists import from_the_end, scheduled, tails
from synth_models.step.parts.order import ordered
from synth_models.step.parts.prices import quickest
from synth_models.step.solution import timetable_of

Priority = np.ndarray[Any, np.dtype[np.float64]]
SCALES = (0.3, 0.1, 0.03, 0.01)  # of the noise, as shares of the longest tail
MOVES, WORK = 2000, 150_000  # orders tried and nodes placed at most, where the run does not say how many: a second


def solve(instance: StepInstance, options: RunOptions) -> Outcome:
    """Parameter ``moves``: orders tried at most; 0: 2000, fewer where they would place over 150,000 nodes."""
    long = quickest(instance)
    order = ordered(instance.before, [0.0] * len(long))
    tail = np.array(tails(instance, long, order), dtype=float)
    issue = -np.arange(len(long)) * max(float(tail.max()), 1.0) / len(long)
    goal = strongest(instance)[0]
    first = ((tail, False), (issue, False), (_deepest(instance, long, order), False), (tail, True))
    random = np.random.default_rng(options.seed)
    best, found, kept = -1, [0], dict[bool, tuple[int, Priority]]()  # by whether it is placed from the end
    for move in range(options.method["moves"] or min(MOVES, len(first) + WORK // len(long))):
        if found != [0] and options.out_of_time():
            break
        if move < len(first):
            tried, backwards = first[move]
        else:
            backwards = bool(move % 2)
            scale = SCALES[move // 2 % len(SCALES)] * max(float(tail.max()), 1.0)
            tried = kept[backwards][1] + random.normal(0.0, scale, len(long))
        start = (from_the_end if backwards else scheduled)(instance, long, tried.tolist())
        end = max(at + duration for at, duration in zip(start, long, strict=True))
        if backwards not in kept or end <= kept[backwards][0]:
            kept[backwards] = end, tried
        if best < 0 or end <= best:
            best, found = end, start
        if best <= goal * (1 + options.relative_gap):
            break
    return Outcome("finished", timetable_of(found))


def _deepest(instance: StepInstance, long: list[int], order: list[int]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The longest path before every node, shape (nodes,); -1 where nothing waits for it."""
    head, awaited = [0] * len(long), {other for row in instance.before for other in row}
    for node in order:
        head[node] = max((head[other] + long[other] for other in instance.before[node]), default=0)
    return np.array([head[node] if node in awaited else -1 for node in range(len(long))], dtype=float)
