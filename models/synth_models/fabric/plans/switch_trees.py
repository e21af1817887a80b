"""Routes that branch and join in switches which copy and add: over a hub that all are joined to, and inside boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from synth.arrays import BoolArray
from synth.graph.rows import rows_by
from synth.graph.shortest_paths import search
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.routes.search import Routes, can_branch, forked, merged
from synth_models.fabric.scheduling.gathering import parts_from_its_hub
from synth_models.fabric.scheduling.transfers import Transfers

MOST_HUBS = 512


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


class SwitchTransfers:
    """Transfers over switches that add and copy, as they are listed; ``rank``: when it is their turn, the least
    first."""

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

    def transfers(self, piece_bytes: Sequence[int]) -> Transfers:
        """All that were listed, of pieces of one block."""
        order = np.argsort(np.argsort(np.array(self.rank), kind="stable"))
        return Transfers.of([0] * len(piece_bytes), piece_bytes, self.piece, self.route, self.before, order, self.adds)

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
