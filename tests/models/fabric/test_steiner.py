"""Method ``steiner``: its packing against all trees of tiny machines, its schedules against the check."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from examples import some_of
from scipy.optimize import linprog

import synth
from synth.options import RunOptions
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.programs.steiner import method
from synth_models.fabric.programs.steiner.column_generation import Generation
from synth_models.fabric.programs.steiner.pricing import MOST_EXACT

TREES = ("broadcast", "reduce", "allgather", "reduce_scatter", "allreduce")
Arc = tuple[int, int, tuple[int, ...]]  # from, to, links: over switches at which nothing parts


def drawn(chooser: random.Random, collective: str) -> FabricInstance:
    """Two to four ranks behind one or two switches, each plain, copying, adding or both."""
    while True:
        ranks, switches = chooser.randint(2, 4), chooser.randint(1, 2)
        if collective in ("allgather", "reduce_scatter"):
            ranks = min(ranks, 3)
        nodes = ranks + switches
        pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v and max(u, v) >= ranks]
        pairs = [pair for pair in pairs if chooser.random() < 0.8]
        pairs += [(u, v) for u in range(ranks) for v in range(ranks) if u != v and chooser.random() < 0.15]
        rows = [
            {"src": u, "dst": v, "bandwidth": chooser.choice([1.0, 2.0, 5.0]), "latency": chooser.choice([0.0, 1.0])}
            | ({"group": chooser.choice("ab")} if chooser.random() < 0.1 else {})
            for u, v in pairs
        ]
        able = [
            {"switch": s, "adds": chooser.random() < 0.7, "copies": chooser.random() < 0.7}
            | ({"add_rate": 1.5} if chooser.random() < 0.2 else {})
            for s in range(ranks, nodes)
        ]
        network: dict[str, Any] = {"kind": "links", "nodes": nodes, "switches": list(range(ranks, nodes))}
        raw = {"name": "t", "source": "test", "network": network | {"links": rows, "abilities": able}}
        try:
            return FabricInstance.model_validate(raw | {"collective": collective, "bytes": 12 * ranks})
        except ValueError:
            continue  # parts of the ranks do not reach each other


def every_tree(instance: FabricInstance, root: int, backwards: bool) -> Iterator[tuple[Counter[int], bool]]:
    """The links of every tree from a root (backwards: to it) over all members, as often as streams take them, and of
    those which leave a switch as a sum: every node but the root takes one arc from another one."""
    machine, able = instance.machine, instance.machine.abilities
    net, members = machine.network, list(instance.members)
    ends = [(int(u), int(v)) for u, v in zip(net.src, net.dst, strict=True)]
    if backwards:
        ends = [(v, u) for u, v in ends]
    parts = able.adds if backwards else able.copies
    joints = [v for v in range(machine.nodes) if v in members or (machine.is_switch[v] and parts[v])]
    arcs: list[Arc] = []
    for u in {*joints, root}:
        open_: list[tuple[int, tuple[int, ...], frozenset[int]]] = [(u, (), frozenset([u]))]
        while open_:
            at, path, seen = open_.pop()
            for e, (tail, head) in enumerate(ends):
                if tail != at or head in seen:
                    continue
                if head in joints:
                    arcs.append((u, head, (*path, e)))
                elif machine.is_switch[head]:
                    open_.append((head, (*path, e), seen | {head}))
    steiner = [v for v in joints if v not in members and v != root]
    for used in product((False, True), repeat=len(steiner)):
        nodes = [v for v in members if v != root] + [v for v, flag in zip(steiner, used, strict=True) if flag]
        for chosen in product(*([arc for arc in arcs if arc[1] == v and arc[0] in {*nodes, root}] for v in nodes)):
            above = {v: u for u, v, _ in chosen}
            fine = all(reaches(above, v, root) for v in nodes)
            fine &= all(v in above.values() for v in nodes if v not in members)
            if fine:
                links = Counter(e for _, _, path in chosen for e in path)
                sums = {path[-1] for _, v, path in chosen if backwards and list(above.values()).count(v) > 1
                        and machine.is_switch[v]}  # fmt: skip
                yield links, sums


def reaches(above: dict[int, int], node: int, root: int) -> bool:
    seen = set()
    while node != root:
        if node in seen or node not in above:
            return False
        seen.add(node)
        node = above[node]
    return True


def load(instance: FabricInstance, links: Counter[int], sums: set[int], hub: int = -1) -> Counter[int]:
    """Seconds a byte on links, and on groups behind them."""
    machine, found = instance.machine, Counter[int]()
    for e, times in links.items():
        speed = float(machine.network.bandwidth[e])
        if e in sums or int(machine.network.src[e]) == hub:
            speed = min(speed, float(machine.abilities.add_rate[int(machine.network.src[e])]))
        found[e] += times / speed
        if machine.group[e] >= 0:
            found[machine.links + int(machine.group[e])] += times / speed
    return found


def all_columns(instance: FabricInstance) -> list[tuple[int, Counter[int]]]:
    """Every tree's block and load."""
    blocks, able = instance.blocks, instance.machine.abilities
    if instance.collective != "allreduce":
        backwards = bool(blocks.origin[0] < 0)
        return [
            (b, load(instance, links, sums))
            for b, root in enumerate((blocks.goal if backwards else blocks.origin).tolist())
            for links, sums in every_tree(instance, root, backwards)
        ]
    found = []
    hubs = np.flatnonzero(instance.machine.is_switch & able.adds & able.copies).tolist()
    for centre in [*instance.members, *hubs]:
        hub = centre if centre in hubs else -1
        ups = [load(instance, links, sums) for links, sums in every_tree(instance, centre, True)]
        downs = [load(instance, links, set(), hub) for links, _ in every_tree(instance, centre, False)]
        found += [(0, up + down) for up, down in product(ups, downs)]
    return found


def best_packing(instance: FabricInstance) -> float:
    columns, blocks = all_columns(instance), instance.blocks
    resources = sorted({r for _, loads in columns for r in loads})
    rows = np.zeros((len(resources), len(columns) + 1))
    whole = np.zeros((len(blocks), len(columns) + 1))
    for k, (b, loads) in enumerate(columns):
        whole[b, k] = 1.0
        for r, value in loads.items():
            rows[resources.index(r), k] = value * float(blocks.bytes[b])
    rows[:, -1] = -1.0
    cost = np.append(np.zeros(len(columns)), 1.0)
    answer = linprog(cost, rows, np.zeros(len(resources)), whole, np.ones(len(blocks)), method="highs")
    return float(answer.fun)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", some_of(range(10)))
def test_the_packing_is_the_best_of_all_trees(seed: int) -> None:
    """15 machines a seed: the program over all trees, enumerated, has the fluid's value, which lies between the dual
    and, where nothing is late, no schedule of the method."""
    chooser = random.Random(seed)
    for k in range(15):
        instance = drawn(chooser, TREES[k % 5])
        fluid = Generation(instance).fluid(RunOptions(time_limit_s=20.0).started_now())
        assert fluid is not None
        assert fluid.least is not None
        best = best_packing(instance)
        assert fluid.packing.seconds == pytest.approx(best, rel=1e-6), instance.collective
        assert float(fluid.least) == pytest.approx(best, rel=1e-6)
        assert fluid.least <= Fraction(fluid.packing.seconds) * (1 + Fraction(1, 10**9))


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", some_of(range(10)))
def test_schedules_are_valid_and_no_better_than_bounds(seed: int) -> None:
    chooser = random.Random(100 + seed)
    for k in range(10):
        instance = drawn(chooser, TREES[k % 5])
        options = RunOptions(time_limit_s=10.0).started_now()
        found = method.solve(instance, options)
        verdict = check_schedule(instance, found.solution)
        assert verdict.faults == []
        assert verdict.value is not None
        assert strongest(instance, RunOptions(time_limit_s=1.0).started_now()).seconds <= verdict.value
        fluid = Generation(instance).fluid(RunOptions(time_limit_s=20.0).started_now())
        assert fluid is not None
        assert fluid.least is not None
        assert float(fluid.least) <= verdict.value * (1 + 1e-9)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("collective", "size"), [("allreduce", 2**10), ("allreduce", 2**30), ("broadcast", 2**20)])
def test_a_box_is_at_its_bound(collective: str, size: int) -> None:
    instance = synth.make("fabric", machine="dgx-h100-nvls", collective=collective, bytes=size)
    found = method.solve(instance, RunOptions(time_limit_s=30.0).started_now())
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    proven = strongest(instance, RunOptions(time_limit_s=10.0).started_now())
    assert verdict.value == pytest.approx(float(proven.seconds), rel=1e-3)
    assert "bounds trees only" in found.message


def test_many_ranks_are_priced_by_nearest_terminals_which_proves_nothing() -> None:
    instance = synth.make("fabric", machine="dgx-h100-nvls", boxes=2, collective="broadcast", bytes=2**30)
    assert len(instance.members) > MOST_EXACT
    found = method.solve(instance, RunOptions(time_limit_s=30.0).started_now())
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    proven = strongest(instance, RunOptions(time_limit_s=10.0).started_now())
    assert verdict.value < 1.01 * float(proven.seconds)
    assert "proves nothing of other trees" in found.message


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"collective": "alltoall"}, "no algorithm for alltoall"),
        ({"collective": "broadcast", "switching": "store_and_forward"}, "store what they forward"),
        ({"collective": "broadcast", "ranks": "0-2", "relay": True}, "only forward"),
    ],
)
def test_what_it_does_not_know_is_unsupported(keys: dict[str, Any], word: str) -> None:
    instance = synth.make("fabric", network="star", nodes=4, bytes=12, **keys)
    found = method.solve(instance, RunOptions(time_limit_s=5.0).started_now())
    assert found.termination == "unsupported"
    assert word in found.message
