"""Machines of many boxes: leaf and spine switches between them, tori of three dimensions, the dragonfly of 1,056.

What is asked of them comes from what the keys mean, counted over the links of the finished machine.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from models.fabric.making import faults, made

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.box_data import machine_file


def rates(instance: FabricInstance) -> Counter[tuple[str, str]]:
    """Bytes/s from name to name, parallel links together."""
    names, net = instance.machine.names, instance.machine.network
    total: Counter[tuple[str, str]] = Counter()
    for u, v, rate in zip(net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), strict=True):
        total[names[u], names[v]] += rate
    return total


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(["dgx-h100", "dgx-b200", "dgx-a100", "dgx2"]),
    boxes=st.integers(2, 9),
    leaf=st.integers(1, 5),
    rails=st.booleans(),
    ratio=st.sampled_from([1, 1.5, 2, 4]),
    spines=st.integers(1, 3),
)
def test_leaf_and_spine_switches(name: str, boxes: int, leaf: int, rails: bool, ratio: float, spines: int) -> None:
    """Every port of a box is on the leaf switch of its group of boxes (and of its rail); the links of a leaf switch to
    all spines carry what the ports of ``leaf`` boxes on it do, over the ratio, equally; everything else is as in the
    machine without a tree."""
    instance = made(machine=name, boxes=boxes, leaf=leaf, rails=rails, oversubscription=ratio, spines=spines)
    plain = rates(made(machine=name, boxes=boxes))
    shared = set(machine_file(name).shared_switches)
    found, ports, ups = Counter[tuple[str, str]](), Counter[str](), Counter[str]()
    links = rates(instance)
    for (u, v), rate in links.items():
        assert links[v, u] == rate
        if v.startswith("spine"):
            ups[u] += rate
        elif "." in v and not u.startswith("spine"):
            kind, group = v.rsplit(".", 1)
            assert int(group) == int(u.split("/")[0]) // leaf
            assert kind in shared if rails else kind == "leaf"
            assert not rails or plain[u, kind] == rate
            ports[v] += rate
        elif "." not in u + v and not u.startswith("spine"):
            found[u, v] += rate
    groups = -(-boxes // leaf)
    assert len(ups) == groups * (len(shared) if rails else 1)
    out_of_boxes = sum(rate for (_, v), rate in plain.items() if v in shared)
    assert sum(ports.values()) == pytest.approx(out_of_boxes)
    a_full_leaf = out_of_boxes / boxes * leaf / (len(shared) if rails else 1)
    for switch, up in ups.items():
        assert up == pytest.approx(a_full_leaf / ratio)
        assert [links[switch, f"spine{k}"] * spines for k in range(spines)] == pytest.approx([up] * spines)
    if boxes % leaf == 0:
        assert sum(ports.values()) == pytest.approx(ratio * sum(ups.values()))


def test_a_superpod_has_the_spines_that_nvidia_counts() -> None:
    """DGX SuperPOD reference architecture: 32 boxes a leaf; 64 boxes have 16 leaf and 8 spine switches, 128 have 32 and
    16; 1,024 links of 400 Gbit/s join the 32 leaves to the 16 spines, two each."""
    for boxes, leaves, spines in ((64, 16, 8), (128, 32, 16)):
        names = made(machine="dgx-h100", boxes=boxes, leaf=32).machine.names
        assert sum(name.startswith("rail") for name in names) == leaves
        assert sum(name.startswith("spine") for name in names) == spines
    assert rates(made(machine="dgx-h100", boxes=128, leaf=32))["rail3.1", "spine7"] == 100e9


def test_names_and_one_message_for_what_is_wrong() -> None:
    keys = {"machine": "dgx-h100", "boxes": 16, "leaf": 4}
    assert made(**keys, oversubscription=2).name == "dgx-h100-x16-leaf4-over2-allgather-1GiB"
    assert made(**keys, rails=False, spines=3).name == "dgx-h100-x16-plain4-spines3-allgather-1GiB"
    assert made(network="torus", rows=3, cols=4, layers=5, bytes=60).name == "torus-3x4x5-allgather-60B"
    for wrong, words in (
        ({"machine": "dgx-h100", "boxes": 4, "rails": False}, "rails has no meaning without leaf"),
        ({"machine": "dgx-h100", "boxes": 4, "spines": 2}, "spines = 2: has no meaning with machine"),
        ({"machine": "dgx-h100", "leaf": 2}, "leaf has no meaning for one box"),
        ({"machine": "teccl-ndv2-2", "boxes": 1, "leaf": 2}, "leaf: machine teccl-ndv2-2 has no switches between"),
        ({**keys, "oversubscription": 0.5}, "oversubscription = 0.5: must be >= 1"),
        ({**keys, "oversubscription": "nan"}, "oversubscription"),
        ({"network": "ring", "nodes": 4, "leaf": 2}, "leaf = 2: has no meaning without machine"),
        ({"network": "ring", "nodes": 4, "layers": 2}, "layers = 2: unknown parameter of this network"),
        ({**keys, "leaf": 2**63 - 1}, "leaf = 9223372036854775807: must be <= 100000"),
        ({**keys, "spines": 2**63 - 1}, "spines = 9223372036854775807: must be <= 4096"),
        ({**keys, "boxes": 2**63 - 1}, "boxes = 9223372036854775807: must be <= 100000"),
        ({**keys, "spines": 4096, "leaf": 1, "boxes": 4096}, "are supported"),
    ):
        said = faults(bytes=2**30, **wrong)
        assert len(said) == 1
        assert words in said[0]


@settings(max_examples=25, deadline=None)
@given(sides=st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 5)), wrap=st.booleans())
def test_grids_of_three_dimensions(sides: tuple[int, int, int], wrap: bool) -> None:
    """Two places are joined if they differ by one step in one coordinate; a torus counts modulo the side. The farthest
    two are as many steps apart as the sides, or their halves, add up to."""
    assume(np.prod(sides) >= 2)
    rows, cols, layers = sides
    instance = made(network="torus" if wrap else "mesh", rows=rows, cols=cols, layers=layers, bytes=2 * 3600)
    net = instance.machine.network
    place = list(np.ndindex(*sides))
    wanted = set()
    for v, here in enumerate(place):
        for u, there in enumerate(place):
            away = [abs(a - b) for a, b in zip(here, there, strict=True)]
            steps = [min(a, side - a) if wrap else a for a, side in zip(away, sides, strict=True)]
            if sum(steps) == 1:
                wanted.add((v, u))
    assert sorted(zip(net.src.tolist(), net.dst.tolist(), strict=True)) == sorted(wanted)
    farthest = sum(side // 2 if wrap else side - 1 for side in sides)
    assert max(int(net.hops_from(v).max()) for v in range(net.nodes)) == farthest


def test_the_dragonfly_of_1056() -> None:
    """Kim, Dally, Scott, Abts (2008), p = h = 4, a = 8, g = a h + 1 = 33: a router has 4 ranks, 7 routers of its group
    and 4 links to other groups; any two groups have one link; two ranks are at most a local, a global and a local hop
    apart between their routers."""
    instance = made(network="dragonfly", groups=33, routers=8, hosts=4, bytes=1056 * 2**20)
    machine = instance.machine
    net = machine.network
    assert len(machine.ranks) == 1056
    node = np.arange(machine.nodes)
    group = np.where(node < 1056, node // 32, (node - 1056) // 8)
    degree = Counter[tuple[int, str]]()
    pairs = Counter[tuple[int, int]]()
    for u, v in zip(net.src.tolist(), net.dst.tolist(), strict=True):
        degree[u, "rank" if v < 1056 else "local" if group[u] == group[v] else "far"] += 1
        if group[u] != group[v]:
            pairs[int(group[u]), int(group[v])] += 1
    routers = range(1056, 1056 + 264)
    assert {(degree[r, "rank"], degree[r, "local"], degree[r, "far"]) for r in routers} == {(4, 7, 4)}
    assert set(pairs.values()) == {1}
    assert len(pairs) == 33 * 32
    assert int(net.hops_from(0).max()) == 5
