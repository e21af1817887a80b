"""Groups of near ranks that stand for boxes where every rank is its own: dragonflies, hosts behind leaf switches."""

from __future__ import annotations

from typing import Any

import pytest

import synth
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.references import hierarchical
from synth_models.fabric.references.box_sends import DEALT, Plan

DRAGONFLY = {"network": "dragonfly", "groups": 5, "routers": 2, "hosts": 2}
NETWORKS = [(DRAGONFLY, 5), ({"network": "dragonfly", "groups": 3, "routers": 2, "hosts": 1}, 3)]


def groups_of(**keys: Any) -> tuple[Any, tuple[tuple[int, ...], ...]]:
    """An instance and its groups."""
    instance = synth.make("fabric", bytes=20 * 240, **keys)
    return instance, hierarchical._groups(instance)


@pytest.mark.parametrize(("network", "count"), NETWORKS)
def test_groups_of_a_dragonfly_are_those_of_its_description(network: dict[str, Any], count: int) -> None:
    instance, groups = groups_of(**network, collective="allgather")
    assert len(groups) == count
    each = len(instance.members) // count
    assert sorted(sorted(group) for group in groups) == [list(range(k * each, (k + 1) * each)) for k in range(count)]


@pytest.mark.parametrize(("network", "count"), NETWORKS)
@pytest.mark.parametrize("collective", ["broadcast", "reduce", "allreduce", "allgather", "reduce_scatter"])
@pytest.mark.parametrize("chunks", [1, 3])
def test_plans_of_groups_are_replayed(network: dict[str, Any], count: int, collective: str, chunks: int) -> None:
    """Also with a root that is not the first; what is dealt never comes back to the root."""
    for root in (0, 3) if collective in hierarchical.ROOTED_TREES else (None,):
        own = {} if root is None else {"root": root}
        instance, groups = groups_of(**network, **own, collective=collective)
        plan = Plan(between="trees" if root is None else DEALT, groups=groups)
        made = hierarchical._made(instance, plan, chunks)
        assert made is not None
        assert check_schedule(instance, made).faults == []
        if collective == "broadcast":
            assert root not in instance.machine.network.dst[made.link]


def test_ranks_equally_near_are_no_groups() -> None:
    for network in ({"network": "star", "nodes": 6}, {"machine": "dgx-a100", "boxes": 2}):
        assert groups_of(**network, collective="allgather")[1] == ()
