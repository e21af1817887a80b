"""The transfers of a strategy of ``hierarchical``, without times: what goes between boxes, and on inside each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.graph.hops import hops_from_nearest
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.network_spec import built
from synth_models.fabric.references.hierarchical.box_known import Known
from synth_models.fabric.references.hierarchical.box_places import placed
from synth_models.fabric.references.hierarchical.box_rails import Around, Rails
from synth_models.fabric.references.hierarchical.box_rounds import behind_what_they_wait_for, kept_to, rounds_of
from synth_models.fabric.references.hierarchical.box_sends import (
    DEALT,
    GROUPS_LED,
    SHARED_OUT,
    BoxStrategy,
    OverRails,
    Rounds,
    Sends,
    dealt,
    from_everyone,
    from_one,
    roots_of_shares,
    shared_out,
)
from synth_models.fabric.references.hierarchical.box_trees import Growth
from synth_models.fabric.references.hierarchical.group_leaders import led_by_groups, once_a_group
from synth_models.fabric.references.hierarchical.share_weights import Dealt
from synth_models.fabric.references.hierarchical.spare_rails import over_spare_rails
from synth_models.fabric.routes.box_routes import PairRoutes
from synth_models.fabric.routes.near_boxes import around, seconds_between
from synth_models.fabric.routes.spines import over_all_in_turn
from synth_models.fabric.scheduling.moves import pieces_of
from synth_models.fabric.scheduling.transfers import Transfers


def boxes_of(instance: FabricInstance, strategy: BoxStrategy) -> Sequence[tuple[int, ...]]:
    """What a strategy takes for boxes; of unequal shares, those from what failed on."""
    return strategy.groups or (_from_failures_on(instance) if strategy.weighed else instance.boxes)


def _from_failures_on(instance: FabricInstance) -> Sequence[tuple[int, ...]]:
    """The boxes, first that of the rank nearest to what failed, and every box from that rank's place on: failures that
    are alike so find the same schedule but for the numbers of the ranks, whichever of them it is."""
    failed, whole = instance.failed, built(instance.network)
    gone = {*failed.nodes, *(node for pair in (*failed.links, *failed.shares) for node in pair)}
    if not gone:
        return instance.boxes
    src, dst = whole.network.src.astype(np.int64), whole.network.dst.astype(np.int64)
    there, back = np.concatenate([src, dst]), np.concatenate([dst, src])
    away = hops_from_nearest(whole.nodes, there, back, sorted(gone))
    boxes = instance.boxes
    near = [
        (away[rank] if away[rank] >= 0 else len(away), b, k)
        for b, box in enumerate(boxes)
        for k, rank in enumerate(box)
    ]
    _, first, place = min(near)
    turned = [*boxes[first:], *boxes[:first]]
    return [(*box[place % len(box) :], *box[: place % len(box)]) for box in turned]


def root_of(instance: FabricInstance, strategy: BoxStrategy) -> int | None:
    """The rank that everything comes from, or is summed up at; None where every rank has a part of that."""
    return instance.members[0] if strategy.one_root else instance.the_root


def transfers_of(
    instance: FabricInstance,
    sizes: list[list[int]],
    strategy: BoxStrategy,
    last_first: bool = False,
    dealt_to: Dealt | None = None,
    known: Known | None = None,
    backwards: bool = False,
) -> Transfers:
    """Allgather or broadcast of pieces of these sizes, or every rank's share of an allreduce to all others, the last
    chunk first if so wanted. ``dealt_to``: whom an allreduce's pieces belong to, where they are not dealt out in
    turn. ``known``: routes of schedules before. ``backwards``: for a schedule with time reversed."""
    block, size = pieces_of(sizes)
    boxes, known = boxes_of(instance, strategy), known or Known()
    routes, rails = known.rails(instance, boxes, strategy, int(max(size)))
    root = root_of(instance, strategy)
    if root is None:
        holder, chunk = _shares(instance, sizes, boxes) if dealt_to is None else dealt_to.numbered
        step = chunk.max() - chunk if last_first else chunk
        if strategy.between == GROUPS_LED:
            return _as_transfers(routes, block, size, once_a_group(rails, holder, step, known.groups(routes, boxes)))
        order = around(seconds_between(routes, boxes)) if strategy.passed_on else np.arange(len(boxes), dtype=np.int64)
        beside = _beside(instance, routes, rails, strategy, dealt_to, (holder, chunk))
        return _as_transfers(routes, block, size, from_everyone(rails, holder, step, strategy, order, dealt_to, beside))
    rounds = rounds_of(instance, routes, rails, root, int(max(size)))
    if strategy.between == DEALT:
        return _as_transfers(routes, block, size, dealt(rails, root, len(block), rounds))
    if strategy.between == GROUPS_LED:
        groups = known.groups(routes, boxes)
        return _as_transfers(routes, block, size, led_by_groups(rails, root, len(block), rounds, groups))
    if strategy.between == SHARED_OUT:
        return _as_transfers(routes, block, size, shared_out(rails, root, len(block), rounds))
    trees = None
    if strategy.between == "two trees":
        bandwidth = instance.machine.network.bandwidth
        growth = _growth(strategy.gates, rounds, backwards)
        trees = known.placed(routes, growth, partial(placed, routes, rails, boxes, root, bandwidth, growth))
    sends = from_one(rails, root, len(block), strategy, rounds, trees)
    transfers = _as_transfers(routes, block, size, sends)
    if strategy.between == "two trees":
        return behind_what_they_wait_for(transfers, transfers.priority.copy())
    return kept_to(instance, transfers, sends.at_home(rails, root), rounds) if strategy.in_order else transfers


def _beside(
    instance: FabricInstance,
    routes: PairRoutes,
    rails: Rails,
    strategy: BoxStrategy,
    dealt_to: Dealt | None,
    held: tuple[IntArray, IntArray],
) -> Around | OverRails | None:
    """Around which slow links some pieces go, or which come over idle rails. ``held``: holder and chunk of every
    piece."""
    if strategy.spare_rails:
        ranks = over_spare_rails(routes, rails, instance.machine.network.bandwidth, *held)
        return None if ranks is None else OverRails(ranks)
    return None if dealt_to is None else Around.of(routes, boxes_of(instance, strategy), slow_links(instance))


def _growth(gates: int, rounds: Rounds, backwards: bool) -> Growth:
    """How trees grow; ``backwards``, what a slow link makes longer is so before the send."""
    held = rounds.slower if backwards else 0
    return Growth(gates, max(2, rounds.farthest - held), max(2, rounds.between), held)


def rails_are_idle(instance: FabricInstance, sizes: list[list[int]], strategy: BoxStrategy, known: Known) -> bool:
    """Whether some pieces are better sent along a rail than inside a box."""
    boxes, (_, size) = boxes_of(instance, strategy), pieces_of(sizes)
    routes, rails = known.rails(instance, boxes, strategy, int(max(size)))
    holder, chunk = _shares(instance, sizes, boxes)
    return over_spare_rails(routes, rails, instance.machine.network.bandwidth, holder, chunk) is not None


def _shares(
    instance: FabricInstance, sizes: Sequence[Sequence[int]], boxes: Sequence[Sequence[int]]
) -> tuple[IntArray, IntArray]:
    """The rank that every piece starts from, and the number of the piece among those of its rank, shape (pieces,)."""
    blocks = instance.blocks
    if blocks.origin[0] < 0 or len(blocks) == 1:
        number = np.arange(len(sizes[0]), dtype=np.int64)
        roots = np.asarray(roots_of_shares(boxes), dtype=np.int64)
        return roots[number % len(roots)], number // len(roots)
    lengths = [len(row) for row in sizes]
    return np.repeat(blocks.origin, lengths), np.concatenate([np.arange(length) for length in lengths])


def _as_transfers(routes: PairRoutes, block: IntArray, size: IntArray, sends: Sends) -> Transfers:
    start, link = routes.of(sends.source, sends.target)
    link = over_all_in_turn(routes.machine, start, link, sends.step)
    return Transfers.of_rows(block, size, sends.piece, (start, link), before=sends.after, priority=sends.step)


def slow_links(instance: FabricInstance) -> BoolArray:
    """The links that have a part of their rate left, in either direction, shape (links,)."""
    net, slow = instance.machine.network, {frozenset(pair) for pair in instance.failed.shares}
    pairs = zip(net.src.tolist(), net.dst.tolist(), strict=True)
    return np.array([frozenset(pair) in slow for pair in pairs], dtype=bool)
