"""Allgather and reduce-scatter over switches that copy or add: what goes far first, what goes near in the gaps.

A rank's block goes to all ranks that are equally far from it by one out-tree, or by one for every last switch on the
way; to the nearest ranks one by one. Trees to the farthest ranks are placed first, each as early as its links allow,
and nearer ones into the gaps that are left. So the ports that data come in by are busy from the moment at which the
nearest data can be there, while the farthest are still on their way; a schedule that sends in the order of distance
leaves them idle for the difference. Reduce-scatter is the same with in-trees, whose switches add: what comes from afar
leaves first.

On n ranks (ports of b bytes/s, the nearest rank after a latency of a) the bound is ``a + (n - 1) M / (n b)``.
Guarantee: none. Complexity: n^2 routes, a transfer a tree and chunk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.references.in_network.tuned import MOST_TREE_CHUNKS, MOST_TREE_MEMBERS, MOST_TREE_TRANSFERS
from synth_models.fabric.routes.search import Routes, can_branch, forked, merged
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

KNOWN = ("allgather", "reduce_scatter")

Path = tuple[int, list[int]]  # the rank at its other end, links
Tree = tuple[int, int, list[int]]  # ticks of latency, turn among those as far, links


def variants(instance: FabricInstance) -> list[chunks.Variant] | None:
    """Trees to all ranks at a distance, and to those behind each last switch; None where some rank is not reached by a
    direct route, or nothing branches."""
    if len(instance.members) > MOST_TREE_MEMBERS:
        return None
    routes = Routes.of(instance, max(1, instance.bytes // len(instance.members)))
    try:
        paths = [_paths(instance, routes, owner) for owner in _owners(instance)]
    except LookupError:
        return None
    ticks = clock.ticks_per_second(instance.machine, 1.0)
    latency = clock.latencies(instance.machine, ticks).tolist()
    trees = [
        [
            _trees(instance, latency, owner, ways, by_switch)
            for owner, ways in zip(_owners(instance), paths, strict=True)
        ]
        for by_switch in (False, True)
    ]
    singles = len(paths) * (len(instance.members) - 1)
    counts = [sum(map(len, kind)) for kind in trees]
    most = max(1, min(MOST_TREE_CHUNKS, int(instance.blocks.bytes.max())))
    return [
        chunks.Variant(partial(_made, instance, kind), 1, most, partial(int.__mul__, count), MOST_TREE_TRANSFERS)
        for kind, count in zip(trees, counts, strict=True)
        if count < singles
    ] or None


def _owners(instance: FabricInstance) -> list[int]:
    """The rank of every block that has it, or gets its sum."""
    blocks = instance.blocks
    rank = blocks.goal if instance.collective == "reduce_scatter" else blocks.origin
    return [int(v) for v in rank]


def _paths(instance: FabricInstance, routes: Routes, owner: int) -> list[Path]:
    """Direct routes from the owner to all others, or of a sum from them to it. Raises :class:`LookupError` where there
    is none."""
    found = []
    for v in instance.members:
        if v == owner:
            continue
        route = routes.direct(v, owner) if instance.collective == "reduce_scatter" else routes.direct(owner, v)
        if route is None:
            raise LookupError
        found.append((v, list(route)))
    return found


def _trees(
    instance: FabricInstance, latency: Sequence[int], owner: int, ways: list[Path], by_switch: bool
) -> list[Tree]:
    """The owner's trees: a path each for the nearest ranks, and where the links of others make no tree that the
    switches can branch."""
    machine, summing = instance.machine, instance.collective == "reduce_scatter"
    groups: dict[tuple[int, int], list[Path]] = defaultdict(list)
    for v, path in ways:
        away = sum(latency[e] for e in path)
        last = int(machine.network.dst[path[0]] if summing else machine.network.src[path[-1]])
        groups[away, last if by_switch else 0].append((v, path))
    nearest = min(away for away, _ in groups)
    found: list[Tree] = []
    for (away, _), group in groups.items():
        links = (merged if summing else forked)([path for _, path in group])
        if away > nearest and _is_tree(machine, links, summing):
            found.append((away, _turn(instance, owner, min(v for v, _ in group)), links))
        else:
            found += [(away, _turn(instance, owner, v), path) for v, path in group]
    return found


def _is_tree(machine: Machine, links: Sequence[int], summing: bool) -> bool:
    """Whether no node is entered (left, in a sum) twice, and switches can do what is asked of them."""
    ends = (machine.network.src if summing else machine.network.dst)[list(links)].tolist()
    return len(set(ends)) == len(ends) and can_branch(machine, links, summing)


def _turn(instance: FabricInstance, owner: int, rank: int) -> int:
    """How many ranks further on it is: owners take turns at a rank's port."""
    place = instance.members.index
    return (place(rank) - place(owner)) % len(instance.members)


def _made(instance: FabricInstance, trees: Sequence[Sequence[Tree]], count: int) -> Schedule:
    """All blocks in ``count`` chunks."""
    block, size, rows = list[int](), list[int](), list[tuple[int, int, int, int, int, list[int]]]()
    for number, total in enumerate(instance.blocks.bytes.tolist()):
        for chunk, part in enumerate(chunks.equal(int(total), count)):
            rows += [(-away, chunk, turn, number, len(block), links) for away, turn, links in trees[number]]
            block.append(number)
            size.append(part)
    rows.sort()
    summing = instance.collective == "reduce_scatter"
    transfers = Transfers.of(
        block, size, [row[4] for row in rows], [row[5] for row in rows], [[] for _ in rows], None, summing
    )
    return timed(instance, transfers, in_gaps=True)
