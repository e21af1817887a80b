"""A plan where chunks are copied: who sends what over which link in which epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synth_models.fabric.programs.epochs.grid import FAR, Grid

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sends:
    """``chunk`` goes over ``link`` in ``epoch``: shape (sends,) each, those into a switch before those out of it."""

    chunk: IntArray
    link: IntArray
    epoch: IntArray

    def __len__(self) -> int:
        return len(self.chunk)

    def taken(self, which: BoolArray | IntArray) -> Sends:
        """Those sends alone."""
        return Sends(self.chunk[which], self.link[which], self.epoch[which])


def epochs_of(grid: Grid, sends: Sends) -> int:
    """Epochs until everything is where it is wanted, for sends that are in order."""
    arrive = np.full(grid.wanted.shape, FAR, dtype=np.int64)
    np.minimum.at(arrive, (sends.chunk, grid.dst[sends.link]), sends.epoch + grid.lag[sends.link])
    arrive[np.arange(len(grid.origin)), grid.origin] = 0
    return int(arrive[grid.wanted].max(initial=0))
