"""Who waits for which transfer, and for how long after its start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth_models.fabric.scheduling.cells import NEVER


class Followers(NamedTuple):
    """Who waits for transfer i: ``transfer[row[i]:row[i + 1]]``, each for ``lag`` ticks from the start of i on,
    :data:`NEVER` if i never comes to where it starts; less than 0 where a source may still wait for it after the start.
    ``row``: shape (transfers + 1,)."""

    row: IntArray
    transfer: IntArray
    lag: IntArray


@jit
def with_lags(
    row: IntArray,
    transfer: IntArray,
    route_start: IntArray,
    link: IntArray,
    src: IntArray,
    dst: IntArray,
    arrival: IntArray,
    leaves: IntArray,
) -> Followers:
    """Those that wait for transfer i, with the lag of each: until that is at the nodes from which it leaves."""
    lag = np.full(len(transfer), NEVER, dtype=np.int64)
    for i in range(len(row) - 1):
        for s in range(row[i], row[i + 1]):
            for j in range(route_start[transfer[s]], route_start[transfer[s] + 1]):
                if leaves[j] < 0:
                    continue
                node = src[link[j]]
                for k in range(route_start[i], route_start[i + 1]):
                    if dst[link[k]] == node:
                        lag[s] = max(lag[s], arrival[k] - leaves[j])
                        break
    return Followers(row, transfer, lag)
