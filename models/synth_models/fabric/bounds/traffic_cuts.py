"""Cuts for blocks with several holders and wanters.

Every byte that only ranks of S hold (of a sum: to which one of S contributes), and that is wanted outside, leaves S
(:mod:`synth_models.fabric.bounds.cuts`). Looked at are what enters each rank, all of it or from afar, what leaves each
rank, what enters and leaves each box, and of few nodes every set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

from synth.arrays import BoolArray
from synth.graph.shortest_paths import UNREACHABLE
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.cuts import cut_bound, stronger, strongest_of
from synth_models.fabric.bounds.paths import distances
from synth_models.fabric.bounds.proven import NOTHING, Proven
from synth_models.fabric.instance import FabricInstance

EVERY_SET = 9  # nodes up to which every set of them is cut off
MOST_SIDES = 512  # ranks around which :func:`side_cuts` looks
FEW = 32  # cuts of :func:`quick_traffic_cut`
MOST_THRESHOLDS = 6  # distances tried per rank


def cuts_of_traffic(links: Links, more: Callable[[], bool]) -> Proven:
    """The strongest of the cuts that are looked at while ``more()``."""
    return strongest_of(links, _cuts(links), more, NOTHING)


def quick_traffic_cut(instance: FabricInstance, asked: int = FEW) -> Proven:
    """What the first few cuts prove, for methods, to see what is left."""
    left = iter(range(asked - 1))
    return cuts_of_traffic(Links.of(instance), lambda: next(left, None) is not None)


def side_cuts(instance: FabricInstance) -> Proven:
    """What the cuts around every box, and around all that only hold or only want, prove: a few, for many ranks."""
    links, best = Links.of(instance), NOTHING
    members = np.zeros(links.nodes, dtype=bool)
    members[links.members] = True
    holds, wants = (np.any(rows, axis=0) for rows in links.held_and_wanted)
    boxes = [np.array(box) for box in instance.boxes]
    for box in boxes:
        inside = with_own_switches(links, tuple(box.tolist()))
        for side in ([~inside] if wants[box].any() else []) + ([inside] if holds[box].any() else []):
            best = stronger(best, cut_bound(links, side, members, members))
    if len(boxes) == len(links.members) or not (holds & wants).any():
        for rank in np.flatnonzero(holds | wants).tolist()[:MOST_SIDES]:
            one = np.zeros(links.nodes, dtype=bool)
            one[rank] = True
            for side in ([~one] if wants[rank] else []) + ([one] if holds[rank] else []):
                best = stronger(best, cut_bound(links, side, members, members))
    return best


def _cuts(links: Links) -> Iterator[tuple[BoolArray, BoolArray, BoolArray]]:
    """Sets with origins inside and goals outside."""
    members = np.zeros(links.nodes, dtype=bool)
    members[links.members] = True
    holds, wants = (np.any(rows, axis=0) for rows in links.held_and_wanted)
    for v in np.flatnonzero(wants).tolist():
        sink = np.zeros(links.nodes, dtype=bool)
        sink[v] = True
        yield ~sink, members, sink
        far = distances(links.reverse, links.delay, [v])
        levels = np.unique(far[holds & (far < UNREACHABLE) & ~sink])
        for level in (
            levels[np.unique(np.linspace(0, len(levels) - 1, MOST_THRESHOLDS).astype(int))] if len(levels) else ()
        ):
            yield ~sink, members & (far >= level), sink
    for u in np.flatnonzero(holds).tolist():
        source = np.zeros(links.nodes, dtype=bool)
        source[u] = True
        yield source, source, members
    for box in links.instance.boxes if len(links.instance.boxes) < len(links.members) else ():
        inside = with_own_switches(links, box)
        yield inside, members, members
        yield ~inside, members, members
    if links.nodes <= EVERY_SET:
        for size in range(2, links.nodes - 1):
            for chosen in combinations(range(links.nodes), size):
                inside = np.zeros(links.nodes, dtype=bool)
                inside[list(chosen)] = True
                yield inside, members, members


def with_own_switches(links: Links, box: tuple[int, ...]) -> BoolArray:
    """The ranks of a box, and what only they and nodes of this kind are joined to."""
    inside = np.zeros(links.nodes, dtype=bool)
    inside[list(box)] = True
    while True:
        outer = np.zeros(links.nodes, dtype=bool)
        for here, there in ((links.src, links.dst), (links.dst, links.src)):
            outer[here[~inside[there]]] = True
        joined = ~(inside | outer) & links.is_switch
        if not joined.any():
            return inside
        inside |= joined
