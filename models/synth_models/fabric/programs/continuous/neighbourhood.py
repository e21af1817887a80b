"""Large-neighbourhood search: re-routes a few pieces, keeps the routes of the others, and re-times all.

A step solves the program of :mod:`.model` with the routes of most pieces fixed and a horizon below the incumbent. After
a step that succeeds the sizes of the pieces are adjusted (:mod:`.sizes`). At the end pieces are cut in two, while that
helps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_models.fabric.plans.incumbent import measured
from synth_models.fabric.programs.continuous.claims import Claims
from synth_models.fabric.programs.continuous.exact_answer import quickest
from synth_models.fabric.programs.continuous.order import Order
from synth_models.fabric.programs.continuous.problem import Problem, Row, plain
from synth_models.fabric.programs.continuous.sizes import adjusted
from synth_models.fabric.programs.continuous.timed_trees import orders
from synth_models.fabric.programs.continuous.transfer_routes import TransferRoutes
from synth_models.fabric.programs.continuous.tuned import CHOICES, MOST_CUT, MOST_ROWS, NEAR, PATIENCE, WORK, WORTH
from synth_models.fabric.solution import Schedule


def search(incumbent: Claims, routes: TransferRoutes) -> None:
    """Improve the incumbent until it reaches the bound, nothing more is found, or time is over."""
    if incumbent.best is None or incumbent.best.transfers > MOST_CUT:
        return
    random = np.random.default_rng(incumbent.options.seed)
    choices, failed = CHOICES[0], 0
    _adjusted(incumbent, routes)
    while failed < PATIENCE and not incumbent.over() and incumbent.best.transfers <= MOST_ROWS:
        found = _step(incumbent, routes, random, choices)
        if found is None:
            return
        improved, settled = found
        if improved:
            failed = 0
            _adjusted(incumbent, routes)
        else:
            failed += 1
            choices = min(2 * choices, CHOICES[1]) if settled else max(choices // 2, CHOICES[0] // 4)
    _halved(incumbent, routes)


def pack_timed_trees(incumbent: Claims, routes: TransferRoutes) -> None:
    """The packing of trees over time, in ever more pieces while that helps; none of pieces that may wait under way."""
    if not plain(incumbent.instance):
        return
    worse = 0 if not routes.waits else 2
    for order, urgency in orders(incumbent.instance, routes, incumbent):
        if worse == 2 or incumbent.over() or len(order.rows) > MOST_CUT:
            return
        own = incumbent.for_options(incumbent.options)
        _try(own, order)
        _try(own, Order.of(order.problem, order.listed(urgency)))
        worse = 0 if own.best is not None and incumbent.offer(own.best, "trees over time, uneven pieces") else worse + 1


def improve_lent(incumbent: Claims, routes: TransferRoutes) -> None:
    """Adjust each lent schedule that is nearly as quick as the best, where that one is too large for steps: which of
    them is the quickest then, nobody knows before."""
    if incumbent.best is None or incumbent.time is None or incumbent.best.transfers <= MOST_ROWS:
        return
    near = [
        (took, k)
        for k, one in enumerate(incumbent.lent)
        if isinstance(one.solution, Schedule) and MOST_ROWS < one.solution.transfers <= MOST_CUT
        if (took := measured(incumbent.instance, one.solution)) <= incumbent.time * NEAR
    ]
    for _, k in sorted(near):
        if incumbent.over():
            return
        own, one = incumbent.for_options(incumbent.options), incumbent.lent[k]
        own.offer(one.solution, one.message or "", one.made_by)
        search(own, routes)
        incumbent.offer(own.best, own.told, own.made_by)


def _step(
    incumbent: Claims, routes: TransferRoutes, random: np.random.Generator, choices: int
) -> tuple[bool, bool] | None:
    """Solve one neighbourhood: whether it improved the incumbent, and whether the solver settled it."""
    read = _read(incumbent, routes)
    if read is None:
        return None
    problem, rows = read
    assert incumbent.time is not None
    ahead = incumbent.time * problem.ticks
    kept: dict[int, list[tuple[int, bool]]] = {p: [] for p in range(len(problem.size))}
    for row in rows:
        kept[row.piece].append((row.route, row.adds))
    each = len(routes.all) * (2 if problem.sums else 1)
    last = np.zeros(len(problem.size))
    for row in rows:
        last[row.piece] = max(last[row.piece], row.starts[-1])
    weight = 1.0 + last / max(last.max(initial=1.0), 1.0)
    free = random.choice(len(weight), min(len(weight), max(1, choices // each)), replace=False, p=weight / weight.sum())
    for p in free.tolist():
        del kept[p]
    known = -(-incumbent.least * problem.ticks // 1)
    horizon = int(ahead) - (ahead == int(ahead))
    answer = quickest(problem, horizon, int(known), incumbent.options, allowed=kept, hint=rows, work=WORK)
    if answer.rows is None:
        return False, answer.settled
    return _offer(incumbent, problem, answer.rows, "large-neighbourhood search"), answer.settled


def _adjusted(incumbent: Claims, routes: TransferRoutes) -> None:
    """Adjust the sizes of the pieces, as long as new times give a new order that allows better sizes."""
    while not incumbent.over():
        read, before = _read(incumbent, routes), incumbent.time
        if read is None or read[0].routes.waits or not plain(incumbent.instance) or before is None:
            return
        if not _try(incumbent, Order.of(*read)) or incumbent.time is None or before - incumbent.time <= before * WORTH:
            return


def _halved(incumbent: Claims, routes: TransferRoutes) -> None:
    """Cut pieces in two, all that there is room for, and adjust their sizes, as long as that helps."""
    while not incumbent.over():
        read, before = _read(incumbent, routes), incumbent.time
        if read is None or read[0].routes.waits or not plain(incumbent.instance) or before is None:
            return
        finer = Order.of(*read).halved(MOST_CUT)
        if len(finer.rows) == len(read[1]) or not _try(incumbent, finer):
            return
        _adjusted(incumbent, routes)
        assert incumbent.time is not None
        if before - incumbent.time <= before * WORTH:
            return


def _try(incumbent: Claims, order: Order) -> bool:
    found = adjusted(order)
    return found is not None and _offer(incumbent, *found, "uneven pieces")


def _offer(incumbent: Claims, problem: Problem, rows: Sequence[Row], told: str) -> bool:
    from synth_models.fabric.check.replay import check_schedule

    schedule: Schedule = problem.schedule(rows)
    if not check_schedule(incumbent.instance, schedule).ok:  # rounding may join what an allreduce keeps apart
        return False
    return incumbent.offer(schedule, told)


def _read(incumbent: Claims, routes: TransferRoutes) -> tuple[Problem, list[Row]] | None:
    """The incumbent as a problem of its own pieces; None if its transfers are no routes of the program."""
    best = incumbent.best
    assert best is not None
    problem = Problem.of(incumbent.instance, routes, best.piece_block.tolist(), best.piece_bytes.tolist())
    try:
        return problem, problem.rows(best)
    except ValueError:
        return None
