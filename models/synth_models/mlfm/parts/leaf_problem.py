"""The problem between leaves, on which all methods work: how much each leaf sends to each other one, over which routes.

A link is a number: ``leaf * (d + 1) + column`` is the up-link from that leaf to the spine of its own and that column,
``leaves * (d + 1) +`` the same the down-link from that spine to the leaf.

Of a partial all-to-all the sums between leaves bound the phases, but who sends within a leaf matters, too. There
:func:`server_problem` states the same with every server as a leaf of its own that shares the links of its leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.errors import SizeLimitError
from synth.kernels import jit
from synth_models.mlfm.instance import MAX_TRANSFERS, MLFMInstance
from synth_models.mlfm.parts.column_phases import NOTHING
from synth_models.mlfm.solution import PhaseTable

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_ROUTES = 5_000_000


@dataclass(frozen=True)
class LeafProblem:
    """The job between leaves.

    ``leaf`` (Q,) are the leaves with servers, ``size`` (Q,) how many each has, ``demand`` (Q * Q,) the transfers of
    every pair of them and ``busiest`` the most that one server sends or receives. Pair ``q * Q + r`` may use routes
    ``start[pair]..start[pair + 1]``, cheapest first; ``spine``, ``middle``, ``second`` (R,) name a route's parts and
    ``links`` (R, 4) its links, -1 where absent. Pairs of a leaf with itself need no link and have no routes.
    """

    busiest: int
    columns: int
    link_count: int
    leaf: IntArray
    size: IntArray
    demand: IntArray
    start: IntArray
    spine: IntArray
    middle: IntArray
    second: IntArray
    links: IntArray
    alone: bool = False  # every server as a leaf of its own

    @property
    def leaves(self) -> int:
        """Q, the number of leaves with servers."""
        return len(self.leaf)

    @property
    def routes(self) -> int:
        """R, the number of routes."""
        return len(self.spine)

    @cached_property
    def pair(self) -> IntArray:
        """The pair of every route, shape (R,)."""
        return np.repeat(np.arange(self.leaves**2), np.diff(self.start))

    @property
    def inside(self) -> IntArray:
        """Transfers inside every leaf, shape (Q,)."""
        return self.demand[:: self.leaves + 1]

    @property
    def one_spine(self) -> bool:
        """Whether every route crosses one spine."""
        return bool((self.middle < 0).all())

    def loads(self, flows: IntArray) -> IntArray:
        """Flows on every link, shape (links,), of ``flows`` (R,) on the routes."""
        used = self.links >= 0
        weights = np.broadcast_to(flows[:, None], self.links.shape)[used]
        return np.bincount(self.links[used], weights=weights, minlength=self.link_count).round().astype(np.int64)


def working(instance: MLFMInstance) -> Any:
    """Boolean ``[leaf, column]``: the cable from the leaf to the spine of its own and that column works."""
    columns, ok = instance.columns, ~np.eye(instance.columns, dtype=bool)
    usable = np.tile(ok, (instance.d, 1))
    for i, j in instance.failed.leaves:
        usable[i * columns + j] = False
    for a, b in instance.failed.spines:
        usable[a::columns, b] = usable[b::columns, a] = False
    for link in instance.failed.links:
        i, j = link.leaf
        usable[i * columns + j, sum(link.spine) - j] = False
    return usable


def leaf_problem(instance: MLFMInstance) -> LeafProblem:
    """The leaf problem of an instance. Raises :class:`SizeLimitError` beyond ``MAX_ROUTES`` routes."""
    leaf, place, size = np.unique(instance.server_leaf, return_inverse=True, return_counts=True)
    if instance.demand is None:
        return _with_all_routes(instance, leaf, size, np.outer(size, size).ravel())
    return _with_all_routes(instance, leaf, size, _summed(instance, place, len(leaf)))


def server_problem(instance: MLFMInstance) -> LeafProblem:
    """The same with every server as a leaf of its own, as if its leaf stood once for each of them; pairs of servers of
    one leaf have a single route, which uses no link. Raises :class:`SizeLimitError` beyond ``MAX_ROUTES`` routes or
    ``MAX_TRANSFERS`` pairs of servers."""
    ranks = instance.ranks
    if ranks**2 > MAX_TRANSFERS:
        raise SizeLimitError(f"at most {MAX_TRANSFERS} pairs of servers; here {ranks**2}")
    demand = _summed(instance, np.arange(ranks), ranks)
    return _with_all_routes(instance, instance.server_leaf, np.ones(ranks, np.int64), demand, alone=True)


def _summed(instance: MLFMInstance, place: IntArray, places: int) -> IntArray:
    """The transfers between the places of the ranks, shape (places * places,)."""
    source, target, count = instance.pairs.T
    return np.bincount(place[source] * places + place[target], count, places**2).astype(np.int64)


def _with_all_routes(
    instance: MLFMInstance, leaf: IntArray, size: IntArray, demand: IntArray, alone: bool = False
) -> LeafProblem:
    detours, wanted = instance.routes == "detour", demand > 0
    d, pairs = instance.d, int(np.count_nonzero(wanted)) - int(np.count_nonzero(wanted[:: len(leaf) + 1]))
    if pairs * (d * d if detours else 1) > MAX_ROUTES:
        raise SizeLimitError(f"more than {MAX_ROUTES} routes between leaves ({pairs} pairs of leaves with detours)")
    usable = working(instance)
    empty = np.empty((0, 3), np.int64)
    number, spines = instance.spine_number, np.empty((0, 4), np.int64)
    start = _enumerate(leaf, wanted, usable, number, detours, empty, spines)
    parts, links = np.empty((start[-1], 3), np.int64), np.empty((start[-1], 4), np.int64)
    _enumerate(leaf, wanted, usable, number, detours, parts, links)
    spine, middle, second = parts.T
    job = (leaf, size.astype(np.int64), demand)
    machine = (instance.busiest, instance.columns, 2 * usable.size)
    return LeafProblem(*machine, *job, start, spine, middle, second, links, alone)


def with_routes(problem: LeafProblem, dest: IntArray, route: IntArray) -> PhaseTable:
    """Dense phases from destinations and route numbers, both of shape (phases, ranks), -1 where absent."""

    def part(values: IntArray) -> Int32Array:
        return np.append(values, NOTHING).astype(np.int32)[route]

    middle = part(problem.middle)
    if (middle < 0).all():
        return PhaseTable(dest.astype(np.int32), part(problem.spine))
    return PhaseTable(dest.astype(np.int32), part(problem.spine), middle, part(problem.second))


def _first_pair(instance: MLFMInstance, one: int, other: int) -> tuple[int, int]:
    """The first ranks on these two leaves of which one sends to the other."""
    leaf = instance.server_leaf
    if instance.demand is None:
        return int(np.argmax(leaf == one)), int(np.argmax(leaf == other))
    source, target, _ = instance.pairs.T
    first = int(np.argmax((leaf[source] == one) & (leaf[target] == other)))
    return int(source[first]), int(target[first])


def routes_by_link(problem: LeafProblem) -> dict[int, list[int]]:
    """The routes through every link that has any."""
    through: dict[int, list[int]] = {}
    for r, links in enumerate(problem.links.tolist()):
        for e in links:
            if e >= 0:
                through.setdefault(e, []).append(r)
    return through


@jit
def _enumerate(
    leaf: IntArray,
    wanted: BoolArray,
    usable: BoolArray,
    number: IntArray,
    detours: bool,
    parts: IntArray,
    links: IntArray,
) -> IntArray:
    """Enter the routes of the wanted pairs in order: one without links between servers of a leaf; else within a column
    cyclically from the next column on, detours last. Where those of every pair begin, shape (pairs + 1,).

    ``parts``, shape (routes, 3): spine, leaf between, second spine; ``links``, shape (routes, 4); -1 where absent. With
    empty ones it only counts.
    """
    count, columns = len(leaf), usable.shape[1]
    write = len(parts) > 0
    start = np.zeros(count * count + 1, np.int64)
    down = usable.size
    n = 0
    for q in range(count):
        for r in range(count):
            x, y = leaf[q], leaf[r]
            a, b = x % columns, y % columns
            if not wanted[q * count + r]:
                pass
            elif x == y and q != r:
                if write:
                    parts[n, :] = -1
                    links[n, :] = -1
                n += 1
            elif x != y:
                for turn in range(1, columns):
                    c = (a + turn) % columns
                    if (a == b or c == b) and usable[x, c] and usable[y, a if a != b else c]:
                        if write:
                            parts[n, 0], parts[n, 1], parts[n, 2] = number[a, c], -1, -1
                            links[n, 0], links[n, 1] = x * columns + c, down + y * columns + (a if a != b else c)
                            links[n, 2] = links[n, 3] = -1
                        n += 1
                for z in range(usable.shape[0] if detours else 0):
                    c = z % columns
                    if c != a and c != b and usable[x, c] and usable[z, a] and usable[z, b] and usable[y, c]:
                        if write:
                            parts[n, 0], parts[n, 1], parts[n, 2] = number[a, c], z, number[c, b]
                            links[n, 0], links[n, 1] = x * columns + c, down + z * columns + a
                            links[n, 2], links[n, 3] = z * columns + b, down + y * columns + c
                        n += 1
            start[q * count + r + 1] = n
    return start


def cut_off(instance: MLFMInstance, problem: LeafProblem) -> str | None:
    """Why the job cannot be done: a pair of servers without an allowed route, in words; None if all have one."""
    q, r = np.divmod(np.arange(problem.leaves**2), problem.leaves)
    bare = np.flatnonzero((np.diff(problem.start) == 0) & (q != r) & (problem.demand > 0))
    if not len(bare):
        return None
    import networkx as nx

    one, other = problem.leaf[q[bare[0]]], problem.leaf[r[bare[0]]]
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_nodes_from([("leaf", int(one)), ("leaf", int(other))])
    for x, c in np.argwhere(working(instance)):
        graph.add_edge(("leaf", int(x)), ("spine", int(instance.spine_number[x % instance.columns, c])))
    names = [instance.server_name(rank) for rank in _first_pair(instance, int(one), int(other))]
    text = f"server {names[0]} is cut off from server {names[1]} by the failures: "
    if not nx.has_path(graph, ("leaf", int(one)), ("leaf", int(other))):
        return text + "no path of working links joins their leaves"
    hint = " (routes = detour allows more)" if instance.routes == "minimal" else ""
    return text + f"no allowed route is left, only longer ones{hint}; {len(bare)} ordered pairs of leaves are concerned"


def by_group(group: IntArray, groups: int) -> csr_array:
    """The 0-1 matrix (groups, members) with a one for every member in the row of its group."""
    from scipy.sparse import coo_array

    return coo_array((np.ones(len(group)), (group, np.arange(len(group)))), shape=(groups, len(group))).tocsr()
