"""From the solver's flows to a plan in whole shares, or none: a plan is checked in whole numbers."""

from __future__ import annotations

from collections import defaultdict, deque
from fractions import Fraction

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.problem.rows import starts
from synth_peers.teccl.programs.fluid_insertion import Streams
from synth_peers.teccl.programs.fluid_model import FluidProgram
from synth_peers.teccl.programs.grid import Grid

NEAR = 1e-5  # of a share: how far a flow may be from whole
FINEST = 5040  # shares that the grid's unit is divided into at most

Path = tuple[tuple[int, int], ...]


def streams_of(program: FluidProgram) -> Streams | None:
    """The program's point as streams in the coarsest unit in which its flows are whole; None if none is found, or if
    what is whole then does not fit exactly."""
    index, value = program.flows()
    for finer in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 30, 36, 48, 60, 120, 240, 360, 720, 840, 2520, FINEST):
        shares = value * (program.grid.unit * finer)
        whole = np.rint(shares)
        if np.abs(shares - whole).max(initial=0.0) < NEAR * finer:
            keep = whole > 0
            found = _followed(program, index[keep], whole[keep].astype(np.int64), program.grid.unit * finer)
            if found is not None:
                return found
    return None


def _followed(program: FluidProgram, index: IntArray, amount: IntArray, unit: int) -> Streams | None:
    """The shares followed from node to node, first come, first sent; None where they do not add up."""
    grid = program.grid
    if not _fits(grid, index, amount, unit):
        return None
    streams: list[tuple[int, int, Path]] = []
    for s in range(len(program.origins)):
        mine = index[:, 0] == s
        found = _of_one(program, s, index[mine], amount[mine], unit)
        if found is None:
            return None
        streams += found
    length = [len(path) for _, _, path in streams]
    hops = np.array([hop for _, _, path in streams for hop in path], dtype=np.int64).reshape(-1, 2)
    return Streams(
        unit,
        np.array([b for b, _, _ in streams], dtype=np.int64),
        np.array([n for _, n, _ in streams], dtype=np.int64),
        starts(length),
        hops[:, 0].copy(),
        hops[:, 1].copy(),
    )


def _fits(grid: Grid, index: IntArray, amount: IntArray, unit: int) -> bool:
    """Whether no link, and no group of links that take turns, has more in an epoch than it carries."""
    load: dict[tuple[int, int], int] = defaultdict(int)
    for (_, e, k), n in zip(index.tolist(), amount.tolist(), strict=True):
        load[e, k] += n
    group, busy = grid.instance.machine.group.tolist(), defaultdict[tuple[int, int], Fraction](Fraction)
    for (e, k), n in load.items():
        busy[group[e] if group[e] >= 0 else -1 - e, k] += n / (grid.capacity[e] * unit)
    return all(part <= 1 for part in busy.values())


def _of_one(
    program: FluidProgram, origin: int, index: IntArray, amount: IntArray, unit: int
) -> list[tuple[int, int, Path]] | None:
    """Block, shares and hops of one origin's streams."""
    grid, root = program.grid, int(program.origins[origin])
    queue: dict[int, deque[tuple[int, Path]]] = defaultdict(deque)
    coming: dict[int, list[tuple[int, int, Path]]] = defaultdict(list)  # by epoch: node, shares, hops so far
    order = np.lexsort((index[:, 1], index[:, 2])).tolist()
    rows = [(int(index[i, 2]), int(index[i, 1]), int(amount[i])) for i in order]
    at = 0
    for k in range(program.horizon + 1):
        for v, n, path in coming.pop(k, ()):
            queue[v].append((n, path))
        while at < len(rows) and rows[at][0] == k:
            _, e, left = rows[at]
            at += 1
            u, v = int(grid.src[e]), int(grid.dst[e])
            while left:
                if u == root:
                    n, path = left, ()
                elif queue[u]:
                    n, path = queue[u].popleft()
                    if n > left:
                        queue[u].appendleft((n - left, path))
                        n = left
                else:
                    return None
                coming[k + int(grid.lag[e])].append((v, n, (*path, (e, k))))
                left -= n
        for v in [v for v, waiting in queue.items() if waiting and not grid.holds[v]]:
            queue[v].clear()
    return _dealt(grid, root, queue, unit)


def _dealt(
    grid: Grid, root: int, queue: dict[int, deque[tuple[int, Path]]], unit: int
) -> list[tuple[int, int, Path]] | None:
    """What has arrived, dealt out to the blocks that want it; what is too much anywhere makes it no plan."""
    blocks = grid.instance.blocks
    found: list[tuple[int, int, Path]] = []
    for b in np.flatnonzero(blocks.origin == root).tolist():
        need = int(blocks.bytes[b]) * unit / grid.chunk
        if need.denominator != 1:
            return None
        left, waiting = int(need), queue[int(blocks.goal[b])]
        while left:
            if not waiting:
                return None
            n, path = waiting.popleft()
            if n > left:
                waiting.appendleft((n - left, path))
                n = left
            found.append((b, n, path))
            left -= n
    return None if any(queue.values()) else found
