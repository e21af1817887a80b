"""Maximum flows and least cuts between two nodes, in whole numbers.

Kernels augment a :class:`Residual` by Dinic's algorithm (1970) in 64 bits; everything else asks :class:`MaximumFlow`,
which leaves to scipy what fits its 32 bits. The flow depends on who finds it; the least cuts nearest to the source and
to the sink, and the value, do not.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import AnyIntArray, BoolArray, IntArray
from synth.clock.start_up_costs import uncounted
from synth.graph.rows import rows_by
from synth.kernels import jit

REMEMBERED_ARCS = 20_000  # of a network that is remembered
SMALL_CAPACITY = 2**30  # between two nodes, and of all arcs out of the source, below which scipy cannot overflow


class Residual(NamedTuple):
    """Arcs in pairs, 2i and its reverse 2i + 1, with the room that is left on each.

    ``start`` (nodes + 1,) and ``arc`` (arcs,): those out of node v are ``arc[start[v]:start[v + 1]]``. ``head``
    (arcs,): where each leads, the tail of a being ``head[a ^ 1]``. ``room`` (arcs,): changed by :func:`augment`; the
    sum of both of a pair must stay below 2^63.
    """

    start: IntArray
    arc: IntArray
    head: IntArray
    room: IntArray


def residual(nodes: int, tail: AnyIntArray, head: AnyIntArray, capacity: AnyIntArray) -> Residual:
    """Return the network of arcs from ``tail`` to ``head``, shape (arcs,) each, arc i as the pair 2i, 2i + 1."""
    both_tail = np.stack([tail, head], axis=1).reshape(-1).astype(np.int64)
    both_head = np.stack([head, tail], axis=1).reshape(-1).astype(np.int64)
    room = np.stack([capacity, np.zeros_like(capacity)], axis=1).reshape(-1).astype(np.int64)
    return Residual(*rows_by(both_tail, nodes), both_head, room)


@jit
def of_matrix(capacity: IntArray) -> Residual:
    """Return the network of a matrix of capacities, shape (nodes, nodes): a pair for every two nodes that are joined,
    neighbours in ascending order."""
    nodes = len(capacity)
    start = np.zeros(nodes + 1, dtype=np.int64)
    for u in range(nodes):
        start[u + 1] = start[u]
        for v in range(nodes):
            if u != v and (capacity[u, v] > 0 or capacity[v, u] > 0):
                start[u + 1] += 1
    arcs = start[nodes]
    arc, head, room = np.empty(arcs, dtype=np.int64), np.empty(arcs, dtype=np.int64), np.empty(arcs, dtype=np.int64)
    at = start[:-1].copy()
    pair = 0
    for u in range(nodes):  # a node's arcs to lower ones are put before those to higher ones
        for v in range(u + 1, nodes):
            if capacity[u, v] > 0 or capacity[v, u] > 0:
                head[pair], room[pair] = v, capacity[u, v]
                head[pair + 1], room[pair + 1] = u, capacity[v, u]
                arc[at[u]], arc[at[v]] = pair, pair + 1
                at[u] += 1
                at[v] += 1
                pair += 2
    return Residual(start, arc, head, room)


@jit
def augment(network: Residual, source: int, sink: int, most: int) -> int:
    """Send up to ``most`` from the source to another node, the sink; return what was sent. ``network.room`` is used up.

    Dinic's algorithm: shortest paths in the order of the arcs, until they block all others as short, then longer ones;
    O(nodes^2 arcs).
    """
    start, arc, head, room = network.start, network.arc, network.head, network.room
    nodes = len(start) - 1
    level = np.empty(nodes, dtype=np.int64)
    queue = np.empty(nodes, dtype=np.int64)
    at = np.empty(nodes, dtype=np.int64)
    path = np.empty(nodes + 1, dtype=np.int64)
    sent = 0
    while sent < most:
        level[:] = -1
        level[sink] = 0
        queue[0] = sink
        first, last = 0, 1
        while first < last and level[source] < 0:  # distances to the sink, so that the search below meets no dead ends
            v = queue[first]
            first += 1
            for k in range(start[v], start[v + 1]):
                a = arc[k]
                u = head[a]
                if level[u] < 0 and room[a ^ 1] > 0:
                    level[u] = level[v] + 1
                    queue[last] = u
                    last += 1
        if level[source] < 0:
            break
        at[:] = start[:-1]
        depth, v = 0, source
        while sent < most:
            if v == sink:
                least = most - sent
                for i in range(depth):
                    least = min(least, room[path[i]])
                back = depth
                for i in range(depth - 1, -1, -1):
                    room[path[i]] -= least
                    room[path[i] ^ 1] += least
                    if room[path[i]] == 0:
                        back = i
                sent += least
                if back < depth:
                    v = head[path[back] ^ 1]
                depth = back
                continue
            moved = False
            while at[v] < start[v + 1]:
                a = arc[at[v]]
                if room[a] > 0 and level[head[a]] == level[v] - 1:
                    path[depth] = a
                    depth += 1
                    v = head[a]
                    moved = True
                    break
                at[v] += 1
            if moved:
                continue
            if depth == 0:
                break
            level[v] = -2
            depth -= 1
            v = head[path[depth] ^ 1]
            at[v] += 1
    return sent


@jit
def reached(network: Residual, source: int) -> BoolArray:
    """Return the nodes to which there is room from the source, shape (nodes,): after :func:`augment` has sent all that
    it can, the source's side of the least cut nearest to it."""
    nodes = len(network.start) - 1
    seen = np.zeros(nodes, dtype=np.bool_)
    queue = np.empty(nodes, dtype=np.int64)
    seen[source] = True
    queue[0] = source
    first, last = 0, 1
    while first < last:
        v = queue[first]
        first += 1
        for k in range(network.start[v], network.start[v + 1]):
            a = network.arc[k]
            if network.room[a] > 0 and not seen[network.head[a]]:
                seen[network.head[a]] = True
                queue[last] = network.head[a]
                last += 1
    return seen


def _graph(nodes: int, tail: AnyIntArray, head: AnyIntArray, capacity: AnyIntArray) -> Any:
    with uncounted():
        from scipy.sparse import csr_array

    return csr_array((capacity.astype(np.int32), (tail, head)), shape=(nodes, nodes))


@lru_cache(maxsize=4)
def _known_graph(nodes: int, *arcs: bytes) -> Any:
    """The same of arrays of 64 bits: a network is asked for the flows between many pairs of its nodes."""
    return _graph(nodes, *(np.frombuffer(array, dtype=np.int64) for array in arcs))


class MaximumFlow:
    """A maximum flow from the source to the sink, another node.

    Arcs go from ``tail`` to ``head``, shape (arcs,) each, with whole ``capacity``; parallel arcs may occur. Raises
    :class:`OverflowError` where the capacities of all arcs together do not fit 64 bits.
    """

    def __init__(
        self, nodes: int, tail: AnyIntArray, head: AnyIntArray, capacity: AnyIntArray, source: int, sink: int
    ) -> None:
        self._nodes, self._tail, self._head = nodes, tail, head
        self._source, self._sink = source, sink
        self._graph: Any = None  # scipy's capacities, where it is asked
        total = float(capacity.sum(dtype=np.float64))
        if total >= 2.0**62:
            raise OverflowError("the capacities of all arcs do not fit 64 bits")
        if total < SMALL_CAPACITY or self._widest(capacity) < SMALL_CAPACITY:
            self._by_scipy(capacity)
        else:
            self._by_kernel(capacity)

    def _widest(self, capacity: AnyIntArray) -> float:
        """The largest capacity between two nodes, both ways together, or out of the source."""
        low, high = np.minimum(self._tail, self._head).astype(np.int64), np.maximum(self._tail, self._head)
        pair = np.unique(low * self._nodes + high, return_inverse=True)[1].reshape(-1)
        between = np.bincount(pair, weights=capacity).max(initial=0.0)
        return max(float(between), float(capacity[self._tail == self._source].sum(dtype=np.float64)))

    def _by_scipy(self, capacity: AnyIntArray) -> None:
        with uncounted():
            from scipy.sparse.csgraph import maximum_flow

        arcs = (self._tail, self._head, capacity)
        if len(capacity) <= REMEMBERED_ARCS:
            self._graph = _known_graph(self._nodes, *(array.astype(np.int64).tobytes() for array in arcs))
        else:
            self._graph = _graph(self._nodes, *arcs)
        found = maximum_flow(self._graph, self._source, self._sink)
        self.value, self._flow = int(found.flow_value), found.flow

    @cached_property
    def _left(self) -> Any:
        """scipy's residual capacities."""
        left = type(self._graph)(self._graph - self._flow)
        left.eliminate_zeros()
        return left

    def _by_kernel(self, capacity: AnyIntArray) -> None:
        self._residual = residual(self._nodes, self._tail, self._head, capacity)
        self.value = augment(self._residual, self._source, self._sink, 2**62)

    @property
    def source_side(self) -> BoolArray:
        """The source's side of the least cut nearest to the source, shape (nodes,)."""
        if self._graph is None:
            return reached(self._residual, self._source)
        return self._reached(self._left, self._source)

    @property
    def sink_side(self) -> BoolArray:
        """The sink's side of the least cut nearest to the sink, shape (nodes,)."""
        if self._graph is None:
            start, arc, head, room = self._residual
            return reached(Residual(start, arc, head, room.reshape(-1, 2)[:, ::-1].reshape(-1).copy()), self._sink)
        return self._reached(self._left.T.tocsr(), self._sink)

    @property
    def on_arcs(self) -> IntArray:
        """The flow on every arc, shape (arcs,), of arcs of which no two have the same ends."""
        if self._graph is None:
            return self._residual.room[1::2].copy()
        flow = self._flow.tocoo()
        of = dict(zip(zip(flow.row.tolist(), flow.col.tolist(), strict=True), flow.data.tolist(), strict=True))
        ends = zip(self._tail.tolist(), self._head.tolist(), strict=True)
        return np.array([max(of.get(pair, 0), 0) for pair in ends], dtype=np.int64)

    def _reached(self, left: Any, node: int) -> BoolArray:
        with uncounted():
            from scipy.sparse.csgraph import breadth_first_order

        found = np.zeros(self._nodes, dtype=bool)
        found[breadth_first_order(left, node, return_predecessors=False)] = True
        return found
