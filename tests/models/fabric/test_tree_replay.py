"""Switches that add and copy: in-trees and hubs, judged as by a plain replay; what machines and files say of them."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import some_of
from models.fabric.small_machines import Drawn, Link
from models.fabric.test_replay_oracle import mutated
from models.fabric.tree_replay import replay as plain_replay

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_above
from synth_models.fabric.scheduling.list_scheduling import completion, timed
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

COLLECTIVES = ("reduce_scatter", "allreduce", "reduce", "allgather", "broadcast")


def adding_machine(chooser: random.Random) -> FabricInstance:
    """Two to five ranks behind one to three switches, of which some add and some copy, with and without limits."""
    while True:
        ranks, switches = chooser.randint(2, 5), chooser.randint(1, 3)
        nodes = ranks + switches
        pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v and max(u, v) >= ranks]
        drawn = chooser.sample(pairs, chooser.randint(min(len(pairs), 2 * ranks), len(pairs)))
        drawn += [(u, v) for u in range(ranks) for v in range(ranks) if u != v and chooser.random() < 0.2]
        bandwidths = chooser.sample([1.0, 2.5, 3.0, 0.7, 7.0, 12.3], 3)
        links: list[Link] = []
        for u, v in drawn:
            group = chooser.choice(["a", "b"]) if chooser.random() < 0.1 else None
            links.append((u, v, chooser.choice(bandwidths), chooser.choice([0.0, 0.5, 1.0, 0.3]), group))
        abilities = [_ability(chooser, v) for v in range(ranks, nodes) if chooser.random() < 0.9]
        rows = [dict(zip(("src", "dst", "bandwidth", "latency", "group"), link, strict=False)) for link in links]
        network = {"kind": "links", "nodes": nodes, "switches": list(range(ranks, nodes)), "links": rows}
        raw = {"collective": chooser.choice(COLLECTIVES), "bytes": ranks * chooser.randint(1, 6)}
        try:
            return FabricInstance.model_validate(
                {"name": "t", "source": "test", "network": network | {"abilities": abilities}} | raw
            )
        except ValueError:
            continue  # parts of the ranks do not reach each other


def _ability(chooser: random.Random, node: int) -> dict[str, Any]:
    found: dict[str, Any] = {"switch": node, "adds": chooser.random() < 0.8, "copies": chooser.random() < 0.7}
    if chooser.random() < 0.3:
        found["streams"] = chooser.randint(1, 2)
    if chooser.random() < 0.3:
        found["add_rate"] = chooser.choice([0.9, 2.0, 5.5])
    return found


def drawn_schedule(chooser: random.Random, instance: FabricInstance) -> Schedule:
    """A schedule of random trees: whoever lacks a piece gets it over a random out-tree, sums come over random in-trees,
    and where one reaches all, over a hub."""
    drawn = _Trees(chooser, instance)
    for b in range(len(instance.blocks)):
        drawn.block(int(instance.blocks.origin[b]), int(instance.blocks.goal[b]), b)
    order = list(range(len(drawn.routes)))
    sizes = instance.blocks.bytes.tolist()
    rows = Transfers.of(
        list(range(len(sizes))),
        sizes,
        drawn.pieces,
        drawn.routes,
        drawn.before,
        order,
        np.array(drawn.adds, dtype=bool),
    )
    return timed(instance, rows, chooser.choice([None, 7, 1000]))


class _Trees(Drawn):
    def __init__(self, chooser: random.Random, instance: FabricInstance) -> None:
        super().__init__(chooser, instance, useless=0.0)
        net, able = instance.machine.network, instance.machine.abilities
        self.ends = list(zip(net.src.tolist(), net.dst.tolist(), strict=True))
        self.may_add, self.may_copy = able.adds.tolist(), able.copies.tolist()

    def tree(self, root: int, others: set[int], backwards: bool) -> tuple[list[int], set[int]]:
        """A random tree over switches from the root (or to it) and what it reaches of the others. A switch has
        several links away from the root only where it may."""
        may = self.may_add if backwards else self.may_copy
        reached, route, used = {root}, list[int](), Counter[int]()
        for _ in range(self.chooser.randint(1, 12)):
            grown = []
            for e, ends in enumerate(self.ends):
                u, v = ends[::-1] if backwards else ends
                fine = u in reached and v not in reached and (u == root or self.switch[u])
                if fine and (self.switch[v] or v in others) and (not used[u] or (self.switch[u] and may[u])):
                    grown.append((e, u, v))
            if not grown:
                break
            e, u, v = self.chooser.choice(grown)
            route.append(e)
            reached.add(v)
            used[u] += 1
        while True:  # ends at switches go
            away = [e for e in route if self.switch[end := self.ends[e][not backwards]] and not used[end]]
            if not away:
                break
            for e in away:
                used[self.ends[e][backwards]] -= 1
                route.remove(e)
        got = {v for e in route for v in self.ends[e] if v in others}
        return (route[::-1] if backwards else route), got

    def block(self, origin: int, goal: int, piece: int) -> None:
        members = set(self.instance.members)
        has: dict[int, list[int]] = {origin: []}
        if origin < 0:
            root = goal if goal >= 0 else self.chooser.choice(sorted(members))
            if goal < 0 and (number := self.over_a_hub(piece, members)) is not None:
                has = {v: [number] for v in members}
            else:
                has = {root: self.gathered(piece, root, members)}
        wanted = members if goal < 0 else {goal}
        while wanted - set(has):
            u = self.chooser.choice(sorted(has))
            route, got = self.tree(u, wanted - set(has), False)
            if route:
                number = self.add(piece, route, has[u], False)
                has |= {v: [number] for v in got}

    def gathered(self, piece: int, root: int, members: set[int]) -> list[int]:
        """Sums on random in-trees, the last ones into the root; returns the transfers that end there."""
        into: dict[int, list[tuple[list[int], set[int]]]] = {root: []}
        joined = [root]
        while members - set(joined):
            v = self.chooser.choice(joined)
            route, got = self.tree(v, members - set(joined), True)
            if route:
                into[v].append((route, got))
                joined += sorted(got)
                into |= {w: [] for w in got}
        came: dict[int, list[int]] = {}

        def settle(v: int) -> list[int]:
            if v not in came:
                came[v] = [
                    self.add(piece, route, [n for w in sorted(got) for n in settle(w)], True) for route, got in into[v]
                ]
            return came[v]

        return settle(root)

    def over_a_hub(self, piece: int, members: set[int]) -> int | None:
        """An in-tree of everybody into a switch and an out-tree to everybody; None where chance finds none."""
        for hub in (v for v, flag in enumerate(self.switch) if flag and self.may_add[v] and self.may_copy[v]):
            for _ in range(6):
                up, come = self.tree(hub, members, True)
                down, got = self.tree(hub, members, False)
                meet = sum(self.ends[e][1] == hub for e in up) > 1
                if come == got == members and meet and not set(up) & set(down):
                    return self.add(piece, up + down, [], False)
        return None


def compare(instance: FabricInstance, schedule: Schedule) -> set[str]:
    """Both replays, which must agree; returns the oracle's faults."""
    verdict = check_schedule(instance, schedule)
    faults, ticks = plain_replay(instance, schedule)
    assert bool(faults) == bool(verdict.faults), (faults, verdict.faults)
    if not faults:
        assert verdict.value == float_above(Fraction(ticks, schedule.ticks_per_s))
        assert ticks == completion(instance, replace(schedule))
    return faults


@pytest.mark.long
@pytest.mark.parametrize("seed", some_of(range(6)))
def test_trees_are_judged_as_by_the_plain_replay(seed: int) -> None:
    """60 machines a seed: what list scheduling makes of random trees is valid, and of twelve mutations of each the
    replays say the same."""
    chooser = random.Random(seed)
    met: Counter[str] = Counter()
    gathered = 0
    for _ in range(60):
        instance = adding_machine(chooser)
        schedule = drawn_schedule(chooser, instance)
        assert compare(instance, schedule) == set(), instance
        tails = ~instance.machine.is_switch[instance.machine.network.src[schedule.link]]
        gathered += int((np.add.reduceat(tails.astype(int), schedule.route_start[:-1]) > 1).sum()) if len(tails) else 0
        for _ in range(12):
            broken = mutated(chooser, instance, schedule)
            met.update(compare(instance, broken) or {"valid"})
    assert gathered > 20
    assert met["valid"] > 20
    assert len(met) >= 7, met
