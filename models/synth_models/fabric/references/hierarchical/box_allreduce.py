"""An allreduce made of a strategy's transfers there and back, for ``hierarchical``: one way after the other, or, where
something has failed, of unequal shares, turn by turn."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.hierarchical.box_sends import BoxStrategy, roots_of_shares
from synth_models.fabric.references.hierarchical.box_transfers import boxes_of, slow_links, transfers_of
from synth_models.fabric.references.hierarchical.share_weights import (
    HELPED,
    WAYS,
    Dealt,
    least_busy,
    lost_seconds,
    seconds_of_shares,
    whole_shares,
)
from synth_models.fabric.references.hierarchical.tuned import (
    BEHIND,
    IDLE,
    MOST_PROBED,
    PROBED_BYTES,
    QUICK,
)
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.from_afar import timed_from_near_and_afar
from synth_models.fabric.scheduling.list_scheduling import timed, timed_alike
from synth_models.fabric.scheduling.reversal import ends, joined, reversed_transfers
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule


def one_way_after_the_other(
    instance: FabricInstance, there: FabricInstance, up: Transfers, down: Transfers, strategy: BoxStrategy
) -> Schedule:
    """An allreduce: everything up, and down as soon as links are free."""
    back = reversed_transfers(there, up, timed_from_near_and_afar(there, up, strategy.in_order))
    alone = timed(instance, down).start
    if instance.switching.mode == "store_and_forward":
        alone = alone[down.route_start[:-1]]
    kept = joined(instance.machine, back, replace(down, priority=alone))  # each link keeps the order without the sums
    found = [timed_from_near_and_afar(instance, kept, True)]
    if len(kept.piece) <= QUICK:
        found += [timed(instance, both) for both in (kept, joined(instance.machine, back, down))]
    return min(found, key=partial(chunks.seconds, instance))


def of_unequal_shares(
    instance: FabricInstance, there: FabricInstance, sizes: list[list[int]], strategy: BoxStrategy
) -> Schedule:
    """An allreduce of unequal shares: :func:`_turn_by_turn`, or without a lag one way after the other if quicker."""
    pieces = len(sizes[0])
    roots = np.asarray(roots_of_shares(boxes_of(instance, strategy)), dtype=np.int64)
    turns = max(1, min(pieces // len(roots), MOST_PROBED))
    probe = [[PROBED_BYTES] * (turns * len(roots))]
    ways = WAYS if slow_links(instance).any() else HELPED
    seconds = []
    for one in (instance, there):
        parts = [Dealt(np.tile(roots, turns), np.full(len(probe[0]), helped)) for helped in range(ways)]
        shares = [
            seconds_of_shares(one, transfers_of(one, probe, strategy, dealt_to=part), len(roots)) for part in parts
        ]
        seconds.append(np.concatenate(shares, axis=1))
    down_s, up_s = seconds
    lost = lost_seconds(instance) * (IDLE if strategy.lag else 1) / instance.bytes
    weight = least_busy(down_s, up_s, lost, ways, strategy.busiest_first)
    dealt_to = Dealt.out(roots, whole_shares(down_s + up_s, lost, weight, pieces))
    found = [_turn_by_turn(instance, there, sizes, strategy._replace(by_chunk=True), dealt_to)]
    if not strategy.lag:
        up = transfers_of(there, sizes, strategy, True, dealt_to)
        down = transfers_of(instance, sizes, strategy, dealt_to=dealt_to)
        found.append(one_way_after_the_other(instance, there, up, down, strategy))
    return min(found, key=partial(chunks.seconds, instance))


def _turn_by_turn(
    instance: FabricInstance, there: FabricInstance, sizes: list[list[int]], strategy: BoxStrategy, dealt_to: Dealt
) -> Schedule:
    """Both ways of an allreduce in the same order, turn by turn to the next box, the one after that, and so on, so that
    the boxes of a rail take turns (two that send to each other would leave a third one idle); on every link the way up
    before the way down. What is summed up in the box that the whole sum is for comes a part of all turns
    (:data:`BEHIND`) later than what another box waits for. With a ``lag`` the way down goes before the way up of later
    turns: a rank that only hands in and gets back would else use each way of its slow link half of the time. What it
    sums up itself comes over that link first, before there is anything to get back, and what it spreads goes last."""
    forth, down = (transfers_of(one, sizes, strategy, dealt_to=dealt_to) for one in (there, instance))
    back = reversed_transfers(there, forth)
    turns = int(forth.priority.max(initial=0)) + 1
    box = np.zeros(instance.machine.nodes, dtype=np.int64)
    for number, members in enumerate(boxes_of(instance, strategy)):
        box[list(members)] = number
    source, target = ends(instance.machine, back)
    if strategy.lag:
        slow, leaves = slow_links(instance), ends(instance.machine, down)
        sums = slow[back.link[back.route_start[1:] - 1]] & (box[source] == box[target])
        spreads = slow[down.link[down.route_start[:-1]]] & (box[leaves[0]] == box[leaves[1]])
        back = replace(back, priority=forth.priority + turns * ~sums)
        lag = max(1, turns // strategy.lag)
        down = replace(down, priority=down.priority + turns + lag + 2 * turns * spreads)
        return timed_alike(instance, joined(instance.machine, back, down, later=False))
    at_home = (box[source] == box[target]) & (box[target] == box[dealt_to.rank[back.piece]])
    back = replace(back, priority=forth.priority + at_home * (turns // BEHIND))
    return timed_alike(instance, joined(instance.machine, back, down))
