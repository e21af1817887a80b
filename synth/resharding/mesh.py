"""Meshes as TOML files: axes with their sizes, and the ranks in the order of their coordinates.

axes = { pp = 4, dp = 2, ep = 16, tp = 1 }    # the last axis changes fastest from rank to rank
ranks = "0-63,72-135"                         # nodes of the machine, as many as the sizes multiply to
order = ["pp", "dp", "ep", "tp"]              # optional: the axes from the slowest to the fastest
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.errors import Fault, InputError
from synth.text.input_file import InputFile
from synth.text.toml import parse_toml

KEYS = ("axes", "ranks", "order")
MOST_RANKS = 1 << 16


@dataclass(frozen=True)
class Mesh:
    """``axes``: names and sizes from the slowest to the fastest; ``ranks``: node numbers, one a coordinate."""

    axes: Mapping[str, int]
    ranks: tuple[int, ...]

    @cached_property
    def grid(self) -> IntArray:
        """The rank at every coordinate, shape of the axes."""
        return np.array(self.ranks, dtype=np.int64).reshape(tuple(self.axes.values()))

    def at(self, chosen: Mapping[str, frozenset[int]]) -> tuple[int, ...]:
        """The ranks whose coordinates on the axes named are among those chosen, ascending."""
        index = [sorted(chosen[axis]) if axis in chosen else range(size) for axis, size in self.axes.items()]
        return tuple(sorted(self.grid[np.ix_(*index)].reshape(-1).tolist()))


def read_mesh(file: InputFile, nodes: Collection[int] | None = None) -> Mesh:
    """The mesh of a file, its ranks among these ``nodes``. Raises :class:`InputError` with every fault by its line and
    key."""
    raw = parse_toml(file.text, str(file))
    faults = [
        Fault(_place(file, fault.path), fault.message, fault.value, fault.has_value) for fault in _faults(raw, nodes)
    ]
    if faults:
        raise InputError(faults, str(file))
    order = raw.get("order", list(raw["axes"]))
    return Mesh({axis: raw["axes"][axis] for axis in order}, tuple(_numbers(raw["ranks"])))


def axes_alone(file: InputFile) -> Mesh | None:
    """The axes of a file that has other faults, without ranks: enough to read layouts by. None if they are wrong."""
    try:
        axes = _sizes(parse_toml(file.text, str(file)).get("axes"))
    except InputError:
        return None
    return None if axes is None else Mesh(axes, ())


def _faults(raw: Mapping[str, Any], nodes: Collection[int] | None) -> Iterator[Fault]:
    yield from (Fault(key, f"no such key: there are {', '.join(KEYS)}") for key in raw if key not in KEYS)
    yield from (Fault(key, "is missing") for key in ("axes", "ranks") if key not in raw)
    axes, ranks, order = raw.get("axes"), raw.get("ranks"), raw.get("order")
    if axes is not None:
        yield from _faults_of_axes(axes)
    if order is not None and isinstance(axes, dict) and (not _words(order) or sorted(order) != sorted(axes)):
        yield Fault("order", f"must name every axis once: {', '.join(axes)}", order, True)
    if ranks is not None:
        yield from _faults_of_ranks(ranks, _sizes(axes), nodes)


def _faults_of_ranks(ranks: Any, sizes: Mapping[str, int] | None, nodes: Collection[int] | None) -> Iterator[Fault]:
    try:
        numbers = _numbers(ranks)
    except ValueError as error:
        yield Fault("ranks", str(error), ranks, True)
        return
    if len(numbers) > MOST_RANKS:
        yield Fault("ranks", f"names {len(numbers)} ranks: at most {MOST_RANKS} are supported")
        return
    twice = sorted(rank for rank, many in Counter(numbers).items() if many > 1)
    yield from (Fault("ranks", f"names rank {rank} twice") for rank in twice[:8])
    strange = [] if nodes is None else [rank for rank in dict.fromkeys(numbers) if rank not in nodes]
    if nodes and strange:
        named = ", ".join(map(str, strange[:8])) + (f" and {len(strange) - 8} more" if len(strange) > 8 else "")
        yield Fault("ranks", f"the machine has no rank {named}: its ranks are among {min(nodes)} to {max(nodes)}")
    if sizes is not None and math.prod(sizes.values()) != len(numbers):
        product = " x ".join(f"{axis} {size}" for axis, size in sizes.items())
        yield Fault("axes", f"{product} is {math.prod(sizes.values())}, but there are {len(numbers)} ranks")


def _faults_of_axes(axes: Any) -> Iterator[Fault]:
    if not isinstance(axes, dict) or not axes:
        yield Fault("axes", "must be a table of names and sizes, such as { pp = 2, tp = 8 }")
        return
    for axis, size in axes.items():
        if not axis.isidentifier():
            yield Fault("axes", f"axis {axis!r}: must be a name of letters, digits and _")
        if type(size) is not int or not 1 <= size <= MOST_RANKS:
            yield Fault("axes", f"axis {axis}: size must be a whole number in 1..{MOST_RANKS}", size, True)


def _sizes(axes: Any) -> dict[str, int] | None:
    if isinstance(axes, dict) and axes and all(type(n) is int and 1 <= n <= MOST_RANKS for n in axes.values()):
        return axes
    return None


def _words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _numbers(ranks: Any) -> list[int]:
    """Node numbers of ``"0-7,12"`` or of a list. Raises ``ValueError``."""
    if isinstance(ranks, list):
        if not ranks or any(type(rank) is not int or rank < 0 for rank in ranks):
            raise ValueError("must be node numbers")
        return ranks
    if not isinstance(ranks, str):
        raise ValueError('must be node numbers, such as "0-7,12"')
    found: list[int] = []
    for part in ranks.split(","):
        first, _, last = part.strip().partition("-")
        ends = [first.strip(), (last or first).strip()]
        if not all(end.isascii() and end.isdecimal() and len(end) <= 9 for end in ends):
            raise ValueError('must be node numbers, such as "0-7,12"')
        low, high = map(int, ends)
        if low > high or len(found) + high - low >= MOST_RANKS:
            raise ValueError(f"{part.strip()}: must ascend, {MOST_RANKS} ranks at most")
        found += range(low, high + 1)
    return found


def _place(file: InputFile, key: str) -> str:
    """The line on which a key stands, and the key."""
    for number, line in enumerate(file.text.split("\n"), 1):
        words = line.replace("]", " ").replace("[", " ").replace("=", " ").split()
        if words and words[0].split(".")[0] == key:
            return f"line {number}, {key}"
    return key
