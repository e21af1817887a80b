"""The least sum of hops of any topology, and the least hops to the farthest node, counted level by level.

* **Cubes.** From node u, walk the fixed links and the circuits of every topology at once: a circuit leads to a fresh
  copy of the cube, at the other end of its line. In this tree of copies a node of a topology stands at least once, at
  its distance or nearer, as its shortest path is a walk in the tree. So at most as many nodes of a position (one a
  cube) lie within k hops of u as the tree has copies of that position within k hops, and no more than there are cubes.
  The same holds of lengths, a link inside a cube and a circuit each having its own.
* **Other plants**, and cubes of more than :data:`LARGEST` nodes: within k hops lie at most the nodes within k hops
  over all links and circuits that may be, and at most ``1 + d + d (d - 1) + …`` (one way ``1 + d + d^2 + …``), where d
  is the most links that a node can have (Moore).

Counting goes forward here: how often each port is entered at each distance.
"""

from __future__ import annotations

from math import prod
from typing import Literal, TypeGuard

import numpy as np

from synth.arrays import IntArray
from synth.graph.hops import hops
from synth_models.topology.instance import Budget, Cubes, Switched, TopologyInstance, lines

LARGEST = 64  # nodes of a cube whose copies are counted


def least_hops(instance: TopologyInstance, inside: int = 1, circuit: int = 1) -> int:
    """A lower bound on the sum over all ordered pairs of nodes of the least length between them, for every topology: of
    cubes whose copies are counted, where links inside are that long and circuits that long; else of the hops. Raises
    ``ValueError`` where other lengths are asked for there."""
    plant = instance.plant
    if _of_copies(plant):
        return plant.cubes * int(_from_positions(plant, inside, circuit)[0].sum())
    if (inside, circuit) != (1, 1):
        raise ValueError(f"only of cubes of at most {LARGEST} nodes may links be longer than 1")
    return sum(_moore(instance, False)[0])


def least_depth(instance: TopologyInstance, first: Literal["from", "to"] | None = None) -> int:
    """So many hops, or more, are between some two nodes in every topology; ``first``: from node 0 to one, or to node 0
    from one."""
    plant = instance.plant
    depths = _from_positions(plant)[1].tolist() if _of_copies(plant) else _moore(instance, first == "to")[1]
    return int(depths[0] if first else max(depths))


def _of_copies(plant: Cubes | Switched | Budget) -> TypeGuard[Cubes]:
    return isinstance(plant, Cubes) and prod(plant.sides) <= LARGEST


def _from_positions(plant: Cubes, inside: int = 1, circuit: int = 1) -> tuple[IntArray, IntArray]:
    """Of every position the least sum of lengths from a node there, and the least length to the farthest."""
    positions = np.stack(np.unravel_index(np.arange(prod(plant.sides)), plant.sides), axis=1)
    apart = inside * np.abs(positions[:, None] - positions[None]).sum(axis=2)
    ends = [(a, b) for number, (_, a, b) in enumerate(lines(plant.sides)) if number not in plant.failed]
    if not ends and plant.cubes > 1:
        raise ValueError("no port is left, so nothing can join the cubes")
    node = np.array([end for pair in ends for end in pair], dtype=np.int64)  # port 2i and its partner 2i + 1
    partner = np.arange(len(node)) ^ 1
    leaving, covered = _by_length(apart[node][:, node]), _by_length(apart[node])
    for at in leaving.values():
        np.fill_diagonal(at, 0)  # not back through the port that was entered
    entered: list[IntArray] = []  # per distance, from every position, how often each port is entered, up to cubes
    within = np.zeros_like(apart)
    total, depth, k = (*np.zeros((2, len(apart)), dtype=np.int64), 0)
    while True:
        arriving = (apart[:, node] == k - circuit).astype(np.int64)
        for length, at in leaving.items():
            if k >= circuit + length:
                arriving += entered[k - circuit - length] @ at
        entered.append(np.minimum(arriving[:, partner], plant.cubes))
        within += apart == k
        for length, at in covered.items():
            if k >= length:
                within += entered[k - length] @ at
        missing = (plant.cubes - np.minimum(within, plant.cubes)).sum(axis=1)
        if not missing.any():
            return total, depth
        total, depth, k = total + missing, depth + (missing > 0), k + 1


def _by_length(apart: IntArray) -> dict[int, IntArray]:
    """Which pairs are how far apart: for each length a matrix of 0 and 1."""
    return {int(length): (apart == length).astype(np.int64) for length in np.unique(apart)}


def _moore(instance: TopologyInstance, back: bool) -> tuple[list[int], list[int]]:
    """Of every node the least sum of hops, and the least hops to the farthest, by the two counts of other plants;
    ``back``: of the ways to the node instead."""
    n = instance.nodes
    degree = _most_links(instance, back)
    growth = degree if instance.one_way else degree - 1
    within, level = [1], degree
    while within[-1] < n and len(within) <= n:
        within.append(min(n, within[-1] + level))
        level *= growth
    if within[-1] < n:
        raise ValueError(f"nodes of {degree} links reach no {n} nodes")
    if instance.degree is not None:
        return [sum(n - reached for reached in within)] * n, [len(within) - 1] * n
    u, v = np.concatenate([instance.fixed, instance.possible]).T
    u, v = (v, u) if back else (u, v)
    tail, head = (u, v) if instance.one_way else (np.concatenate([u, v]), np.concatenate([v, u]))
    least = np.array([*within, *[n] * n][:n])
    sums, depths = list[int](), list[int]()
    for row in hops(n, tail, head, np.arange(n)):
        reach = np.minimum(np.cumsum(np.bincount(row[row >= 0], minlength=n))[:n], least)
        sums.append(int((n - reach).sum()))
        depths.append(int((reach < n).sum()))
    return sums, depths


def _most_links(instance: TopologyInstance, back: bool) -> int:
    """The most links of a node that count towards its reach: those that leave it, ``back``: that enter."""
    if instance.degree is not None:
        return instance.degree
    ends = [instance.fixed[:, int(back)]] if instance.one_way else [instance.fixed.ravel()]
    ends += [switch.receives if back else switch.sends for switch in instance.switches]
    ends += [] if instance.one_way else [switch.sends if back else switch.receives for switch in instance.switches]
    return int(np.bincount(np.concatenate(ends), minlength=instance.nodes).max())
