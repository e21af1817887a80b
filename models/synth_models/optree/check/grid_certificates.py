"""Verify lower bounds on the steps on a torus or mesh from their certificates. Imports nothing from the methods.

The theorems are stated and proven in ``bounds/grid.py``; here they are recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.kernels import jit
from synth.text.untrusted import whole_numbers
from synth_models.optree.instance import OpTreeInstance

MOST_WEIGHT, MOST_LATER, MOST_WEIGHTS, MOST_NODES = 10**6, 10**9, 32, 8192


def check_grid_bound(instance: OpTreeInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """The faults of a bound. ``binding`` is ``turns`` (nothing else needed), ``cut`` with ``nodes``, a set that the
    items of all others must get into, or ``reach`` with ``horizon``, ``weights`` (prices of its first steps) and
    ``later`` (the price of every step after them)."""
    binding = certificate.get("binding")
    try:
        match binding:
            case "turns":
                proven = len(instance.dimensions)
            case "cut":
                proven = _cut(instance, certificate)
            case "reach":
                proven = _reach(instance, certificate)
            case _:
                return [f"unknown kind of bound {binding!r}"]
    except ValueError as error:
        return [str(error)]
    return [] if proven >= bound else [f"the {binding} argument proves {proven} steps, not {bound:g}"]


def _cut(instance: OpTreeInstance, certificate: Mapping[str, Any]) -> int:
    """Steps until the items of the nodes outside have crossed the links into the set."""
    members = whole_numbers(certificate, "nodes", 0, instance.nodes - 1)
    inside = np.zeros(instance.nodes, dtype=bool)
    inside[members] = True
    outside = instance.nodes - int(inside.sum())
    if outside in (0, instance.nodes):
        raise ValueError("the set of the cut must hold some of the nodes and not all of them")
    links = 0
    number = np.arange(instance.nodes)
    for side, stride, ring in instance.dimensions:
        place = number // stride % side
        after = np.where(place == side - 1, number - place * stride, number + stride)
        crossing = inside != inside[after]  # one of the two directions of this link leads into the set
        links += int(np.count_nonzero(crossing if ring else crossing & (place < side - 1)))
    return -(-outside // (links * instance.wavelengths))


def _reach(instance: OpTreeInstance, certificate: Mapping[str, Any]) -> int:
    """One step more than the refuted horizon. Raises ``ValueError`` if the prices refute nothing."""
    nodes = instance.nodes
    if nodes > MOST_NODES:
        raise ValueError(f"reach certificates are verified up to {MOST_NODES} nodes")
    weights = whole_numbers(certificate, "weights", 0, MOST_WEIGHT)
    numbers = {key: [certificate.get(key)] for key in ("horizon", "later")}
    horizon = int(whole_numbers(numbers, "horizon", 1, nodes)[0])
    later = int(whole_numbers(numbers, "later", 0, MOST_LATER)[0])
    if not 1 <= len(weights) <= min(horizon, MOST_WEIGHTS):
        raise ValueError(f"weights must be 1 to {MOST_WEIGHTS} prices and not more than the {horizon} steps")
    sides = [dimension.side for dimension in instance.dimensions]
    longest = min(instance.max_hops, max(sides) // 2)
    within = [
        [min(2 * k, side - 1) for side in sides] for k in range(longest + 1)
    ]  # of one node, by hops and dimension
    anywhere = np.array([sum(counts) for counts in within])
    elsewhere = np.array([sum(counts) - min(counts) for counts in within])
    along = np.array([max(counts) for counts in within])
    least = int(_least_cost(nodes, anywhere, elsewhere, along, weights, later))
    hops = instance.directed_links * instance.wavelengths
    offered = hops * (sum(weights.tolist()) + (horizon - len(weights)) * later)
    if nodes * least <= offered:
        raise ValueError(
            f"the weights refute nothing: all items cost {nodes * least} wavelength-hops at least, {offered} are there "
            f"in {horizon} steps"
        )
    return horizon + 1


@jit
def _least_cost(
    nodes: int, anywhere: IntArray, elsewhere: IntArray, along: IntArray, weights: IntArray, later: int
) -> int:
    """Least weighted wavelength-hops with which one item gets from one holder to ``nodes``: 8192 nodes, 4096 hops and
    ``MOST_WEIGHT``, 8192 nodes and ``MOST_LATER`` are less than 2^46. ``cost[h]``: of the steps still to come, with
    ``h`` holders before them. The other arrays count, by ``k``, nodes within ``k`` hops of a node: in all dimensions,
    in all but the one that has fewest, in the one that has most."""
    cost = np.empty(nodes + 1, np.int64)
    for h in range(nodes + 1):
        cost[h] = later * (nodes - h)
    axes = anywhere[-1]
    for t in range(len(weights) - 1, -1, -1):
        before = cost.copy()
        for h in range(1, nodes):
            cheapest, hops, second, near, closer = before[h], 0, 0, 1, 1
            for more in range(1, nodes - h + 1):
                while near < len(anywhere) and h * anywhere[near] < more:
                    near += 1
                if near == len(anywhere):
                    break
                hops += near
                if t == 1:  # the holders are the origin and h - 1 nodes on its axes
                    while closer < len(anywhere):
                        on_axes = min(max(0, axes - (h - 1)), anywhere[closer] + (h - 1) * along[closer])
                        if on_axes + (h - 1) * elsewhere[closer] >= more:
                            break
                        closer += 1
                    if closer == len(anywhere):
                        break
                    second += closer
                cheapest = min(cheapest, weights[t] * max(hops, second) + before[h + more])
            cost[h] = cheapest
    found: int = cost[1]
    return found
