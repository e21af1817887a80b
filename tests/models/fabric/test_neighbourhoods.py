"""Sets of boxes that little leads out of: which are found, and what the cuts around them prove of demands."""

from __future__ import annotations

import random
from itertools import pairwise, permutations

import numpy as np
import pytest
from examples import some_of
from models.fabric.small_machines import machine

import synth
from synth.arrays import BoolArray, IntArray
from synth_models.fabric import race
from synth_models.fabric.bounds import neighbourhoods as searched
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.many_demands import ManyDemands
from synth_models.fabric.bounds.neighbourhoods import neighbourhoods
from synth_models.fabric.check.certificates import check_bound
from synth_models.fabric.instance import FabricInstance


def made(**keys: object) -> FabricInstance:
    found = synth.make("fabric", **{"collective": "broadcast", "bytes": "1", **{k: str(v) for k, v in keys.items()}})
    assert isinstance(found, FabricInstance)
    return found


def bounds_of(instance: FabricInstance) -> tuple[Links, ManyDemands]:
    ranks = np.array([rank for box in instance.boxes for rank in box], dtype=np.int64)
    return Links.of(instance), ManyDemands(instance, ranks, instance.boxes)


def _with_switches(instance: FabricInstance) -> tuple[Links, list[BoolArray]]:
    """The boxes of a machine with the switches that are theirs alone."""
    links, bounds = bounds_of(instance)
    return links, bounds._around_box


def sides_of(links: Links, boxes: list[BoolArray]) -> list[list[int]]:
    """The ranks on each side of every cut that is found, by their place in the group."""
    members = links.members
    found = neighbourhoods(links, boxes)
    sides = [(inside[members] if here else ~inside[members]) for inside in found for here in (True, False)]
    return [np.flatnonzero(side).tolist() for side in sides]


def parted(instance: FabricInstance) -> list[list[int]]:
    """The same with each rank a box of its own."""
    links = Links.of(instance)
    return sides_of(links, [np.arange(links.nodes) == rank for rank in instance.members])


def cliques(sizes: tuple[int, ...], rate: float = 100.0) -> FabricInstance:
    """Complete graphs of these many ranks, the last of each joined to the first of the next, which is slower."""
    first = np.cumsum([0, *sizes]).tolist()
    links = [(u, v, rate) for low, high in pairwise(first) for u, v in permutations(range(low, high), 2)]
    links += [ends for k in first[1:-1] for ends in ((k - 1, k, rate / 10), (k, k - 1, rate / 10))]
    return machine(sum(sizes), links, collective="broadcast", root=0, bytes=1)


def test_cliques_are_found() -> None:
    found = parted(cliques((3, 4, 3)))
    assert [0, 1, 2] in found
    assert [7, 8, 9] in found


def test_groups_of_a_dragonfly_are_found() -> None:
    found = parted(made(network="dragonfly", groups=4, routers=4, hosts=2))
    assert all(list(range(k, k + 8)) in found for k in range(0, 32, 8))


@pytest.mark.parametrize("rails", ["on", "off"])
def test_boxes_of_a_leaf_are_found_where_it_has_fewer_links_up_than_down(rails: str) -> None:
    keys = {"machine": "dgx-h100", "boxes": 6, "leaf": 2, "rails": rails}
    narrow = sides_of(*_with_switches(made(**keys, oversubscription=2)))
    assert all(list(range(k, k + 16)) in narrow for k in (0, 16, 32))
    assert sides_of(*_with_switches(made(**keys, oversubscription=1))) == []


def test_where_nothing_is_narrow_none_is_kept() -> None:
    star = [(u, v, 1.0) for rank in range(6) for u, v in ((rank, 6), (6, rank))]
    assert parted(machine(7, star, [6], collective="broadcast", root=0, bytes=1)) == []
    assert sides_of(*_with_switches(made(machine="dgx-a100", boxes=4))) == []


def test_machines_that_are_in_pieces_or_small() -> None:
    assert parted(machine(2, [(0, 1, 1.0), (1, 0, 1.0)], collective="broadcast", root=0, bytes=1)) == []
    one_way = machine(4, [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)], collective="broadcast", root=0, bytes=1)
    assert all(0 < len(ranks) < 4 for ranks in parted(one_way))


def test_a_machine_of_too_many_links_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "MOST_WORK", 10 * 40)
    assert parted(cliques((3, 4, 3))) != []
    monkeypatch.setattr(searched, "MOST_WORK", 100)
    assert parted(cliques((3, 4, 3))) == []


@pytest.mark.parametrize("seed", some_of(range(60)))
def test_what_is_kept_has_a_cut_that_carries_less_than_the_boxes_on_either_side(seed: int) -> None:
    """Counted link by link, on random machines with switches and links that share a group."""
    chooser = random.Random(seed)
    ranks, switches = chooser.randint(3, 9), chooser.randint(0, 3)
    nodes = ranks + switches
    links = []
    for u, v in permutations(range(nodes), 2):
        if chooser.random() < 0.35:
            group = {"group": f"g{chooser.randint(0, 3)}"} if chooser.random() < 0.2 else {}
            links.append((u, v, float(chooser.randint(1, 50)), 0.0, *group.values()))
    links += [(u, (u + 1) % ranks, 1.0, 0.0) for u in range(ranks)]
    instance = machine(nodes, links, range(ranks, nodes), collective="broadcast", root=0, bytes=1)
    order = chooser.sample(range(ranks), ranks)
    cut = sorted(chooser.sample(range(1, ranks), chooser.randint(2, min(4, ranks - 1))))
    boxes = [order[low:high] for low, high in pairwise([0, *cut, ranks])]

    def rate(inside: set[int], out: bool) -> float:
        total, fastest = 0.0, dict[str, float]()
        for u, v, bandwidth, _, *group in links:
            if (u in inside, v in inside) == (out, not out):
                total += 0.0 if group else bandwidth
                if group:
                    fastest[group[0]] = max(fastest.get(group[0], 0.0), bandwidth)
        return total + sum(fastest.values())

    found = neighbourhoods(Links.of(instance), [np.isin(np.arange(nodes), box) for box in boxes])
    for one in found:
        inside = set(np.flatnonzero(one).tolist())
        here = [box for box in boxes if inside & set(box)]
        there = [box for box in boxes if not inside & set(box)]
        assert all(set(box) <= inside for box in here)
        assert 1 < len(here) < len(boxes)
        assert any(
            rate(inside, out) < sum(rate(set(box), out) for box in here)
            and rate(inside, out) < sum(rate(set(box), not out) for box in there)
            for out in (True, False)
        )


def random_demand(rng: np.random.Generator, ranks: int) -> IntArray:
    demand = rng.integers(0, 1000, (ranks, ranks)) * (rng.random((ranks, ranks)) < rng.choice([0.1, 0.5, 1.0]))
    np.fill_diagonal(demand, 0)
    return demand.astype(np.int64)


@pytest.mark.parametrize("seed", some_of(range(40)))
def test_every_cut_proves_about_what_it_is_chosen_for(seed: int) -> None:
    """Which cut is computed exactly is chosen in floats; each proves what was said of it, and the check verifies the
    strongest, which is no weaker than without the sets."""
    rng = np.random.default_rng(seed)
    instance = cliques(tuple(rng.integers(2, 5, int(rng.integers(2, 4))).tolist()), float(rng.integers(1, 90)))
    _, bounds = bounds_of(instance)
    demand = random_demand(rng, len(instance.members))
    about = bounds._about_cuts(demand)
    exactly = [float(bounds._proven_by_cut(number, demand).seconds) for number in range(len(bounds._cuts))]
    assert about.tolist() == pytest.approx(exactly, rel=1e-9, abs=1e-12)
    found = race.planner(instance).plan(demand)
    assert found.check().faults == []
    strongest = bounds.strongest(demand)
    assert bounds.of_boxes(demand, strongest).seconds <= strongest.seconds == found.proven.seconds


def test_what_passes_between_cliques_by_hand() -> None:
    """Nine blocks of 10 bytes each way over 10 bytes/s: 9 s, which no cut around one rank tells."""
    demand = np.where(np.eye(6) > 0, 0, 10)
    instance = cliques((3, 3))
    found = race.planner(instance).plan(demand)
    assert (found.bound, found.proven.argument) == (9.0, "cut")
    assert bounds_of(instance)[1].of_boxes(demand, found.proven).seconds < 1
    assert found.seconds < 9.5
    assert found.check().faults == []
    assert check_bound(found.instance, 9.1, found.proven.certificate()) != []


def test_boxes_behind_narrow_leaves_are_planned_near_the_bound() -> None:
    """Of 48 GPUs every one sends 1 MB to every other. What leaves a leaf's two boxes has eight links of 50 GB/s."""
    planner = race.planner(made(machine="dgx-h100", boxes=6, leaf=2, oversubscription=2))
    found = planner.plan(np.full((48, 48), 10**6))
    assert found.check().faults == []
    assert 16 * 32 * 1e6 / (8 * 50e9) < found.bound < 16 * 32 * 1e6 / (8 * 50e9) + 20e-6
    assert found.gap < 0.1
