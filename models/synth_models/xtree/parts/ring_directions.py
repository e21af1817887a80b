"""The sixteen ways to direct the four rings of an EquiMesh: which are the same network, and which to take.

A ring of n positions has n - 2 links that skip a position and two that run beside a link of the mesh; ``even_up`` and
``odd_up`` have these two at different places. Where such a link enters a node, the node has one neighbour fewer than
links, and with one chunk per node that link idles in the first timestep of an allgather: what it could carry comes
over the mesh's link. A corner that both its rings enter so loses two. As the sum of all in-links is just enough where
the number of nodes is a multiple of four, one idle link more costs a timestep there. For a reduce-scatter, an allgather
on the reversed network, the links out of a node count: turning all rings exchanges the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from synth.arrays import IntArray
from synth.graph.hops import hops
from synth.network import Network
from synth.network.builders import RING_DIRECTIONS, equimesh
from synth.schedule import Schedule

Directions = tuple[str, ...]
"""Of the top, bottom, left and right ring."""

ALL: tuple[Directions, ...] = tuple(product(RING_DIRECTIONS, repeat=4))
PHASES = {"allgather": (False,), "reduce_scatter": (True,), "allreduce": (True, False)}  # on the reversed network?


def turned(directions: Sequence[str]) -> Directions:
    """Every ring the other way round: the reversed network's directions."""
    return tuple(RING_DIRECTIONS[1 - RING_DIRECTIONS.index(d)] for d in directions)


def best(rows: int, cols: int, chunks: int, collective: str) -> Directions:
    """The directions with the least :func:`cost`, the first of :data:`ALL` among equals.

    ``chunks`` per node; an allreduce is a reduce-scatter and then an allgather. No proof that no other directions take
    fewer timesteps: that is what ``synth reproduce xtree`` settles, size by size.
    """
    return min(ALL, key=lambda directions: cost(rows, cols, directions, chunks, collective))


def cost(rows: int, cols: int, directions: Sequence[str], chunks: int, collective: str) -> tuple[int, int]:
    """``(timesteps, corners)``: what to expect of the collective's phases, and how many ring links run beside a mesh
    link at a corner, which counts where the timesteps tie.

    A phase takes what late arrivals at the rings' ends prove. Where every link is needed all the time (one chunk per
    node, nodes a multiple of four) one such link at a corner costs a timestep too: no counting shows it, but
    ``relaxation`` proves it on every grid of the page.
    """
    network = equimesh(rows, cols, directions)
    timesteps = corners = 0
    for backwards in PHASES[collective]:
        phase = network.reversed() if backwards else network
        idle = _idle_at_corners(phase)
        full = chunks == 1 and phase.nodes % 4 == 0 and idle > 0
        timesteps += max(_late(phase, chunks), phase.nodes // 4 + 1 if full else 0)
        corners += idle
    return timesteps, corners


def _ends(network: Network) -> IntArray:
    """The corners and the nodes beside them: where rings turn."""
    assert network.grid is not None
    rows, cols = network.grid
    ids = np.arange(network.nodes).reshape(rows, cols)
    down, across = sorted({0, 1, rows - 2, rows - 1}), sorted({0, 1, cols - 2, cols - 1})
    return np.unique(np.concatenate([ids[down][:, [0, -1]].ravel(), ids[[0, -1]][:, across].ravel()]))


def _late(network: Network, chunks: int) -> int:
    """Timesteps that an allgather needs at the rings' ends: what starts j hops away arrives from timestep j on."""
    ends = _ends(network)
    backwards = hops(network.nodes, network.dst, network.src, ends.tolist())
    most = 0
    for v, away in zip(ends, backwards, strict=True):
        at_least = np.bincount(away)[::-1].cumsum()[::-1][1:]  # nodes 1, 2, ... hops away or more
        most = max(most, int((np.arange(len(at_least)) - (-chunks * at_least // network.in_degree[v])).max()))
    return most


def _idle_at_corners(network: Network) -> int:
    """Links into the corners that run beside another link."""
    assert network.grid is not None
    ids = np.arange(network.nodes).reshape(network.grid)
    _, head, links, _ = network.arcs
    return int((links - 1)[np.isin(head, ids[[0, 0, -1, -1], [0, -1, 0, -1]])].sum())


def classes(rows: int, cols: int) -> dict[Directions, list[Directions]]:
    """The sixteen choices, grouped by their first one: those that a rotation or reflection of the grid turns into each
    other are one network with other numbers, so all their optima are the same."""
    links: dict[bytes, Directions] = {}
    for directions in ALL:
        links.setdefault(_arcs(equimesh(rows, cols, directions)), directions)
    grouped: dict[Directions, list[Directions]] = {}
    of: dict[Directions, Directions] = {}
    for directions in ALL:
        network = equimesh(rows, cols, directions)
        same = (links.get(_arcs(network, image)) for image in _moves(rows, cols))
        of[directions] = next((of[other] for other in same if other in of), directions)
        grouped.setdefault(of[directions], []).append(directions)
    return grouped


def _arcs(network: Network, image: IntArray | None = None) -> bytes:
    """The links, sorted, after moving node v to ``image[v]``: equal for the same multigraph only."""
    moved = np.arange(network.nodes) if image is None else image
    return np.sort(moved[network.src] * network.nodes + moved[network.dst]).tobytes()


def carried(schedule: Schedule, source: Network, target: Network) -> Schedule:
    """A schedule with one chunk per node on ``source``, moved to ``target`` by the rotation or reflection of the grid
    that turns one network into the other. Raises ``ValueError`` where there is none."""
    assert source.grid is not None
    wanted = _arcs(target)
    image = next((move for move in _moves(*source.grid) if _arcs(source, move) == wanted), None)
    if image is None:
        raise ValueError("no rotation or reflection turns one network into the other")
    links = np.empty(source.links, dtype=np.int64)
    links[np.lexsort((image[source.dst], image[source.src]))] = np.lexsort((target.dst, target.src))
    return Schedule.of(schedule.step, links[schedule.link], image[schedule.chunk], schedule.adds)


def _moves(rows: int, cols: int) -> list[IntArray]:
    """The rotations and reflections of the grid as node permutations."""
    ids = np.arange(rows * cols, dtype=np.int64).reshape(rows, cols)
    turns = [ids, ids.T] if rows == cols else [ids]
    return [grid[:: 1 - 2 * down, :: 1 - 2 * over].ravel() for grid in turns for down in (0, 1) for over in (0, 1)]
