"""One typed way to write a hot loop: compiled by numba where that pays, run as the plain Python it is where not.

A kernel begins as plain Python, so that nobody waits for a compiler to answer a question of microseconds; numba is not
even imported. A call is given up once it has spent, in plain Python, what its compilation costs (where its arrays are
large, a share of that), or what loading costs where an earlier process left it in the cache on disk: its arguments are
as they were before it, and the compiled kernel answers. Both give the same bits (:mod:`synth.kernels.interpreted`), so
nobody sees the change but by the clock. Seconds of plain Python do not add up over processes: repeating a command never
makes it compile what it did not compile the first time.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import cache, cached_property, partial, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, overload

import numpy as np

from synth.clock import deadline, start_up_costs
from synth.kernels import clock as kernel_clock
from synth.kernels import quicker_numba
from synth.kernels.code import made_from, names_in
from synth.kernels.interpreted import DRAWS, Saved, Unlike, arrays_in, plain, result

F = TypeVar("F", bound=Callable[..., Any])

MANY_ENTRIES = 1 << 16  # in a call's arrays: with more, plain Python rarely suffices,
LARGE_SHARE = 0.25  # and may take this share of what compiling costs: enough for a pass or two over the arrays;
MOST_ENTRIES = 1 << 22  # with more, the copies that a call given up is restored from would take memory
LOADING_S = 0.4  # processor time of all plain calls: what importing numba and loading a few kernels takes,
LOADED_S = 0.05  # and what loading one takes where numba has been imported
COMPILING_S = 0.0009  # per byte of a kernel's code and of those it calls: 78 kernels of fabric and xtree took 62 s
COLLECTED_SELDOM = (100_000, 20, 100)  # thresholds of the garbage collector
_TIMED = hasattr(signal, "setitimer") and hasattr(signal, "SIGVTALRM")

KERNELS: dict[tuple[str, str], Kernel] = {}
"""Every kernel of the modules imported so far, by module and name."""


class _TooSlow(BaseException):
    """This plain call has taken what compiling would. No ``Exception``: ``np.array_equal`` takes one for "no"."""


class Kernel:
    """A function that runs compiled or as plain Python; see the module's page. ``wraps``: its whole numbers overflow
    on purpose (else an overflow in plain Python hands over to the compiled kernel). ``inlined``: see :func:`jit`."""

    def __init__(self, function: Callable[..., Any], wraps: bool, inlined: bool = False) -> None:
        update_wrapper(self, function)
        self.function, self.wraps, self.inlined = function, wraps, inlined
        self.plain_s = 0.0
        self._ready: Any = None  # the compiled kernel, once it has been asked for
        self._on_disk: bool | None = None  # None: nobody has looked
        self._plain: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        if self._ready is not None and _mode is None and not self.draws:
            start_up_costs.used = True
            return self._until_its_end(args, named)
        if _Call.running is not None:
            return self.plain(*args, **named)
        given = (*args, *named.values())
        if self.allowance_s(given) <= 0.0:
            return self._run_compiled(args, named)
        return self._run_plain(args, named, given)

    # compiled

    @cached_property
    def compiled(self) -> Any:
        """numba's dispatcher, made at the first call that needs it. What is in its cache on disk counts as long as
        neither the file nor anything that is linked in from others has changed; numba itself looks at the file."""
        found = _compiler()(self.function, self.inlined)
        with suppress(AttributeError):  # no cache, or another numba's
            file = found._cache._cache_file
            file._source_stamp = (file._source_stamp, self.linked)
            file._load_index = partial(_index, file._load_index)
        return found

    @cached_property
    def inner(self) -> Any:
        """The dispatcher for other kernels, which link what they call into themselves: it makes neither what Python
        would call nor machine code, and keeps nothing on disk."""
        return _compiler()(self.function, self.inlined, inner=True)

    @property
    def signatures(self) -> list[Any]:
        """Those for which it is compiled or loaded, for Python."""
        return list(self.compiled.signatures) if "compiled" in vars(self) else []

    def missing(self) -> Iterator[Kernel]:
        """What compiling it for Python would compile: itself, and what it calls if no other kernel has called that."""
        for kernel in self.callees:
            if not (kernel.signatures if kernel is self else "inner" in vars(kernel) and kernel.inner.signatures):
                yield kernel

    def load(self, signature: Any) -> None:
        """Have the compiled form for a signature, from the cache on disk if it is there."""
        self.compiled.compile(signature)
        self._ready = self.compiled

    def _run_compiled(self, args: Any, named: Any) -> Any:
        self._ready, start_up_costs.used = self.compiled, True
        if self.draws:
            _hand_over_draws(to_numba=True)
        return self._until_its_end(args, named)

    def _until_its_end(self, args: Any, named: Any) -> Any:
        """What the compiled kernel returns; a time limit that has passed meanwhile stops the run then."""
        found = self._ready(*args, **named)
        if deadline.put_off:
            deadline.stop_after_all()
        return found

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
    def linked(self) -> str:
        """A digest of what its compiled form is made of: code and constants of this kernel and of those it calls."""
        names = [(kernel.function.__module__, kernel.function.__qualname__, kernel) for kernel in self.callees]
        made_of = [
            words for *_, kernel in sorted(names, key=lambda row: row[:2]) for words in made_from(kernel.function)
        ]
        return hashlib.sha256("\n".join(made_of).encode(errors="backslashreplace")).hexdigest()

    @cached_property
    def draws(self) -> bool:
        """Whether it or one that it calls uses the random generator."""
        return any("random" in names_in(kernel.function.__code__) for kernel in self.callees)

    # plain

    @property
    def plain(self) -> Callable[..., Any]:
        """The same function in plain Python, and all that it calls."""
        if self._plain is None:
            try:
                self._plain = lambda *args, **named: self.plain(*args, **named)  # where it calls itself
                self._plain = plain(self.function, lambda value: value.plain if isinstance(value, Kernel) else None)
            except BaseException:  # a signal
                self._plain = None
                raise
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
                _Call.running = start_up_costs.plain_since = None
                if call.timed:
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                call.count()
            if not call.given_up:
                return result(found)
        except (_TooSlow, OverflowError, FloatingPointError, Unlike):
            pass
        except Exception:
            if not call.given_up:
                raise
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
        entries = sum(len(a) if type(a) is list else a.size for a in arrays_in(given))
        if entries > MOST_ENTRIES:
            return 0.0
        large = entries > MANY_ENTRIES
        loading = LOADED_S if "numba" in sys.modules else LOADING_S
        if not large and start_up_costs.plain_s + spent < loading:
            return loading - start_up_costs.plain_s
        if self.is_on_disk(given):
            return 0.0
        cost = COMPILING_S * sum(len(kernel.function.__code__.co_code) for kernel in self.missing())
        return (LARGE_SHARE if large else 1.0) * cost - self.plain_s

    def is_on_disk(self, given: Any) -> bool:
        """Whether a process before this one has left, in numba's cache, a compiled form for the first call that asks.
        Imports numba only if there is a file of that name."""
        if self._on_disk is None:
            self._on_disk = any(place.exists() for place in cache_files(self.function)) and self._in_cache(given)
        return self._on_disk

    def _in_cache(self, given: Any) -> bool:
        try:
            index = self.compiled._cache._cache_file._load_index()
            if len(given) != self.function.__code__.co_argcount:  # the others have their defaults
                return bool(index)
            types = tuple(map(self.compiled.typeof_pyval, given))
            return any(key[0] == types for key in index)
        except (AttributeError, OSError, IndexError, TypeError, ValueError):  # no cache, or another numba's
            return False

    def __repr__(self) -> str:
        return f"<kernel {self.function.__module__}.{self.function.__qualname__}>"


def _index(load: Callable[[], dict[Any, str]]) -> dict[Any, str]:
    """numba's list of the compiled forms on disk; none where it is cut off or names a class that has another name."""
    try:
        return load()
    except (AttributeError, EOFError, ImportError, pickle.UnpicklingError):
        return {}


class _Call:
    """A plain call under way: the clock of processor time, and the timer that ends it when compiling is cheaper."""

    running: _Call | None = None

    def __init__(self, kernel: Kernel, given: Any) -> None:
        self._kernel, self._given = kernel, given
        self._began = time.thread_time()
        self.timed = False
        self.given_up = False  # whatever came of it since: on the way an exception may be dropped, or become another

    def set_timer(self) -> None:
        """Wait for as long as this call may still take; raise :class:`_TooSlow` if that is over."""
        _Call.running = self
        asked = time.thread_time()
        with np.errstate(all="warn"):  # numba may be imported to see what is on disk
            left = self._kernel.allowance_s(self._given, asked - self._began) - (asked - self._began)
        self._began += time.thread_time() - asked
        start_up_costs.plain_since = None if _mode == "plain" else self._began
        if left <= 0.0:
            self.given_up = True
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
        start_up_costs.plain_s += spent
        start_up_costs.spend(spent if _mode != "plain" else 0.0)  # asked for, it is no first run's cost
        self._kernel.plain_s += spent


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


def cache_files(function: Callable[..., Any]) -> list[Path]:
    """Where numba would keep the index of a function's compiled forms: known without an import of numba."""
    code = function.__code__
    file = Path(code.co_filename)
    folder = os.path.dirname(os.path.abspath(file))
    within = f"{os.path.basename(folder)}_{hashlib.sha1(folder.encode(), usedforsecurity=False).hexdigest()}"
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        places = [Path(chosen, within)]
    else:
        user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        places = [file.parent / "__pycache__", Path(user, "numba", within)]
    name = f"{file.stem}.{function.__qualname__}".replace("<", "").replace(">", "")
    version = f"{sys.version_info[0]}{sys.version_info[1]}{sys.abiflags}"
    return [place / f"{name}-{code.co_firstlineno}.py{version}.nbi" for place in places]


@cache
def _compiler() -> Callable[..., Any]:
    """What makes a numba dispatcher of a function; numba is imported by the first call."""
    with start_up_costs.uncounted():
        numba = quicker_numba.import_numba()
        from numba.core import event
        from numba.extending import typeof_impl

        quicker_numba.spare()
        kernel_clock.register()

    class Compiling(event.Listener):  # type: ignore[misc]  # numba has no types
        """Adds the time of every compilation, with those that it causes, to :mod:`synth.clock.start_up_costs`. Has
        garbage looked for seldom meanwhile: that would take a tenth of it, and what numba makes is kept."""

        def __init__(self) -> None:
            self._before: list[tuple[int, int, int]] = []  # compilations cause others

        def on_start(self, event: Any) -> None:
            start_up_costs.begin()
            self._before.append(gc.get_threshold())
            gc.set_threshold(*max(COLLECTED_SELDOM, self._before[-1]))

        def on_end(self, event: Any) -> None:
            gc.set_threshold(*self._before.pop())
            start_up_costs.end()

    event.register("numba:compile", Compiling())
    typeof_impl.register(Kernel)(lambda kernel, _: typeof_impl(kernel.inner, _))  # a kernel calls another

    def compiler(function: Callable[..., Any], inlined: bool, inner: bool = False) -> Any:
        options = {"forceinline": inlined, "no_cfunc_wrapper": True}  # which C calls: a 25th of what compiling takes
        if inner:
            return numba.njit(no_cpython_wrapper=True, **options)(function)
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # numba: "no locator available", e.g. read-only install without a home directory
            return numba.njit(**options)(function)

    return compiler


@overload
def jit(function: F) -> F: ...
@overload
def jit(*, wraps: bool = ..., inlined: bool = ...) -> Callable[[F], F]: ...
def jit(function: F | None = None, *, wraps: bool = False, inlined: bool = False) -> F | Callable[[F], F]:
    """Make a kernel of ``function``. ``wraps``: products of 64 bits overflow in it on purpose, as in a hash.
    ``inlined``: LLVM puts it where it is called, and the references to arrays of named state, counted at every call of
    a kernel, are counted no more; for what is small and called within hot loops."""

    def made(function: F) -> F:
        kernel = KERNELS[function.__module__, function.__qualname__] = Kernel(function, wraps, inlined)
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


def numba_is_loaded() -> bool:
    """Whether calls run compiled without loading numba first, or all alike were asked for."""
    return _mode is not None or "numba" in sys.modules


def in_use() -> list[tuple[tuple[str, str], Any]]:
    """The kernels this process has compiled or loaded, by module and name, each with one of its signatures."""
    return [(key, signature) for key, kernel in KERNELS.items() for signature in kernel.signatures]


def load(kernels: Iterable[tuple[tuple[str, str], Any]]) -> None:
    """Load kernels (as :func:`in_use` names them) from the cache on disk, where another process has put them."""
    for key, signature in kernels:
        if key in KERNELS:
            KERNELS[key].load(signature)
