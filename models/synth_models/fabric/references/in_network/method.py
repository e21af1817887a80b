"""Method ``in_network`` (reference, ours): sums and copies are made in switches (NVLS, SHARP).

**Hubs.** Where a switch that adds and copies is joined to all members over switches that do so too, everybody's data
of an allreduce goes up an in-tree to it and the sum down an out-tree, at once: every rank sends M bytes and receives M,
which is what the cut around a rank asks for. Several such switches share the data so that the busiest link has least
to do (a linear program over one pair of trees a switch, which needs no column generation where they are alike: the
spines of a fat tree). SHARP's reduction trees (Graham et al., "Scalable Hierarchical Aggregation Protocol (SHArP)",
COM-HPC 2016) and NCCL's NVLS on one box are of this kind.

**Boxes.** Else, where the switch of every box adds and copies: each rank owns a share; in every box the others' parts
of it are added up on their way to the rank of the owner's place, these send to the owner, which sends the sum back, and
they copy it to their boxes, in a pipeline of chunks. Inside a box every rank so sends M bytes and receives M, and
between B boxes of n NICs each of these carries ``2 (B - 1) M / (B n)`` both ways together.

**Far first.** Allgather and reduce-scatter are :mod:`synth_models.fabric.references.in_network.far_first`.

Complexity: a search a switch; 4 B transfers a rank's share and chunk. Guarantee: none; one box is at its bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from synth.arrays import SAME, FloatArray
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers.lp import linprog
from synth_models.fabric.bounds.cuts import quick_cut
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.incumbent import Incumbent
from synth_models.fabric.plans.out_trees import empty, refusal
from synth_models.fabric.plans.switch_trees import BoxTrees, SwitchTransfers, box_trees, hub_routes
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.references.in_network import far_first
from synth_models.fabric.references.in_network.tuned import MOST_CHUNKS, MOST_TRANSFERS
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

KNOWN = ("allreduce", *far_first.KNOWN)
LEAST_SHARE = 1e-6  # of the data that a hub gets
LACKING_TREES = (
    "in_network needs direct routes between at most 128 ranks, some farther than others, over switches that copy "
    "(reduce_scatter: that add)"
)
LACKING = "in_network needs switches that add and copy, a hub joined to all ranks over such or one in every box"


def propose(instance: FabricInstance, options: RunOptions, _: Incumbent) -> Outcome:
    """Method ``in_network`` in its race."""
    return solve(instance, options)


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``in_network`` alone."""
    refused = refusal(instance, KNOWN, "in_network")
    if refused is not None:
        return refused
    if len(instance.members) == 1:
        return empty(instance)
    if not instance.machine.abilities.any or instance.switching.mode == "store_and_forward":
        return Outcome("unsupported", message=LACKING)
    if instance.collective in far_first.KNOWN:
        return _far_first(instance, options)
    hubs, inside = hub_routes(instance), None
    if hubs:
        share = _shares(instance.machine, hubs)
        hubs, share = [hubs[k] for k in np.flatnonzero(share)], share[share > 0]
        make, amount, words = partial(_over_hubs, instance, hubs, share), len(hubs), f"over {len(hubs)} hubs"
    else:
        inside = box_trees(instance)
        if inside is None:
            return Outcome("unsupported", message=LACKING)
        make, amount = partial(_over_boxes, instance, inside), len(instance.members) * 4 * len(instance.boxes)
        words = "sums and copies in the switches of boxes"
    most = max(1, min(MOST_CHUNKS, instance.bytes // len(instance.members)))
    variant = chunks.Variant(make, 1, most, lambda count: amount * count, MOST_TRANSFERS)
    found = chunks.most_promising(instance, options, [variant], quick_cut(instance).seconds)
    assert found is not None
    _, count, schedule = found
    return Outcome("finished", schedule, message=f"{words}, {chunks.in_words(count)} a share{chunks.hurried(options)}")


def _far_first(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Allgather and reduce-scatter."""
    variants = far_first.variants(instance)
    if variants is None:
        return Outcome("unsupported", message=LACKING_TREES)
    found = chunks.most_promising(instance, options, variants, quick_cut(instance).seconds)
    assert found is not None
    _, count, schedule = found
    words = f"what goes far first, {chunks.in_words(count)} a block"
    return Outcome("finished", schedule, message=words + chunks.hurried(options))


def _over_hubs(instance: FabricInstance, hubs: list[list[int]], share: FloatArray, count: int) -> Schedule:
    """Every hub its share of the data in ``count`` chunks, of all hubs in turn."""
    ends = np.rint(np.cumsum(np.tile(share / count, count)) * instance.bytes).astype(np.int64)
    ends[-1] = instance.bytes
    size = np.diff(ends, prepend=0)
    used = np.flatnonzero(size > 0)
    routes = [hubs[k % len(hubs)] for k in used.tolist()]
    pieces = list(range(len(used)))
    return timed(instance, Transfers.of([0] * len(used), size[used], pieces, routes, [[] for _ in pieces]))


def _shares(machine: Machine, hubs: list[list[int]]) -> FloatArray:
    """The part of the data of each hub with which the busiest link, or group of links, has least to do; of those with
    the least latency alone where that is as good, for their chunks keep step."""
    whole, least = _balanced(machine, hubs)
    lowest = min(_height(machine, route) for route in hubs)
    chosen = [k for k, route in enumerate(hubs) if _height(machine, route) <= lowest * (1 + SAME)]
    part, seconds = _balanced(machine, [hubs[k] for k in chosen])
    if seconds > least * (1 + SAME):
        return whole
    found = np.zeros(len(hubs))
    found[chosen] = part
    return found


def _height(machine: Machine, route: Sequence[int]) -> float:
    """Seconds of latency of the longest way over a hub."""
    above: dict[int, float] = {}
    for e in route:
        u, v = int(machine.network.src[e]), int(machine.network.dst[e])
        above[v] = max(above.get(v, 0.0), above.get(u, 0.0) + float(machine.network.latency[e]))
    return max(above.values())


def _balanced(machine: Machine, hubs: list[list[int]]) -> tuple[FloatArray, float]:
    """The shares, and the seconds a byte that the busiest link then has to do."""
    net, groups = machine.network, len(machine.group_names)
    load = np.zeros((machine.links + groups, len(hubs)))
    for k, route in enumerate(hubs):
        load[route, k] = 1 / net.bandwidth[route]
        grouped = [e for e in route if machine.group[e] >= 0]
        np.add.at(load[:, k], machine.links + machine.group[grouped], 1 / net.bandwidth[grouped])
    rows = np.unique(load[load.any(axis=1)], axis=0)
    scale = rows.max()
    least = _least(rows / scale, np.ones((1, len(hubs))))
    even = _least(np.eye(len(hubs)), np.ones((1, len(hubs))), rows / scale, float((rows @ least).max() / scale))
    found = np.where(even < LEAST_SHARE, 0.0, even)
    found /= found.sum()
    return found, float((rows @ found).max())


def _least(rows: FloatArray, total: FloatArray, within: FloatArray | None = None, most: float = 0.0) -> FloatArray:
    """Shares of 1 in all with the least maximum of ``rows @ shares``; ``within @ shares`` is ``most`` or less."""
    count = rows.shape[1]
    upper, right = np.hstack([rows, -np.ones((len(rows), 1))]), np.zeros(len(rows))
    if within is not None:
        upper = np.vstack([upper, np.hstack([within, np.zeros((len(within), 1))])])
        right = np.append(right, np.full(len(within), most * (1 + SAME)))
    cost = np.append(np.zeros(count), 1.0)
    answer = linprog(cost, upper, right, np.hstack([total, [[0.0]]]), np.ones(1), method="highs")
    found: FloatArray = np.maximum(answer.x[:-1], 0.0)
    return found


def _over_boxes(instance: FabricInstance, inside: BoxTrees, count: int) -> Schedule:
    """Every rank's share in ``count`` chunks."""
    boxes = len(instance.boxes)
    owners = [(box, place) for box in range(boxes) for place in range(len(instance.boxes[0]))]
    rows = SwitchTransfers()
    size: list[int] = []
    total = instance.bytes
    ends = [total * k // (len(owners) * count) for k in range(len(owners) * count + 1)]
    for chunk in range(count):
        for number, (home, place) in enumerate(owners):
            k = chunk * len(owners) + number
            if ends[k + 1] > ends[k]:
                size.append(ends[k + 1] - ends[k])
                rows.share(inside, len(size) - 1, chunk, home, place, boxes)
    return timed(instance, rows.transfers(size))
