"""Who waits for which transfer, and for how long after its start."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit

NEVER = -(2**62)  # the lag behind what never comes


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


@jit(inlined=True)
def becomes_ready(followers: Followers, ready: IntArray, waits: IntArray, entry: int, now: Any) -> bool:
    """Note for the follower at this entry that what it waits for starts ``now``: whether that was the last, so that it
    is ready at ``ready``. ``waits``: for how many each transfer still waits; for ever where one never comes to it."""
    lag, i = followers.lag[entry], followers.transfer[entry]
    if lag == NEVER:
        return False
    ready[i] = max(ready[i], now + max(lag, 0))
    waits[i] -= 1
    return bool(waits[i] == 0)
