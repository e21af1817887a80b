"""The fewest epochs that counting can prove: distances, and cuts with what comes before and after them.

**Cut, copied.** V chunks begin in a node set S and are wanted by members outside. Link e out of S can first send in epoch
``head_e``, the least distance from an origin in S, and begins at most ``quota_e * ceil(L / window_e)`` chunks in L
epochs. If until epoch k - 1 all links together cannot have begun V, some chunk leaves S in epoch k or later, and
reaches member w outside no sooner than after ``min over e of lag_e + distance(head of e, w)`` more.

**Cut, fluid.** V shares leave S. Link e sends some in epochs ``head_e`` … ``K - lag_e - left_e``, with ``left_e`` the least
distance from its head to a goal outside, at most ``capacity_e`` of a chunk in each; all links together must fit V.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from synth_models.fabric.parts.boxes import boxes
from synth_models.fabric.programs.epochs.grid import FAR, Grid

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
MOST_PAIRS = 400  # of ranks between which least cuts are looked for


@dataclass(frozen=True)
class Counted:
    """``epochs`` are needed; ``cut``: the nodes of S, None where a distance says it."""

    epochs: int
    words: str
    cut: tuple[int, ...] | None = None


def counted(grid: Grid) -> Counted:
    """The best bound by counting over the cuts that are tried."""
    best = _by_distance(grid)
    for inside in _cuts(grid):
        epochs = _copied(grid, inside) if grid.rule == "copied" else _fluid(grid, inside)
        if epochs > best.epochs:
            nodes = tuple(np.flatnonzero(inside).tolist())
            best = Counted(epochs, f"cut around {len(nodes)} nodes with first and last arrivals", nodes)
    return best


def _by_distance(grid: Grid) -> Counted:
    distance, blocks = grid.distance, grid.instance.blocks
    if grid.rule == "copied":
        far = int(np.where(grid.wanted, distance[grid.origin], 0).max())
    else:
        far = int(distance[blocks.origin, blocks.goal].max())
    return Counted(far, "the longest of the shortest ways, in epochs")


def _copied(grid: Grid, inside: BoolArray) -> int:
    """What the cut around ``inside`` proves; 0 for nothing."""
    crossing = inside[grid.origin] & np.any(grid.wanted & ~inside, axis=1)
    volume = int(crossing.sum())
    out = np.flatnonzero(inside[grid.src] & ~inside[grid.dst])
    if not volume or not len(out):
        return 0
    head = grid.distance[grid.origin[crossing]][:, grid.src[out]].min(axis=0)
    common = np.flatnonzero(grid.wanted[crossing].all(axis=0) & ~inside)
    left = (grid.lag[out, None] + grid.distance[grid.dst[out]]).min(axis=0)
    tail = int(left[common].max()) if len(common) else int(grid.lag[out].min())
    low, high = 0, FAR
    while low < high:
        k = (low + high) // 2
        if _begun(grid, out, head, k) >= volume:
            high = k
        else:
            low = k + 1
    return low + tail if low < FAR else 0


def _begun(grid: Grid, out: IntArray, head: IntArray, last: int) -> int:
    """The most chunks that the links can begin in epochs up to ``last``."""
    length = np.maximum(last - head + 1, 0)
    return sum(int(q) * -(-int(n) // int(w)) for q, n, w in zip(grid.quota[out], length, grid.window[out], strict=True))


def _fluid(grid: Grid, inside: BoolArray) -> int:
    blocks = grid.instance.blocks
    crossing = inside[blocks.origin] & ~inside[blocks.goal]
    out = np.flatnonzero(inside[grid.src] & ~inside[grid.dst])
    volume = sum(map(int, grid.demand[crossing]))
    if not volume or not len(out):
        return 0
    head = grid.distance[blocks.origin[crossing]][:, grid.src[out]].min(axis=0)
    left = grid.distance[grid.dst[out]][:, blocks.goal[crossing]].min(axis=1)
    lost = (head + left + grid.lag[out] - 1).tolist()
    capacity = [grid.capacity[e] for e in out.tolist()]
    low, high = 1, FAR
    while low < high:
        k = (low + high) // 2
        carried = sum((c * max(0, k - gone) for c, gone in zip(capacity, lost, strict=True)), Fraction(0))
        if carried * grid.unit >= volume:
            high = k
        else:
            low = k + 1
    return low if low < FAR else 0


def _cuts(grid: Grid) -> Iterable[BoolArray]:
    """Single nodes, boxes and their sets of switches, least cuts between pairs; each set with its complement."""
    machine, members = grid.instance.machine, np.array(grid.instance.members)
    seen: set[bytes] = set()
    for inside in _candidates(grid, members):
        for side in (inside, ~inside):
            key = side.tobytes()
            if key not in seen and side[members].any() and not side[members].all():
                seen.add(key)
                yield side
    assert machine.nodes


def _candidates(grid: Grid, members: IntArray) -> Iterable[BoolArray]:
    nodes = grid.instance.machine.nodes
    for v in members.tolist():
        yield np.arange(nodes) == v
    for box in boxes(grid.instance):
        yield np.isin(np.arange(nodes), box)
    pairs = [(int(u), int(v)) for u in members for v in members if u != v]
    step = max(1, len(pairs) // MOST_PAIRS)
    for u, v in pairs[::step]:
        yield from _least_cuts(grid, u, v)


def _least_cuts(grid: Grid, source: int, sink: int) -> Iterable[BoolArray]:
    """The least cut nearest to the source, and the one nearest to the sink."""
    nodes = grid.instance.machine.nodes
    scale = 10**6 / float(max(grid.capacity))
    weight = np.array([max(1, round(float(c) * scale)) for c in grid.capacity], dtype=np.int32)
    graph = csr_array((weight, (grid.src, grid.dst)), shape=(nodes, nodes)).astype(np.int32)
    left = graph - maximum_flow(graph, source, sink).flow
    left.data[left.data < 0] = 0
    left.eliminate_zeros()
    for start, turned in ((source, False), (sink, True)):
        reached = np.zeros(nodes, dtype=bool)
        reached[breadth_first_order(left.T.tocsr() if turned else left, start, return_predecessors=False)] = True
        yield ~reached if turned else reached
