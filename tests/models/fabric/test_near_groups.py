"""Groups of near ranks that stand for boxes where every rank is its own: dragonflies, hosts behind leaf switches."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import synth
from synth.arrays import BoolArray
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.near_groups import even_routes, links_between, near_groups
from synth_models.fabric.plans.straight import straight, straight_pairs
from synth_models.fabric.references.hierarchical import method as hierarchical
from synth_models.fabric.references.hierarchical.box_sends import DEALT, BoxStrategy
from synth_models.fabric.routes import box_routes
from synth_models.fabric.routes.search import Routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.mirrored import opposite
from synth_models.fabric.solution import Schedule

DRAGONFLY = {"network": "dragonfly", "groups": 5, "routers": 2, "hosts": 2}
NETWORKS = [(DRAGONFLY, 5), ({"network": "dragonfly", "groups": 3, "routers": 2, "hosts": 1}, 3)]


def groups_of(**keys: Any) -> tuple[Any, tuple[tuple[int, ...], ...]]:
    """An instance and its groups."""
    instance = synth.make("fabric", bytes=20 * 240, **keys)
    return instance, near_groups(instance)


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
        plan = BoxStrategy(between="trees" if root is None else DEALT, groups=groups)
        made = hierarchical._made(instance, plan, chunks)
        assert made is not None
        assert check_schedule(instance, made).faults == []
        if collective == "broadcast":
            assert root not in instance.machine.network.dst[made.link]


@pytest.mark.parametrize("size", [999, 5120, 10**5])
def test_backwards_takes_as_long(size: int) -> None:
    """A reduce takes what the broadcast takes, and an allreduce of this kind twice what it spreads in."""
    seconds = {}
    for collective, plan in (("broadcast", DEALT), ("reduce", DEALT), ("allreduce", "trees")):
        instance = synth.make("fabric", **DRAGONFLY, collective=collective, bytes=size)
        assert isinstance(instance, FabricInstance)
        groups = near_groups(instance)
        made = hierarchical._made(
            instance, BoxStrategy(between=plan, groups=groups, mirrored=collective == "allreduce"), 1
        )
        assert made is not None
        verdict = check_schedule(instance, made)
        assert verdict.faults == []
        seconds[collective] = chunks.seconds(instance, made)
        if collective == "allreduce":
            down = chunks.seconds(instance, half(made, ~made.adds))
            assert seconds[collective] == down
            assert chunks.seconds(instance, half(made, made.adds)) * 2 == down
    assert seconds["broadcast"] == seconds["reduce"]


def half(schedule: Schedule, kind: BoolArray) -> Schedule:
    """The transfers of one kind."""
    lengths = np.diff(schedule.route_start)
    routes = np.concatenate([[0], np.cumsum(lengths[kind])]).astype(np.int64)
    columns = (schedule.start[kind], schedule.piece[kind], schedule.adds[kind], routes)
    link = schedule.link[np.repeat(kind, lengths)]
    return Schedule(schedule.ticks_per_s, schedule.piece_block, schedule.piece_bytes, *columns, link)


def test_links_that_do_not_lead_back() -> None:
    """A machine with a quicker way back, or none, is not the same backwards."""
    both = synth.make("fabric", **DRAGONFLY, collective="allreduce", bytes=4800)
    assert isinstance(both, FabricInstance)
    twin = opposite(both.machine)
    net = both.machine.network
    assert twin is not None
    assert np.array_equal(net.src[twin], net.dst)
    assert np.array_equal(net.dst[twin], net.src)
    one_way = synth.make("fabric", network="ring", nodes=4, bidirectional=False, collective="allreduce", bytes=4800)
    assert isinstance(one_way, FabricInstance)
    assert opposite(one_way.machine) is None


@pytest.mark.parametrize(
    ("size", "parts", "each"), [(10**4, 10, 1280), (10**5, 10, 10240), (10**6, 10, 102400), (7, 9, 1)]
)
def test_pieces_in_step(size: int, parts: int, each: int) -> None:
    """On links of 128 GB/s and 20 ns: parts and multiples of 2,560 bytes, what one of them takes in a latency."""
    instance = synth.make("fabric", **DRAGONFLY, collective="broadcast", bytes=size)
    assert isinstance(instance, FabricInstance)
    pieces = chunks.in_step(instance, size, parts)
    assert sum(pieces) == size
    assert set(pieces[:-1]) <= {each}
    assert pieces[-1] <= each


def test_ranks_equally_near_are_no_groups() -> None:
    for network in ({"network": "star", "nodes": 6}, {"machine": "dgx-a100", "boxes": 2}):
        assert groups_of(**network, collective="allgather")[1] == ()


CANONICAL = {"network": "dragonfly", "groups": 9, "routers": 4, "hosts": 2}
OTHERS: list[tuple[dict[str, Any], tuple[str, str] | None]] = [
    (CANONICAL, None),
    (CANONICAL, ("router0.0", "router1.0")),
    ({"network": "dragonfly", "groups": 6, "routers": 3, "hosts": 1}, None),
    ({"network": "dragonfly", "groups": 5, "routers": 2, "hosts": 3}, ("router1.0", "router1.1")),
]
ALL = ["allgather", "reduce_scatter", "allreduce", "broadcast", "reduce"]


def other(network: dict[str, Any], broken: tuple[str, str] | None, collective: str, each: int) -> FabricInstance:
    """An instance of so many bytes a rank; the links between two routers may have failed."""
    ranks = network["groups"] * network["routers"] * network["hosts"]
    instance = synth.make("fabric", **network, collective=collective, bytes=each * ranks)
    assert isinstance(instance, FabricInstance)
    if broken is None:
        return instance
    ends = [instance.machine.names.index(name) for name in broken]
    failed = {"links": [ends, ends[::-1]]}
    return FabricInstance.model_validate(instance.model_dump(mode="json") | {"failed": failed})


@pytest.mark.long
@pytest.mark.parametrize(("network", "broken"), OTHERS)
@pytest.mark.parametrize("collective", ALL)
def test_straight_is_replayed(
    network: dict[str, Any], broken: tuple[str, str] | None, collective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with routes that are looked for together; of one byte a rank not more than a tenth above its latency."""
    monkeypatch.setattr(box_routes, "MANY", 0)
    for each, count in ((1, 1), (1, 2), (3, 2), (1000, 1)):
        instance = other(network, broken, collective, each)
        made = straight(instance, count)
        assert made is not None
        assert check_schedule(instance, made).faults == []
        farthest = float(max(routes_seconds(instance, rank) for rank in instance.members))
        ways = 1 if collective in ("allgather", "reduce_scatter") else 2
        if each == 1:
            assert ways * farthest < float(chunks.seconds(instance, made)) < 1.1 * ways * farthest


def routes_seconds(instance: FabricInstance, rank: int) -> float:
    """Seconds from a rank to the farthest member, on an empty machine."""
    seconds = Routes.of(instance, 1).direct_seconds(rank)
    return float(seconds[list(instance.members)].max(where=np.arange(len(instance.members)) != rank, initial=0.0))


SMALLEST = [(*OTHERS[2], 1), (*OTHERS[2], 1000)]
REST = [(*row, each) for row in OTHERS for each in (1, 1000, 10**6) if (*row, each) not in SMALLEST]


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("network", "broken", "each"), [*SMALLEST, *(pytest.param(*row, marks=pytest.mark.slow) for row in REST)]
)
@pytest.mark.parametrize("collective", ALL)
def test_never_slower_than_what_is_run_today(
    network: dict[str, Any], broken: tuple[str, str] | None, each: int, collective: str
) -> None:
    instance = other(network, broken, collective, each)
    ours = synth.solve(instance, "hierarchical")
    assert ours["verified"]["ok"]
    assert ours.value is not None
    for method in ("direct", "ring", "two_level"):
        theirs = synth.solve(instance, method)
        assert theirs.value is None or ours.value <= theirs.value, method


@pytest.mark.long
def test_routes_of_many_pairs_are_as_quick_as_of_one() -> None:
    for network, broken in OTHERS:
        instance = other(network, broken, "allgather", 1)
        routes, nodes = Routes.of(instance, 1), instance.machine.nodes
        pairs = np.array([u * nodes + v for u in instance.members for v in instance.members if u != v])
        table, net = routes.of_many(pairs), instance.machine.network
        assert table is not None
        for pair, row in zip(pairs.tolist(), table.tolist(), strict=True):
            route = [e for e in row if e >= 0]
            assert [net.src[route[0]], net.dst[route[-1]]] == list(divmod(pair, nodes))
            assert all(net.dst[e] == net.src[f] for e, f in pairwise(route))
            least = routes.direct(*divmod(pair, nodes))
            assert least is not None
            assert net.latency[route].sum() == pytest.approx(net.latency[list(least)].sum())


@pytest.mark.long
def test_routes_of_all_pairs_leave_a_group_once_where_that_evens_the_load() -> None:
    """No link has more to do than a rank's own. The quickest routes go through third groups and load one more."""
    instance = synth.make("fabric", network="dragonfly", groups=9, routers=4, hosts=2, collective="alltoall", bytes=72)
    assert isinstance(instance, FabricInstance)
    net, far = instance.machine.network, links_between(instance, near_groups(instance))
    assert far.sum() == 9 * 8
    source, target = (part.ravel() for part in np.indices((72, 72)))
    source, target = source[source != target], target[source != target]
    start, link = even_routes(instance, source, target, np.ones(len(source)))
    assert np.array_equal(net.src[link[start[:-1]]], source)
    assert np.array_equal(net.dst[link[start[1:] - 1]], target)
    inner = np.delete(np.arange(len(link)), start[1:] - 1)
    assert np.array_equal(net.dst[link[inner]], net.src[link[inner + 1]])
    assert np.bincount(link).max() == 71
    assert np.add.reduceat(far[link], start[:-1]).max() == 1
    start, link = box_routes.PairRoutes(instance, instance.boxes, 1).of(source, target)
    assert np.bincount(link).max() > 71
    assert np.add.reduceat(far[link], start[:-1]).max() > 1


@pytest.mark.long
@pytest.mark.parametrize("size", [72 * 72, 72 * 72 * 4096, 72 * 72 * 2**20])
def test_pairs_go_straight_whatever_their_size(size: int) -> None:
    """Blocks shorter than latencies, as long, and far longer: replayed, and within half of what a rank's link takes."""
    instance = synth.make(
        "fabric", network="dragonfly", groups=9, routers=4, hosts=2, collective="alltoall", bytes=size
    )
    assert isinstance(instance, FabricInstance)
    verdict = check_schedule(instance, straight_pairs(instance))
    assert verdict.faults == []
    assert verdict.value is not None
    latencies = 5 * 20e-9
    assert 71 / 72 * size / 128e9 < verdict.value < 1.5 * (71 / 72 * size / 128e9 + latencies)
