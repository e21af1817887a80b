"""Several collectives: each one's schedule by some method, then all their transfers timed again on the shared links.

What one collective leaves idle another one uses. In which order the links serve them is tried in several ways: each in
turn before the others, by the part of its own schedule that is over, by when it would end, by what is still to come. Of
these the best is kept, and a search changes the collectives' weights in it, each change drawn by the seed.

Where routes branch or switches store, and where new times would change what sums hold, one starts after the other as
far as they share ranks or links (:mod:`synth_models.fabric.plans.serial`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations

import numpy as np

from synth.arrays import FloatArray
from synth.clock.deadline import OutOfTime
from synth.errors import UnsupportedError
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.plans.serial import in_turn
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.order import in_order
from synth_models.fabric.problem.several import WEIGHTED_ENDS
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.insertion import ranked
from synth_models.fabric.scheduling.released import Together
from synth_models.fabric.solution import Schedule, expanded

Solve = Callable[[FabricInstance, RunOptions], Outcome]
FOR_PARTS = 0.7  # of the time that is left, for the collectives' own schedules
FEW = 4  # collectives whose orders are all tried
VARIANTS = ((1, False), (1, True), (2, True), (4, True), (2, False), (8, True))  # chunks a piece, other routes
MOST_TRIES = 400  # of the search
MOST_TRANSFERS = 100_000  # of all, beyond which pieces are cut no finer
MOST_SEARCHED = 20_000  # beyond which the search is left out
STEP, LEAST_STEP = 0.5, 0.05  # how far a weight moves, at first and at last
HALF, PATIENCE = 0.5, 10  # how often a slope moves; tries a collective that bring nothing before steps get shorter


def solve_parts(instance: FabricInstance, options: RunOptions, name: str, solve: Solve) -> Outcome:
    """Each collective by ``solve``, the method called ``name``, and all together."""
    if instance.collectives is None:
        raise UnsupportedError("there is one collective only")
    schedules, makers = list[Schedule](), list[str]()
    for number, part in enumerate(instance.parts):
        share = FOR_PARTS / (FOR_PARTS * (len(instance.parts) - number) + 1 - FOR_PARTS)
        own, found = options.part(share), Outcome("time_limit", message="stopped at the time limit")
        with own.in_time():
            found = solve(part, own)
        found.take_over(own.held)
        if found.solution is None:
            found.message = f"collective {number}: {found.message or found.termination}"
            return Outcome(found.termination, message=found.message)
        schedules.append(expanded(part, found.solution))
        makers.append((found.made_by or (name,))[0])
    best = of_schedules(instance, options, schedules)
    told = f"every collective by {name}; {best.told}; best of {best.tried} schedules"
    if options.out_of_time():
        told += "; the time limit ended the search, so that another run may find another schedule"
    lent = set(makers) - {name}
    return Outcome("finished", best.best, message=told, made_by=(name, *dict.fromkeys(makers)) if lent else None)


def of_schedules(instance: FabricInstance, options: RunOptions, schedules: Sequence[Schedule]) -> Incumbent:
    """The best schedule of all collectives that is made of one for each."""
    best = in_every_order(Incumbent(instance, options), schedules)
    both = Together.from_schedules(instance, schedules)
    if both is None:
        return best
    least = max(
        (
            exact(one.release) + quick_bound(part)
            for one, part in zip(instance.collectives or (), instance.parts, strict=True)
        ),
        default=Fraction(0),
    )
    best.least = Fraction(0) if instance.objective == WEIGHTED_ENDS else least
    try:
        with options.in_time():
            _timed_together(both, best)
    except OutOfTime:
        pass
    return best


def _timed_together(both: Together, best: Incumbent) -> None:
    """Try the plain rules on the transfers as they are, cut finer and on other routes; search on from the best."""
    found: tuple[Together, Weights] | None = None
    for count, rerouted in VARIANTS:
        cut = both if count == 1 else both.in_chunks(count)
        if cut is None or (count > 1 and len(cut.transfers.piece) > MOST_TRANSFERS) or best.over():
            continue
        variant = cut.rerouted() if rerouted else cut
        words = (f", pieces in {count}" if count > 1 else "") + (", rerouted" if rerouted else "")
        weights = _rules(variant, best, words)
        found = found if weights is None else (variant, weights)
    if found is not None and len(found[0].transfers.piece) <= MOST_SEARCHED:
        _search(*found, best)


def in_every_order(best: Incumbent, schedules: Sequence[Schedule]) -> Incumbent:
    """One after the other, in every order that is tried. Raises :class:`UnsupportedError` where none has a clock."""
    took = np.array([float(chunks.seconds(p, s)) for p, s in zip(best.instance.parts, schedules, strict=True)])
    for order in orders(best.instance, took):
        if best.best is not None and best.options.out_of_time():
            break
        best.offer(in_turn(best.instance, schedules, order), "one after the other")
    if best.best is None:
        raise UnsupportedError("no clock has room for the schedules of all collectives one after the other")
    return best


def orders(instance: FabricInstance, took: FloatArray) -> Iterator[tuple[int, ...]]:
    """Orders of the collectives: all of a few; of many by release, by priority for the time, and by time. Each comes
    behind those that it comes ``after``."""
    assert instance.collectives is not None
    count, after = range(len(took)), [one.after or () for one in instance.collectives]
    if len(took) <= FEW:
        yield from dict.fromkeys(tuple(in_order(after, order)) for order in permutations(count))
        return
    release = np.array([one.release for one in instance.collectives])
    worth = np.array([one.priority for one in instance.collectives]) / np.maximum(took, 1e-12)
    keys: list[FloatArray] = [release, -worth, -took, release + took]
    yield from dict.fromkeys(tuple(in_order(after, np.argsort(key, kind="stable").tolist())) for key in keys)


Weights = tuple[FloatArray, FloatArray, str, bool]  # slope and offset of every collective, which key, whether in gaps


def _lasting(both: Together) -> FloatArray:
    """How long every collective takes by its own schedule."""
    found = np.zeros(len(both.release))
    np.maximum.at(found, both.of, both.ends)
    return found


def _rules(both: Together, best: Incumbent, variant: str) -> Weights | None:
    """Try the plain rules; the weights of the best, None where none was better than what there is."""
    count, last = len(both.release), _lasting(both)
    longest = max(float(last.max()), 1e-12)
    release = np.array([float(r) for r in both.release])
    even, none = np.ones(count), np.zeros(count)
    rules: list[tuple[str, str, FloatArray, FloatArray]] = [
        ("by the part of each that is over", "start", longest / np.maximum(last, 1e-12), release),
        ("the longest rest first", "rest", even, none),
        ("as they would start alone", "start", even, release),
    ]
    for order in orders(both.instance, last):
        place = np.zeros(count)
        place[list(order)] = np.arange(count)
        words = "in the order " + "-".join(map(str, order)) if count <= FEW else "in one order"
        rules.append((words, "start", even, place * 2 * longest))
    found: Weights | None = None
    for words, key, slope, offset in rules:
        for in_gaps in (False, True):
            if best.over():
                return found
            weights = slope, offset, key, in_gaps
            if best.offer(_of_weights(both, weights), f"{words}{', in gaps' if in_gaps else ''}{variant}"):
                found = weights
    return found


def _of_weights(both: Together, weights: Weights) -> Schedule | None:
    """Transfers in the order of when they start in their own schedule, or of how long before its end they arrive."""
    slope, offset, key, in_gaps = weights
    keys = both.begins if key == "start" else both.ends - _lasting(both)[both.of]
    try:
        return both.timed(ranked(keys * slope[both.of] + offset[both.of]), in_gaps)
    except ValueError:
        return None


def _search(both: Together, weights: Weights, best: Incumbent) -> None:
    """Move the weights of one collective at a time, and keep what is better."""
    rng = random.Random(best.options.seed)
    scale = max(float(both.ends.max(initial=0.0)), 1e-12)
    step, worse = STEP, 0
    for _ in range(MOST_TRIES):
        if best.over():
            return
        slope, offset = weights[0].copy(), weights[1].copy()
        c = rng.randrange(len(slope))
        if rng.random() < HALF:
            slope[c] *= 2 ** rng.uniform(-step, step)
        else:
            offset[c] += scale * rng.uniform(-step, step)
        tried = (slope, offset, *weights[2:])
        if best.offer(_of_weights(both, tried), "weights found by search"):
            weights, worse = tried, 0
            continue
        worse += 1
        if worse >= PATIENCE * len(slope):
            step, worse = step / 2, 0
        if step < LEAST_STEP:
            return
