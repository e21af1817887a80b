"""Runs every call of a kernel twice, compiled and as plain Python, and compares all bits of both."""

from __future__ import annotations

import copy
import importlib
import pkgutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import numpy as np

from synth import kernels
from synth.clock import start_up_costs
from synth.kernels import KERNELS, Kernel, interpreted
from synth.kernels.interpreted import DRAWS, arrays_in

Key = tuple[str, str]
OFTEN = 25  # calls of one kernel that are all compared; of later ones every hundredth,
OFTENER = 5  # or every fifth while a kernel that it calls has not run
LONG_S = 0.01  # of a compiled call that is not made in plain Python


def import_all(*packages: str) -> None:
    """Import every module of these packages, so that all kernels are registered."""
    for package in packages:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def differences(one: Any, other: Any, where: str = "result") -> list[str]:
    """Where two results differ in a type or a bit; NaNs are the same if their bits are."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        same = one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
        return [] if same else [f"{where}: {one!r} is not {other!r}"]
    if type(one) is not type(other):
        return [f"{where}: {type(one)} {one!r} is not {type(other)} {other!r}"]
    if isinstance(one, tuple | list):
        if len(one) != len(other):
            return [f"{where}: {len(one)} parts are not {len(other)}"]
        return [d for i, (a, b) in enumerate(zip(one, other, strict=True)) for d in differences(a, b, f"{where}[{i}]")]
    same = np.float64(one).tobytes() == np.float64(other).tobytes() if type(one) is float else one == other
    return [] if same else [f"{where}: {one!r} is not {other!r}"]


class Twice:
    """What was compared: ``kernels`` that ran in both ways, and the ``faults`` found."""

    def __init__(self) -> None:
        self.kernels: set[Key] = set()
        self.unlike: Counter[Key] = Counter()  # calls that plain Python handed over
        self.faults: list[str] = []
        self._calls: Counter[Key] = Counter()
        self._inside = False

    def call(self, kernel: Kernel, args: Any, named: Any) -> Any:
        """The compiled kernel's answer, compared with the plain one's."""
        key = kernel.function.__module__, kernel.function.__qualname__
        self._calls[key] += 1
        if self._inside or (self._calls[key] > OFTEN and self._calls[key] % self._every(kernel)):
            return _call(kernel, "compiled", args, named)
        plain_args, plain_named = copy.deepcopy((args, named))
        self._inside = True
        try:
            state = self._state(kernel)
            if self._too_long(kernel, args, named):
                self._calls[key] += OFTEN
                return _call(kernel, "compiled", args, named)
            self._set_state(state)
            found = _call(kernel, "compiled", args, named)
            after = self._state(kernel)
            self._set_state(state)
            ran: set[Key] = set()
            with _seen(ran):
                plain, handed_over = self._plain(kernel, plain_args, plain_named)
            if handed_over:
                self.unlike[key] += 1
            else:
                self.kernels |= ran
            one = plain, plain_args, plain_named, self._state(kernel)
            self.faults += [f"{key}: {d[:600]}" for d in differences(one, (found, args, named, after))]
        finally:
            self._inside = False
        return found

    def _every(self, kernel: Kernel) -> int:
        """Every how many later calls one is compared."""
        called = {(callee.function.__module__, callee.function.__qualname__) for callee in kernel.callees}
        return 100 if called <= self.kernels else OFTENER

    def _too_long(self, kernel: Kernel, args: Any, named: Any) -> bool:
        """Whether plain Python would take seconds, as it is never asked to."""
        given = (*args, *named.values())
        if sum(len(a) if type(a) is list else a.size for a in arrays_in(given)) > kernels.MANY_ENTRIES:
            return True
        for _ in range(2):
            own, before = copy.deepcopy((args, named)), (start_up_costs.seconds, len(kernel.signatures))
            began = time.thread_time()
            _call(kernel, "compiled", *own)
            if (start_up_costs.seconds, len(kernel.signatures)) == before:  # nothing was compiled or loaded meanwhile
                break
        return time.thread_time() - began > LONG_S

    @staticmethod
    def _state(kernel: Kernel) -> Any:
        """Where the random generator stands, if the kernel uses it."""
        if not kernel.draws:
            return None
        kernels._hand_over_draws(to_numba=False)
        return DRAWS.state

    @staticmethod
    def _set_state(state: Any) -> None:
        if state is not None:
            kernels._hand_over_draws(to_numba=False)
            DRAWS.state = state

    @staticmethod
    def _plain(kernel: Kernel, args: Any, named: Any) -> tuple[Any, bool]:
        """The answer of plain Python, or of the compiled kernel if plain Python handed over; whether it did."""
        before = vars(kernel).get("_ready")
        kernel._ready = None
        try:
            return _call(kernel, "plain", args, named), kernel._ready is not None
        finally:
            kernel._ready = before


_CALL = Kernel.__call__


def _call(kernel: Kernel, way: str, args: Any, named: Any) -> Any:
    with kernels.mode(way), spoilt_memory():
        return _CALL(kernel, *args, **named)


@contextmanager
def spoilt_memory() -> Iterator[None]:
    """New arrays of plain kernels hold nonsense until they are written, so that what nothing has written differs."""
    numpy = interpreted._NUMPY

    def spoilt(array: Any) -> Any:
        array.reshape(-1).view(np.uint8)[:] = 1 if array.dtype == np.bool_ else 0xA5
        return array

    empty, empty_like = numpy.empty, numpy.empty_like
    numpy.empty = lambda *args, **named: spoilt(np.empty(*args, **named))
    numpy.empty_like = lambda *args, **named: spoilt(np.empty_like(*args, **named))
    try:
        yield
    finally:
        numpy.empty, numpy.empty_like = empty, empty_like


def both(kernel: Any, *args: Any) -> bool:
    """Compare one call's result, arguments, error and random numbers, plain and compiled. Returns whether plain Python
    did all of it, handing nothing over. Plain first: what is out of bounds raises there, and crashes compiled."""
    state, found, before, alone = Twice._state(kernel), [], kernel._ready, True
    for way in ("plain", "compiled"):
        own = copy.deepcopy(args)
        Twice._set_state(state)
        kernel._ready = None
        try:
            result = _call(kernel, way, own, {})
        except ZeroDivisionError as error:
            result = str(type(error))
        alone = alone and (way == "compiled" or kernel._ready is None)
        found.append((result, own, Twice._state(kernel)))
    kernel._ready = before or kernel._ready
    assert differences(*found) == []
    if _RUNNING and not isinstance(result, str):
        _RUNNING[0].call(kernel, copy.deepcopy(args), {})  # so that it counts there
    return alone


@contextmanager
def _seen(found: set[Key]) -> Iterator[None]:
    """Add the kernels whose Python code runs."""
    codes: dict[CodeType, Key] = {kernel.function.__code__: key for key, kernel in KERNELS.items()}

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in codes:
            found.add(codes[frame.f_code])

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)


_RUNNING: list[Twice] = []


@contextmanager
def twice() -> Iterator[Twice]:
    """Within the block every call of a kernel is made twice. A block within another one adds to the outer one's."""
    if _RUNNING:
        yield _RUNNING[0]
        return
    found = Twice()
    _RUNNING.append(found)
    Kernel.__call__ = lambda kernel, *args, **named: found.call(kernel, args, named)  # type: ignore[method-assign]
    try:
        yield found
    finally:
        _RUNNING.clear()
        Kernel.__call__ = _CALL  # type: ignore[method-assign]
