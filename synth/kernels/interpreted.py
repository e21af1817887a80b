"""Kernels as plain Python with the meaning numba gives them: the same random numbers, overflows, ties, result types.

numba's ``np.random`` is the Mersenne Twister seeded as numpy's, but draws whole numbers in its own way; a sort without
a kind is numba's own quicksort. What plain Python cannot repeat bit for bit raises :class:`Unlike`, and the compiled
kernel answers instead.
"""

from __future__ import annotations

import builtins
import random
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from synth.kernels.code import names_in

SMALL_SORT = 15  # numba's quicksort sorts by insertion, which is stable, up to this length


class Unlike(ArithmeticError):
    """Plain Python would not give the compiled kernel's bits here."""


class Draws:
    """numba's ``np.random``, as far as kernels use it. One generator for all kernels, as in numba."""

    def __init__(self) -> None:
        self._twister = random.Random(0)
        self.random_sample = self._twister.random

    @property
    def state(self) -> tuple[int, list[int]]:
        """Place and words of the Mersenne Twister, as numba's ``rnd_get_state`` gives them."""
        words = self._twister.getstate()[1]
        return words[-1], list(words[:-1])

    @state.setter
    def state(self, state: tuple[int, Any]) -> None:
        self._twister.setstate((3, (*state[1], state[0]), None))

    def seed(self, seed: int) -> None:
        """Begin a sequence. numba keeps a seed's last 32 bits, and fills the words as numpy's ``RandomState`` does."""
        word = int(seed) & 0xFFFFFFFF
        words = [word]
        for i in range(1, 624):
            word = (1812433253 * (word ^ (word >> 30)) + i) & 0xFFFFFFFF
            words.append(word)
        self.state = (624, words)

    def random(self, size: int | None = None) -> Any:
        """One number in [0, 1), or an array of them."""
        draw = self._twister.random
        return draw() if size is None else np.array([draw() for _ in range(size)])

    def randint(self, low: int, high: int | None = None) -> int:
        """A whole number in [low, high), or in [0, low): a word's last bits, drawn again until they are in range."""
        first, count = (0, int(low)) if high is None else (int(low), int(high) - int(low))
        if count <= 0:
            raise ValueError("empty range for randrange()")
        if count == 1:
            return first
        if count > 2**32:
            raise Unlike("a range of more than 32 bits")
        mask, draw = (1 << (count - 1).bit_length()) - 1, self._twister.getrandbits
        while (drawn := draw(32) & mask) >= count:
            pass
        return first + drawn

    def shuffle(self, values: Any) -> None:
        """Fisher and Yates's shuffle of an array, in place."""
        for i in range(len(values) - 1, 0, -1):
            j = self.randint(i + 1)
            values[i], values[j] = values[j], values[i]

    def permutation(self, values: Any) -> Any:
        """A shuffled copy of an array, or of the numbers below ``values``."""
        shuffled = np.arange(values) if np.ndim(values) == 0 else values.copy()
        self.shuffle(shuffled)
        return shuffled


DRAWS = Draws()


def _argsort(values: Any, kind: str = "quicksort") -> Any:
    """As numba sorts: stable where that is asked for or the array is short; else only distinct values."""
    if kind == "quicksort" and len(values) > SMALL_SORT and len(np.unique(values)) < len(values):
        raise Unlike("an unstable sort of equal values")
    return np.argsort(values, kind="stable")


_NUMPY = SimpleNamespace(**{**vars(np), "random": DRAWS, "argsort": _argsort})


def plain(function: Callable[..., Any], kernels: Callable[[Any], Callable[..., Any] | None]) -> Callable[..., Any]:
    """The function with globals of its own: kernels as what ``kernels`` makes of them, numpy with numba's meaning."""
    assert isinstance(function, FunctionType)
    names: dict[str, Any] = {"__builtins__": builtins, "__name__": function.__module__}
    made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    for name in names_in(function.__code__):
        if name in function.__globals__:
            value = function.__globals__[name]
            if isinstance(value, ModuleType):
                names[name] = _NUMPY if value is np else value
            else:
                names[name] = kernels(value) or value
    return made


def result(value: Any) -> Any:
    """A plain function's result as numba hands it over: numbers of Python, arrays as they are."""
    kind = type(value)
    if kind is int or kind is float or kind is bool or value is None or kind is np.ndarray:
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        parts = [result(part) for part in value]
        return kind(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [result(part) for part in value]
    return value


def arrays_in(values: Any) -> Iterator[Any]:
    """The arrays and lists in a call's arguments, those in tuples included."""
    for value in values:
        if isinstance(value, np.ndarray | list):
            yield value
        elif isinstance(value, tuple):
            yield from arrays_in(value)


class Saved:
    """What a call's arguments were, and the generator's state: a call that is given up leaves no trace."""

    def __init__(self, values: Any, draws: bool) -> None:
        self._arrays = [(a, a.copy()) for a in arrays_in(values) if type(a) is list or a.flags.writeable]
        self._state = DRAWS.state if draws else None

    def restore(self) -> None:
        """Write it all back."""
        for array, before in self._arrays:
            array[:] = before
        if self._state is not None:
            DRAWS.state = self._state
