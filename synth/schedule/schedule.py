"""Schedules: flat arrays of transfers, each one chunk over one link in one timestep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.arrays import BoolArray, Int32Array
from synth.text.untrusted import LEAST, MOST


@dataclass(frozen=True)
class Schedule:
    """Transfers, all arrays of shape (transfers,).

    ``step`` counts timesteps from 1; ``link`` is a link id; ``chunk`` a chunk id; where ``adds`` the receiver adds
    what it gets to its own partial sum (reduction), elsewhere it stores a copy. What is sent in a step is what the
    sender held at the end of the step before.
    """

    step: Int32Array
    link: Int32Array
    chunk: Int32Array
    adds: BoolArray

    @staticmethod
    def of(step: npt.ArrayLike, link: npt.ArrayLike, chunk: npt.ArrayLike, adds: npt.ArrayLike = False) -> Schedule:
        """From anything array-like, copied; ``adds`` may be one value for all.

        Raises ``ValueError`` on unlike lengths and on anything but whole numbers of 32 bits.
        """
        steps, links, chunks = (_whole_numbers(column) for column in (step, link, chunk))
        if not len(steps) == len(links) == len(chunks):
            raise ValueError("step, link and chunk have the same length")
        flags = np.array(np.broadcast_to(np.asarray(adds, dtype=bool), steps.shape))
        for column in (steps, links, chunks, flags):
            column.setflags(write=False)
        return Schedule(steps, links, chunks, flags)

    def __len__(self) -> int:
        return len(self.step)

    @property
    def steps(self) -> int:
        """The last timestep used; 0 for an empty schedule."""
        return int(self.step.max()) if len(self) else 0

    def sorted(self) -> Schedule:
        """The same transfers ordered by step, then link (the order in which schedules are shown and stored)."""
        key = self.step.astype(np.int64) * (int(self.link.max(initial=0)) + 1) + self.link
        order = np.argsort(key, kind="stable")
        if np.any(key[order[1:]] == key[order[:-1]]):  # a link used twice in a step, which only a faulty schedule does
            order = np.lexsort((self.chunk, self.link, self.step))
        return Schedule.of(self.step[order], self.link[order], self.chunk[order], self.adds[order])

    def then(self, other: Schedule) -> Schedule:
        """This schedule followed by ``other``, whose steps are shifted behind it (``ValueError`` beyond 32 bits)."""
        return Schedule.of(
            np.concatenate([self.step, other.step.astype(np.int64) + self.steps]),
            np.concatenate([self.link, other.link]),
            np.concatenate([self.chunk, other.chunk]),
            np.concatenate([self.adds, other.adds]),
        )

    def reversed_in_time(self, adds: npt.ArrayLike) -> Schedule:
        """The schedule played backwards: on the reversed network an allgather becomes a reduce-scatter. ``adds``: of
        every transfer, or one value for all."""
        return Schedule.of(self.steps + 1 - self.step.astype(np.int64), self.link, self.chunk, adds)


def _whole_numbers(values: Any) -> Int32Array:
    array = np.asarray(values).reshape(-1)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError("step, link and chunk are whole numbers")
    if array.size and array.dtype != np.int32 and (int(array.min()) < LEAST or int(array.max()) > MOST):
        raise ValueError("step, link and chunk are numbers of 32 bits")
    return np.array(array, dtype=np.int32)
