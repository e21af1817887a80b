"""Builders of the usual networks. Every undirected edge becomes one link each way; all links are alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth.network.network import DEFAULT_BANDWIDTH, DEFAULT_LATENCY, Network

RING_DIRECTIONS = ("even_up", "odd_up")


def _grid_links(sides: Sequence[int], wrap: bool) -> list[tuple[int, int]]:
    """Links between neighbours in a row-major grid. A side of 2 wraps onto itself, so it gets no extra link."""
    links: list[tuple[int, int]] = []
    ids = np.arange(int(np.prod(sides))).reshape(sides)
    for axis, side in enumerate(sides):
        if wrap and side > 2:
            tail, head = ids, np.roll(ids, -1, axis)
        else:
            tail, head = np.delete(ids, -1, axis), np.delete(ids, 0, axis)
        for u, v in zip(tail.ravel().tolist(), head.ravel().tolist(), strict=True):
            links += [(u, v), (v, u)]
    return links


def _check_sides(sides: Sequence[int], least: int = 1) -> None:
    if any(side < least for side in sides) or int(np.prod(sides)) < 2:
        raise ValueError(f"every side is at least {least} and there are at least two nodes, got {tuple(sides)}")


def grid(
    sides: Sequence[int], wrap: bool, bandwidth: float = DEFAULT_BANDWIDTH, latency: float = DEFAULT_LATENCY
) -> Network:
    """Mesh (``wrap=False``) or torus (``wrap=True``) of any dimension, nodes row-major.

    A torus side of 2 has one link each way between its two positions, a side of 1 none.
    """
    _check_sides(sides)
    kind = "torus" if wrap else "mesh"
    return Network(int(np.prod(sides)), _grid_links(sides, wrap), bandwidth, latency, kind=kind, grid=tuple(sides))


def line(nodes: int, bandwidth: float = DEFAULT_BANDWIDTH, latency: float = DEFAULT_LATENCY) -> Network:
    """Nodes 0..n-1 in a row, neighbours joined both ways."""
    _check_sides((nodes,))
    return Network(nodes, _grid_links((nodes,), False), bandwidth, latency, kind="line", grid=(nodes,))


def ring(
    nodes: int, bidirectional: bool = True, bandwidth: float = DEFAULT_BANDWIDTH, latency: float = DEFAULT_LATENCY
) -> Network:
    """Ring; one-directional rings go upwards (``v`` to ``v + 1``)."""
    _check_sides((nodes,))
    links = [(v, (v + 1) % nodes) for v in range(nodes)]
    if bidirectional:
        links = _grid_links((nodes,), True)
    return Network(nodes, links, bandwidth, latency, kind="ring", grid=(nodes,))


def hypercube(dimension: int, bandwidth: float = DEFAULT_BANDWIDTH, latency: float = DEFAULT_LATENCY) -> Network:
    """Hypercube of ``2**dimension`` nodes; ``u`` and ``v`` are joined when they differ in one bit."""
    if not 1 <= dimension <= 16:
        raise ValueError("the dimension lies in 1..16")
    sides = (2,) * dimension
    return Network(2**dimension, _grid_links(sides, False), bandwidth, latency, kind="hypercube", grid=sides)


def kautz(nodes: int, degree: int, bandwidth: float = DEFAULT_BANDWIDTH, latency: float = DEFAULT_LATENCY) -> Network:
    """Generalised Kautz network (Imase & Itoh): ``u`` to ``-(degree*u + j) mod nodes`` for ``j = 1..degree``.

    Self-loops, which occur for some sizes, are left out.
    """
    if nodes < 2 or not 1 <= degree < nodes:
        raise ValueError("nodes >= 2 and 1 <= degree < nodes")
    links = [(u, (-(degree * u + j)) % nodes) for u in range(nodes) for j in range(1, degree + 1)]
    return Network(nodes, [(u, v) for u, v in links if u != v], bandwidth, latency, kind="kautz")


def interleaved_ring(length: int, direction: str) -> list[int]:
    """Positions of one edge of an EquiMesh in ring order (XTree, algorithm 1, ranges corrected to all positions).

    ``even_up``: even positions upwards, then odd ones downwards (5: 0, 2, 4, 3, 1); ``odd_up``: the odd positions
    upwards, then the even ones downwards (5: 1, 3, 4, 2, 0), which is the same ring the other way round.
    """
    if direction not in RING_DIRECTIONS:
        raise ValueError(f"a ring direction is one of {RING_DIRECTIONS}, got {direction!r}")
    even, odd = list(range(0, length, 2)), list(range(1, length, 2))
    return even + odd[::-1] if direction == "even_up" else odd + even[::-1]


def equimesh(
    rows: int,
    cols: int,
    directions: Sequence[str] = ("even_up",) * 4,
    bandwidth: float = DEFAULT_BANDWIDTH,
    latency: float = DEFAULT_LATENCY,
) -> Network:
    """EquiMesh (XTree, section III-B): a mesh plus one directed ring along each edge, every degree 4.

    ``directions`` are those of the top, bottom, left and right edge. Links ``0..m-1`` are the mesh's, then come the
    four rings; ring links that coincide with mesh links are parallel links. Raises ``ValueError`` for a side below 2.
    """
    _check_sides((rows, cols), least=2)
    if len(directions) != 4:
        raise ValueError("four ring directions: top, bottom, left, right")
    ids = np.arange(rows * cols).reshape(rows, cols)
    links = _grid_links((rows, cols), False)
    for edge, direction in zip((ids[0], ids[-1], ids[:, 0], ids[:, -1]), directions, strict=True):
        order = [int(edge[p]) for p in interleaved_ring(len(edge), direction)]
        links += list(zip(order, order[1:] + order[:1], strict=True))
    return Network(rows * cols, links, bandwidth, latency, kind="equimesh", grid=(rows, cols))
