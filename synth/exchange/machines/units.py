"""Rates, durations and sizes as people write them (``25GB/s``, ``200Gbit/s``, ``0.7us``, ``1MiB``), read exactly.

A number without a unit is in SI: bytes/s, seconds, bytes. Every reader raises ``ValueError`` in words.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache

LEAST_RATE, MOST_RATE = 1.0, 1e18  # bytes/s
MOST_DURATION = 1e6  # s
MOST_SIZE = 2**48
_PREFIXES = {
    "": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip
_SECONDS = {"s": 0, "ms": -3, "us": -6, "µs": -6, "μs": -6, "ns": -9, "ps": -12}
_NUMBER = r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)"
_RATE = re.compile(_NUMBER + r"\s*(?:([kKMGT]i?)?(?:(B|bytes)(?:/s|ps)|(b|bit|bits)(?:/s|ps)))?")
_TIME = re.compile(_NUMBER + r"\s*(s|ms|us|µs|μs|ns|ps)?")
_SIZE = re.compile(_NUMBER + r"\s*(?:([kKMGT]i?)?(?:B|bytes))?")


@lru_cache(maxsize=4096)
def rate(text: str) -> float:
    """Bytes per second; ``b`` and ``bit`` are eighths, ``K`` is 1000, ``Ki`` 1024."""
    found = _RATE.fullmatch(text.strip()[:64])
    if found is None:
        raise ValueError("must be a rate such as 25GB/s, 200Gbit/s or 25e9 (bytes/s)")
    value = _exact(found[1]) * _PREFIXES[found[2] or ""] / (8 if found[4] else 1)
    return _in_range(value, LEAST_RATE, MOST_RATE, "bytes/s")


@lru_cache(maxsize=4096)
def duration(text: str) -> float:
    """Seconds."""
    found = _TIME.fullmatch(text.strip()[:64])
    if found is None:
        raise ValueError("must be a time such as 0.7us, 350ns or 7e-7 (seconds)")
    return _in_range(_exact(found[1]) * Fraction(10) ** _SECONDS[found[2] or "s"], 0.0, MOST_DURATION, "s")


def size(text: str) -> int:
    """Bytes, a whole number of them."""
    found = _SIZE.fullmatch(text.strip()[:64])
    if found is None:
        raise ValueError("must be a size such as 1MB, 64KiB or 4096 (bytes)")
    value = _exact(found[1]) * _PREFIXES[found[2] or ""]
    if value.denominator != 1 or not 1 <= value <= MOST_SIZE:
        raise ValueError(f"must be a whole number of bytes, 1 to {MOST_SIZE}")
    return int(value)


def scaled_rate(value: float, factor: int | Fraction) -> float:
    """``value`` (the decimal as written) times the factor, the product as a float. Raises ``ValueError``."""
    return _in_range(_exact(repr(value)) * factor, LEAST_RATE, MOST_RATE, "bytes/s")


def scaled_duration(value: float, factor: int | Fraction) -> float:
    """``value`` (the decimal as written) times the factor. Raises ``ValueError``."""
    return _in_range(_exact(repr(value)) * factor, 0.0, MOST_DURATION, "s")


def _exact(text: str) -> Fraction:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError("must be a number") from None
    if not number.is_finite() or (number and abs(number.adjusted()) > 60):
        raise ValueError("is beyond any machine")
    return Fraction(number)


def _in_range(value: Fraction, least: float, most: float, unit: str) -> float:
    number = float(value)
    if not math.isfinite(number) or not least <= number <= most:
        raise ValueError(f"must be in {least:g}..{most:g} {unit}")
    return number
