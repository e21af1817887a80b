"""Slots of an alltoall on balanced dragonflies: no link is wanted twice, whatever its parts are called."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import synth
from synth.options import RunOptions
from synth_models.fabric.bounds.gossip import quick_bound
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.slots import method
from synth_models.fabric.references.slots.affine_slots import affine_slots, multiplication, slots
from synth_models.fabric.references.slots.balanced_dragonfly import BalancedDragonfly
from synth_models.fabric.scheduling import chunks

SIDES = [(9, 4, 2), pytest.param((33, 8, 4), marks=pytest.mark.slow)]


def shape(sides: tuple[int, int, int]) -> dict[str, Any]:
    groups, routers, hosts = sides
    return {"network": "dragonfly", "groups": groups, "routers": routers, "hosts": hosts}


def renamed(groups: int, routers: int, hosts: int, seed: int) -> dict[str, Any]:
    """A dragonfly whose nodes have any numbers and whose groups are joined through any of their ports, as links."""
    rng = np.random.default_rng(seed)
    name = rng.permutation(groups * routers * (hosts + 1)).tolist()
    router = [[name.pop() for _ in range(routers)] for _ in range(groups)]
    free = [rng.permutation(np.repeat(row, hosts)).tolist() for row in router]
    pairs = [(u, v) for row in router for u, v in product(row, row) if u < v]
    pairs += [(name.pop(), u) for row in router for u in row for _ in range(hosts)]
    pairs += [(free[g].pop(), free[other].pop()) for g in range(groups) for other in range(g)]
    links = [
        {"src": src, "dst": dst, "bandwidth": 25e9, "latency": 5e-9} for u, v in pairs for src, dst in ((u, v), (v, u))
    ]
    nodes = groups * routers * (hosts + 1)
    return {"kind": "links", "nodes": nodes, "switches": [u for row in router for u in row], "links": links}


def on(spec: dict[str, Any], size: int) -> FabricInstance:
    """An alltoall on these links."""
    columns = {"family": "fabric", "name": "renamed", "source": "test", "collective": "alltoall", "bytes": size}
    return FabricInstance.model_validate({**columns, "network": spec})


@pytest.mark.parametrize("sides", SIDES)
def test_a_slot_wants_no_link_twice(sides: tuple[int, int, int]) -> None:
    """Counted on the routes written down here: host, router, port, router, host."""
    groups, routers, hosts = sides
    instance = synth.make("fabric", **shape(sides), collective="alltoall", bytes=groups * routers * hosts * 4096)
    found = BalancedDragonfly.of(instance.machine)
    assert found is not None
    slot = slots(found, instance.blocks.origin, instance.blocks.goal)
    n = routers * hosts
    assert set(np.unique(slot)) <= set(range(n * (n + 1)))

    source, target = instance.blocks.origin, instance.blocks.goal
    g, other = source // n, target // n
    far = g != other
    begin, end = source % n // hosts, target % n // hosts
    leaves = (other - (other > g)) % routers  # where the network's description puts the link from g to the other
    comes = (g - (g > other)) % routers
    first = np.where(far, leaves, end)
    within = [(g, begin, first, begin != first), (other, comes, end, far & (comes != end))]
    local = np.concatenate(
        [(slot * groups + at)[used] * routers**2 + (u * routers + v)[used] for at, u, v, used in within]
    )
    across = (slot * groups + g)[far] * groups + other[far]
    for wanted in (local, across, slot * groups * n + source, slot * groups * n + target):
        assert len(np.unique(wanted)) == len(wanted)


@pytest.mark.long(after=2)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("sides", "block", "most"), [((9, 4, 2), 10**6, 1.02), ((9, 4, 2), 10**4, 1.2)])
def test_nodes_and_ports_may_have_any_numbers(sides: tuple[int, int, int], block: int, most: float, seed: int) -> None:
    """n (n + 1) slots, where every rank receives in all but one: nearly the bound of what a rank receives."""
    instance = on(renamed(*sides, seed), sides[0] * sides[1] * sides[2] * block)
    made = affine_slots(instance)
    assert made is not None
    assert check_schedule(instance, made).faults == []
    assert chunks.seconds(instance, made) <= most * quick_bound(instance)


def test_other_machines_have_no_slots() -> None:
    """Groups of other sizes, two links between some groups, none between others, or no groups at all."""
    for keys in (
        shape((3, 2, 1)), shape((5, 2, 2)), shape((9, 4, 1)), shape((9, 8, 1)), shape((8, 4, 2)), shape((19, 6, 3)),
        {"network": "fat_tree", "leaves": 9, "hosts": 8, "spines": 4}, {"network": "torus", "rows": 3, "cols": 2},
    ):  # fmt: skip
        assert affine_slots(synth.make("fabric", **keys, collective="alltoall", bytes="1MiB")) is None
    for change in ("lacks", "has two"):
        spec = renamed(9, 4, 2, 0)
        spec["links"] = spec["links"][:-2] if change == "lacks" else spec["links"] + spec["links"][-2:]
        assert affine_slots(on(spec, 72 * 720)) is None


@pytest.mark.long
def test_they_are_taken() -> None:
    instance = synth.make("fabric", **shape((9, 4, 2)), collective="alltoall", bytes="1152KiB")
    found = method.solve(instance, RunOptions().started_now())
    assert "slots" in found.message
    made = affine_slots(instance)
    assert made is not None
    assert chunks.seconds(instance, made) <= 1.2 * quick_bound(instance)


@pytest.mark.parametrize("n", [2, 4, 8, 16, 32])
def test_products_are_those_of_a_field(n: int) -> None:
    times, every = multiplication(n), np.arange(n)
    assert np.array_equal(times, times.T)
    assert np.array_equal(times[1], every)
    assert all(np.array_equal(np.sort(row), every) for row in times[1:])  # so that each but 0 has an inverse
    a, b, c = (x.ravel() for x in np.meshgrid(every, every, every))
    assert np.array_equal(times[times[a, b], c], times[a, times[b, c]])
    assert np.array_equal(times[a, b ^ c], times[a, b] ^ times[a, c])
