"""What a run of all ranks ended with; numbers only, which :mod:`synth.ranks.words` puts into words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from synth.arrays import IntArray

Why = Literal["message", "read", "step"]
MOST_WRONG = 5  # pieces of a rank that are told apart


class Blocked(NamedTuple):
    """An operation that a rank waits to do, and for what: the ``message`` that has not come, the one that its receiver
    has not ``read``, or an operation of the same rank (``step``); ``what`` is the number of either."""

    rank: int
    operation: int
    why: Why
    what: int


class Wrong(NamedTuple):
    """Words of a rank's final memory that are not what they must be: ``region`` of the program's ends, how many of its
    ``words`` are wrong, the first of them by its place in the region, and the bits found there."""

    rank: int
    region: int
    words: int
    first: int
    found: int


class Died(NamedTuple):
    """A rank whose process ended too early, and how, in words."""

    rank: int
    how: str


@dataclass
class Outcome:
    """``seconds``: of every repetition, from the first rank's start to the last one's end; ``library_s``: of the MPI
    library's own collective. ``wrong``: of the first repetition that had any, ``wrong_regions`` how many in all;
    ``received``: bytes that every rank (row) sent to every other (column) in one repetition, as counted on arrival.
    ``blocked``: of ranks that waited for each other until the time was up; ``died``: the first rank that did."""

    seconds: list[float] = field(default_factory=list)
    library_s: list[float] = field(default_factory=list)
    wrong: list[Wrong] = field(default_factory=list)
    wrong_regions: int = 0
    received: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    blocked: list[Blocked] = field(default_factory=list)
    died: Died | None = None
