"""What the figures of a study share: a chart of one family, and names in the order of their numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import FigureBase


@dataclass(frozen=True)
class Chart:
    """One family's figure: its size [inches] and how to draw it."""

    width: float
    height: float
    paint: Callable[[FigureBase], None]


def natural(name: str) -> list[tuple[int, int | str]]:
    """To sort names by as a person would: ring-8 before ring-16, 8KiB before 1MiB."""
    return [_comparable(word) for word in re.split(r"([0-9]+(?:[KMGT]i?B(?![A-Za-z]))?)", name) if word]


def _comparable(word: str) -> tuple[int, int | str]:
    digits = re.match(r"[0-9]+", word)
    if digits is None:
        return 1, word
    unit = word[digits.end() :]
    power = " KMGT".index(unit[0]) if unit else 0
    return 0, int(digits[0]) * (1024 if "i" in unit else 1000) ** power
