"""The network: an immutable directed multigraph over flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from synth.arrays import AnyIntArray, FloatArray, Int32Array
from synth.graph.hops import hops
from synth.graph.rows import rows_by
from synth.text import amounts

if TYPE_CHECKING:
    import networkx as nx


DEFAULT_BANDWIDTH = 128e9  # bytes/s, XTree table I
DEFAULT_LATENCY = 20e-9  # s per hop, XTree table I


def _frozen(values: Any, dtype: Any) -> Any:
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


def _numbers(given: Any, read: Callable[[str], float]) -> FloatArray:
    """The numbers given, texts of them read with their units. Raises ``ValueError``."""
    if isinstance(given, str):
        return np.asarray(read(given))
    if isinstance(given, (list, tuple)):
        given = [read(one) if isinstance(one, str) else one for one in given]
    return np.asarray(given, dtype=float)


class LinksByNode(NamedTuple):
    """A network's links for kernels: the tail and the head of each, shape (links,), and those at every node ``v``,
    ``links[pointer[v]:pointer[v + 1]]``, ascending; shapes (nodes + 1,) and (links,)."""

    src: Int32Array
    dst: Int32Array
    pointer: Int32Array
    links: Int32Array


class Network:
    """Directed multigraph: link ``e`` goes from ``src[e]`` to ``dst[e]``. Parallel links are distinct ids.

    Attributes:
        nodes: number of nodes; nodes are ``0..nodes-1``.
        src: int32 array, shape (links,): the tail of every link.
        dst: int32 array, shape (links,): the head of every link.
        bandwidth: float64 array, shape (links,), bytes per second, > 0.
        latency: float64 array, shape (links,), seconds, >= 0.
        kind: name of the builder (``"mesh"``, …) or ``"links"``.
        grid: side lengths when node ``v`` stands at the row-major coordinates ``np.unravel_index(v, grid)``, or None.
        names: what people call the nodes, or None where they have no names; see :meth:`name`.
    """

    def __init__(
        self,
        nodes: int,
        links: Sequence[tuple[int, int]] | AnyIntArray,
        bandwidth: str | float | Sequence[str | float] | FloatArray = DEFAULT_BANDWIDTH,
        latency: str | float | Sequence[str | float] | FloatArray = DEFAULT_LATENCY,
        *,
        kind: str = "links",
        grid: tuple[int, ...] | None = None,
    ) -> None:
        """Raise ``ValueError`` on a node out of range, a self-loop, a bandwidth <= 0 or a latency < 0. Texts have
        units: ``25GB/s``, ``0.7us``."""
        pairs = np.array(links, dtype=np.int64).reshape(-1, 2)
        self.nodes = int(nodes)
        self.src: Int32Array = _frozen(pairs[:, 0], np.int32)
        self.dst: Int32Array = _frozen(pairs[:, 1], np.int32)
        count = len(pairs)
        self.bandwidth: FloatArray = _frozen(np.broadcast_to(_numbers(bandwidth, amounts.rate), (count,)), np.float64)
        self.latency: FloatArray = _frozen(np.broadcast_to(_numbers(latency, amounts.duration), (count,)), np.float64)
        self.kind = kind
        self.grid = grid
        self.names: tuple[str, ...] | None = None
        self.positions: FloatArray | None = None
        if self.nodes < 1:
            raise ValueError("a network has at least one node")
        if count and (pairs.min() < 0 or pairs.max() >= self.nodes):
            raise ValueError(f"a link names a node outside 0..{self.nodes - 1}")
        if np.any(self.src == self.dst):
            raise ValueError("a link goes from a node to itself")
        if np.any(~(self.bandwidth > 0)) or np.any(~np.isfinite(self.bandwidth)):
            raise ValueError("every bandwidth is finite and > 0")
        if np.any(~(self.latency >= 0)) or np.any(~np.isfinite(self.latency)):
            raise ValueError("every latency is finite and >= 0")
        if grid is not None and int(np.prod(grid)) != self.nodes:
            raise ValueError("the grid's sides do not multiply to the number of nodes")

    def shown_as(
        self,
        names: Sequence[str] | None = None,
        positions: Sequence[tuple[float, float]] | FloatArray | None = None,
    ) -> Network:
        """The same network whose nodes have these names, and stand at these positions (x, y) where it is drawn."""
        shown = copy(self)
        shown.names = None if names is None else tuple(names)
        shown.positions = None if positions is None else _frozen(positions, np.float64)
        return shown

    def __repr__(self) -> str:
        return f"Network({self.kind}, nodes={self.nodes}, links={self.links})"

    def name(self, node: int) -> str:
        """What people call a node: its name, or its number."""
        return str(node) if self.names is None else self.names[node]

    @property
    def links(self) -> int:
        """Number of links."""
        return len(self.src)

    @cached_property
    def in_degree(self) -> Int32Array:
        """Links into each node, shape (nodes,)."""
        return _frozen(np.bincount(self.dst, minlength=self.nodes), np.int32)  # type: ignore[no-any-return]

    @cached_property
    def out_degree(self) -> Int32Array:
        """Links out of each node, shape (nodes,)."""
        return _frozen(np.bincount(self.src, minlength=self.nodes), np.int32)  # type: ignore[no-any-return]

    @cached_property
    def in_links(self) -> LinksByNode:
        """The links into every node."""
        return self._grouped(self.dst)

    @cached_property
    def out_links(self) -> LinksByNode:
        """The links out of every node."""
        return self._grouped(self.src)

    def _grouped(self, key: Int32Array) -> LinksByNode:
        pointer, links = rows_by(key, self.nodes)
        return LinksByNode(self.src, self.dst, _frozen(pointer, np.int32), _frozen(links, np.int32))

    @cached_property
    def arcs(self) -> tuple[Int32Array, Int32Array, Int32Array, Int32Array]:
        """Parallel links merged: ``(tail, head, capacity, arc_of_link)``, arcs sorted by (tail, head)."""
        key = self.src.astype(np.int64) * self.nodes + self.dst
        unique, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
        return (
            _frozen(unique // self.nodes, np.int32),
            _frozen(unique % self.nodes, np.int32),
            _frozen(count, np.int32),
            _frozen(inverse.reshape(-1), np.int32),
        )

    @cached_property
    def distances(self) -> Int32Array:
        """Hops from row to column, shape (nodes, nodes); -1 where there is no path."""
        tail, head, _, _ = self.arcs
        return _frozen(hops(self.nodes, tail, head, range(self.nodes)), np.int32)  # type: ignore[no-any-return]

    def hops_from(self, node: int) -> Int32Array:
        """Hops from one node to each, shape (nodes,), -1 where there is no path: a row of :attr:`distances`."""
        return _frozen(hops(self.nodes, self.src, self.dst, [node])[0], np.int32)  # type: ignore[no-any-return]

    def hops_to(self, node: int) -> Int32Array:
        """Hops from each node to one, shape (nodes,), -1 where there is no path: a column of :attr:`distances`."""
        return _frozen(hops(self.nodes, self.dst, self.src, [node])[0], np.int32)  # type: ignore[no-any-return]

    @property
    def diameter(self) -> int:
        """Longest shortest path in hops. Raises ``ValueError`` on a network that is not strongly connected."""
        if self.distances.min() < 0:
            raise ValueError("the network is not strongly connected")
        return int(self.distances.max())

    def cut_off_pair(self) -> tuple[int, int] | None:
        """Some ``(u, v)`` with no path from ``u`` to ``v``, or None if the network is strongly connected."""
        missing = np.flatnonzero(self.hops_from(0) < 0)
        if len(missing):
            return 0, int(missing[0])
        missing = np.flatnonzero(self.hops_to(0) < 0)
        return (int(missing[0]), 0) if len(missing) else None

    def reversed(self) -> Network:
        """The network with every link turned around; link ids stay."""
        links = np.stack([self.dst, self.src], axis=1)
        found = Network(self.nodes, links, self.bandwidth, self.latency, kind=self.kind, grid=self.grid)
        return found.shown_as(self.names, self.positions)

    def to_networkx(self) -> nx.MultiDiGraph[int]:
        """A networkx copy; edge keys are link ids, with ``bandwidth`` and ``latency`` attributes."""
        import networkx as nx

        graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        graph.add_nodes_from(range(self.nodes))
        for e in range(self.links):
            graph.add_edge(
                int(self.src[e]),
                int(self.dst[e]),
                key=e,
                bandwidth=float(self.bandwidth[e]),
                latency=float(self.latency[e]),
            )
        return graph
