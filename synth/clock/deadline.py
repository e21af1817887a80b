"""The one clock of a run: what a time limit covers, what the run holds when it passes, and how it ends the run.

A limit covers all that a method does: building models, solving, and its own searches. It does not cover imports,
compiling kernels (:mod:`synth.clock.start_up_costs`; the record says ``seconds.compile``) and the check
(``seconds.check``). Loops ask :meth:`synth.options.RunOptions.out_of_time`, and solvers are given what is left. What
does not ask is stopped by :func:`stopping`, and the run hands back what it held.
"""

from __future__ import annotations

import gc
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from synth.clock import start_up_costs

SLACK_S = 0.2  # after the limit, for methods to end by themselves
PAUSE_S = 0.5  # a signal later than this by more, with a SIGCONT, means that the process was suspended
LONGEST_WAIT_S = 1e6  # after which the timer is set once more: it takes no numbers without end
AGAIN_S = 0.2  # between two signals: compiled code and callbacks may swallow one
REFERENCES = ("weakref", "_weakrefset")  # modules whose callbacks run when an object has gone
AT_ONCE_S = 1e-6  # until a limit that has passed already stops a block


class OutOfTime(BaseException):
    """The time limit has passed. No ``Exception``, so that nobody on the way takes it for a failure."""


@dataclass
class Clock:
    """What all parts of one run share: ``cut`` says whether the time limit ended any search, so that another run may
    find something else."""

    cut: bool = False


@dataclass
class Held:
    """What a run hands back if it is stopped now: its best solution (a function that makes it) and bound, in the words
    of the method; ``made_by`` as in :class:`synth.family.Outcome`."""

    solution: Callable[[], Any] | None = None
    value: float = math.inf
    words: str | None = None
    made_by: tuple[str, ...] | None = None
    bound: float | None = None
    bound_proof: str | None = None
    certificate: Mapping[str, Any] | None = None

    def offer(
        self, solution: Callable[[], Any], value: float, words: str, made_by: tuple[str, ...] | None = None
    ) -> None:
        """Keep this solution of the run's own instance unless the one held is at least as good."""
        if self.solution is None or value < self.value:
            self.solution, self.value, self.words, self.made_by = solution, value, words, made_by

    def offer_bound(self, bound: float, proof: str | None, certificate: Mapping[str, Any] | None) -> None:
        """Keep this lower bound, with its certificate, unless the one held is at least as high."""
        if self.bound is None or bound > self.bound:
            self.bound, self.bound_proof, self.certificate = bound, proof, certificate


_shields = 0
_limits: list[stopping] = []  # now in force, the innermost last


@dataclass
class _Timer:
    """When it was set, when the signal is due, and since then: whether one came late, and whether the process was
    continued."""

    set_at: float = 0.0
    due: float = math.inf
    late: bool = False
    continued: bool = False


_timer = _Timer()


class stopping:
    """Leave the block by :class:`OutOfTime` once the seconds that ``remaining`` tells are over, and a moment more.

    With a ``clock`` the exception goes no further, and the clock says that the limit cut the run. Blocks may nest. It
    interrupts Python code in the main thread, where the system has ``SIGALRM`` and nobody else uses it. Compiled code
    is interrupted when it returns; compiling, importing and what this module does are let finish.
    """

    def __init__(self, remaining: Callable[[], float | None], clock: Clock | None = None) -> None:
        self.remaining, self.clock = remaining, clock
        self.interrupts = remaining() is not None and _can_interrupt()
        self.raised = False  # OutOfTime, by a signal
        self.before = signal.getsignal(signal.SIGALRM) if self.interrupts else None
        self.continues = signal.getsignal(signal.SIGCONT) if self.interrupts else None

    def __enter__(self) -> None:
        _limits.append(self)
        if self.interrupts:
            signal.signal(signal.SIGALRM, _stop)
            signal.signal(signal.SIGCONT, _continue)
            _set_timer()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        global put_off
        _limits.pop()
        if self.interrupts:
            put_off = False
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self.before)
            signal.signal(signal.SIGCONT, self.continues)
            if _limits:
                _set_timer()
        # compiled code that a signal interrupts may report an error of its own: numba a SystemError where it hands over
        # arguments or results, numpy a TypeError where it compares
        of_signal = self.raised and isinstance(error, (SystemError, TypeError))
        if not (isinstance(error, OutOfTime) or of_signal):
            return False
        if self.clock is None:
            raise OutOfTime from error
        self.clock.cut = True
        return True


def left() -> float:
    """Seconds left of the innermost limit now in force, infinite without one: for kernels, which end then and say so.
    Whoever calls one then calls :func:`demand_time`."""
    global _asked
    known = (seconds for limit in _limits if (seconds := limit.remaining()) is not None)
    seconds = min(known, default=math.inf)
    _asked = _kernels_now() + seconds
    return seconds


def demand_time() -> None:
    """Raise :class:`OutOfTime` if the limit now in force has passed, or what :func:`left` last said by the clock of
    kernels, which does not stand still while the process is suspended: what a kernel returned may be incomplete."""
    ended = _kernels_now() >= _asked
    if left() <= 0.0 or ended:
        raise OutOfTime


def _kernels_now() -> float:
    """As :func:`synth.kernels.clock.now`, standing still while kernels are compiled."""
    return time.monotonic() - start_up_costs.plain_now() - start_up_costs.seconds


_asked = math.inf  # when a kernel that began with what was left ends, by its clock


@contextmanager
def shielded() -> Iterator[None]:
    """Let no signal stop what happens here: compiled code that calls Python back and knows no exceptions."""
    global _shields
    _shields += 1
    try:
        yield
    finally:
        _shields -= 1


put_off = False
"""Whether a signal came while numba was at work: a kernel that has ended then calls :func:`stop_after_all`."""


def _stop(number: int, frame: FrameType | None) -> None:
    global put_off
    if not _limits:
        return
    if _shields or start_up_costs.going_on() or _importing(frame) or _dropped(frame):
        return  # the timer repeats
    if _in_numba(frame):
        put_off = True
        return
    _stop_now()


def stop_after_all() -> None:
    """Do what a signal has put off until a kernel's end."""
    global put_off
    if not _shields and threading.current_thread() is threading.main_thread():
        put_off = False
        if _limits:
            _stop_now()


def _stop_now() -> None:
    if time.monotonic() - _timer.due > PAUSE_S and not _timer.late:
        _timer.late = True  # suspended, or busy in compiled code: SIGCONT is handled after this signal
        return
    if _timer.late and _timer.continued:  # since when is not known: what was left at first is left again
        start_up_costs.paused_s += time.monotonic() - _timer.set_at
    if (_limits[-1].remaining() or 0.0) > 0:  # what is not counted has put the end off
        _set_timer()
        return
    _limits[-1].raised = True
    raise OutOfTime


def _continue(number: int, frame: FrameType | None) -> None:
    _timer.continued = True


def _set_timer() -> None:
    left = _limits[-1].remaining()
    if left is not None:
        _timer.set_at, _timer.late, _timer.continued = time.monotonic(), False, False
        wait = min(max(left + SLACK_S, AT_ONCE_S), LONGEST_WAIT_S)  # 0 would turn the timer off
        _timer.due = _timer.set_at + wait
        signal.setitimer(signal.ITIMER_REAL, wait, AGAIN_S)


def _can_interrupt() -> bool:
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        return False
    ours = signal.getsignal(signal.SIGALRM) is _stop
    return ours or (signal.getsignal(signal.SIGALRM) == signal.SIG_DFL and signal.getitimer(signal.ITIMER_REAL)[0] == 0)


def _importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported, which would stay broken, or a limit is entered or left."""
    return any(
        one.f_code.co_filename.startswith("<frozen importlib") or one.f_globals is globals() for one in _callers(frame)
    )


def _dropped(frame: FrameType | None) -> bool:
    """Whether Python would drop a stop and go on: what a garbage collection calls, and the hook for what is dropped."""
    hooks = {getattr(getattr(hook, "func", hook), "__code__", None) for hook in (*gc.callbacks, sys.unraisablehook)}
    return any(
        one.f_code in hooks or one.f_code.co_name == "__del__" or one.f_globals.get("__name__") in REFERENCES
        for one in _callers(frame)
    )


def _in_numba(frame: FrameType | None) -> bool:
    """Whether numba is at work, which would take a stop for an error. A signal that came while compiled code ran is
    handled where that hands over its arrays, so for one every few moments there might never be another place."""
    return any(one.f_globals.get("__name__", "").startswith("numba.") for one in _callers(frame))


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
