"""TOML files of whatever origin."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from typing import Any

from synth.errors import InputError

MOST_BYTES = 1 << 22
MOST_DOTS = 100  # of a key: reading one takes time in the square of its parts
MOST_BITS = 1024  # of a whole number: more have no decimal form that Python would print


def parse_toml(text: str, source: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The table of a TOML text. Raises :class:`InputError` naming the source for what is none, and for what only a
    program would write: nested too deeply, too large, or with numbers of hundreds of digits."""
    if len(text) > MOST_BYTES:
        raise InputError(f"has {len(text):,} characters: at most {MOST_BYTES:,} are supported", source)
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MOST_DOTS and any(word.count(".") > MOST_DOTS for word in re.split("[,=]", line)):
            raise InputError(f"line {number}: has a key of more than {MOST_DOTS} parts", source)
    try:
        raw = tomllib.loads(text, parse_float=parse_float)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not valid TOML: {error}", source) from None
    except (ValueError, ArithmeticError):
        raise InputError("not valid TOML: holds a number that is too long", source) from None
    except RecursionError:
        raise InputError("not valid TOML: nested too deeply", source) from None
    for key, value in raw.items():
        if _has_giant(value):
            raise InputError(f"{key}: holds a whole number of more than {MOST_BITS} bits", source)
    return raw


def _has_giant(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_giant, value.values()))
    if isinstance(value, list):
        return any(map(_has_giant, value))
    return isinstance(value, int) and value.bit_length() > MOST_BITS
