"""Sizes of messages as a person lists them: ``1KiB..4GiB`` (each four times the one before), ``1KiB..4GiB*2``, or
``1KiB,1MiB``."""

from __future__ import annotations

import re

from synth.errors import Fault, InputError
from synth.text.amounts import size

MOST_SIZES = 64
FACTOR = 4
WANTED = "must be sizes such as 1KiB..4GiB, 1KiB..4GiB*2 or 64KiB,1MiB"


def read_sizes(text: str) -> list[int]:
    """The sizes in bytes, ascending, each once. Raises :class:`InputError`."""
    found: set[int] = set()
    try:
        for word in text.split(","):
            found |= set(_range(word.strip()))
            if len(found) > MOST_SIZES:
                raise ValueError(f"has more than {MOST_SIZES} sizes")
    except ValueError as error:
        raise InputError([Fault("--sizes", f"{error}; {WANTED}", text, True)]) from None
    return sorted(found)


def _range(word: str) -> list[int]:
    """The sizes of a range, or the one size that stands there."""
    if ".." not in word:
        return [_bytes(word)]
    low, _, high = word.partition("..")
    high, star, times = high.partition("*")
    if star and not re.fullmatch(r"[0-9]{1,9}", times.strip()):
        raise ValueError(f"{times!r} is no factor")
    factor = int(times) if star else FACTOR
    first, last = _bytes(low), _bytes(high)
    if factor < 2:
        raise ValueError("the factor must be at least 2")
    if last < first:
        raise ValueError(f"{high.strip()} is less than {low.strip()}")
    found = [first]
    while found[-1] * factor <= last and len(found) <= MOST_SIZES:
        found.append(found[-1] * factor)
    return found


def _bytes(word: str) -> int:
    found = int(size(word.strip()))
    if found < 1:
        raise ValueError(f"{word.strip()!r} is no size")
    return found
