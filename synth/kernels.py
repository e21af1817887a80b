"""One typed way to write a hot loop: compiled by numba where that pays, run as the plain Python it is where not.

A kernel begins as plain Python, so that nobody waits for a compiler to answer a question of microseconds; numba is not
even imported. A call whose arrays are large is compiled at once. So is one that has spent, in plain Python, what its
compilation costs (in this process and those before it), or what loading costs where an earlier process left it in the
cache on disk: the call is given up, its arguments are as they were before it, and the compiled kernel answers. Both
give the same bits (:mod:`synth.interpreted`), so nobody sees the change but by the clock.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, overload

import numpy as np

from synth import compiling, kernel_clock
from synth.interpreted import DRAWS, Saved, Unlike, arrays_in, names_in, plain, result
from synth.text.files import write_atomically

F = TypeVar("F", bound=Callable[..., Any])

MOST_ENTRIES = 1 << 16  # in a call's arrays: with more, nobody waits for the compiler in vain
LOADING_S = 0.2  # processor time of all plain calls: half of what importing numba and loading a few kernels takes
COMPILING_S = 0.0009  # per byte of a kernel's code and of those it calls: 78 kernels of fabric and xtree took 62 s
NOTED_S = 0.25  # of plain Python that later processes are told of
_TIMED = hasattr(signal, "setitimer") and hasattr(signal, "SIGVTALRM")

KERNELS: dict[tuple[str, str], Kernel] = {}
"""Every kernel of the modules imported so far, by module and name."""


class _TooSlow(Exception):
    """This plain call has taken what compiling would."""


class Kernel:
    """A function that runs compiled or as plain Python; see the module's page. ``wraps``: its whole numbers overflow
    on purpose (else an overflow in plain Python hands over to the compiled kernel)."""

    def __init__(self, function: Callable[..., Any], wraps: bool) -> None:
        update_wrapper(self, function)
        self.function, self.wraps = function, wraps
        self.plain_s = self._noted_s = 0.0
        self._ready: Any = None  # the compiled kernel, once it has been asked for
        self._plain: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        if self._ready is not None and _mode is None and not self.draws:
            compiling.used = True
            return self._ready(*args, **named)
        if _Call.running is not None:
            return self.plain(*args, **named)
        given = (*args, *named.values())
        if self.allowance_s(given) <= 0.0:
            return self._run_compiled(args, named)
        return self._run_plain(args, named, given)

    # compiled

    @cached_property
    def compiled(self) -> Any:
        """numba's dispatcher, made at the first call that needs it."""
        return _compiler()(self.function)

    @property
    def signatures(self) -> list[Any]:
        """Those for which it is compiled or loaded."""
        return list(self.compiled.signatures) if "compiled" in vars(self) else []

    def load(self, signature: Any) -> None:
        """Have the compiled form for a signature, from the cache on disk if it is there."""
        self.compiled.compile(signature)
        self._ready = self.compiled

    def _run_compiled(self, args: Any, named: Any) -> Any:
        self._ready, compiling.used = self.compiled, True
        if self.draws:
            _hand_over_draws(to_numba=True)
        return self._ready(*args, **named)

    @cached_property
    def callees(self) -> set[Kernel]:
        """This kernel and all that it calls."""
        found, todo = {self}, [self]
        while todo:
            function = todo.pop().function
            called = (function.__globals__.get(name) for name in names_in(function.__code__))
            new = {kernel for kernel in called if isinstance(kernel, Kernel)} - found
            found |= new
            todo += new
        return found

    @cached_property
    def draws(self) -> bool:
        """Whether it or one that it calls uses the random generator."""
        return any("random" in names_in(kernel.function.__code__) for kernel in self.callees)

    # plain

    @property
    def plain(self) -> Callable[..., Any]:
        """The same function in plain Python, and all that it calls."""
        if self._plain is None:
            self._plain = lambda *args, **named: self.plain(*args, **named)  # where it calls itself
            self._plain = plain(self.function, lambda value: value.plain if isinstance(value, Kernel) else None)
        return self._plain

    def _run_plain(self, args: Any, named: Any, given: Any) -> Any:
        if self.draws:
            _hand_over_draws(to_numba=False)
        saved = Saved(given, self.draws)
        call = _Call(self, given)
        try:
            try:
                found = copy_context().run(self._computed, call, args, named)  # numpy's error state stays in there
            finally:  # these first: Python lets a signal in after a call, so none comes between
                _Call.running = compiling.plain_since = None
                if call.timed:
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                call.count()
            return result(found)
        except (_TooSlow, OverflowError, FloatingPointError, Unlike):
            saved.restore()
            return self._run_compiled(args, named)

    def _computed(self, call: _Call, args: Any, named: Any) -> Any:
        call.set_timer()
        over: Literal["ignore", "raise"] = "ignore" if self.wraps_somewhere else "raise"
        with np.errstate(all="raise", over=over, under="ignore"):
            return self.plain(*args, **named)

    @cached_property
    def wraps_somewhere(self) -> bool:
        """Whether whole numbers overflow on purpose in it or in one that it calls."""
        return any(kernel.wraps for kernel in self.callees)

    def allowance_s(self, given: Any, spent: float = 0.0) -> float:
        """How much processor time of this call may go to plain Python, ``spent`` of it being gone. At most 0: none."""
        if _mode is not None:
            return np.inf if _mode == "plain" else 0.0
        if self._ready is not None or threading.current_thread() is not threading.main_thread():
            return 0.0
        if sum(len(a) if type(a) is list else a.size for a in arrays_in(given)) > MOST_ENTRIES:
            return 0.0
        if compiling.plain_s + spent < LOADING_S:
            return LOADING_S - compiling.plain_s
        if self.on_disk:
            return 0.0
        missing = (kernel.function for kernel in self.callees if not kernel.signatures)
        cost = COMPILING_S * sum(len(function.__code__.co_code) for function in missing)
        return cost - self.plain_s

    @cached_property
    def on_disk(self) -> bool:
        """Whether a process before this one has left a compiled form in numba's cache; if not, the seconds noted there
        are added to this kernel's."""
        try:
            cached = bool(self.compiled._cache._cache_file._load_index())
        except (AttributeError, OSError):  # no cache, or another numba's
            return False
        with suppress(OSError, ValueError):
            self.plain_s += min(max(0.0, float(self._noted().read_text())), 1e6)
        return cached

    def note(self) -> None:
        """Leave the seconds in plain Python beside numba's cache, for later processes to add to theirs."""
        if "on_disk" in vars(self) and self.plain_s > self._noted_s + NOTED_S:
            self._noted_s = self.plain_s
            with suppress(AttributeError, OSError):
                write_atomically(self._noted(), f"{self.plain_s:.3f}\n".encode())

    def _noted(self) -> Path:
        return Path(self.compiled._cache._cache_file._index_path).with_suffix(".plain")

    def __repr__(self) -> str:
        return f"<kernel {self.function.__module__}.{self.function.__qualname__}>"


class _Call:
    """A plain call under way: the clock of processor time, and the timer that ends it when compiling is cheaper."""

    running: _Call | None = None

    def __init__(self, kernel: Kernel, given: Any) -> None:
        self._kernel, self._given = kernel, given
        self._began = time.thread_time()
        self.timed = False

    def set_timer(self) -> None:
        """Wait for as long as this call may still take; raise :class:`_TooSlow` if that is over."""
        _Call.running = self
        asked = time.thread_time()
        with np.errstate(all="warn"):  # numba may be imported to see what is on disk
            left = self._kernel.allowance_s(self._given, asked - self._began) - (asked - self._began)
        self._began += time.thread_time() - asked
        compiling.plain_since = None if _mode == "plain" else self._began
        if left <= 0.0:
            raise _TooSlow
        if _TIMED and left < np.inf:
            if signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL:
                signal.signal(signal.SIGVTALRM, _ring)
            if signal.getsignal(signal.SIGVTALRM) is _ring:  # not another's
                self.timed = True
                signal.setitimer(signal.ITIMER_VIRTUAL, left + 1e-3)

    def count(self) -> None:
        """Add the processor time of this call, which has ended, to the accounts."""
        spent = time.thread_time() - self._began
        compiling.plain_s += spent
        compiling.spend(spent if _mode != "plain" else 0.0)  # asked for, it is no first run's cost
        self._kernel.plain_s += spent
        self._kernel.note()


def _ring(*_: object) -> None:
    if _Call.running is not None:
        _Call.running.set_timer()


def _hand_over_draws(to_numba: bool) -> None:
    """Let the random generator go on where the last kernel, compiled or not, has left it."""
    global _draws_in_numba
    if to_numba == _draws_in_numba:
        return
    helper: Any = import_module("numba._helperlib")
    state = helper.rnd_get_np_state_ptr()
    if to_numba:
        helper.rnd_set_state(state, DRAWS.state)
    else:
        DRAWS.state = helper.rnd_get_state(state)
    _draws_in_numba = to_numba


_draws_in_numba = False


@cache
def _compiler() -> Callable[[Callable[..., Any]], Any]:
    """What makes a numba dispatcher of a function; numba is imported by the first call."""
    with compiling.uncounted():
        import numba
        from numba.core import event
        from numba.extending import typeof_impl

        kernel_clock.register()
        _shorten_what_numba_says_of_shapes()

    class Compiling(event.Listener):  # type: ignore[misc]  # numba has no types
        """Adds the time of every compilation, those that one causes being part of it, to :mod:`synth.compiling`."""

        def on_start(self, event: Any) -> None:
            compiling.begin()

        def on_end(self, event: Any) -> None:
            compiling.end()

    event.register("numba:compile", Compiling())
    typeof_impl.register(Kernel)(lambda kernel, _: typeof_impl(kernel.compiled, _))  # a kernel calls another

    def compiler(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True)(function)
        except RuntimeError:  # numba: "no locator available", e.g. read-only install without a home directory
            return numba.njit(function)

    return compiler


def _shorten_what_numba_says_of_shapes() -> None:
    """Let ``a[:] = b`` of unlike lengths raise one constant text. The two lengths in it would make every process that
    compiles such a line compile numba's strings first, 2.5 s."""
    from numba.extending import overload as implement
    from numba.np import arrayobj

    def unlike(source: Any, index: Any) -> None: ...

    def raising(source: Any, index: Any) -> Any:
        def text(source: Any, index: Any) -> None:
            raise ValueError("cannot assign slice from input of different size")

        return text

    implement(unlike)(raising)
    if hasattr(arrayobj, "raise_with_shape_context"):
        arrayobj.raise_with_shape_context = unlike


@overload
def jit(function: F) -> F: ...
@overload
def jit(*, wraps: bool) -> Callable[[F], F]: ...
def jit(function: F | None = None, *, wraps: bool = False) -> F | Callable[[F], F]:
    """Make a kernel of ``function``. ``wraps``: products of 64 bits overflow in it on purpose, as in a hash."""

    def made(function: F) -> F:
        kernel = KERNELS[function.__module__, function.__qualname__] = Kernel(function, wraps)
        return cast(F, kernel)

    return made if function is None else made(function)


@contextmanager
def mode(name: str | None) -> Iterator[None]:
    """All kernels "plain" or "compiled" within the block, whatever that takes; None: as each call's work says."""
    global _mode
    before, _mode = _mode, name
    try:
        yield
    finally:
        _mode = before


_mode: str | None = None


def in_use() -> list[tuple[tuple[str, str], Any]]:
    """The kernels this process has compiled or loaded, by module and name, each with one of its signatures."""
    return [(key, signature) for key, kernel in KERNELS.items() for signature in kernel.signatures]


def load(kernels: Iterable[tuple[tuple[str, str], Any]]) -> None:
    """Load kernels (as :func:`in_use` names them) from the cache on disk, where another process has put them."""
    for key, signature in kernels:
        if key in KERNELS:
            KERNELS[key].load(signature)
