"""Slots of an alltoall on balanced fat trees: no link is wanted by two at a time, whatever numbers its nodes have."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import synth
from synth.options import RunOptions
from synth_models.fabric.bounds.cuts import box_cut
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.balanced_fat_tree import BalancedFatTree
from synth_models.fabric.race import flow
from synth_models.fabric.references.slots.fat_tree_slots import fat_tree_slots, slots
from synth_models.fabric.references.slots.method import SPINES
from synth_models.fabric.scheduling import chunks

SPEED, LATENCY = 25e9, 5e-7


def tree(leaves: int, hosts: int, spines: int, wide: float, seed: int | None = None) -> dict[str, Any]:
    """Leaf switches with hosts, joined to every spine by a link ``wide`` times as fast; any numbers with a ``seed``."""
    count = leaves * (hosts + 1) + spines
    name = list(range(count)) if seed is None else np.random.default_rng(seed).permutation(count).tolist()
    host = [[name[g * hosts + h] for h in range(hosts)] for g in range(leaves)]
    leaf, spine = name[leaves * hosts : leaves * (hosts + 1)], name[leaves * (hosts + 1) :]
    ends = [(u, leaf[g], SPEED) for g in range(leaves) for u in host[g]]
    ends += [(one, top, SPEED * wide) for one in leaf for top in spine]
    links = [
        {"src": src, "dst": dst, "bandwidth": speed, "latency": LATENCY}
        for u, v, speed in ends for src, dst in ((u, v), (v, u))
    ]  # fmt: skip
    return {"kind": "links", "nodes": count, "switches": leaf + spine, "links": links}


def alltoall(network: dict[str, Any], size: int) -> FabricInstance:
    columns = {"family": "fabric", "name": "tree", "source": "test", "collective": "alltoall", "bytes": size}
    return FabricInstance.model_validate({**columns, "network": network})


def boxes(**keys: Any) -> FabricInstance:
    return synth.make("fabric", machine="dgx-h100", collective="alltoall", bytes="64MiB", **keys)


TREES = [
    (3, 2, 2, 1), (4, 3, 3, 1, 1), (3, 4, 2, 2), (3, 6, 2, 3, 2), (5, 3, 6, 0.5), (3, 4, 12, 0.4), (2, 4, 3, 2.5, 3),
]  # fmt: skip
BOXES: list[dict[str, Any]] = [
    {"boxes": 4, "leaf": 2}, {"boxes": 8, "leaf": 4, "oversubscription": 1}, {"boxes": 6, "leaf": 3, "spines": 3},
    {"boxes": 4, "leaf": 2, "rails": False, "spines": 8}, {"boxes": 8, "leaf": 4, "rails": False},
]  # fmt: skip
MACHINES = [alltoall(tree(*sides), sides[0] * sides[1] * 840) for sides in TREES] + [boxes(**keys) for keys in BOXES]


@pytest.mark.parametrize("instance", MACHINES, ids=str)
def test_no_link_is_wanted_by_two_at_a_time(instance: FabricInstance) -> None:
    """A slot is as long as a block takes at a rank's slowest link; every link is busy from where the block's slot says
    for as long as the block takes there, the latencies left out. Routes are written down here: up, over, down."""
    found = BalancedFatTree.of(instance.machine, instance.boxes)
    assert found is not None
    blocks, net = instance.blocks, instance.machine.network
    made = slots(found, blocks.origin, blocks.goal)
    assert made is not None
    slow = min(net.bandwidth[list(found.up[instance.members[0]])].tolist())
    used = defaultdict[int, list[tuple[Fraction, Fraction]]](list)
    for k, (v, w) in enumerate(zip(blocks.origin.tolist(), blocks.goal.tolist(), strict=True)):
        if next(box for box in instance.boxes if v in box) == next(box for box in instance.boxes if w in box):
            assert made.spine[k] == -1
            continue
        links = [*found.up[v], *found.down[w]]
        leaf, other = int(net.dst[found.up[v][-1]]), int(net.src[found.down[w][0]])
        assert (made.spine[k] >= 0) == (leaf != other)
        if leaf != other:
            up = found.to_spine[found.group[v], found.leaf[v], made.spine[k]]
            down = found.from_spine[found.group[w], found.leaf[w], made.spine[k]]
            assert (net.src[up], net.dst[up], net.dst[down]) == (leaf, net.src[down], other)
            links += [up, down]
        assert net.src[found.up[v][0]] == v
        assert net.dst[found.down[w][-1]] == w
        begin = made.slot[k] + Fraction(int(made.later[k]), made.parts)
        for e in links:
            used[int(e)].append((begin, begin + Fraction(slow) / Fraction(net.bandwidth[e])))
    for times in used.values():
        times.sort()
        assert all(end <= begin for (_, end), (begin, _) in pairwise(times))
    assert max(begin for times in used.values() for begin, _ in times) < max(map(len, used.values())) + 2


@pytest.mark.parametrize("instance", MACHINES, ids=str)
def test_schedules_are_near_what_leaves_a_box(instance: FabricInstance) -> None:
    """Every rank sends in every slot; four slots at most are lost, for pieces of a fourth, and as many as a link to a
    spine takes for one."""
    made, least = fat_tree_slots(instance), box_cut(instance)
    tree_of = BalancedFatTree.of(instance.machine, instance.boxes)
    assert made is not None
    assert least is not None
    assert tree_of is not None
    assert check_schedule(instance, made).faults == []
    sent = len(instance.members) - len(instance.boxes[0])
    longest = 8 * max(instance.machine.network.latency)
    lost = (4 + 2 / tree_of.streams) / 4 / sent
    assert float(chunks.seconds(instance, made)) <= float(least.seconds) * (1 + lost) + longest


def test_other_machines_have_no_slots() -> None:
    """Too few or too slow spines, unlike leaf switches, a link too many or too few, other networks."""
    for network in (tree(4, 4, 3, 1), tree(4, 4, 1, 3), tree(4, 3, 1, 2), tree(4, 4, 7, 0.5)):
        assert fat_tree_slots(alltoall(network, 12 * 10**6 * 4)) is None
    for keys in ({"boxes": 3, "leaf": 2}, {"boxes": 4}, {"boxes": 8, "leaf": 4, "oversubscription": 2}):
        assert fat_tree_slots(boxes(**keys)) is None
    for keys in ({"network": "torus", "rows": 3, "cols": 3}, {"machine": "mi250"}, {"machine": "dgx1", "boxes": 2}):
        assert fat_tree_slots(synth.make("fabric", **keys, collective="alltoall", bytes="1MiB")) is None
    network = tree(3, 4, 4, 1)
    for links in (
        network["links"][:-2],
        network["links"] + network["links"][-2:],
        network["links"][:24] + network["links"][26:],
    ):
        assert fat_tree_slots(alltoall({**network, "links": links}, 12 * 10**6 * 4)) is None


def test_only_an_alltoall_has_slots() -> None:
    assert (
        fat_tree_slots(synth.make("fabric", machine="dgx-h100", boxes=4, leaf=2, collective="gather", bytes="1MiB"))
        is None
    )


def test_flow_takes_them() -> None:
    instance = synth.make("fabric", machine="dgx-h100", boxes=8, leaf=4, collective="alltoall", bytes="1GiB")
    outcome = flow(instance, RunOptions())
    assert outcome.made_by == ("slots",)
    assert SPINES in (outcome.message or "")
    least = box_cut(instance)
    assert least is not None
    assert outcome.bound == pytest.approx(float(least.seconds))
