"""The fluid optimum as a plan: trees from every root or to it, up and down again for an allreduce."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from synth.options import RELATIVE_GAP
from synth.schedule.collective import REDUCING
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.programs.forest.forest import Forest, forest_of
from synth_models.fabric.programs.forest.spanning_trees import spanning_trees
from synth_models.fabric.programs.forest.tree_plan import (
    Options,
    PackedTrees,
    TreeEdge,
    down,
    seconds_of,
    up,
    up_and_down,
)
from synth_models.fabric.programs.forest.tuned import MOST_GATHERED


def roots_of(instance: FabricInstance) -> dict[int, int]:
    """Weight of every root: one tree's worth from every member, or all of it from the root."""
    if instance.collective in ("broadcast", "reduce"):
        assert instance.the_root is not None
        return {instance.the_root: 1}
    return dict.fromkeys(instance.members, 1)


def block_of(instance: FabricInstance) -> Callable[[int], int]:
    """Which block a tree with this root carries."""
    blocks = instance.blocks
    if len(blocks) == 1:
        return lambda root: 0
    ends = blocks.origin if instance.collective == "allgather" else blocks.goal
    number = {int(v): i for i, v in enumerate(ends)}
    return lambda root: number[root]


def planned(instance: FabricInstance, equal: int | None = None) -> tuple[PackedTrees, Fraction, str, dict[str, float]]:
    """The plan, the seconds of its fluid, words about it, and seconds per part; ``equal`` as for :func:`forest_of`."""
    roots, block = roots_of(instance), block_of(instance)
    nodes = list(instance.members)
    share = Fraction(instance.bytes, len(roots))
    plan = PackedTrees()
    if instance.collective in REDUCING:
        if any(not s and v not in set(nodes) for v, s in enumerate(instance.machine.is_switch)) and instance.relay:
            raise ValueError("reductions through ranks that are no members are not supported: set relay to false")
        inward = forest_of(instance.machine.reversed(), nodes, roots, equal=equal)
        ups = list(_trees(inward, nodes, up))
        if instance.collective != "allreduce":
            for root, weight, edges in ups:
                plan.add(block(root), weight, edges)
            return plan, share / inward.rate, _words(instance, inward, plan, share), inward.seconds
        return _allreduce(instance, inward, ups, equal)
    outward = forest_of(instance.machine, nodes, roots, equal=equal)
    for root, weight, edges in _trees(outward, nodes, down):
        plan.add(block(root), weight, edges)
    return plan, share / outward.rate, _words(instance, outward, plan, share), outward.seconds


def _allreduce(
    instance: FabricInstance, inward: Forest, ups: list[tuple[int, Fraction, list[TreeEdge]]], equal: int | None
) -> tuple[PackedTrees, Fraction, str, dict[str, float]]:
    """The better of trees up and down from every member, and of one packing of spanning trees used both ways."""
    machine, nodes, sizes = instance.machine, list(instance.members), instance.blocks.bytes
    outward = forest_of(machine, nodes, roots_of(instance), equal=equal)
    plan = PackedTrees()
    for weight, first, second in _paired(ups, list(_trees(outward, nodes, down))):
        plan.add(0, weight, up_and_down(first, second))
    fluid_s = seconds_of(plan, machine, sizes)
    spent = {name: value + outward.seconds[name] for name, value in inward.seconds.items()}
    words = f"{len(plan.edges)} in-trees each followed by an out-tree of the same root"
    began = time.monotonic()
    for gathering in (False, True) if len(nodes) > 1 and equal is None else ():
        if gathering and not _worth_gathering(instance, fluid_s):
            break
        packing = forest_of(machine, nodes, roots_of(instance), True) if gathering else outward
        found = _both_ways(instance, packing, nodes)
        if found is not None and found[1] < fluid_s:
            plan, fluid_s, copies = found
            words = f"{len(plan.edges)} spanning trees ({copies} with multiplicities), each used up and down"
    spent["packing"] += time.monotonic() - began
    text = f"{_fluid_words(instance, fluid_s)}; {words}, of up to {plan.hops} hops{outward.remark}"
    return plan, fluid_s, text, spent


def _worth_gathering(instance: FabricInstance, fluid_s: Fraction) -> bool:
    """Whether switches split off otherwise could make a quicker fluid, and that is found soon."""
    few = 2 < len(instance.members) <= MOST_GATHERED and bool(instance.machine.is_switch.any())
    return few and fluid_s * Fraction(1 - RELATIVE_GAP) > quick_bound(instance)


def _both_ways(instance: FabricInstance, packing: Forest, nodes: list[int]) -> tuple[PackedTrees, Fraction, int] | None:
    """Spanning trees, each used up and down: the plan, its fluid's seconds, and how many with multiplicities; None
    where nothing goes both ways."""
    try:
        trees, rate, copies = spanning_trees(np.minimum(packing.capacity, packing.capacity.T))
    except ValueError:
        return None
    if not rate:
        return None
    plan = PackedTrees()
    back = {(u, v): packing.shares.get((v, u), []) for u, v in packing.shares}
    for row, count in zip(trees.parent.tolist(), trees.copies.tolist(), strict=True):
        first = up(row, back, nodes)
        plan.add(0, Fraction(count, copies), up_and_down(first, down(row, packing.shares, nodes)))
    return plan, seconds_of(plan, instance.machine, instance.blocks.bytes), copies


def _trees(
    forest: Forest,
    nodes: list[int],
    edges: Callable[[Sequence[int], dict[tuple[int, int], Options], Sequence[int]], list[TreeEdge]],
) -> Iterator[tuple[int, Fraction, list[TreeEdge]]]:
    """Root, share of the root's block, and edges of every tree."""
    reverse = edges is up
    options = {
        pair: [(amount, tuple(reversed(route)) if reverse else route) for amount, route in parts]
        for pair, parts in forest.shares.items()
    }
    for row, copies, root in zip(forest.trees.parent, forest.trees.copies, forest.trees.roots, strict=True):
        yield nodes[int(root)], Fraction(int(copies), forest.per_root), edges(row.tolist(), options, nodes)


def _paired(
    ups: list[tuple[int, Fraction, list[TreeEdge]]], downs: list[tuple[int, Fraction, list[TreeEdge]]]
) -> Iterator[tuple[Fraction, list[TreeEdge], list[TreeEdge]]]:
    """In-trees and out-trees of the same root, side by side by their shares."""
    for root in dict.fromkeys(root for root, _, _ in ups):
        first = [(weight, edges) for r, weight, edges in ups if r == root]
        second = [(weight, edges) for r, weight, edges in downs if r == root]
        while first and second:
            (a, before), (b, after) = first.pop(), second.pop()
            part = min(a, b)
            yield part, before, after
            if a > part:
                first.append((a - part, before))
            if b > part:
                second.append((b - part, after))


def _fluid_words(instance: FabricInstance, fluid_s: Fraction) -> str:
    rate = instance.bytes / fluid_s / 10**9
    return f"fluid optimum {rate} GB/s ({float(rate):.6g}) algbw"


def _words(instance: FabricInstance, forest: Forest, plan: PackedTrees, share: Fraction) -> str:
    trees = len(forest.trees.copies)
    deep = f"{trees} trees ({forest.per_root} a root with multiplicities) of depth {int(forest.trees.depth.max())}"
    return f"{_fluid_words(instance, share / forest.rate)}; {deep}{forest.remark}"
