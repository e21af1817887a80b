"""The order of transfers to begin with, by packing timed trees (:mod:`.timed_tree_packing`).

Every tree becomes one piece or several, which follow each other through the bins of time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.flow_moments import Arcs
from synth_models.fabric.bounds.gossip import pays_its_way
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.programs.continuous.claims import Claims
from synth_models.fabric.programs.continuous.order import Order, Pair
from synth_models.fabric.programs.continuous.problem import Problem, Row
from synth_models.fabric.programs.continuous.timed_tree_packing import Packing, packed
from synth_models.fabric.programs.continuous.transfer_routes import TransferRoutes
from synth_models.fabric.scheduling.reversal import reversed_instance

MOST_RANKS = 10
SHARE, UNLIMITED_S = 0.3, 120.0  # of the time that is left, for one number of latencies
ROUNDS = (1, 2, 4, 8, 16, 32, 64)


def orders(instance: FabricInstance, routes: TransferRoutes, incumbent: Claims) -> Iterator[tuple[Order, list[int]]]:
    """The packing's trees in more and more pieces each, with the urgency of every transfer; nothing where it does not
    apply."""
    blocks = instance.blocks
    inward = bool(np.all(blocks.origin == EVERYONE) and np.all(blocks.goal != EVERYONE))
    if not inward and np.any(blocks.origin == EVERYONE):
        return
    there = reversed_instance(instance) if inward else instance
    links = Links.of(there)
    arcs = Arcs.of(links)
    ranks = np.flatnonzero(~links.is_switch)
    alone = len(instance.members) == len(ranks) and pays_its_way(links)
    if arcs is None or not alone or len(ranks) > MOST_RANKS:
        return
    hops = int(incumbent.least * links.ticks / arcs.delay)
    packing = None
    for count in (max(hops, 1), hops + 1, hops + 2):
        packing = packing or packed(there, links, arcs, count, incumbent.options.part(SHARE, most_s=UNLIMITED_S))
    if packing is None:
        return
    for rounds in ROUNDS:
        order = _order(instance, routes, arcs, packing, rounds, inward)
        if order is not None:
            yield order


def _order(
    instance: FabricInstance, routes: TransferRoutes, arcs: Arcs, packing: Packing, rounds: int, inward: bool
) -> tuple[Order, list[int]] | None:
    """Every tree in so many pieces, in order of bins, rounds and trees, and the place of every transfer in it; sums in
    reverse. None if the blocks have fewer bytes."""
    total = instance.blocks.bytes
    chosen = [(b, tree, y * float(total.max())) for (b, tree), y in zip(packing.trees, packing.amount, strict=True)]
    chosen = [(b, tree, y) for b, tree, y in chosen if y >= rounds]
    cut = _cut([(b, y) for b, _, y in chosen], total.tolist(), rounds)
    if cut is None:
        return None
    block, size = cut
    rows: list[Row] = []
    keys: list[tuple[int, int, int]] = []
    needs: list[Pair] = []
    for number, (_, tree, _) in enumerate(chosen):
        links = [_links(arcs, a, inward) for a, _ in tree]
        for r in range(rounds):
            into: dict[int, int] = {}
            for (a, i), route in zip(tree, links, strict=True):
                u, v = int(arcs.src[a]), int(arcs.dst[a])
                if u in into:
                    needs.append((len(rows), into[u], 0) if inward else (into[u], len(rows), 0))
                into[v] = len(rows)
                rows.append(Row(number * rounds + r, routes.number(route), (0,), inward))
                keys.append((i, r, number))
    sequence = sorted(range(len(rows)), key=keys.__getitem__, reverse=inward)
    problem = Problem.of(instance, routes, block, size)
    turns: dict[int, list[int]] = {}
    for n in sequence:
        for e in routes.all[rows[n].route].links:
            for resource in problem.resources_of[e]:
                turns.setdefault(resource, []).append(n)
    urgency = np.argsort(sequence).tolist()
    return Order(problem, tuple(rows), tuple(needs), (), (), {r: tuple(turn) for r, turn in turns.items()}), urgency


def _cut(trees: list[tuple[int, float]], total: list[int], rounds: int) -> tuple[list[int], list[int]] | None:
    """Block and bytes of ``rounds`` pieces of every tree (block, bytes), the blocks' bytes being ``total``; None if
    some block has no tree."""
    block: list[int] = []
    size: list[int] = []
    for b, y in trees:
        block += [b] * rounds
        size += [int(y) * (k + 1) // rounds - int(y) * k // rounds for k in range(rounds)]
    for b, n in enumerate(total):
        own = [k for k, of in enumerate(block) if of == b]
        if not own:
            return None
        largest = max(own, key=lambda k: size[k])
        size[largest] += n - sum(size[k] for k in own)
    return block, size


def _links(arcs: Arcs, a: int, inward: bool) -> list[int]:
    """The links of an arc; of a sum in reverse."""
    route = list(dict.fromkeys([int(arcs.first[a]), int(arcs.last[a])]))
    return route[::-1] if inward else route
