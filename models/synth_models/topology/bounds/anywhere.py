"""Method ``bound``: what no topology of the plant can beat, by levels or by a cut.

The sum of hops by levels is counted backwards: how many nodes of each position lie within j hops of a port in the tree
of copies that the check (``check/levels.py``) walks forwards. Cuts are tried around single nodes, single cubes and the
slabs of every dimension.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import UnsupportedError
from synth.graph.hops import hops
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.topology.instance import Cubes, TopologyInstance, lines

LARGEST = 64  # nodes of a cube whose copies are counted


def solve(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """The better of levels and cuts; O(ports^2 positions levels) for cubes."""
    value, proof, certificate = strongest(instance)
    return Outcome("finished", bound=float(value), bound_proof=proof, certificate=certificate)


def strongest(instance: TopologyInstance) -> tuple[Fraction, str, dict[str, Any]]:
    """The bound as a fraction, its proof in words and its certificate."""
    total = least_hops(instance)
    if instance.objective == "hops":
        return Fraction(total), "levels: how many nodes can lie within so many hops", {"argument": "levels"}
    best = Fraction(total, instance.most_arcs)
    words = f"levels: {total} hops at least, over {instance.most_arcs} arcs"
    certificate: dict[str, Any] = {"argument": "levels"}
    for name, inside in cuts(instance):
        arcs = most_leaving(instance, inside)
        if not arcs:
            raise UnsupportedError(f"no arc can lead out of {name}")
        load = Fraction(int(inside.sum()) * int((~inside).sum()), arcs)
        if load > best:
            best, words = load, f"cut: at most {arcs} arcs lead out of {name}"
            certificate = {"argument": "cut", "inside": np.flatnonzero(inside).tolist()}
    return best, words, certificate


def cuts(instance: TopologyInstance) -> Iterator[tuple[str, BoolArray]]:
    """Sets of nodes around which few arcs may lead, with their names."""
    n, plant = instance.nodes, instance.plant
    if not isinstance(plant, Cubes):
        for node in range(n):
            yield f"node {node}", np.arange(n) == node
        return
    each = prod(plant.sides)
    if plant.cubes > 1:
        yield "one cube", np.arange(n) < each
    for axis, side in enumerate(plant.sides):
        place = np.unravel_index(np.arange(n) % each, plant.sides)[axis]
        for end in range(1, side):
            yield f"the slab of the first {end} in dimension {axis}", place < end


def most_leaving(instance: TopologyInstance, inside: BoolArray) -> int:
    """The most arcs that may lead out: circuits join as many ports across as both sides have."""
    across = [int(np.count_nonzero(inside[u] & ~inside[v])) for u, v in (instance.fixed.T, instance.fixed.T[::-1])]
    for switch in instance.switches:
        a, b = np.count_nonzero(inside[switch.sends]), np.count_nonzero(inside[switch.receives])
        across[0] += min(int(a), len(switch.receives) - int(b))
        across[1] += min(int(b), len(switch.sends) - int(a))
    if instance.degree is not None:
        across[0] += min(int(instance.free[0, inside].sum()), int(instance.free[1, ~inside].sum()))
        across[1] = 0  # counted from one end: a free link that leaves a node serves both ways
        if not instance.one_way:
            across[1] = int(np.count_nonzero(inside[instance.fixed[:, 1]] & ~inside[instance.fixed[:, 0]]))
    return across[0] if instance.one_way else sum(across)


def least_hops(instance: TopologyInstance) -> int:
    """The least sum of hops of any topology (``check/levels.py`` says why)."""
    plant = instance.plant
    if isinstance(plant, Cubes) and prod(plant.sides) <= LARGEST:
        return plant.cubes * _in_copies(plant)
    return _by_degree(instance)


def _in_copies(plant: Cubes) -> int:
    """The sum over the positions of a cube, from the counts of nodes within j hops behind each port."""
    each = prod(plant.sides)
    place = np.stack(np.unravel_index(np.arange(each), plant.sides))
    apart = np.abs(place[:, :, None] - place[:, None, :]).sum(axis=0)
    working = [pair[1:] for number, pair in enumerate(lines(plant.sides)) if number not in plant.failed]
    if not working and plant.cubes > 1:
        raise UnsupportedError("no switch works, so nothing can join the cubes")
    port = np.array(working, dtype=np.int64).reshape(-1, 2).ravel()
    behind: list[IntArray] = []  # [j][port]: nodes of each position within j hops once the port has been entered
    total, j = 0, 0
    while True:
        found = np.minimum(1, apart <= j).astype(np.int64)  # from every position, by fixed links alone
        entered = found[port]
        for hop in range(1, j + 1):
            through = behind[j - hop][np.arange(len(port)) ^ 1]  # what a circuit crossed with that hop leads to
            found = found + (apart[:, port] == hop - 1).astype(np.int64) @ through
            leaving = (apart[port][:, port] == hop - 1) & ~np.eye(len(port), dtype=bool)
            entered = entered + leaving.astype(np.int64) @ through
        behind.append(np.minimum(entered, plant.cubes))
        missing = int((plant.cubes - np.minimum(found, plant.cubes)).sum())
        total, j = total + missing, j + 1
        if missing == 0:
            return total


def _by_degree(instance: TopologyInstance) -> int:
    """Moore's levels, and no more than all links and circuits together reach."""
    n = instance.nodes
    out = instance.degree
    if out is None:
        sends = np.concatenate([instance.fixed[:, 0], *(s.sends for s in instance.switches)])
        receives = np.concatenate([instance.fixed[:, 1], *(s.receives for s in instance.switches)])
        ends = sends if instance.one_way else np.concatenate([sends, receives])
        out = int(np.bincount(ends, minlength=n).max())
    grows = out if instance.one_way else out - 1
    new, reached, most = out, 1, [1]
    while reached < n:
        if new <= 0:
            raise UnsupportedError(f"nodes of {out} links reach no {n} nodes")
        reached = min(n, reached + new)
        new *= grows
        most.append(reached)
        if len(most) > n:
            raise UnsupportedError(f"nodes of {out} links reach no {n} nodes")
    if instance.degree is not None:
        return n * (n * len(most) - sum(most))
    pairs = np.concatenate([instance.fixed, instance.possible])
    both = pairs if instance.one_way else np.concatenate([pairs, pairs[:, ::-1]])
    away = hops(n, both[:, 0], both[:, 1], np.arange(n))
    total = 0
    for k in range(n):
        within = np.minimum((away <= k).sum(axis=1), most[k] if k < len(most) else n)
        total += int((n - within).sum())
        if (within == n).all():
            break
    return total
