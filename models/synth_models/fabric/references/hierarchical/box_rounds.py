"""Rounds of a strategy between boxes: how long pieces are on their way in rounds, and links that keep to them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.hierarchical.box_rails import Rails
from synth_models.fabric.references.hierarchical.box_sends import Rounds
from synth_models.fabric.references.hierarchical.tuned import ROUND_PARTS
from synth_models.fabric.routes.box_routes import PairRoutes
from synth_models.fabric.routes.spines import as_one
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.transfers import Transfers


def kept_to(instance: FabricInstance, transfers: Transfers, at_home: int, rounds: Rounds) -> Transfers:
    """The rounds as planned, for links that keep to an order; in the root's box, which more is sent in than in any
    other, the order is what list scheduling finds. ``at_home``: transfers there, which are the first."""
    priority = transfers.priority * ROUND_PARTS + rounds.inside * ROUND_PARTS
    if at_home:
        routes, waits = transfers.route_start[: at_home + 1], transfers.before_start[: at_home + 1]
        alone = replace(
            transfers, piece=transfers.piece[:at_home], adds=transfers.adds[:at_home],
            priority=transfers.priority[:at_home], route_start=routes, link=transfers.link[: routes[-1]],
            before_start=waits, before=transfers.before[: waits[-1]],
        )  # fmt: skip
        found = timed(instance, alone)
        start = found.start if len(found.start) == at_home else found.start[routes[:-1]]
        priority[:at_home] = start / found.ticks_per_s / rounds.seconds * ROUND_PARTS
    return behind_what_they_wait_for(transfers, priority)


def behind_what_they_wait_for(transfers: Transfers, priority: IntArray) -> Transfers:
    """The transfers with these priorities, raised where one would go before the one that it waits for."""
    behind = np.flatnonzero(np.diff(transfers.before_start))
    while True:
        least = priority[transfers.before]
        if not np.any(priority[behind] < least):
            return replace(transfers, priority=priority)
        priority[behind] = np.maximum(priority[behind], least)


def rounds_of(instance: FabricInstance, routes: PairRoutes, rails: Rails, root: int, size: int) -> Rounds:
    """How long pieces of this size are on their way, from the root's box to the nearest and the farthest, and in it.
    A link of many that pieces take in turn is longer in use than a round, which it does not make longer."""
    net, home = instance.machine.network, int(rails.box[root])
    away = np.where(np.arange(len(rails.size)) == home, np.inf, routes.seconds_from(root)[rails.enters[root]])
    beside = (home + 1) % len(rails.size)
    other, farthest = int(np.argmin(away)), int(np.argmax(np.where(np.isfinite(away), away, -1.0)))
    if not np.isfinite(away).any():
        other = farthest = beside
    neighbour = rails.rank[home, (rails.number[root] + 1) % rails.size[home]]
    _, rate = as_one(instance.machine, np.ones(net.links, dtype=bool))
    seconds, slowest, least = [], [], np.inf
    pairs = [(rails.leaves[root, box], rails.enters[root, box]) for box in (other, farthest)]
    for source, target in (*pairs, (root, neighbour)):
        links = np.zeros(0, dtype=np.int64)
        if source != target:
            _, links = routes.of(*(np.array([end], dtype=np.int64) for end in (source, target)))
        seconds.append(float(net.latency[links].sum()))
        slowest.append(float(net.bandwidth[links].min(initial=np.inf)))
        least = min(least, float(rate[links].min(initial=least)))
    near, far, inside = (
        math.ceil(latency * least / size + max(1.0, least / slow))
        for latency, slow in zip(seconds, slowest, strict=True)
    )
    return Rounds(near, far, inside, size / least, far - math.ceil(seconds[1] * least / size + 1.0))
