"""Schedules carried to another member of an orbit of failures, and replayed where links are slower."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.automorphism import link_images
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.rows import Rows, rows_of
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.reversal import arrivals, ends
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

Pair = tuple[int, int]


def used_pairs(instance: FabricInstance, schedule: Schedule) -> frozenset[Pair]:
    """The directions from node to node over which something is sent."""
    net, links = instance.machine.network, np.unique(schedule.link)
    return frozenset(zip(net.src[links].tolist(), net.dst[links].tolist(), strict=True))


def busy_seconds(instance: FabricInstance, schedule: Schedule) -> dict[Pair, float]:
    """How long the links from node to node are occupied, the busiest of parallel ones."""
    net = instance.machine.network
    size = np.repeat(schedule.piece_bytes[schedule.piece], np.diff(schedule.route_start))
    busy = np.bincount(schedule.link, size, instance.machine.links) / net.bandwidth
    found: dict[Pair, float] = {}
    for u, v, took in zip(net.src.tolist(), net.dst.tolist(), busy.tolist(), strict=True):
        found[u, v] = max(took, found.get((u, v), 0.0))
    return found


def carried(
    schedule: Schedule, whole: Machine, image: IntArray, source: FabricInstance, target: FabricInstance
) -> Schedule:
    """The schedule of ``source`` on ``target`` when a symmetry of the ``whole`` machine, images of all vertices, moves
    it. Raises ``ValueError`` where ``image`` is no symmetry, or a link or block that is used goes to none."""
    over = link_images(whole, image)
    if over is None:
        raise ValueError("this renumbering of the nodes is no symmetry of the machine")
    most = int(max(m.file_links.max(initial=-1) for m in (whole, source.machine, target.machine))) + 1
    of_file, there = np.full(most, -1, dtype=np.int64), np.full(most, -1, dtype=np.int64)
    of_file[whole.file_links] = np.arange(whole.links)
    there[target.machine.file_links] = np.arange(target.machine.links)
    link = there[whole.file_links[over[of_file[source.machine.file_links[schedule.link]]]]]
    block = _block_images(image, source, target)[schedule.piece_block]
    if np.any(link < 0) or np.any(block < 0):
        raise ValueError("the renumbered schedule uses what is not there")
    return replace(schedule, link=link, piece_block=block)


def moved_back(shares: Mapping[Pair, Fraction], image: IntArray) -> dict[Pair, Fraction]:
    """Where these links come from under a renumbering of the nodes, with their shares."""
    back = np.empty_like(image)
    back[image] = np.arange(len(image))
    return {(int(back[u]), int(back[v])): left for (u, v), left in shares.items()}


def _block_images(image: IntArray, source: FabricInstance, target: FabricInstance) -> IntArray:
    """The block to which each goes, -1 for none; of several from and to the same ranks the first is for the first."""
    ours, theirs = source.blocks, target.blocks
    left: dict[tuple[int, int, int], list[int]] = {}
    for b, key in enumerate(zip(theirs.origin.tolist(), theirs.goal.tolist(), theirs.bytes.tolist(), strict=True)):
        left.setdefault(key, []).append(b)
    found = []
    for origin, goal, size in zip(ours.origin.tolist(), ours.goal.tolist(), ours.bytes.tolist(), strict=True):
        to, at = (int(image[v]) if v >= 0 else v for v in (origin, goal))
        held = left.get((to, at, size))
        found.append(held.pop(0) if held else -1)
    return np.array(found, dtype=np.int64)


def slowed(schedule: Schedule, source: FabricInstance, target: FabricInstance) -> Schedule | None:
    """The schedule of ``source`` on ``target``, a machine with the same links, some slower: every link keeps its order,
    everything starts as soon as what it waited for is there. None where a route branches or switches store."""
    if source.switching.mode == "store_and_forward" or schedule.plan:
        return None
    order = np.argsort(schedule.start, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    before = waits_of(source, schedule)
    return None if before is None else timed(target, Transfers.of_schedule(schedule, before, rank), in_order=True)


def waits_of(instance: FabricInstance, schedule: Schedule) -> Rows | None:
    """For every transfer those that brought its piece to where it starts, by then, as rows; None where a route
    branches."""
    moves = Transfers.of_schedule(schedule)
    try:
        source, goal = ends(instance.machine, moves)
    except ValueError:
        return None
    came = arrivals(instance, moves, schedule)
    by_place: dict[tuple[int, int], list[int]] = {}
    for k, place in enumerate(zip(schedule.piece.tolist(), goal.tolist(), strict=True)):
        by_place.setdefault(place, []).append(k)
    rows: list[list[int]] = []
    begins, comes = schedule.start.tolist(), came.tolist()
    for k, place in enumerate(zip(schedule.piece.tolist(), source.tolist(), strict=True)):
        rows.append([j for j in by_place.get(place, ()) if comes[j] <= begins[k]])
    return rows_of(rows)
