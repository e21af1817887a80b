"""Lists of hosts as Slurm and its kin write them: ``n[01-04,07],login1``, ``rack[1-2]n[1-18]``."""

from __future__ import annotations

import math
import re
from itertools import product

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_NAME = re.compile(r"[A-Za-z0-9_.:-]*")


def expanded(text: str, most: int) -> list[str]:
    """The hosts in their order. Raises ``ValueError`` in words for what is no such list and, before any name is made,
    for more than ``most``."""
    hosts: list[str] = []
    for word in _words(text):
        literals, ranges = _BRACKETS.split(word)[::2], [_ranges(inner) for inner in _BRACKETS.split(word)[1::2]]
        if not word or not all(map(_NAME.fullmatch, literals)):
            raise ValueError("must be names of hosts such as n[01-04,07],login1")
        count = math.prod(sum(last - first + 1 for first, last, _ in inner) for inner in ranges)
        if len(hosts) + count > most:
            raise ValueError(f"are more than {most:,} hosts")
        choices = [
            [f"{i:0{width}d}" for first, last, width in inner for i in range(first, last + 1)] for inner in ranges
        ]
        for chosen in product(*choices):
            hosts.append("".join(part for pair in zip(literals, (*chosen, ""), strict=True) for part in pair))
    return hosts


def _words(text: str) -> list[str]:
    """The list cut at the commas that stand in no brackets."""
    words, depth = [""], 0
    for letter in text.strip():
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            words.append("")
        else:
            words[-1] += letter
    return words


def _ranges(text: str) -> list[tuple[int, int, int]]:
    """First and last number and the width of each range."""
    found = []
    for part in text.split(","):
        bounds = _RANGE.fullmatch(part.strip())
        if bounds is None or int(bounds[2] or bounds[1]) < int(bounds[1]):
            raise ValueError("must have ranges such as [01-04,07] in brackets")
        found.append((int(bounds[1]), int(bounds[2] or bounds[1]), len(bounds[1])))
    return found
