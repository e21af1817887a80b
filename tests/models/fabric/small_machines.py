"""Small machines and schedules that the tests of the replay share: written out by hand, or random ones.

Random transfers are drawn here (who sends which piece over which route, after what); only their start times come from
the family's list scheduling.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

MOST_DRAWN = 1000  # sources that are drawn of one piece
Link = tuple[Any, ...]  # src, dst, bandwidth[, latency[, group]]


def machine(nodes: int, links: Sequence[Link], switches: Sequence[int] = (), **own: Any) -> FabricInstance:
    """An instance on these links; ``own`` are keys of the instance file."""
    rows = [dict(zip(("src", "dst", "bandwidth", "latency", "group"), link, strict=False)) for link in links]
    network = {"kind": "links", "nodes": nodes, "switches": list(switches), "links": rows}
    return FabricInstance.model_validate({"name": "t", "source": "test", "network": network} | own)


def schedule_of(
    pieces: Sequence[tuple[int, int]], transfers: Sequence[tuple[Any, ...]], ticks_per_s: int = 1
) -> Schedule:
    """From (block, bytes) a piece and (start, piece, route[, adds]) a transfer; a route is a list of links."""
    routes = [list(row[2]) for row in transfers]
    ends = np.cumsum([0] + [len(route) for route in routes]).astype(np.int64)
    whole = [np.array(column, dtype=np.int64) for column in (list(zip(*pieces, strict=True)) or [[], []])]
    return Schedule(
        ticks_per_s,
        whole[0],
        whole[1],
        np.array([row[0] for row in transfers], dtype=np.int64),
        np.array([row[1] for row in transfers], dtype=np.int64),
        np.array([len(row) > 3 and bool(row[3]) for row in transfers], dtype=bool),
        ends,
        np.array([e for route in routes for e in route], dtype=np.int64),
    )


COLLECTIVES = (
    "allgather",
    "reduce_scatter",
    "allreduce",
    "alltoall",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "demand",
)


def random_traffic(chooser: random.Random, group: list[int], blocks: int = 5, size: int = 9) -> list[dict[str, Any]]:
    """One to so many blocks, each with one or more holders and wanters, copies or contributions."""
    return [
        {
            "bytes": chooser.randint(1, size),
            "holders": chooser.sample(group, chooser.randint(1, len(group))),
            "mode": chooser.choice(["any", "sum"]),
            "wanters": chooser.sample(group, chooser.randint(1, len(group))),
        }
        for _ in range(chooser.randint(1, blocks))
    ]


def random_instance(chooser: random.Random, traffic: bool = False) -> FabricInstance:
    """Two to five ranks, none to two switches, links of odd bandwidths and latencies, groups, any switching, any
    collective or, if so wanted, traffic, sometimes over a part of the ranks."""
    while True:
        ranks, switches = chooser.randint(2, 5), chooser.randint(0, 2)
        nodes = ranks + switches
        pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v]
        drawn = chooser.sample(pairs, chooser.randint(nodes, len(pairs)))
        drawn += chooser.choices(drawn, k=chooser.randint(0, 2))
        bandwidths = chooser.sample([1.0, 2.5, 3.0, 0.7, 7.0, 12.3], 3)
        links: list[Link] = []
        for u, v in drawn:
            group = chooser.choice(["a", "b"]) if chooser.random() < 0.2 else None
            links.append((u, v, chooser.choice(bandwidths), chooser.choice([0.0, 0.5, 1.0, 0.3]), group))
        switching = {
            "mode": chooser.choice(["cut_through", "store_and_forward"]),
            "multicast": chooser.random() < 0.5,
            "buffer": chooser.random() < 0.5,
            "copies": chooser.random() < 0.5,
        }
        own: dict[str, Any] = {"collective": chooser.choice(COLLECTIVES), "switching": switching}
        group = list(range(ranks))
        if chooser.random() < 0.3:
            group = chooser.sample(group, chooser.randint(2, ranks))
            own |= {"ranks": group, "relay": chooser.random() < 0.5}
        if traffic:
            own["collective"] = "traffic"
            own["traffic"] = random_traffic(chooser, group)
            own["bytes"] = sum(row["bytes"] for row in own["traffic"])
        elif own["collective"] == "demand":
            own["demand"] = [(*chooser.sample(group, 2), chooser.randint(1, 9)) for _ in range(chooser.randint(1, 5))]
            own["bytes"] = sum(row[2] for row in own["demand"])
        else:
            own["bytes"] = len(group) * chooser.randint(1, 9)
        try:
            return machine(nodes, links, range(ranks, nodes), **own)
        except ValueError:
            continue  # parts of the ranks do not reach each other


def random_schedule(chooser: random.Random, instance: FabricInstance, useless: float = 0.03) -> Schedule:
    """A valid schedule of :func:`random_transfers`."""
    return timed(instance, random_transfers(chooser, instance, useless), chooser.choice([None, None, 1, 7, 1000]))


def random_transfers(chooser: random.Random, instance: FabricInstance, useless: float = 0.03) -> Transfers:
    """Valid transfers with random cuts, sources, routes and order; now and then a useless one."""
    blocks = instance.blocks
    cut: list[tuple[int, int]] = []
    for b in range(len(blocks)):
        left = int(blocks.bytes[b])
        while left:
            size = left if chooser.random() < 0.5 else chooser.randint(1, left)
            cut.append((b, size))
            left -= size
    made = Drawn(chooser, instance, useless)
    for p, (b, _) in enumerate(cut):
        holders, wanters = (
            set(blocks.ranks(int(codes[b]), instance.members)) for codes in (blocks.origin, blocks.goal)
        )
        made.piece(p, holders, bool(blocks.sums[b]), wanters)
    order = list(range(len(made.routes)))
    chooser.shuffle(order)
    return Transfers.of(
        [b for b, _ in cut], [size for _, size in cut], made.pieces, made.routes, made.before, order, made.adds
    )


class Drawn:
    """Transfers as they are drawn."""

    def __init__(self, chooser: random.Random, instance: FabricInstance, useless: float) -> None:
        self.chooser, self.instance, self.useless = chooser, instance, useless
        net = instance.machine.network
        self.out: dict[int, list[tuple[int, int]]] = {v: [] for v in range(net.nodes)}
        for e in range(net.links):
            self.out[int(net.src[e])].append((e, int(net.dst[e])))
        self.switch = instance.machine.is_switch.tolist()
        self.pieces: list[int] = []
        self.routes: list[list[int]] = []
        self.before: list[list[int]] = []
        self.adds: list[bool] = []

    def add(self, piece: int, route: list[int], before: list[int], adds: bool) -> int:
        self.pieces.append(piece)
        self.routes.append(route)
        self.before.append(before)
        self.adds.append(adds)
        return len(self.routes) - 1

    def paths(self, u: int) -> list[tuple[list[int], int]]:
        """All routes from rank u to other ranks through switches."""
        found, open_ = [], [([], u, {u})]
        while open_:
            path, at, seen = open_.pop()
            for e, v in self.out[at]:
                if v in seen:
                    continue
                if self.switch[v]:
                    open_.append((path + [e], v, seen | {v}))
                else:
                    found.append((path + [e], v))
        return found

    def piece(self, p: int, holders: set[int], adds: bool, wanters: set[int]) -> None:
        if not adds:
            self.spread(p, {holder: [] for holder in sorted(holders)}, wanters)
            return
        root = next(iter(wanters)) if len(wanters) == 1 else self.chooser.choice(list(self.instance.members))
        self.spread(p, {root: self.gather(p, root, holders)}, wanters)

    def spread(self, p: int, holds: dict[int, list[int]], wanted: set[int]) -> None:
        """From those who have it (and after which transfers) until all who want it have it too."""
        for _ in range(MOST_DRAWN):
            if not wanted - set(holds):
                return
            u = self.chooser.choice(sorted(holds))
            useful = [(route, v) for route, v in self.paths(u) if v not in holds]
            if self.chooser.random() < self.useless and self.paths(u):
                self.add(p, self.chooser.choice(self.paths(u))[0], holds[u], False)
            if not useful:
                continue
            route, v = self.chooser.choice(useful)
            got = [v]
            if self.instance.switching.multicast and self.instance.switching.mode == "cut_through":
                route = list(route)
                net = self.instance.machine.network
                for _ in range(self.chooser.randint(0, 3)):
                    inside = {u, *(int(net.dst[e]) for e in route)}
                    grown = [
                        (e, w)
                        for s in inside
                        if self.switch[s]
                        for e, w in self.out[s]
                        if w not in inside and not self.switch[w] and w not in holds
                    ]
                    if not grown:
                        break
                    e, w = self.chooser.choice(grown)
                    route.append(e)
                    got.append(w)
            number = self.add(p, route, holds[u], False)
            for w in got:
                holds[w] = [number]
        raise IndexError("nobody who has it reaches all who want it")

    def gather(self, p: int, root: int, members: set[int]) -> list[int]:
        """A random in-tree to the root; returns the transfers that end there."""
        ranks = sorted(v for v in self.out if not self.switch[v])
        towards: dict[int, tuple[list[int], int]] = {}
        joined = [root]
        while members - set(joined):
            fresh = [(u, route, v) for u in ranks if u not in joined for route, v in self.paths(u) if v in joined]
            u, route, v = self.chooser.choice(fresh)
            towards[u] = (route, v)
            joined.append(u)
        came: dict[int, list[int]] = {v: [] for v in joined}
        for u in reversed(joined[1:]):
            if u in members or came[u]:
                route, v = towards[u]
                came[v].append(self.add(p, route, list(came[u]), True))
        return came[root]
