"""Values that come out of a file: the one place that checks their kind and range, before any arithmetic.

Every reader takes the mapping that was read and the key, and raises ``ValueError`` that names the key. Whole numbers
come out as int64 (or ``int``), minimum and maximum compared apart in exact arithmetic: ``abs(-2**63)`` is negative in
64 bits, and a sum of two large numbers wraps. :func:`exact_dot` and :func:`exact_sum` are for sums on which a verdict
hangs. :func:`equal` is the one comparison of a stated number with a computed one, :func:`not_finite` finds what no JSON
may hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.arrays import BoolArray, FloatArray, IntArray

Shape = Sequence[int | None]

LEAST, MOST = -(2**31), 2**31 - 1  # the default range: products of two such numbers fit 64 bits


def whole_numbers(
    stored: Mapping[str, Any], key: str, least: int = LEAST, most: int = MOST, shape: Shape = (None,)
) -> IntArray:
    """The whole numbers under ``key``, each in ``least..most``; ``shape`` has None where any length is right."""
    array = _array(stored, key, shape)
    if array.size:
        if array.dtype.kind not in "iu":
            raise ValueError(f"{key} does not hold whole numbers of at most 64 bits")
        smallest, largest = int(array.min()), int(array.max())
        if smallest < least:
            raise ValueError(f"{key} holds {smallest}, less than {least}")
        if largest > most:
            raise ValueError(f"{key} holds {largest}, more than {most}")
    found: IntArray = array.astype(np.int64)
    return found


def flags(stored: Mapping[str, Any], key: str, shape: Shape = (None,)) -> BoolArray:
    """Truth values: booleans, or whole numbers 0 and 1."""
    array = _array(stored, key, shape)
    if array.dtype.kind != "b":
        array = whole_numbers(stored, key, 0, 1, shape)
    found: BoolArray = array.astype(bool)
    return found


def numbers(
    stored: Mapping[str, Any], key: str, least: float = -math.inf, most: float = math.inf, shape: Shape = (None,)
) -> FloatArray:
    """Finite numbers under ``key``, each in ``least..most``."""
    array = _array(stored, key, shape)
    if array.size:
        if array.dtype.kind not in "iuf":
            raise ValueError(f"{key} does not hold numbers")
        if not np.isfinite(array).all():
            raise ValueError(f"{key} holds a value that is not finite")
        if array.min() < least or array.max() > most:
            raise ValueError(f"{key} holds a number outside {least:g}..{most:g}")
    found: FloatArray = array.astype(np.float64)
    return found


def whole(stored: Mapping[str, Any], key: str, least: int = LEAST, most: int = MOST) -> int:
    """One whole number in ``least..most``; no boolean, no float."""
    value = _scalar(stored, key)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{key} is not a whole number")
    if not least <= int(value) <= most:
        raise ValueError(f"{key} is {int(value)}, outside {least}..{most}")
    return int(value)


def number(stored: Mapping[str, Any], key: str, least: float = -math.inf, most: float = math.inf) -> float:
    """One finite number in ``least..most``; no boolean."""
    value = _scalar(stored, key)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{key} is not a number")
    try:
        found = float(value)
    except OverflowError:
        raise ValueError(f"{key} is beyond the range of a float") from None
    if not math.isfinite(found) or not least <= found <= most:
        raise ValueError(f"{key} is {found:g}, not in {least:g}..{most:g}")
    return found


def objects(stored: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """A list of objects; it may be empty."""
    found = stored.get(key)
    if not isinstance(found, (list, tuple)) or not all(isinstance(entry, Mapping) for entry in found):
        raise ValueError(f"{key} is not a list of objects")
    return found


def choice(stored: Mapping[str, Any], key: str, *choices: str) -> str:
    """One of a few words."""
    value = _scalar(stored, key)
    if not isinstance(value, str) or str(value) not in choices:
        raise ValueError(f"{key} is not one of {', '.join(choices)}")
    return str(value)


def exact_dot(left: npt.ArrayLike, right: npt.ArrayLike) -> int:
    """The exact sum of products of two arrays of whole numbers of the same shape."""
    a, b = np.asarray(left).ravel(), np.asarray(right).ravel()
    if not a.size:
        return 0
    largest = [max(-int(x.min()), int(x.max())) for x in (a, b)]
    if largest[0] * largest[1] * a.size < 2**63:
        return int(np.dot(a.astype(np.int64), b.astype(np.int64)))
    return int(np.dot(a.astype(object), b.astype(object)))


def exact_sum(values: npt.ArrayLike) -> int:
    """The exact sum of whole numbers."""
    array = np.asarray(values).ravel()
    return exact_dot(array, np.ones(len(array), dtype=np.int64))


def is_finite(value: Any) -> bool:
    """Whether it is a finite number; booleans are none."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return isinstance(value, (int, np.integer)) or math.isfinite(value)


def equal(stated: Any, found: Any, within: float = 0.0) -> bool:
    """Whether a stated number is the one that was computed; ``within`` is the relative difference allowed.

    Compared as rational numbers, so no size overflows and ``2**53 + 1`` is not ``2.0**53``. Two whole numbers must be
    the same whatever ``within`` says, ``-0.0`` is 0, and nothing equals what is not finite. What is no number equals
    only itself.
    """
    if not (is_finite(stated) and is_finite(found)):
        numbers = any(isinstance(value, float) or is_finite(value) for value in (stated, found))
        return not numbers and type(stated) is type(found) and bool(stated == found)
    if stated == found or (isinstance(stated, int) and isinstance(found, int)) or not within:
        return bool(stated == found)
    left, right = Fraction(stated), Fraction(found)
    return abs(left - right) <= Fraction(within) * max(abs(left), abs(right))


_FINITE = frozenset((str, int, bool, type(None)))  # most of a record's values


def not_finite(data: Any, path: str = "") -> Iterator[str]:
    """The places of numbers that are infinite or none, as ``verified.facts.links[3]``."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if type(value) not in _FINITE:
                yield from not_finite(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, (list, tuple)):
        for index, value in enumerate(data):
            if type(value) not in _FINITE:
                yield from not_finite(value, f"{path}[{index}]")
    elif isinstance(data, float) and not math.isfinite(data):
        yield path


def _array(stored: Mapping[str, Any], key: str, shape: Shape) -> Any:
    if key not in stored:
        raise ValueError(f"{key} is missing")
    try:
        array = np.asarray(stored[key])
    except (ValueError, OverflowError):
        raise ValueError(f"{key} is not a regular list of numbers") from None
    if shape and not array.size and array.ndim <= len(shape):
        if shape[0]:
            raise ValueError(f"{key} is empty")
        return np.zeros([0 if length is None else length for length in shape], dtype=np.int64)
    if not _fits(array.shape, shape):
        wanted = " x ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{key} has shape {' x '.join(map(str, array.shape)) or 'of one number'}, not {wanted}")
    if array.dtype.kind != "b" and _has_truth_value(stored[key]):  # numpy reads it as 0 or 1
        raise ValueError(f"{key} holds a truth value among numbers")
    return array


def _has_truth_value(listed: Any) -> bool:
    """Whether nested lists hold a boolean."""
    if not isinstance(listed, (list, tuple)):
        return isinstance(listed, (bool, np.bool_))
    return not {bool, np.bool_}.isdisjoint(map(type, listed)) or any(
        _has_truth_value(entry) for entry in listed if isinstance(entry, (list, tuple))
    )


def _fits(found: tuple[int, ...], shape: Shape) -> bool:
    """Whether an array's shape is as wanted, where None is any length."""
    return len(found) == len(shape) and all(
        want is None or want == have for want, have in zip(shape, found, strict=True)
    )


def _scalar(stored: Mapping[str, Any], key: str) -> Any:
    if key not in stored:
        raise ValueError(f"{key} is missing")
    value = stored[key]
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
