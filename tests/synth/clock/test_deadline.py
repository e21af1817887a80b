"""The one clock of a run: what a limit stops, what it leaves, and what it does not count."""

from __future__ import annotations

import ast
import gc
import re
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synth import kernels
from synth.clock import deadline, start_up_costs
from synth.clock.deadline import Held, OutOfTime
from synth.kernels import Kernel, jit
from synth.kernels.clock import now
from synth.method import Method, Outcome
from synth.options import RunOptions

ROOT = Path(__file__).resolve().parents[3]


def loop_for_ever() -> None:
    """Python code that asks nobody."""
    while True:
        sum(range(100))


def limited(seconds: float) -> RunOptions:
    """Options whose clock starts now."""
    return RunOptions(seconds).started_now()


def test_a_limit_stops_what_never_asks() -> None:
    """The block is left, the run counts as cut, and the signal is as it was."""
    options = limited(0.05)
    with options.in_time():
        loop_for_ever()
    assert options.clock.cut
    assert options.out_of_time()
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0


@pytest.mark.parametrize("left", [0.0, -0.2, -1.0, -1e6])
def test_a_limit_that_has_passed_stops_at_once(left: float) -> None:
    """Also one that passed long ago: what a search leaves for its check may be more than there is."""
    options = limited(60.0)
    with deadline.stopping(lambda: left, options.clock):
        loop_for_ever()
    assert options.clock.cut


@pytest.mark.parametrize("seconds", [1e10, float(2**63), 1e300])
def test_a_limit_may_be_longer_than_timers_take(seconds: float) -> None:
    with limited(seconds).in_time():
        assert 0.0 < signal.getitimer(signal.ITIMER_REAL)[0] <= deadline.LONGEST_WAIT_S
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0


def test_no_handler_of_failures_takes_it_for_one() -> None:
    """Swallowing every ``Exception`` does not keep a run from being stopped."""

    def stubborn() -> None:
        while True:
            try:
                loop_for_ever()
            except Exception:
                continue

    with limited(0.05).in_time():
        stubborn()


def test_nothing_is_left_in_force_whenever_the_signal_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals a few microseconds after the start, so that some come while a limit is entered or left: none stops what
    follows."""
    monkeypatch.setattr(deadline, "AGAIN_S", 0.02)
    for turn in range(1000):
        monkeypatch.setattr(deadline, "SLACK_S", 1e-6 * (1 + turn % 100))
        options = limited(1e-9)
        with options.in_time():
            for _ in range(turn % 40):
                sum(range(3))
        assert not deadline._limits
        assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_parts_end_before_the_whole_and_the_whole_goes_on(share: float) -> None:
    """Three parts one after the other; the whole is left at its own limit, not theirs."""
    whole, done = limited(0.3), 0
    with whole.in_time():
        for _ in range(3):
            part = whole.part(share)
            with part.in_time():
                loop_for_ever()
            assert part.remaining() == 0.0
            done += 1
        loop_for_ever()
    assert done
    assert whole.remaining() == 0.0


def test_a_part_that_outlives_the_whole_ends_with_it() -> None:
    """A part has no more time than is left, whatever it asks for."""
    whole = limited(0.05)
    with whole.in_time(), whole.part(most_s=1000.0).in_time():
        loop_for_ever()
    assert whole.clock.cut


def test_compiling_and_importing_are_let_finish_and_not_counted() -> None:
    """What is not counted delays the stop."""
    options = limited(0.5)
    with options.in_time():
        with start_up_costs.uncounted():
            time.sleep(1.0)
        still = options.remaining()
        loop_for_ever()
    assert still is not None
    assert still > 0


def test_shielded_code_is_let_finish() -> None:
    """A callback from compiled code sees no exception."""
    finished = False
    with limited(0.05).in_time():
        with deadline.shielded():
            time.sleep(0.5)
            finished = True
        loop_for_ever()
    assert finished


@jit
def _kernel(seconds: float) -> int:
    end, rounds = now() + seconds, 0
    while now() < end:
        rounds += 1
    return rounds


@jit
def _many(number: int) -> Any:
    return np.zeros(number)


def busy(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


class Slow:
    """Takes longer to go than a limit lasts."""

    def __del__(self) -> None:
        busy(0.4)


def slow_collection(phase: str, info: dict[str, int]) -> None:
    if phase == "start":
        busy(0.4)


@pytest.mark.parametrize("by", ["collection", "finaliser"])
def test_no_stop_is_dropped_by_a_garbage_collection(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a collection calls takes longer than the limit: nothing is dropped there, and the block behind it stops."""
    dropped: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    options = limited(0.05)
    if by == "collection":
        gc.callbacks.append(slow_collection)
    try:
        with options.in_time():
            if by == "collection":
                gc.collect()
            Slow()
            loop_for_ever()
    finally:
        if by == "collection":
            gc.callbacks.remove(slow_collection)
    assert options.clock.cut
    assert dropped == []


def test_kernels_read_the_clock() -> None:
    """A kernel ends by itself, compiled or not; outside of any limit it has for ever."""
    assert deadline.left() == float("inf")
    with limited(1000.0).in_time():
        assert 0 < deadline.left() <= 1000.0
    assert _kernel(0.2) > 0
    assert abs(now() - time.monotonic()) < 1.0


@jit
def _counted(rounds: int, seconds: float) -> int:
    end = now() + seconds
    for done in range(rounds):
        if now() >= end:
            return done
    return rounds


@pytest.mark.parametrize("suspended", [False, True])
@pytest.mark.parametrize("way", [None, "plain", "compiled"])
@pytest.mark.parametrize("allowed_s", [0.0, 0.05, 1e6])
@pytest.mark.parametrize("rounds", [1, 100_000, 20_000_000])
def test_what_a_kernel_left_undone_is_never_taken_for_done(
    suspended: bool, way: str | None, allowed_s: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain Python is not counted, and is given up for the compiled kernel at some moment: wherever that is, a kernel
    that its clock ended has no time left, and :func:`synth.clock.deadline.demand_time` says so. So it does after a
    suspension, which the limit does not count and the kernel does."""
    kernel: Any = _counted
    monkeypatch.setattr(kernel, "_ready", None)
    if way is None:
        monkeypatch.setattr(Kernel, "allowance_s", lambda *_: allowed_s)
    if way is None and allowed_s > 1.0:
        rounds = min(rounds, 100_000)  # all of them in plain Python
    done, not_counted = 0, start_up_costs.not_counted
    if suspended:
        monkeypatch.setattr(start_up_costs, "not_counted", lambda: not_counted() + 0.8 * time.monotonic())
    with kernels.mode(way), limited(0.02).in_time():
        found = _counted(rounds, deadline.left())
        deadline.demand_time()
        done = found
    assert done in (0, rounds)


def test_a_stop_between_kernels_is_no_error_and_comes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that comes while compiled code runs is handled where numba hands over arrays, and not there."""
    monkeypatch.setattr(deadline, "AGAIN_S", 1000.0)
    with kernels.mode("compiled"):
        _many(1)  # numba is imported, which would let the only signal pass
    options = limited(0.3)
    with kernels.mode("compiled"), options.in_time():
        for _ in range(200_000):
            _many(200_000)
    assert options.clock.cut


@pytest.mark.parametrize("kind", [SystemError, TypeError])
def test_compiled_code_may_report_a_stop_as_an_error_of_its_own(kind: type[Exception]) -> None:
    """As numpy does in a comparison; the same error without a stop stays one."""

    def compared(loop: Any) -> None:
        with suppress(OutOfTime):
            loop()
        raise kind("no comparison")

    options = limited(0.05)
    with options.in_time():
        compared(loop_for_ever)
    assert options.clock.cut
    with pytest.raises(kind, match="no comparison"), limited(1000.0).in_time():
        compared(lambda: None)


def test_a_run_that_is_stopped_hands_over_what_it_holds() -> None:
    """The best offered, made when it is asked for; what the method hands back itself comes first."""
    held = Held()
    held.offer(lambda: "first", 5.0, "rings")
    held.offer(lambda: "worse", 6.0, "stars")
    held.offer(lambda: "best", 4.0, "trees")
    held.offer_bound(2.0, "a cut", {"side": [1]})
    held.offer_bound(1.0, "another", None)
    empty, own = Outcome("time_limit"), Outcome("time_limit", "mine", 3.0, "me")
    infeasible = Outcome("infeasible")
    for outcome in (empty, own, infeasible):
        outcome.take_over(held)
    assert (empty.solution, empty.bound, empty.bound_proof, empty.message) == ("best", 2.0, "a cut", "trees")
    assert (own.solution, own.bound) == ("mine", 3.0)
    assert infeasible.solution is None
    assert infeasible.bound is None


def test_the_record_says_what_ended_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """``stopped_by`` is the clock where any part ran out of time, also where the method says it finished."""
    import synth

    instance = synth.make("optree", nodes=12, wavelengths=3)

    def record_of(function: Any) -> Any:
        monkeypatch.setattr(Method, "load", lambda self: function)
        return synth.solve(instance, "relay", time_limit=0.25)

    def part_cut(instance: Any, options: RunOptions) -> Outcome:
        with options.part(0.1).in_time():
            loop_for_ever()
        return Outcome("finished")

    def overrun(instance: Any, options: RunOptions) -> Outcome:
        loop_for_ever()
        return Outcome("finished")

    assert record_of(lambda instance, options: Outcome("finished"))["stopped_by"] is None
    assert record_of(part_cut)["stopped_by"] == "clock"
    stopped = record_of(overrun)
    assert (stopped["stopped_by"], stopped["termination"]) == ("clock", "time_limit")
    assert stopped["seconds"]["compile"] >= 0.0


def test_what_is_left_out_for_want_of_time_counts_as_cut() -> None:
    """``fits`` decides by the clock."""
    options = limited(10.0)
    assert options.fits(5.0)
    assert not options.clock.cut
    assert not options.fits(50.0)
    assert options.clock.cut
    assert replace(options, time_limit_s=None).fits(1e9)
    with pytest.raises(OutOfTime):
        raise OutOfTime


def test_nothing_is_handed_on_inside_a_block_that_its_time_ends() -> None:
    """A generator that yields there leaves its limit in force for whoever asked, and stops it where nobody listens."""
    limit, found = re.compile(r"\b(in_time|stopping)\("), []
    texts = {path: path.read_text() for folder in ("synth", "models") for path in (ROOT / folder).rglob("*.py")}
    for file, text in texts.items():
        for block in ast.walk(ast.parse(text)) if limit.search(text) else ():
            heads = block.items if isinstance(block, ast.With) else []
            if any(limit.search(ast.unparse(head.context_expr)) for head in heads):
                yields = [node for node in ast.walk(block) if isinstance(node, ast.Yield | ast.YieldFrom)]
                found += [f"{file.name}:{node.lineno}" for node in yields]
    assert found == []
