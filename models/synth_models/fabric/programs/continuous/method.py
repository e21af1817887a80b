"""``continuous``: exact schedules of given pieces, then a search from the incumbent.

1. The incumbent is the best of ``pull`` (run as it is alone, so that ``continuous`` is never worse), ``forest``,
   ``epochs`` and others, which :mod:`synth_models.fabric.race` hands over with the bound. A schedule that reaches it is
   optimal.
2. Where ranks are equally far apart, trees are packed over time (:mod:`.timed_trees`).
3. Blocks are cut into 1, 2, 3 ... even pieces. For each number an exact program (:mod:`.model`) gives the quickest
   schedule, or proves that there is none within a time. A search as in 4 starts from that schedule.
4. Large-neighbourhood search improves the incumbent (:mod:`.neighbourhood`) and adjusts the sizes of its pieces
   (:mod:`.sizes`). It ends at the bound, when nothing more is found, or at the time limit. Schedules too large for it
   are adjusted before 2., all that other methods handed over and are nearly as quick as the best.

What the solver proves holds for schedules of that many even pieces a block only: uneven or finer pieces may be quicker.
The message and the schedule's plan say it; it is never the record's bound. The record's bound is the certified one, and
a schedule is called optimal if it reaches that bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers import cpsat
from synth.text.quantities import SECONDS, shown
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.programs.continuous.claims import Claims
from synth_models.fabric.programs.continuous.exact_answer import moves, quickest
from synth_models.fabric.programs.continuous.neighbourhood import improve_lent, pack_timed_trees, search
from synth_models.fabric.programs.continuous.problem import Problem, Row, most_seconds
from synth_models.fabric.programs.continuous.transfer_routes import TransferRoutes
from synth_models.fabric.programs.continuous.tuned import (
    EACH,
    IMPROVE,
    KEPT,
    MOST_MOVES,
    NEAR,
    NUMBERS,
    OF_SUMS,
    UNLIMITED_S,
    WORSE,
)
from synth_models.fabric.scheduling.chunks import cut, hurried
from synth_models.fabric.solution import Schedule

STOPPED = "stopped at the time limit"


def propose(instance: FabricInstance, options: RunOptions, given: Incumbent) -> Outcome:
    """Method ``continuous``: improves the incumbent that it is ``given``, whose bound is certified. Option ``chunks``:
    the one number of pieces a block to be settled exactly."""
    began = time.monotonic()
    if not len(instance.blocks):
        return Outcome("finished", _empty(), message="nothing to move")
    assert given.proven is not None
    incumbent, proven = Claims.of(given), given.proven
    routes = TransferRoutes(instance)
    _improved(incumbent, routes, improve_lent)
    _improved(incumbent, routes, pack_timed_trees)
    _all_numbers(incumbent, routes)
    found = incumbent.best is not None
    return Outcome(
        "optimal" if incumbent.optimal else "finished" if found else "time_limit",
        _with_claims(incumbent) if found else None,
        bound=float_below(proven.seconds),
        bound_proof=str(proven),
        certificate=proven.certificate(),
        message=cpsat.with_caveat(_words(incumbent, routes), options) if found else STOPPED,
        solve_s=time.monotonic() - began,
        made_by=incumbent.made_by,
    )


def _improved(
    incumbent: Claims, routes: TransferRoutes, better: Callable[[Claims, TransferRoutes], None], share: float = IMPROVE
) -> None:
    """Improve the incumbent by ``better``, in a share of the time."""
    if not incumbent.over():
        own = replace(incumbent, options=_share(incumbent.options, share), times={})
        with own.options.in_time():
            better(own, routes)
        incumbent.offer(own.best, own.told, own.made_by)


def _all_numbers(incumbent: Claims, routes: TransferRoutes) -> None:
    """One number of pieces after the other, then a search from the best: of an allreduce, whose programs may take all
    the time, in a share that is kept for it."""
    options, blocks = incumbent.options, incumbent.instance.blocks
    chunks, left = options.method.get("chunks"), options.remaining()
    sums = bool(np.any(blocks.sums & (blocks.goal < 0)))
    kept = KEPT * left if sums and left is not None else 0.0
    numbers, share = (OF_SUMS if sums else NUMBERS, EACH) if chunks is None else ((int(chunks),), 0.8)
    for number in numbers:
        if incumbent.over() or not options.fits(kept) or not _one_number(incumbent, routes, number, share):
            break
    _improved(incumbent, routes, search, 1.0 if kept else IMPROVE)


def _one_number(incumbent: Claims, routes: TransferRoutes, number: int, share: float) -> bool:
    """Settle, or try to, blocks of so many even pieces, and search on from their best schedule; False if they are too
    many."""
    instance = incumbent.instance
    sizes = [cut(int(n), number) for n in instance.blocks.bytes]
    block = [b for b, row in enumerate(sizes) for _ in row]
    problem = Problem.of(instance, routes, block, [n for row in sizes for n in row])
    if moves(problem) > MOST_MOVES:
        return False
    rows = _solved(incumbent, problem, number, share)
    if rows is not None:
        told = f"the program's, of {number} pieces a block"
        incumbent.offer(problem.schedule(rows), told)
        if not incumbent.over():
            own = incumbent.for_options(_share(incumbent.options, share))
            own.offer(problem.schedule(rows), told)
            with own.options.in_time():
                search(own, routes)
            incumbent.offer(own.best, f"{own.told}, of {number} pieces a block at first")
    return True


def _solved(incumbent: Claims, problem: Problem, number: int, share: float) -> list[Row] | None:
    """The best schedule that the programs find for one horizon after the other; what they prove is noted."""
    known = int(-(-incumbent.least * problem.ticks // 1))
    for horizon in _horizons(incumbent, problem, known):
        answer = quickest(problem, horizon, known, _share(incumbent.options, share))
        if answer.least is not None and problem.exact and problem.routes.complete and not problem.sums:
            incumbent.cuttings[number] = Fraction(answer.least, problem.ticks)
        if answer.rows is not None or incumbent.options.out_of_time():
            break
    if answer.rows is not None and answer.settled:
        incumbent.exactly[number] = Fraction(problem.completion(answer.rows), problem.ticks)
    return answer.rows


def _horizons(incumbent: Claims, problem: Problem, known: int) -> list[int]:
    """Ticks within which to look: at first those of one latency less, which leaves the solver few orders, at last more
    than the incumbent takes."""
    if incumbent.time is None:  # no other method had a schedule in the time
        return [int(most_seconds(problem.instance, problem.size) * problem.ticks)]
    last = int(incumbent.time * problem.ticks * WORSE)
    hop = int(clock.latencies(problem.instance.machine, problem.ticks).min(initial=0))
    hops = 2 * hop if problem.instance.machine.is_switch.any() and not problem.routes.by_link else hop
    if not hops:
        return [last]
    first = (known // hops + 1) * hops - 1
    tight = [horizon for horizon in (first, first + hops) if horizon < last]
    if not problem.sums or not tight:
        return [*tight, last]
    return sorted({min(horizon, int(incumbent.time * problem.ticks * NEAR)) for horizon in tight})


def _with_claims(incumbent: Claims) -> Schedule:
    """The schedule with what is claimed of cuttings, if anything."""
    assert incumbent.best is not None
    if not incumbent.cuttings:
        return incumbent.best
    plan: dict[str, Any] = {
        "kind": "cutting",
        "pieces": np.array(list(incumbent.cuttings), dtype=np.int64),
        "least_s": np.array([float_below(value) for value in incumbent.cuttings.values()]),
    }
    return replace(incumbent.best, plan=plan)


def _words(incumbent: Claims, routes: TransferRoutes) -> str:
    assert incumbent.time is not None
    told = incumbent.told if incumbent.made_by is None else f"the schedule of {incumbent.made_by[0]}"
    words = [f"{told}: {shown(float(incumbent.time), SECONDS)}"]
    if incumbent.optimal:
        words.append("it reaches the bound")
    for number, least in incumbent.cuttings.items():
        pieces = f"{number} even piece{'s' if number > 1 else ''} a block"
        if least == incumbent.exactly.get(number):
            words.append(
                f"proven optimal among schedules of {pieces}: {shown(float(least), SECONDS)} (the solver's word)"
            )
        else:
            words.append(f"no schedule of {pieces} takes less than {shown(float(least), SECONDS)} (the solver's word)")
    if not routes.complete:
        words.append("not all routes were looked at")
    return "; ".join(words) + hurried(incumbent.options)


def _share(options: RunOptions, part: float) -> RunOptions:
    """The options with this part of the time that is left, and progress of their own."""
    return replace(options.part(part, most_s=UNLIMITED_S * part), method={}, solver=None)


def _empty() -> Schedule:
    none = np.zeros(0, dtype=np.int64)
    return Schedule(1, none, none, none, none, np.zeros(0, dtype=bool), np.zeros(1, dtype=np.int64), none)
