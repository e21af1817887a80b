"""What the figures of a study share: a chart of one family, and names in the order of their numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from matplotlib.figure import FigureBase

_SIZE = r"[0-9]+(?:\.[0-9]+)? ?(?:[KMGT]i?)?B(?![A-Za-z])"


@dataclass(frozen=True)
class Chart:
    """One family's figure: its size [inches] and how to draw it."""

    width: float
    height: float
    paint: Callable[[FigureBase], None]


def natural(name: str) -> list[tuple[int, Fraction | str]]:
    """To sort names by as a person would: ring-8 before ring-16, 8KiB before 1.5 MiB."""
    return [_comparable(word) for word in re.split(rf"({_SIZE}|[0-9]+)", name) if word]


def _comparable(word: str) -> tuple[int, Fraction | str]:
    if not word[0].isdecimal() or not word[0].isascii():
        return 1, word
    digits, unit = re.fullmatch(r"([0-9.]+) ?(.*)", word).groups()  # type: ignore[union-attr]
    power = " KMGT".index(unit[0]) if len(unit) > 1 else 0
    return 0, Fraction(digits) * (1024 if "i" in unit else 1000) ** power
