"""Large-neighbourhood search: a few pieces find new ways, all others keep theirs, and everybody may start anew.

The program of :mod:`.model` with the ways of most pieces fixed, which must end sooner than what is in hand. In between
the sizes of the pieces are adjusted (:mod:`.sizes`) and all pieces cut in two, while that helps.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from synth_models.fabric.programs.continuous.cutting import quickest
from synth_models.fabric.programs.continuous.inhand import InHand
from synth_models.fabric.programs.continuous.order import Order
from synth_models.fabric.programs.continuous.problem import Problem, Row
from synth_models.fabric.programs.continuous.sizes import adjusted
from synth_models.fabric.programs.continuous.streams import orders
from synth_models.fabric.programs.continuous.ways import Ways
from synth_models.fabric.solution import Schedule

MOST_ROWS = 500  # transfers of a schedule that the program searches on
MOST_CUT = 4_000  # after pieces are cut in two
CHOICES = (300, 2400)  # transfers that the program may choose from: at first, at most
WORK = 1.0  # CP-SAT's deterministic seconds a step
PATIENCE = 6  # steps without success after which the search ends
WORTH = Fraction(1, 2000)  # what cutting in two must bring to be done again


def search(hand: InHand, ways: Ways) -> None:
    """Improve what is in hand until it reaches the bound, nothing more is found, or time is over."""
    if hand.best is None or hand.best.transfers > MOST_CUT:
        return
    random = np.random.default_rng(hand.options.seed)
    choices, failed = CHOICES[0], 0
    _adjusted(hand, ways)
    while failed < PATIENCE and not hand.over() and hand.best.transfers <= MOST_ROWS:
        found = _step(hand, ways, random, choices)
        if found is None:
            return
        improved, settled = found
        if improved:
            failed = 0
            _adjusted(hand, ways)
        else:
            failed += 1
            choices = min(2 * choices, CHOICES[1]) if settled else max(choices // 2, CHOICES[0] // 4)
    _halved(hand, ways)


def streamed(hand: InHand, ways: Ways) -> None:
    """The packing of trees over time, in ever more pieces while that helps."""
    worse = 0
    for order, urgency in orders(hand.instance, ways, hand):
        if worse == 2 or hand.over() or len(order.rows) > MOST_CUT:
            return
        own = InHand(hand.instance, hand.options, hand.proven)
        _try(own, order)
        _try(own, Order.of(order.problem, order.listed(urgency)))
        worse = 0 if own.best is not None and hand.offer(own.best, "trees over time, uneven pieces") else worse + 1


def _step(hand: InHand, ways: Ways, random: np.random.Generator, choices: int) -> tuple[bool, bool] | None:
    """One neighbourhood: whether it brought something, and whether the solver was done with it."""
    read = _read(hand, ways)
    if read is None:
        return None
    problem, rows = read
    assert hand.time is not None
    ahead = hand.time * problem.ticks
    kept: dict[int, list[tuple[int, bool]]] = {p: [] for p in range(len(problem.size))}
    for row in rows:
        kept[row.piece].append((row.way, row.adds))
    each = len(ways.all) * (2 if problem.sums else 1)
    last = np.zeros(len(problem.size))
    for row in rows:
        last[row.piece] = max(last[row.piece], row.starts[-1])
    weight = 1.0 + last / max(last.max(initial=1.0), 1.0)
    free = random.choice(len(weight), min(len(weight), max(1, choices // each)), replace=False, p=weight / weight.sum())
    for p in free.tolist():
        del kept[p]
    known = -(-hand.proven.seconds * problem.ticks // 1)
    horizon = int(ahead) - (ahead == int(ahead))
    answer = quickest(problem, horizon, int(known), hand.options, allowed=kept, hint=rows, work=WORK)
    if answer.rows is None:
        return False, answer.settled
    return _offer(hand, problem, answer.rows, "large-neighbourhood search"), answer.settled


def _adjusted(hand: InHand, ways: Ways) -> None:
    """Better sizes, as long as new times give a new order that allows better ones."""
    while not hand.over():
        read, before = _read(hand, ways), hand.time
        if read is None or read[0].ways.waits or before is None:
            return
        if not _try(hand, Order.of(*read)) or hand.time is None or before - hand.time <= before * WORTH:
            return


def _halved(hand: InHand, ways: Ways) -> None:
    """All pieces in two, with better sizes, as long as that brings something."""
    while not hand.over():
        read, before = _read(hand, ways), hand.time
        if read is None or read[0].ways.waits or before is None or 2 * len(read[1]) > MOST_CUT:
            return
        finer = Order.of(*read).halved()
        if not _try(hand, finer):
            return
        _adjusted(hand, ways)
        assert hand.time is not None
        if before - hand.time <= before * WORTH:
            return


def _try(hand: InHand, order: Order) -> bool:
    found = adjusted(order)
    return found is not None and _offer(hand, *found, "uneven pieces")


def _offer(hand: InHand, problem: Problem, rows: Sequence[Row], told: str) -> bool:
    from synth_models.fabric.check.replay import check_schedule

    schedule: Schedule = problem.schedule(rows)
    if not check_schedule(hand.instance, schedule).ok:  # rounding may join what an allreduce keeps apart
        return False
    return hand.offer(schedule, told)


def _read(hand: InHand, ways: Ways) -> tuple[Problem, list[Row]] | None:
    """What is in hand as a problem of its own pieces; None if it cannot be told in ways."""
    best = hand.best
    assert best is not None
    problem = Problem.of(hand.instance, ways, best.piece_block.tolist(), best.piece_bytes.tolist())
    try:
        return problem, problem.rows(best)
    except ValueError:
        return None
