"""``continuous``: exact for a way to cut, then a search for better ones from the best schedule in hand.

1. The schedule of ``pull``, as it is alone (so that nothing is worse), the bound (:mod:`synth_models.fabric.bounds`)
   and the schedules of ``forest``, ``epochs`` and others; whoever reaches the bound is optimal.
2. Trees packed over time (:mod:`.streams`), where ranks are equally far apart.
3. Blocks in 1, 2, 3 ... even pieces, each an exact program (:mod:`.model`): its quickest schedule, or the proof that
   there is none within a time, and a search from there as in 4.
4. Large-neighbourhood search on the best schedule (:mod:`.neighbourhood`), its pieces' sizes adjusted in turn
   (:mod:`.sizes`), until the bound is reached, nothing more is found, or the time is over.

What the solver proves holds for schedules of so many even pieces a block and for no others: uneven or finer pieces may
be quicker. So it is said in the message and carried as the schedule's plan, never as a bound; the bound of the record
is the certified one, and a schedule is called optimal where it reaches that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from synth.family import Outcome
from synth.options import RunOptions
from synth.solvers import cpsat
from synth.text.quantities import SECONDS, shown
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.exact import float_below
from synth_models.fabric.programs.continuous.cutting import MOST_MOVES, moves, quickest
from synth_models.fabric.programs.continuous.inhand import InHand, start
from synth_models.fabric.programs.continuous.neighbourhood import search, streamed
from synth_models.fabric.programs.continuous.problem import Problem
from synth_models.fabric.programs.continuous.ways import Ways
from synth_models.fabric.references import pull
from synth_models.fabric.scheduling.chunks import cut, hurried
from synth_models.fabric.solution import Schedule

BOUND, START, IMPROVE, EACH = 0.15, 0.2, 0.4, 0.2  # of the time that is left: for the bound, each start, each way to
# improve what is in hand, each cutting's program, and the search from there
WORSE = Fraction(3, 2)  # than what is in hand a cutting may be at first
NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16)
OF_SUMS = (4, 2, 8, 1, 3, 6)  # programs of sums take long: the most promising first
NEAR = Fraction(21, 20)  # than what is in hand they may be at first
UNLIMITED_S = 600.0


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``continuous``. Option ``chunks``: the one number of pieces a block to be settled exactly."""
    began = time.monotonic()
    if not len(instance.blocks):
        return Outcome("finished", _empty(), message="nothing to move")
    pulled = pull.solve(instance, replace(options, method={}, solver=None))  # as it is alone: never worse than that
    proven = strongest(instance, _share(options, BOUND))
    options.held.offer_bound(float_below(proven.seconds), str(proven), proven.certificate())
    hand = InHand(instance, options, proven)
    hand.offer(pulled.solution, "the schedule of pull")
    start(hand, lambda: _share(options, START))
    chunks = options.method.get("chunks")
    ways = Ways(instance)
    _improved(hand, ways, streamed)
    numbers = OF_SUMS if instance.collective == "allreduce" else NUMBERS
    for number in numbers if chunks is None else (int(chunks),):
        if hand.over() or not _one_cutting(hand, ways, number, EACH if chunks is None else 0.8):
            break
    _improved(hand, ways, search)
    assert hand.best is not None
    return Outcome(
        "optimal" if hand.settled else "finished",
        _with_claims(hand),
        bound=float_below(proven.seconds),
        bound_proof=str(proven),
        certificate=proven.certificate(),
        message=cpsat.with_caveat(_words(hand, ways), options),
        solve_s=time.monotonic() - began,
    )


def _improved(hand: InHand, ways: Ways, better: Callable[[InHand, Ways], None]) -> None:
    """Another schedule from what is in hand, with a part of the time."""
    if not hand.over():
        own = replace(hand, options=_share(hand.options, IMPROVE))
        with own.options.in_time():
            better(own, ways)
        hand.offer(own.best, own.told)


def _one_cutting(hand: InHand, ways: Ways, number: int, share: float) -> bool:
    """Settle, or try to, blocks of so many pieces, and go on from the best schedule of them; False if they are too
    many."""
    instance, options = hand.instance, hand.options
    sizes = [cut(int(n), number) for n in instance.blocks.bytes]
    block = [b for b, row in enumerate(sizes) for _ in row]
    problem = Problem.of(instance, ways, block, [n for row in sizes for n in row])
    if moves(problem) > MOST_MOVES:
        return False
    assert hand.time is not None
    known = -(-hand.proven.seconds * problem.ticks // 1)
    for horizon in _horizons(hand, problem, int(known)):
        answer = quickest(problem, horizon, int(known), _share(options, share))
        if answer.least is not None and problem.exact and ways.complete and not problem.sums:
            hand.cuttings[number] = Fraction(answer.least, problem.ticks)
        if answer.rows is not None or options.out_of_time():
            break
    if answer.rows is None:
        return True
    if answer.settled:
        hand.exactly[number] = Fraction(problem.completion(answer.rows), problem.ticks)
    told = f"the program's, of {number} pieces a block"
    hand.offer(problem.schedule(answer.rows), told)
    if hand.over():
        return True
    own = InHand(instance, _share(options, share), hand.proven)
    own.offer(problem.schedule(answer.rows), told)
    with own.options.in_time():
        search(own, ways)
    hand.offer(own.best, f"{own.told}, of {number} pieces a block at first")
    return True


def _horizons(hand: InHand, problem: Problem, known: int) -> list[int]:
    """Ticks within which to look: first those without another latency, which leaves the solver few orders to think of,
    at last more than what is in hand."""
    assert hand.time is not None
    last = int(hand.time * problem.ticks * WORSE)
    hop = int(clock.latencies(problem.instance.machine, problem.ticks).min(initial=0))
    hops = 2 * hop if problem.instance.machine.is_switch.any() and not problem.ways.by_link else hop
    if not hops:
        return [last]
    first = (known // hops + 1) * hops - 1
    tight = [horizon for horizon in (first, first + hops) if horizon < last]
    if not problem.sums or not tight:
        return [*tight, last]
    return sorted({min(horizon, int(hand.time * problem.ticks * NEAR)) for horizon in tight})


def _with_claims(hand: InHand) -> Schedule:
    """The schedule with what is claimed of cuttings, if anything."""
    assert hand.best is not None
    if not hand.cuttings:
        return hand.best
    plan: dict[str, Any] = {
        "kind": "cutting",
        "pieces": np.array(list(hand.cuttings), dtype=np.int64),
        "least_s": np.array([float_below(value) for value in hand.cuttings.values()]),
    }
    return replace(hand.best, plan=plan)


def _words(hand: InHand, ways: Ways) -> str:
    assert hand.time is not None
    words = [f"{hand.told}: {shown(float(hand.time), SECONDS)}"]
    if hand.settled:
        words.append("it reaches the bound")
    for number, least in hand.cuttings.items():
        pieces = f"{number} even piece{'s' if number > 1 else ''} a block"
        if least == hand.exactly.get(number):
            words.append(
                f"proven optimal among schedules of {pieces}: {shown(float(least), SECONDS)} (the solver's word)"
            )
        else:
            words.append(f"no schedule of {pieces} takes less than {shown(float(least), SECONDS)} (the solver's word)")
    if not ways.complete:
        words.append("not all routes were looked at")
    return "; ".join(words) + hurried(hand.options)


def _share(options: RunOptions, part: float) -> RunOptions:
    """The options with this part of the time that is left, and progress of their own."""
    return replace(options.part(part, most_s=UNLIMITED_S * part), method={}, solver=None)


def _empty() -> Schedule:
    none = np.zeros(0, dtype=np.int64)
    return Schedule(1, none, none, none, none, np.zeros(0, dtype=bool), np.zeros(1, dtype=np.int64), none)
