"""Method ``bound``: what no topology of the plant can beat, by levels or by a cut.

The sum of hops by levels is counted backwards: how many nodes of each position lie within j hops of a port in the tree
of copies that the check (``check/levels.py``) walks forwards. Cuts are tried around single nodes, single cubes and the
slabs of every dimension. For the load of cubes circuits may count as longer than links inside a cube.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import prod
from typing import Any, TypeGuard

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.errors import UnsupportedError
from synth.graph.hops import hops
from synth.method import Outcome
from synth.options import RunOptions
from synth_models.topology.bounds.mixes import Counted, Cut, strongest_mix
from synth_models.topology.instance import Budget, Cubes, Switched, TopologyInstance, lines

LARGEST = 64  # nodes of a cube whose copies are counted
LENGTHS = tuple((1, circuit) for circuit in (1, 2, 3, 4, 6, 8))  # of a link inside a cube, and of a circuit


def solve(instance: TopologyInstance, options: RunOptions) -> Outcome:
    """The better of levels and cuts; O(ports^2 positions levels) for cubes."""
    value, proof, certificate = strongest(instance)
    return Outcome("finished", bound=float(value), bound_proof=proof, certificate=certificate)


def strongest(instance: TopologyInstance) -> tuple[Fraction, str, dict[str, Any]]:
    """The bound as a fraction, its proof in words and its certificate."""
    total = least_length(instance)
    if instance.objective == "hops":
        return Fraction(total), "levels: how many nodes can lie within so many hops", {"argument": "levels"}
    if instance.objective == "mix":
        return strongest_mix(instance, Counted(total, *least_depths(instance), _cuts_both_ways(instance)))
    best, lengths = by_levels(instance)
    words = f"levels: {total} hops at least, over {instance.most_arcs} arcs"
    certificate: dict[str, Any] = {"argument": "levels"}
    if lengths != LENGTHS[0]:
        words = f"levels, a circuit {lengths[1]} times as long as a link inside a cube"
        certificate |= {"lengths": list(lengths)}
    for name, inside in cuts(instance):
        rate = most_leaving(instance, inside)
        if not rate:
            raise UnsupportedError(f"no arc can lead out of {name}")
        load = int(inside.sum()) * int((~inside).sum()) / rate
        if load > best:
            best, words = load, f"cut: at most {rate} arcs lead out of {name}"
            certificate = {"argument": "cut", "inside": np.flatnonzero(inside).tolist()}
    return best, words, certificate


def by_levels(instance: TopologyInstance) -> tuple[Fraction, tuple[int, int]]:
    """The bound on the load by levels, and the lengths of a link inside a cube and of a circuit that prove it."""
    every = LENGTHS if _of_copies(instance.plant) else LENGTHS[:1]
    return max(
        ((least_length(instance, lengths) / most_length(instance, lengths), lengths) for lengths in every),
        key=lambda one: one[0],
    )


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


def _cuts_both_ways(instance: TopologyInstance) -> list[Cut]:
    """The cuts, and those around all other nodes."""
    found = [(name, inside) for name, inside in cuts(instance)]
    found += [(f"all but {name}", ~inside) for name, inside in found]
    every = [Cut(name, inside, most_leaving(instance, inside)) for name, inside in found]
    if stuck := next((cut.name for cut in every if not cut.rate), None):
        raise UnsupportedError(f"no arc can lead out of {stuck}")
    return every


def most_leaving(instance: TopologyInstance, inside: BoolArray) -> Fraction:
    """The most rate that may lead out, of a fixed link 1: circuits join as many ports across as both sides have."""
    ways = (instance.fixed.T, instance.fixed.T[::-1])
    fixed = [int(np.count_nonzero(inside[u] & ~inside[v])) for u, v in ways[: 1 if instance.one_way else 2]]
    across = [0, 0]
    for switch in instance.switches:
        a, b = np.count_nonzero(inside[switch.sends]), np.count_nonzero(inside[switch.receives])
        across[0] += min(int(a), len(switch.receives) - int(b))
        across[1] += min(int(b), len(switch.sends) - int(a))
    if instance.degree is not None:
        across[0] += min(int(instance.free[0, inside].sum()), int(instance.free[1, ~inside].sum()))
    circuits = across[0] if instance.one_way else sum(across)
    slow, quick = instance.weights
    return sum(fixed) + Fraction(circuits * quick, slow)


def most_length(instance: TopologyInstance, lengths: tuple[int, int]) -> Fraction:
    """The length of all arcs that a topology can have, ``lengths`` of a fixed one and of one of a circuit, times their
    rate, of a fixed one 1."""
    fixed = len(instance.fixed) * (1 if instance.one_way else 2)
    return fixed * lengths[0] + (instance.most_rate - fixed) * lengths[1]


def least_length(instance: TopologyInstance, lengths: tuple[int, int] = (1, 1)) -> int:
    """The least sum of lengths of any topology (``check/levels.py`` says why), ``lengths`` of a link inside a cube and
    of a circuit; of plants that are not counted in copies both are 1."""
    plant = instance.plant
    if _of_copies(plant):
        return plant.cubes * int(_in_copies(plant, *lengths).sum())
    return int(_by_degree(instance).sum())


def _of_copies(plant: Cubes | Switched | Budget) -> TypeGuard[Cubes]:
    return isinstance(plant, Cubes) and prod(plant.sides) <= LARGEST


def least_depths(instance: TopologyInstance) -> tuple[int, int, int]:
    """So many hops, or more, are in every topology between some two nodes, from node 0 to one, and to it from one."""
    if _of_copies(instance.plant):
        missing = back = _in_copies(instance.plant)
    else:
        missing = _by_degree(instance)
        back = _by_degree(instance, True) if instance.one_way else missing
    depths = (missing > 0).sum(axis=0)
    return int(depths.max()), int(depths[0]), int((back[:, 0] > 0).sum())


def _in_copies(plant: Cubes, inside: int = 1, circuit: int = 1) -> IntArray:
    """How many nodes are farther than j at least, shape (j, positions), from the counts of nodes within a length j
    behind each port; links inside a cube and circuits are so long."""
    each = prod(plant.sides)
    place = np.stack(np.unravel_index(np.arange(each), plant.sides))
    apart = inside * np.abs(place[:, :, None] - place[:, None, :]).sum(axis=0)
    working = [pair[1:] for number, pair in enumerate(lines(plant.sides)) if number not in plant.failed]
    if not working and plant.cubes > 1:
        raise UnsupportedError("no switch works, so nothing can join the cubes")
    port = np.array(working, dtype=np.int64).reshape(-1, 2).ravel()
    behind: list[IntArray] = []  # [j][port]: nodes of each position within j once the port has been entered
    beyond, j = list[IntArray](), 0
    while True:
        found = np.minimum(1, apart <= j).astype(np.int64)  # from every position, by fixed links alone
        entered = found[port]
        for gone in range(circuit, min(j, circuit + int(apart.max())) + 1):
            through = behind[j - gone][np.arange(len(port)) ^ 1]  # what a circuit whose end is that far leads to
            found = found + (apart[:, port] == gone - circuit).astype(np.int64) @ through
            leaving = (apart[port][:, port] == gone - circuit) & ~np.eye(len(port), dtype=bool)
            entered = entered + leaving.astype(np.int64) @ through
        behind.append(np.minimum(entered, plant.cubes))
        beyond.append((plant.cubes - np.minimum(found, plant.cubes)).sum(axis=1))
        j += 1
        if not beyond[-1].any():
            return np.array(beyond)


def _by_degree(instance: TopologyInstance, back: bool = False) -> IntArray:
    """How many nodes are more than k hops away at least, shape (k, nodes): Moore's levels, and no more than all links
    and circuits together reach; ``back``: on the ways to the node."""
    n, way = instance.nodes, -1 if back else 1
    out = instance.degree
    if out is None:
        sends = np.concatenate([instance.fixed[:, 0], *(s.sends for s in instance.switches)])
        receives = np.concatenate([instance.fixed[:, 1], *(s.receives for s in instance.switches)])
        sends, receives = (sends, receives)[::way]
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
        return np.repeat(n - np.array(most, dtype=np.int64)[:, None], n, axis=1)
    pairs = np.concatenate([instance.fixed, instance.possible])[:, ::way]
    both = pairs if instance.one_way else np.concatenate([pairs, pairs[:, ::-1]])
    away = hops(n, both[:, 0], both[:, 1], np.arange(n))
    beyond = []
    for k in range(n):
        within = np.minimum(((away >= 0) & (away <= k)).sum(axis=1), most[k] if k < len(most) else n)
        beyond.append(n - within)
        if (within == n).all():
            break
    return np.array(beyond)
