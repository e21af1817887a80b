"""Quantities as people write them (``25GB/s``, ``200Gbit/s``, ``0.7us``, ``1MiB``, ``1e9``), read exactly.

The one parser for keys of ``synth make``, options of commands, cells of tables, and files of failures. A number without
a unit is in SI: bytes/s, seconds, bytes. Every reader raises ``ValueError`` in words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Literal

Kind = Literal["rate", "time", "size", "number"]
LEAST_RATE, MOST_RATE = 1e-3, 1e18  # bytes/s
MOST_DURATION = 1e6  # s
MOST_SIZE = 2**48
LONGEST = 400  # characters of a quantity
MOST_DIGITS = 18  # of a share's fraction in lowest terms
LARGEST_EXPONENT = 400  # of ten: what is beyond it is no float
_PREFIXES = {
    "": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15,
    "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "pi": 2**50,
}  # fmt: skip
_SECONDS = {
    "s": Fraction(1), "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6), "ns": Fraction(1, 10**9), "ps": Fraction(1, 10**12),
    "m": Fraction(60), "min": Fraction(60), "h": Fraction(3600),
}  # fmt: skip
_NUMBER = r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)"
_FORMS = {
    "rate": re.compile(_NUMBER + r"\s*(?:([kKMGT]i?)?(?:(B|bytes)(?:/s|ps)|(b|bit|bits)(?:/s|ps)))?"),
    "time": re.compile(_NUMBER + r"\s*(s|ms|us|µs|μs|ns|ps)?"),
    "wall": re.compile(_NUMBER + r"\s*(s|ms|us|µs|μs|ns|m|min|h)?"),
    "size": re.compile(_NUMBER + r"\s*([kmgtp]i?)?(?:b|bytes?)?", re.IGNORECASE),
    "number": re.compile(_NUMBER),
    "share": re.compile(r"([0-9]{1,18})\s*/\s*([0-9]{1,18})|" + _NUMBER + r"\s*(%)?"),
}
WANTED = {
    "rate": "must be a rate such as 25GB/s, 200Gbit/s or 25e9 (bytes/s)",
    "time": "must be a time such as 0.7us, 350ns or 7e-7 (seconds)",
    "size": "must be a size in bytes such as 1GiB, 64KB or 4096",
    "number": "must be a number",
    "share": "must be a share between 0 and 1 such as 11/12, 0.5 or 75% (18 digits at most)",
}


@lru_cache(maxsize=4096)
def amount(text: str, kind: Kind) -> Fraction:
    """Return exactly what the text says, in SI, whatever its sign and range.

    In rates ``b`` and ``bit`` are eighths of a byte, and capitals matter; in sizes they do not, and ``b`` is a byte.
    ``K`` is 1000, ``Ki`` 1024.
    """
    number, *rest = _found(text, kind, WANTED[kind])
    value = _exact(number)
    match kind:
        case "rate":
            prefix, _, bits = rest
            return value * _PREFIXES[prefix.lower()] / (8 if bits else 1)
        case "time":
            return value * _SECONDS["".join(rest) or "s"]
        case "size":
            return value * _PREFIXES["".join(rest).lower()]
    return value


def real(text: str, kind: Kind) -> float:
    """Return the float nearest to what the text says, in SI."""
    try:
        return float(amount(text, kind))
    except OverflowError:
        raise ValueError("is beyond any machine") from None


def whole_bytes(text: str) -> int:
    """Return a size as a whole number of bytes, whatever its sign and range."""
    value = amount(text, "size")
    if value.denominator != 1:
        raise ValueError("must be a whole number of bytes")
    return value.numerator


def rate(text: str) -> float:
    """Return bytes per second of a link."""
    return _in_range(amount(text, "rate"), LEAST_RATE, MOST_RATE, "bytes/s")


def duration(text: str) -> float:
    """Return the seconds of a latency."""
    return _in_range(amount(text, "time"), 0.0, MOST_DURATION, "s")


def size(text: str) -> int:
    """Return a whole number of bytes, 1 to 2^48."""
    value = amount(text, "size")
    if value.denominator != 1 or not 1 <= value <= MOST_SIZE:
        raise ValueError(f"must be a whole number of bytes, 1 to {MOST_SIZE}")
    return int(value)


def share(text: str) -> Fraction:
    """Return a share that is more than 0 and less than 1: ``11/12``, ``0.5``, ``75%``."""
    above, below, number, percent = _found(text, "share", WANTED["share"])
    if number:
        value = _exact(number) / (100 if percent else 1)
    else:
        value = Fraction(int(above), int(below)) if int(below) else Fraction(0)
    if not 0 < value < 1 or value.denominator >= 10**MOST_DIGITS:
        raise ValueError(WANTED["share"])
    return value


def wall_time(text: str) -> float:
    """Return the seconds of a limit for a run: ``90``, ``60s``, ``1.5m``, ``2h``; more than 0."""
    wanted = "must be a duration > 0 such as 90, 60s, 5m or 2h"
    number, unit = _found(text, "wall", wanted)
    return _positive(_exact(number) * _SECONDS[unit or "s"], wanted)


def megabytes(text: str) -> float:
    """Return megabytes (10^6 bytes) of ``500M``, ``4G``, ``1.5GB``, ``4GiB``; a bare number is megabytes; more than
    0."""
    wanted = "must be a size > 0 such as 500M or 4G"
    number, prefix = _found(text, "size", wanted)
    bare = re.fullmatch(_NUMBER, text.strip()) is not None
    return _positive(_exact(number) * (1 if bare else Fraction(_PREFIXES[prefix.lower()], 10**6)), wanted)


def scaled_rate(value: float, factor: int | Fraction) -> float:
    """Return ``value`` (the decimal as written) times the factor, the product as a float."""
    return _in_range(_exact(repr(value)) * factor, LEAST_RATE, MOST_RATE, "bytes/s")


def scaled_duration(value: float, factor: int | Fraction) -> float:
    """Return ``value`` (the decimal as written) times the factor."""
    return _in_range(_exact(repr(value)) * factor, 0.0, MOST_DURATION, "s")


def typed(read: Callable[[str], object]) -> Callable[[object], object]:
    """Return a reader that reads texts and leaves all other values as they are."""
    return lambda value: read(value) if isinstance(value, str) else value


def _found(text: str, form: str, wanted: str) -> tuple[str, ...]:
    """The groups of a form's pattern, empty where they took no part. Raises ``ValueError``."""
    found = _FORMS[form].fullmatch(text.strip()) if len(text) <= LONGEST else None
    if found is None:
        raise ValueError(wanted)
    return found.groups(default="")


def _exact(text: str) -> Fraction:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError("must be a number") from None
    if not number.is_finite() or (number and abs(number.adjusted()) > LARGEST_EXPONENT):
        raise ValueError("is beyond any machine")
    return Fraction(number)


def _positive(value: Fraction, wanted: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(wanted) from None
    if not number > 0:
        raise ValueError(wanted)
    return number


def _in_range(value: Fraction, least: float, most: float, unit: str) -> float:
    number = float(value) if abs(value) < 2**1000 else math.inf
    if not math.isfinite(number) or not least <= number <= most:
        raise ValueError(f"must be in {least:g}..{most:g} {unit}")
    return number
