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

**Far first.** Allgather and reduce-scatter are :mod:`synth_models.fabric.references.far_first`.

Complexity: a search a switch; 4 B transfers a rank's share and chunk. Guarantee: none; one box is at its bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from synth.arrays import SAME, BoolArray, FloatArray
from synth.family import Outcome
from synth.graph.rows import rows_by
from synth.graph.shortest_paths import search
from synth.options import RunOptions
from synth.solvers.lp import linprog
from synth_models.fabric.bounds.cuts import quick_cut
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.references import far_first
from synth_models.fabric.references.out_trees import empty, refusal
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.gathering import parts_from_its_hub
from synth_models.fabric.scheduling.list_scheduling import Transfers, timed
from synth_models.fabric.scheduling.routes import Routes, can_branch, forked, merged
from synth_models.fabric.solution import Schedule

KNOWN = ("allreduce", *far_first.KNOWN)
MOST_TRANSFERS, MOST_CHUNKS = 1_000_000, 256
MOST_HUBS = 512
LEAST_SHARE = 1e-6  # of the data that a hub gets
LACKING_TREES = (
    "in_network needs direct routes between at most 128 ranks, some farther than others, over switches that copy "
    "(reduce_scatter: that add)"
)
LACKING = "in_network needs switches that add and copy, a hub joined to all ranks over such or one in every box"


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``in_network``."""
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


def hub_routes(instance: FabricInstance) -> list[list[int]]:
    """A route for every switch that all members reach, and are reached from, over switches that add and copy."""
    machine, members = instance.machine, list(instance.members)
    able = machine.abilities
    found = []
    for hub in np.flatnonzero(able.adds & able.copies).tolist()[:MOST_HUBS]:
        down = _paths(machine, hub, able.copies, members)
        up = _paths(machine.reversed(), hub, able.adds, members)
        if down is not None and up is not None:
            route = merged([path[::-1] for path in up]) + forked(down)
            if parts_from_its_hub(machine, route):  # else all have met before: that switch is the hub
                found.append(route)
    return found


def _paths(machine: Machine, hub: int, through: BoolArray, members: Sequence[int]) -> list[list[int]] | None:
    """Paths of least latency from a switch to all members over switches that may part there, None where one has
    none."""
    net = machine.network
    src, dst = net.src.astype(np.int64), net.dst.astype(np.int64)
    first = np.full(machine.nodes, np.inf)
    first[hub] = 0.0
    entered, settled = np.empty((2, machine.nodes), dtype=np.int64)
    search(*rows_by(src, machine.nodes), dst, net.latency.astype(float), first, through, entered, settled)
    found = []
    for v in members:
        path: list[int] = []
        while v != hub:
            if entered[v] < 0:
                return None
            path.append(int(entered[v]))
            v = int(src[path[-1]])
        found.append(path[::-1])
    return found


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


class BoxTrees(NamedTuple):
    """Routes inside boxes, by box and place in it: ``sums``, of all others' to that rank, ``copies`` from it to them;
    ``between[i][a][b]``: from the rank of place i in box a to that in box b."""

    sums: list[list[list[int]]]
    copies: list[list[list[int]]]
    between: list[list[list[list[int]]]]


def box_trees(instance: FabricInstance) -> BoxTrees | None:
    """The routes of boxes whose switches add and copy; None where they do not, or where boxes are not alike."""
    sizes = {len(box) for box in instance.boxes}
    if len(sizes) > 1 or sizes == {1}:
        return None
    machine, boxes = instance.machine, instance.boxes
    routes = Routes(machine, max(1, instance.bytes // len(instance.members)))
    try:
        sums, copies = zip(*(_inside(routes, box) for box in boxes), strict=True)
        between = [[[_way(routes, u, v) for v in place] for u in place] for place in zip(*boxes, strict=True)]
    except LookupError:
        return None
    fine = all(can_branch(machine, up, True) for box in sums for up in box)
    fine &= all(can_branch(machine, down, False) for box in copies for down in box)
    return BoxTrees(list(sums), list(copies), between) if fine else None


def _inside(routes: Routes, box: Sequence[int]) -> tuple[list[list[int]], list[list[int]]]:
    """From all others of a box to each rank, and from it to them. Raises :class:`LookupError` where there is no way."""
    sums = [merged([_way(routes, u, rank) for u in box if u != rank]) for rank in box]
    return sums, [forked([_way(routes, rank, u) for u in box if u != rank]) for rank in box]


def _way(routes: Routes, source: int, target: int) -> list[int]:
    """The links of a direct route, none from a rank to itself. Raises :class:`LookupError` where there is none."""
    found = () if source == target else routes.direct(source, target)
    if found is None:
        raise LookupError
    return list(found)


def _over_boxes(instance: FabricInstance, inside: BoxTrees, count: int) -> Schedule:
    """Every rank's share in ``count`` chunks."""
    boxes = len(instance.boxes)
    owners = [(box, place) for box in range(boxes) for place in range(len(instance.boxes[0]))]
    rows = Rows()
    size: list[int] = []
    total = instance.bytes
    ends = [total * k // (len(owners) * count) for k in range(len(owners) * count + 1)]
    for chunk in range(count):
        for number, (home, place) in enumerate(owners):
            k = chunk * len(owners) + number
            if ends[k + 1] > ends[k]:
                size.append(ends[k + 1] - ends[k])
                rows.share(inside, len(size) - 1, chunk, home, place, boxes)
    order = np.argsort(np.argsort(np.array(rows.rank), kind="stable"))
    adds = np.array(rows.adds, dtype=bool)
    return timed(instance, Transfers.of([0] * len(size), size, rows.piece, rows.route, rows.before, order, adds))


class Rows:
    """Transfers as they are listed; ``rank``: when it is their turn, the least first."""

    def __init__(self) -> None:
        self.piece: list[int] = []
        self.route: list[list[int]] = []
        self.before: list[list[int]] = []
        self.adds: list[bool] = []
        self.rank: list[int] = []

    def add(self, piece: int, route: list[int], before: list[int], adds: bool, rank: int) -> int:
        self.piece.append(piece)
        self.route.append(route)
        self.before.append(before)
        self.adds.append(adds)
        self.rank.append(rank)
        return len(self.piece) - 1

    def share(self, inside: BoxTrees, piece: int, chunk: int, home: int, place: int, boxes: int) -> None:
        """One chunk of the share of the rank of this place in the box ``home``."""
        away = [(home + k) % boxes for k in range(1, boxes)]
        turn = 4 * chunk * boxes
        summed = {b: self.add(piece, inside.sums[b][place], [], True, turn + (home - b) % boxes) for b in [*away, home]}
        come = [
            self.add(piece, inside.between[place][b][home], [summed[b]], True, turn + boxes + (home - b) % boxes)
            for b in away
        ]
        whole = [summed[home], *come]
        self.add(piece, inside.copies[home][place], whole, False, turn + 2 * boxes)
        for k, b in enumerate(away):
            back = self.add(piece, inside.between[place][home][b], whole, False, turn + 2 * boxes + k)
            self.add(piece, inside.copies[b][place], [back], False, turn + 3 * boxes + k)
