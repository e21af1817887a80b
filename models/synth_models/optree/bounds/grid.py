"""Lower bounds on the number of steps on a torus or mesh, for every schedule (method ``bound``).

A circuit runs along one ring or line. Let ``d`` be the dimensions, ``N`` the nodes, ``w`` the wavelengths per link and
direction, ``E`` the directed links.

**Turns.** The items of two nodes that differ in all ``d`` coordinates need a circuit per dimension: ``T >= d``.

**Cut.** Every item from outside a set ``X`` of nodes must cross a link into ``X``, of which there are ``c(X)``:
``T >= ceil((N - |X|) / (w c(X)))``. ``X`` = one node is the receive bound (on a mesh: a corner), ``X`` = one half
the bisection. The best ``X`` is sought by maximum flows: with ``w T`` on every link and one item at every node,
``T`` is refuted by the minimum cut in front of some node that does not get them all; ``T`` is raised to what that
cut proves until every node does (nodes that a reflection or rotation maps onto each other once). The certificate is
``X``. It holds for circuits that turn inside the network, too.

**Reach.** Take prices ``y_1..y_T >= 0`` of a wavelength-hop in each step, and one item that ``h`` nodes hold before
step ``t``. Every node that receives it in the step is charged its distance from the source of its circuit along their
ring or line, at most ``L`` with a budget. One holder has at most ``a_1 + .. + a_k`` nodes within ``k`` hops, ``a_k``
being two a dimension for ``k < n/2`` and one for ``k = n/2`` (on a line the middle has as many, the others fewer). So
``j`` new holders pay at least ``G(h, j)``, the ``j`` least of ``h a_1`` ones, ``h a_2`` twos, …, and an item pays at
least ``F_1(1)`` with

    F_t(h) = min over j >= 0 of  y_t G(h, j) + F_(t+1)(h + j),          F_(T+1)(h) = 0 if h = N, else infinite.

Before the second step more is known: the item is on the origin's own rings and lines, among its ``A`` *axis nodes*. A
node off the axes comes from an axis node that is not the origin, and not along that one's axis; so each of the
``h - 1`` has at most ``b_1 + .. + b_k`` such nodes within ``k`` hops, the most that all dimensions but one have. Axis
nodes, of which ``A - (h - 1)`` are left, come from the origin (``a_k``) or along an axis (``c_1 + .. + c_k`` within
``k`` hops, the most of any dimension). The ``j`` least of these costs are a second lower bound; the larger counts.

All items use at most ``w E`` hops in a step: ``N F_1(1) > w E sum(y)`` refutes ``T`` steps. Only the first steps have
prices of their own here, the others one price ``r`` in common and ``F(h) = r (N - h)``, which is not more: a node costs
one hop at least. The prices are found by cutting planes and rounded to whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.graph.max_flow import MaximumFlow
from synth.kernels import jit
from synth.options import RunOptions
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.cutting_planes import INFINITE, CuttingPlanes

FIRST_STEPS = 8  # with prices of their own
REACH_NODES = 4096
FLOW_NODES = 20_000
ROUNDS = 60
SCALE = 100_000
NO_LATER = 10**9  # the price of steps that there are none of: nothing is left to them
Bound = tuple[int, str, dict[str, Any]]


def bounds(instance: OpTreeInstance, options: RunOptions) -> Iterator[Bound]:
    """Bounds in steps, each the strongest so far, with its proof in words and its certificate."""
    dimensions = len(instance.dimensions)
    best: Bound = (dimensions, f"turns: {dimensions} circuits to the farthest node", {"binding": "turns"})
    yield best
    best = max(best, cut_bound(instance, options), key=lambda bound: bound[0])
    yield best
    if instance.nodes <= REACH_NODES:
        yield from reach_bounds(instance, options, best)


def links_of(instance: OpTreeInstance) -> IntArray:
    """All directed links as rows (from, to); rings of two nodes have two each way."""
    number = np.arange(instance.nodes)
    rows = []
    for side, stride, ring in instance.dimensions:
        place = number // stride % side
        after = np.where(place == side - 1, number - place * stride, number + stride)
        keep = np.ones(instance.nodes, dtype=bool) if ring else place < side - 1
        rows += [np.stack([number[keep], after[keep]], axis=1), np.stack([after[keep], number[keep]], axis=1)]
    return np.concatenate(rows)


def roots(instance: OpTreeInstance) -> list[int]:
    """A node of every class that reflections of lines and rotations of rings map onto itself, corners first."""
    places = [0]
    for side, stride, ring in instance.dimensions:
        places = [base + place * stride for place in range(1 if ring else (side + 1) // 2) for base in places]
    return places


def cut_bound(instance: OpTreeInstance, options: RunOptions) -> Bound:
    """The best cut that maximum flows find within the time."""
    nodes, wavelengths = instance.nodes, instance.wavelengths
    links = links_of(instance)
    into = np.bincount(links[:, 1], minlength=nodes)
    corner = int(np.argmin(into))
    best = _cut_words(instance, links, np.arange(nodes) == corner)
    if nodes > FLOW_NODES:
        return best
    ends = np.concatenate([links, np.stack([np.full(nodes, nodes), np.arange(nodes)], axis=1)])
    for root in roots(instance):
        while not options.out_of_time():
            capacity = np.r_[np.full(len(links), min(best[0] * wavelengths, nodes)), np.ones(nodes, dtype=np.int64)]
            flow = MaximumFlow(nodes + 1, ends[:, 0], ends[:, 1], capacity, nodes, root)
            if flow.value >= nodes:
                break
            found = _cut_words(instance, links, ~flow.source_side[:nodes])
            assert found[0] > best[0]  # the cut is why not all items arrive in so many steps
            best = found
    return best


def _cut_words(instance: OpTreeInstance, links: IntArray, inside: BoolArray) -> Bound:
    crossing = int(np.count_nonzero(~inside[links[:, 0]] & inside[links[:, 1]]))
    outside = instance.nodes - int(inside.sum())
    what = f"{outside} items into a node" if inside.sum() == 1 else f"{outside} items into {int(inside.sum())} nodes"
    words = f"{what} over {crossing} links of {instance.wavelengths} wavelengths"
    kind = "receive" if inside.sum() == 1 else "cut"
    steps = -(-outside // (crossing * instance.wavelengths))
    return steps, f"{kind}: {words}", {"binding": "cut", "nodes": np.flatnonzero(inside).tolist()}


class FrontierPrices(CuttingPlanes):
    """Prices of the first steps and, last, of all later ones, at which an item pays as much as possible."""

    def __init__(self, nodes: int, near: NearNodes, horizon: int) -> None:
        first = min(FIRST_STEPS, horizon)
        super().__init__(np.r_[np.ones(first), horizon - first] if horizon > first else np.ones(first))
        self.nodes, self.near, self.first = nodes, near, first

    def cheapest(self, prices: FloatArray) -> tuple[float, FloatArray | None]:
        """Least cost at these prices and the hops of a cheapest way."""
        later = float(prices[self.first]) if len(prices) > self.first else INFINITE
        cost, hops = _frontier(self.nodes, self.near, prices[: self.first], later)
        return float(cost), hops[: len(prices)] if cost < INFINITE / 2 else None


class NearNodes(NamedTuple):
    """How many nodes there are at distance 0, 1, 2, …, at most, shape (longest side,) each: from a holder in all
    dimensions (``a_k``), in ``all_but_one`` (``b_k``), in ``one`` (``c_k``)."""

    all: IntArray
    all_but_one: IntArray
    one: IntArray


def near_nodes(instance: OpTreeInstance) -> NearNodes:
    """The counts of an instance whose circuits are no longer than its budgets allow."""
    one = np.zeros((len(instance.dimensions), max(dimension.side for dimension in instance.dimensions)), dtype=np.int64)
    for k, dimension in enumerate(instance.dimensions):
        places = np.arange(1, dimension.side)
        np.add.at(one[k], np.minimum(places, dimension.side - places), 1)
    one[:, instance.max_hops + 1 :] = 0
    within = one.cumsum(axis=1)
    others = (within.sum(axis=0) - within).max(axis=0)
    return NearNodes(one.sum(axis=0), np.diff(others, prepend=0), np.diff(within.max(axis=0), prepend=0))


@jit
def _dealt(count: IntArray, most: int) -> IntArray:
    """Hops of the 0, 1, 2, … nearest of ``count[k]`` nodes at distance ``k``, up to ``most`` of them."""
    hops = np.zeros(min(most, count.sum()) + 1, np.int64)
    taken = 0
    for distance in range(len(count)):
        for _ in range(min(count[distance], len(hops) - 1 - taken)):
            hops[taken + 1] = hops[taken] + distance
            taken += 1
    return hops


@jit
def _least_hops(nodes: int, near: NearNodes, step: int, h: int) -> IntArray:
    """``G(h, j)`` for ``j`` = 0, 1, …, as many as can be reached in the step (from 0)."""
    general = _dealt(h * near.all, nodes - h)
    if step != 1:
        return general
    axis = near.all + (h - 1) * near.one
    left = near.all.sum() - (h - 1)
    for distance in range(len(axis)):
        axis[distance] = max(0, min(axis[distance], left))
        left -= axis[distance]
    second = _dealt(axis + (h - 1) * near.all_but_one, nodes - h)
    most = min(len(general), len(second))
    return np.maximum(general[:most], second[:most])


@jit
def _frontier(nodes: int, near: NearNodes, prices: FloatArray, later: float) -> tuple[float, FloatArray]:
    """The least cost and the hops of a cheapest way per step, the last entry those of the later steps."""
    first = len(prices)
    cost, pick = np.empty((first + 1, nodes + 1)), np.zeros((first + 1, nodes + 1), np.int64)
    for h in range(nodes + 1):
        cost[first, h] = min(INFINITE, later * (nodes - h)) if h < nodes else 0.0
    for t in range(first - 1, -1, -1):
        for h in range(1, nodes + 1):
            hops = _least_hops(nodes, near, t, h)
            least = INFINITE * 2
            for j in range(len(hops)):
                now = prices[t] * hops[j] + cost[t + 1, h + j]
                if now < least:
                    least, pick[t, h] = now, j
            cost[t, h] = least
    used = np.zeros(first + 1)
    h = 1
    for t in range(first):
        used[t] = _least_hops(nodes, near, t, h)[pick[t, h]]
        h += pick[t, h]
    used[first] = nodes - h
    return cost[0, 1], used


def reach_bounds(instance: OpTreeInstance, options: RunOptions, best: Bound) -> Iterator[Bound]:
    """Horizons from ``best`` upwards are refuted while prices are found."""
    near = near_nodes(instance)
    while not options.out_of_time():
        certificate = _refuted(instance, near, best[0])
        if certificate is None:
            break
        words = f"reach: at the certificate's prices all items cost more than the wavelength-hops of {best[0]} steps"
        best = best[0] + 1, words, certificate
        yield best


def _refuted(instance: OpTreeInstance, near: NearNodes, horizon: int) -> dict[str, Any] | None:
    """The certificate that so many steps are too few, or None when none was found."""
    offered = instance.directed_links * instance.wavelengths
    search = FrontierPrices(instance.nodes, near, horizon)
    if not search.search(offered / instance.nodes, ROUNDS):
        return None
    weights = [int(number) for number in np.rint(search.best / search.best.max() * SCALE)]
    first = weights[: search.first]
    later = weights[search.first] if horizon > search.first else NO_LATER
    least, _ = _frontier(instance.nodes, near, np.array(first, dtype=float), float(later))
    if instance.nodes * least <= offered * (sum(first) + (horizon - search.first) * later) + 0.5:
        return None
    return {"binding": "reach", "horizon": horizon, "weights": first, "later": later}
