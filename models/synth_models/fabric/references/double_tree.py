"""Method ``double_tree`` (reference): NCCL's double binary tree.

Sanders, Speck, Träff: "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 2009;
in NCCL since 2.4. Two binary trees over the boxes, the inner boxes of one being leaves of the other (but for one at
most), carry half of the data each; within a box the data run along a chain. Allreduce sums up both trees and spreads
back; broadcast hangs both trees below the root, over the other boxes.

On n = 2^k ranks, one a box, all joined to a switch (latency a twice, bandwidth b), the depth of the trees is about
log2 n; a broadcast of M bytes in c chunks a tree takes about ``2 a log2 n + (2 log2 n + 2 c) M / (2 c b)``.

The boxes are those of the machine's file; on other networks every rank is a box. As NCCL does with its channels, data
are also dealt out to chains that start at different GPUs of a box (and their NICs). The number of channels and of
chunks is chosen for the size, and whether boxes are kept together at all; where something has failed, also with the
slowest rank first. Where ranks that are boxes have several links, as on a torus, channels begin at other ranks, so that
other links are used. Complexity: 2 N transfers a chunk and channel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.double_trees import parents
from synth_models.fabric.plans.out_trees import Edge, Trees, best_of, empty, refusal

KNOWN = ("allreduce", "broadcast", "reduce")
MOST_CHANNELS = 8

T = TypeVar("T")


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``double_tree``."""
    refused = refusal(instance, KNOWN, "double_tree")
    if refused is not None:
        return refused
    if not len(instance.blocks):
        return empty(instance)
    together = instance.boxes
    alone = [(rank,) for rank in instance.members]
    widest = min(max(len(box) for box in together), MOST_CHANNELS)
    channels = sorted({1, min(2, widest), min(4, widest), widest})
    kinds = [
        (f"{number} channels through {len(together)} boxes", partial(_both, instance, together, number))
        for number in channels
    ]
    ports = min(
        MOST_CHANNELS,
        int(np.bincount(instance.machine.network.src, minlength=instance.machine.nodes)[list(instance.members)].min()),
    )
    if ports > 1:
        words = f"one box a rank, {ports} channels"
        kinds.append((words, partial(_both, instance, alone, ports)))
    if len(together) < len(alone):
        kinds.append(("one box a rank", partial(_both, instance, alone, 1)))
        slowest = _slowest_first(instance)
        if instance.failed.anything and slowest != alone:
            kinds.append(("one box a rank, the slowest first", partial(_both, instance, slowest, 1)))
    return best_of(instance, options, kinds)


def _slowest_first(instance: FabricInstance) -> list[tuple[int, ...]]:
    """Boxes of a rank each, that of the least bandwidth first: a leaf of one tree, the other's root with one child."""
    net = instance.machine.network
    leaves = np.bincount(net.src, net.bandwidth, net.nodes)
    return [(rank,) for rank in sorted(instance.members, key=lambda rank: leaves[rank])]


def _both(instance: FabricInstance, together: Sequence[Sequence[int]], channels: int) -> tuple[Trees, Trees]:
    found = trees(instance, together, channels)
    return found, found


def trees(instance: FabricInstance, together: Sequence[Sequence[int]], channels: int) -> Trees:
    """Variant 2 k + t: tree t of channel k, which enters boxes at other ranks; boxes of a rank each are in another
    order. A rooted collective's trees hang below its root."""
    root, single = instance.the_root, all(len(box) == 1 for box in together)
    orders = [_rotated(together, k * len(together) // channels if single else 0) for k in range(channels)]
    made = [_tree([_rotated(box, k) for box in orders[k]], t, root) for k in range(channels) for t in (0, 1)]
    roots, edges = [top for top, _ in made], [below for _, below in made]
    return Trees(2 * channels, lambda holder, variant: edges[variant], lambda variant: [roots[variant]])


def _rotated(row: Sequence[T], by: int) -> tuple[T, ...]:
    by %= len(row)
    return (*row[by:], *row[:by])


def _tree(chains: list[tuple[int, ...]], t: int, root: int | None) -> tuple[int, list[Edge]]:
    """Root and edges of tree t over boxes, each a chain of ranks that is entered at its first."""
    if root is None:
        parent = parents(len(chains), t)
    else:
        at = next(b for b, chain in enumerate(chains) if root in chain)
        by = chains[at].index(root)
        chains = [_rotated(chains[at], by), *chains[:at], *chains[at + 1 :]]
        parent = [-1] + [p + 1 for p in parents(len(chains) - 1, t)]  # a root of the others (-1) hangs below box 0
    children = defaultdict(list)
    for b, p in enumerate(parent):
        children[p].append(b)
    top = children[-1][0]
    edges: list[Edge] = []
    stack = [(top, 0)]
    while stack:
        b, step = stack.pop()
        chain = chains[b]
        for c in children[b]:
            edges.append((chain[0], chains[c][0], step))
            stack.append((c, step + 1))
        edges += [(u, v, step + k) for k, (u, v) in enumerate(pairwise(chain))]
    return chains[top][0], sorted(edges, key=_step)


def _step(edge: Edge) -> int:
    _, _, step = edge
    return step
