"""Pieces over all spines in turn: routes stay routes, every spine has as many, and other machines keep theirs."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

import synth
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.routes.box_routes import PairRoutes
from synth_models.fabric.routes.spines import over_all_in_turn


def machine(**keys: Any) -> FabricInstance:
    return synth.make("fabric", machine="dgx-h100", collective="allgather", bytes="1MiB", **keys)


def routed(instance: FabricInstance, times: int) -> tuple[np.ndarray[Any, Any], ...]:
    """Source, target, and the routes of all pairs, so many times each."""
    pairs = [(u, v) for u in instance.members for v in instance.members if u // 8 != v // 8 and u % 8 == v % 8]
    source, target = np.repeat(np.array(pairs, dtype=np.int64), times, axis=0).T
    return source, target, *PairRoutes(instance, instance.boxes, 1).of(source, target)


def test_every_spine_has_as_many_of_a_pair_and_routes_stay_routes() -> None:
    instance = machine(boxes=6, leaf=2, spines=4)
    net = instance.machine.network
    source, target, start, link = routed(instance, 8)
    found = over_all_in_turn(instance.machine, start, link, np.arange(len(source)))
    spines = defaultdict[tuple[int, int], Counter[str]](Counter)
    for k, (u, v) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        route = found[start[k] : start[k + 1]]
        assert net.src[route[0]] == u
        assert net.dst[route[-1]] == v
        assert np.array_equal(net.dst[route[:-1]], net.src[route[1:]])
        names = [instance.machine.names[node] for node in net.dst[route]]
        spines[u, v].update(name for name in names if name.startswith("spine"))
    for (u, v), count in spines.items():
        assert count == ({} if u // 16 == v // 16 else dict.fromkeys([f"spine{k}" for k in range(4)], 2))


@pytest.mark.parametrize("keys", [{"boxes": 3}, {"boxes": 6, "leaf": 2, "spines": 2}, {"boxes": 6, "leaf": 2}])
def test_as_they_were_where_no_spine_is_slower(keys: dict[str, Any]) -> None:
    source, _, start, link = routed(machine(**keys), 2)
    assert np.array_equal(over_all_in_turn(machine(**keys).machine, start, link, np.arange(len(source))), link)


def test_routes_of_many_boxes_keep_to_the_least_used_spines() -> None:
    """Enough boxes that none is searched for: as direct as those that are, each pair always over the same spine, and
    every link between switches used as often as the others but for one in ten."""
    instance = machine(boxes=24, leaf=4, spines=3)
    source, target, start, link = routed(instance, 1)
    net, routes = instance.machine.network, PairRoutes(instance, instance.boxes, 1)
    last = routes.of(source[::-1], target[::-1])[1]
    again = np.concatenate([routes.of(source[half], target[half])[1] for half in (source >= 90, source < 90)])
    assert sorted(again.tolist()) == sorted(last.tolist())
    for k, (u, v) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        route = link[start[k] : start[k + 1]]
        assert (net.src[route[0]], net.dst[route[-1]]) == (u, v)
        assert np.array_equal(net.dst[route[:-1]], net.src[route[1:]])
        assert len(route) == (4 if u // 32 == v // 32 else 6)
    spine = [name.startswith("spine") for name in instance.machine.names]
    for end in (net.src, net.dst):
        used = np.bincount(link, minlength=net.links)[np.array(spine)[end]]
        assert used.max() <= 1.1 * used.min()
