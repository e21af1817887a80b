"""Maximum flow between two nodes of a small network given as a matrix of whole capacities (Dinic)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from synth.deadline import OutOfTime, left
from synth.kernel_clock import now
from synth.kernels import jit

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@jit
def neighbours(capacity: IntArray, nodes: int) -> tuple[IntArray, IntArray]:
    """Rows of the nodes joined to each node by capacity in either direction: starts, shape (nodes + 1,), and nodes."""
    start = np.zeros(nodes + 1, dtype=np.int64)
    for u in range(nodes):
        start[u + 1] = start[u]
        for v in range(nodes):
            if u != v and (capacity[u, v] > 0 or capacity[v, u] > 0):
                start[u + 1] += 1
    other = np.empty(start[nodes], dtype=np.int64)
    k = 0
    for u in range(nodes):
        for v in range(nodes):
            if u != v and (capacity[u, v] > 0 or capacity[v, u] > 0):
                other[k] = v
                k += 1
    return start, other


@jit
def augment(residual: IntArray, start: IntArray, other: IntArray, source: int, sink: int, most: int) -> int:
    """Send up to ``most`` from source to sink; changes ``residual``, shape (n, n); returns what was sent.

    Dinic's algorithm: blocking flows in the layers of breadth-first search; O(n^2 m) at worst.
    """
    nodes = len(start) - 1
    sent = 0
    level = np.empty(nodes, dtype=np.int64)
    queue = np.empty(nodes, dtype=np.int64)
    at = np.empty(nodes, dtype=np.int64)
    path = np.empty(nodes + 1, dtype=np.int64)
    while sent < most:
        level[:] = -1
        level[source] = 0
        queue[0] = source
        head, tail = 0, 1
        while head < tail and level[sink] < 0:
            u = queue[head]
            head += 1
            for k in range(start[u], start[u + 1]):
                v = other[k]
                if level[v] < 0 and residual[u, v] > 0:
                    level[v] = level[u] + 1
                    queue[tail] = v
                    tail += 1
        if level[sink] < 0:
            break
        at[:] = start[:nodes]
        length = 0
        path[0] = source
        while sent < most:
            u = path[length]
            if u == sink:
                amount = most - sent
                for i in range(length):
                    amount = min(amount, residual[path[i], path[i + 1]])
                back = length
                for i in range(length - 1, -1, -1):
                    residual[path[i], path[i + 1]] -= amount
                    residual[path[i + 1], path[i]] += amount
                    if residual[path[i], path[i + 1]] == 0:
                        back = i
                sent += amount
                length = back
                continue
            found = False
            while at[u] < start[u + 1]:
                v = other[at[u]]
                if level[v] == level[u] + 1 and residual[u, v] > 0:
                    found = True
                    break
                at[u] += 1
            if found:
                length += 1
                path[length] = other[at[u]]
            elif length == 0:
                break
            else:
                length -= 1
                at[path[length]] += 1
    return sent


@jit
def behind(residual: IntArray, start: IntArray, other: IntArray, source: int) -> BoolArray:
    """Which nodes can still be reached from the source: its side of a least cut after :func:`augment`."""
    nodes = len(start) - 1
    seen = np.zeros(nodes, dtype=np.bool_)
    queue = np.empty(nodes, dtype=np.int64)
    seen[source] = True
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        u = queue[head]
        head += 1
        for k in range(start[u], start[u + 1]):
            v = other[k]
            if not seen[v] and residual[u, v] > 0:
                seen[v] = True
                queue[tail] = v
                tail += 1
    return seen


def shortfall(capacity: IntArray, source: int, sinks: IntArray, need: int, enough: int) -> tuple[int, int]:
    """How much the worst sink misses of ``need`` units from the source, and its number in ``sinks`` (-1: none
    misses anything); stops at the first that misses ``enough``. Raises :class:`OutOfTime` at the time limit."""
    worst, who = _shortfall(capacity, source, sinks, need, enough, left())
    if worst < 0:
        raise OutOfTime
    return worst, who


@jit
def _shortfall(
    capacity: IntArray, source: int, sinks: IntArray, need: int, enough: int, seconds: float
) -> tuple[int, int]:
    """As :func:`shortfall`; (-1, -1) when the seconds are over."""
    nodes = capacity.shape[0]
    start, other = neighbours(capacity, nodes)
    worst, who = 0, -1
    end = now() + seconds
    for i in range(len(sinks)):
        if now() > end:
            return -1, -1
        residual = capacity.copy()
        missing = need - augment(residual, start, other, source, sinks[i], need)
        if missing > worst:
            worst, who = missing, i
            if worst >= enough:
                break
    return worst, who
