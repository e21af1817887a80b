"""The links of a 2-D mesh or torus by axis and sense, and the trees that go along one axis after the other."""

from __future__ import annotations

import numpy as np

from synth.arrays import BoolArray, Int32Array
from synth.errors import UnsupportedError
from synth.network import Network

ROW, COLUMN = 0, 1  # grid axes: along ROW the row index changes (the Y dimension), along COLUMN the column index (X)
MINUS, PLUS = 0, 1  # senses of travel along an axis


def links_into(network: Network, kinds: tuple[str, ...], method: str) -> Int32Array:
    """Link ids of a 2-D grid, shape (axes, senses, nodes): over which link one comes into a node along an axis.

    Only the links of the mesh or torus count, not the rings of an EquiMesh; -1 where the grid ends. Raises
    :class:`UnsupportedError` for a network of another kind than ``kinds``.
    """
    if network.kind not in kinds or network.grid is None or len(network.grid) != 2:
        raise UnsupportedError(f"{method} is defined on {', '.join(kinds)} with two dimensions, not on {network.kind}")
    rows, cols = network.grid
    count = network.links
    if network.kind == "equimesh":
        count = 2 * (rows * (cols - 1) + cols * (rows - 1))  # the ring links come after these
    tail, head = (np.stack(np.divmod(ends[:count], cols)) for ends in (network.src, network.dst))
    into = np.full((2, 2, network.nodes), -1, np.int32)
    for axis, side in enumerate((rows, cols)):
        move = head[axis] - tail[axis]
        for sense, unit in ((MINUS, -1), (PLUS, 1)):
            around = (move == -unit * (side - 1)) if network.kind == "torus" and side > 2 else False
            e = np.flatnonzero((move == unit) | around)
            into[axis, sense, network.dst[e]] = e
    return into


def turned_round(network: Network, into: Int32Array, links: Int32Array) -> Int32Array:
    """For each link of the grid the one in the opposite direction between the same nodes; -1 stays."""
    there = into >= 0
    back = np.full(network.links + 1, -1, np.int32)  # the last place answers for -1
    axis, sense, head = np.nonzero(there)
    back[into[there]] = into[axis, 1 - sense, network.src[into[axis, sense, head]]]
    return back[links]


def dimension_ordered(
    grid: tuple[int, ...], into: Int32Array, first_axis: int, around: int | None = None
) -> tuple[Int32Array, BoolArray]:
    """Trees of all owners, shape (nodes, nodes): along ``first_axis`` from the owner, then along the other axis.

    The second array tells which links belong to the second axis. Chunks go away from the owner both ways; with
    ``around`` (a sense) they go round each ring of a torus in that one sense instead, where the side is above 2.
    """
    place = np.stack(np.divmod(np.arange(int(np.prod(grid))), grid[1]))
    offset = place[:, None, :] - place[:, :, None]  # (axis, owner, node)
    later = offset[1 - first_axis] != 0
    axis = np.where(later, 1 - first_axis, first_axis)
    along = np.where(later, offset[1 - first_axis], offset[first_axis])
    sense = (along > 0).astype(np.int64)
    if around is not None:
        sense = np.where(np.asarray(grid)[axis] > 2, around, sense)
    trees = into[axis, sense, np.arange(len(along))[None, :]]
    return np.where(along == 0, np.int32(-1), trees).astype(np.int32), later
