"""Method ``hierarchical``: a time worked out by hand, replays of everything it makes, the trees between boxes, the
routes that one box lends to all, and whole clusters."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from examples import some_of

import synth
from synth.clock.deadline import OutOfTime
from synth.options import RunOptions
from synth_models.fabric import race
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance, suited
from synth_models.fabric.plans.twins import slower_inside
from synth_models.fabric.references.hierarchical import box_exchange, box_sends, trees_over_boxes
from synth_models.fabric.references.hierarchical import method as hierarchical
from synth_models.fabric.routes import box_routes
from synth_models.fabric.routes.search import Routes
from synth_models.fabric.scheduling import chunks

BETWEEN = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")


def cluster(name: str, count: int, collective: str, size: int, **own: Any) -> FabricInstance:
    network = {"kind": "machine", "name": name, "boxes": count}
    keys = {"name": "t", "source": "test", "network": network, "collective": collective, "bytes": size}
    return FabricInstance.model_validate(keys | own)


def replayed(instance: FabricInstance, limit: float | None = 20.0) -> float:
    """The replayed time of what the method makes, in seconds."""
    found = race.hierarchical(instance, RunOptions(time_limit_s=limit).started_now())
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    return verdict.value


def test_two_boxes_one_byte_a_rank() -> None:
    """dgx-h100, a byte a rank: four hops of 0.65 us between boxes at 50 GB/s, then seven sends of 0.7 us one behind the
    other at 450 GB/s; the own box is served meanwhile."""
    value = replayed(cluster("dgx-h100", 2, "allgather", 16))
    assert value == pytest.approx(4 * 0.65e-6 + 1 / 50e9 + 0.7e-6 + 7 / 450e9, rel=1e-9)


MACHINES: list[tuple[str, int, dict[str, Any]]] = [
    ("dgx-h100", 2, {}),
    ("dgx-a100", 3, {}),
    ("dgx-h100", 4, {"switching": {"mode": "store_and_forward"}}),
    ("dgx-h100", 5, {"ranks": [9, 8, 10, 1, 0, 32, 33, 34, 35, 36, 24]}),  # boxes of 3, 2, 5 and 1
    ("dgx-h100", 2, {"failed": {"links": [[0, 17], [17, 0]]}}),
    ("dgx2", 2, {"ranks": [*range(4), *range(16, 22)]}),  # boxes of 4 and 6
]


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("collective", "name", "count", "own"),
    some_of((collective, *where) for collective, where in product(BETWEEN, MACHINES)),
)
def test_every_schedule_is_replayed(collective: str, name: str, count: int, own: dict[str, Any]) -> None:
    """All collectives, on equal and unequal boxes, powers of two or not, after a failure, at two sizes; never below the
    bound. A quarter of a second for better numbers of chunks: what is made holds with any."""
    for size in (64 * 11 * 15, 2**20 * 165):
        instance = cluster(name, count, collective, size, **own)
        value = replayed(instance, 0.25)
        assert value >= float(strongest(instance, RunOptions(time_limit_s=0.15).started_now()).seconds)


@pytest.mark.long
def test_any_root() -> None:
    """Broadcast and reduce from a rank that is neither the first of its box nor in the first box."""
    for collective in ("broadcast", "reduce"):
        replayed(cluster("dgx-h100", 3, collective, 2**20, root=21))


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize(("ranks", "root"), [([0, 1, 8, 9, 10], 9), ([0, 1, 2, 3, 8, 9, 10], 8), ([0, 8, 9, 10], 0)])
def test_the_root_deals_every_rank_of_its_box_as_many_chunks(collective: str, ranks: list[int], root: int) -> None:
    """Boxes of different sizes: three chunks each for the ranks of the root's own box, whichever box is first."""
    instance = cluster("dgx-h100", 2, collective, 2**20 * 9, ranks=ranks, root=root)
    schedule = hierarchical._made(instance, box_sends.BoxStrategy(chain=False, slack=1), 3)
    in_its_box = sum(rank // 8 == root // 8 for rank in ranks)
    assert len(schedule.piece_bytes) == 3 * in_its_box
    assert check_schedule(instance, schedule).faults == []


@pytest.mark.parametrize("count", [*range(2, 14), 16, 32])
def test_the_trees_between_boxes_reach_every_box_once(count: int) -> None:
    for edges in trees_over_boxes.trees_of(count):
        came = {0: -1}
        for source, target, wait in edges:
            assert came[source] < wait
            assert target not in came
            came[target] = wait
        assert sorted(came) == list(range(count))


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5])
def test_binomial_trees_never_ask_a_box_for_two_sends_at_once(bits: int) -> None:
    """Johnsson and Ho: a piece a round leaves the root by the trees in turn; in every round each box sends at most one
    piece and receives at most one."""
    trees = trees_over_boxes.trees_of(1 << bits)
    sends, receives = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for piece in range(4 * bits):
        for source, target, wait in trees[piece % bits]:
            sends[source, piece + wait] += 1
            receives[target, piece + wait] += 1
    assert set(sends.values()) == set(receives.values()) == {1}


@pytest.mark.parametrize("count", [*range(2, 14), 16, 33])
@pytest.mark.parametrize("way", [1, 2, 7, 40])
def test_rounds_by_way_of_leaders_fit_each_other(count: int, way: int) -> None:
    """A piece that is sent in a round arrives ``way`` rounds later: every box gets every piece once, sends only what
    it has, and in no round sends or receives two."""
    turn = np.arange(5 * count)
    trees, first, number, turned = box_sends._led(count, turn, way)
    sends, receives = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for begin, which, ahead in zip(first.tolist(), number.tolist(), turned.tolist(), strict=True):
        came = {0: begin}
        for *ends, wait in trees[which]:
            source, target = (1 + (box - 1 + ahead) % (count - 1) if box else 0 for box in ends)
            assert came[source] <= begin + wait
            assert target not in came
            came[target] = begin + wait + way
            sends[source, begin + wait] += 1
            receives[target, begin + wait] += 1
        assert sorted(came) == list(range(count))
    assert set(sends.values()) == set(receives.values()) == {1}


@pytest.mark.long
@pytest.mark.parametrize("collective", ["broadcast", pytest.param("reduce", marks=pytest.mark.slow), "allreduce"])
def test_small_messages_wait_for_latency_once_or_twice(collective: str) -> None:
    """Eight boxes: one hop between boxes (2.6 us) with a KiB, with a MiB two and the bytes into a box at 400 GB/s."""
    hop, inside = 4 * 0.65e-6, 2 * 0.35e-6
    for size, hops in ((1024, 2 if collective == "allreduce" else 1), (2**20, 2)):
        value = replayed(cluster("dgx-h100", 8, collective, size), None)
        assert value <= 1.08 * (hops * hop + 2 * inside + size / 400e9)


@pytest.mark.long
def test_a_short_broadcast_leaves_the_root_s_box_over_all_its_rails() -> None:
    """64 boxes: eight sends of a NIC one after the other, where the root's alone would take 63 (8 % longer)."""
    hop, inside, one = 4 * 0.65e-6, 2 * 0.35e-6, 1024 / 50e9
    value = replayed(cluster("dgx-h100", 64, "broadcast", 1024), None)
    assert value <= 1.01 * (hop + 2 * inside + 8 * one)


def test_what_a_large_first_schedule_keeps_waiting_is_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped within the first of its plans, an allreduce among ranks that are boxes of their own goes over one."""

    def stopped(*_: object, **__: object) -> None:
        raise OutOfTime

    monkeypatch.setattr(hierarchical, "QUICK", 100)
    monkeypatch.setattr(chunks, "most_promising", stopped)
    alone = race.Entry(race.ENTRIES["hierarchical"].own)  # what it is compared with has its own time
    monkeypatch.setitem(race.ENTRIES, "hierarchical", alone)
    shape = {"network": "dragonfly", "groups": "3", "routers": "2", "hosts": "2"}
    instance = synth.make("fabric", **shape, collective="allreduce", bytes="12KiB")
    record = synth.solve(instance, "hierarchical", time_limit=60)
    assert record.ok, record["verified"]["faults"]
    assert record.value is not None
    assert record["message"] == "the plan of fewest transfers; stopped at the time limit"


@pytest.mark.parametrize(
    ("name", "count", "own"),
    [("dgx-h100", 3, {}), ("dgx-a100", 4, {}), ("dgx2", 2, {}), ("dgx-h100", 3, {"failed": {"links": [[0, 25]]}})],
)
def test_routes_that_boxes_lend_each_other_are_the_quickest(name: str, count: int, own: dict[str, Any]) -> None:
    """A path of links from rank to rank over switches alone, as quick as the pair's own search says."""
    instance = cluster(name, count, "allgather", 2**20 * 3, **own)
    net, size = instance.machine.network, 2**18
    lent, own_search = box_routes.PairRoutes(instance, instance.boxes, size), Routes.of(instance, size)
    pairs = [(u, v) for u, v in product(instance.members, repeat=2) if u != v and own_search.direct(u, v)]
    start, link = lent.of(*(np.array(ends, dtype=np.int64) for ends in zip(*pairs, strict=True)))
    for k, (source, target) in enumerate(pairs):
        route = link[start[k] : start[k + 1]]
        assert net.src[route[0]] == source
        assert net.dst[route[-1]] == target
        assert net.dst[route[:-1]].tolist() == net.src[route[1:]].tolist()
        assert instance.machine.is_switch[net.dst[route[:-1]]].all()
        took = net.latency[route].sum() + size / net.bandwidth[route].min()
        assert took == pytest.approx(own_search.direct_seconds(source)[target], rel=1e-9)


def test_boxes_are_alike_until_a_link_fails() -> None:
    whole, broken = (cluster("dgx-h100", 4, "allgather", 2**20, failed={"links": failed}) for failed in ([], [[0, 32]]))
    assert box_routes.next_box(whole.machine) is not None
    assert box_routes.next_box(broken.machine) is None


def test_planned_with_slower_links_inside_it_is_a_schedule_of_the_machine_itself() -> None:
    """The race sees links to NVSwitches at 5/6 of their rate and NICs at all of theirs, beside what has failed; its
    schedule is replayed on the machine, of whose bound nothing is claimed."""
    plain = cluster("dgx-a100", 2, "allreduce", 2**26)
    names = plain.machine.names
    broken = {"links": [[names.index("0/gpu0"), names.index("0/nic0")], [names.index("0/nic0"), names.index("0/gpu0")]]}
    for instance in (plain, cluster("dgx-a100", 2, "allreduce", 2**26, failed=broken)):
        twin = slower_inside(instance, Fraction(5, 6))
        rates = zip(twin.machine.network.bandwidth, instance.machine.network.bandwidth, strict=True)
        for (slow, rate), u, v in zip(rates, instance.machine.network.src, instance.machine.network.dst, strict=True):
            inside = any("nvswitch" in names[node] for node in (u, v))
            assert slow == pytest.approx(rate * 5 / 6 if inside else rate)
        found = race.hierarchical(instance, RunOptions(method={"transfers": 1600, "inner_rate": 83}))
        verdict = check_schedule(instance, found.solution)
        assert verdict.faults == []
        assert found.bound is None
        assert found.termination == "finished"
        assert "at 83 %" in (found.message or "")


def test_without_boxes_no_link_is_slower() -> None:
    alone = FabricInstance.model_validate(
        {"name": "t", "source": "test", "network": {"kind": "ring", "nodes": 4}, "collective": "allgather", "bytes": 8}
    )
    assert slower_inside(alone, Fraction(1, 2)) is alone


def test_one_box_is_not_for_this_method() -> None:
    one, several = cluster("dgx-h100", 1, "allgather", 64), cluster("dgx-h100", 2, "allgather", 64)
    assert not suited(one, "hierarchical")
    assert suited(several, "hierarchical")
    assert race.hierarchical(one, RunOptions().started_now()).termination == "unsupported"


@pytest.mark.long
@pytest.mark.parametrize("collective", some_of(BETWEEN))
def test_sixteen_boxes_within_a_fiftieth_of_the_bound(collective: str) -> None:
    """128 GPUs, 1 GiB; the chunks that this needs are asked for, so that no clock decides."""
    instance = cluster("dgx-h100", 16, collective, 2**30)
    plan = box_sends.BoxStrategy(chain=collective in ("broadcast", "reduce"), slack=2)
    schedule = hierarchical._made(instance, plan, 640 if plan.chain else 6)
    verdict = check_schedule(instance, schedule)
    assert verdict.faults == []
    assert verdict.value is not None
    bound = {"allgather": 120 / 128, "reduce_scatter": 120 / 128, "allreduce": 240 / 128}.get(collective, 1.0)
    assert bound * 2**30 / 400e9 <= verdict.value <= 1.02 * bound * 2**30 / 400e9


@pytest.mark.slow
@pytest.mark.parametrize("collective", BETWEEN)
def test_a_thousand_gpus_within_a_twentieth_of_the_bound(collective: str) -> None:
    """1,024 GPUs, 1 GiB."""
    record = synth.solve(cluster("dgx-h100", 128, collective, 2**30), "hierarchical", time_limit=120)
    assert record.ok, record["verified"]["faults"]
    bound = {"allgather": 1016 / 1024, "reduce_scatter": 1016 / 1024, "allreduce": 2032 / 1024}.get(collective, 1.0)
    assert record.value is not None
    assert record.value <= 1.05 * bound * 2**30 / 400e9


@pytest.mark.long(after=1)
@pytest.mark.parametrize("way", [box_sends.SHARES, box_sends.EVERYTHING])
@pytest.mark.parametrize(("name", "count"), [("dgx-h100", 2), ("dgx-a100", 3), ("dgx2", 2), ("dgx-h100", 9)])
@pytest.mark.parametrize("own", [{}, {"switching": {"mode": "store_and_forward"}}])
def test_exchanges_add_up_everything_once(way: str, name: str, count: int, own: dict[str, Any]) -> None:
    """Replayed wherever there is one; with pieces so large that something arrives before all is sent there is none."""
    made = 0
    for size in (1, 999, 2**14, 2**26):
        instance = cluster(name, count, "allreduce", size, **own)
        schedule = box_exchange.exchanged(instance, chunks.equal(size, 16), way)
        if schedule is not None:
            made += 1
            assert check_schedule(instance, schedule).faults == []
    assert made or name != "dgx-h100"
    assert count < 9 or schedule is None


def test_exchanges_need_equal_boxes() -> None:
    unequal = cluster("dgx-h100", 2, "allreduce", 64, ranks=[0, 1, 8, 9, 10])
    assert box_exchange.exchanged(unequal, [64], box_sends.SHARES) is None


@pytest.mark.slow
@pytest.mark.parametrize("size", [2**10, 2**16, 2**20, 2**24])
@pytest.mark.parametrize("collective", BETWEEN)
def test_small_messages_on_sixteen_boxes_near_the_bound_and_before_any_library(collective: str, size: int) -> None:
    """Within 15 % of the certified bound; never later than what NCCL and MPI libraries run."""
    instance = cluster("dgx-h100", 16, collective, size)
    value = synth.solve(instance, "hierarchical", time_limit=120).value
    bound = synth.solve(instance, "bound", time_limit=120).bound
    assert value is not None
    assert bound is not None
    assert bound <= value <= bound / 0.85
    for reference in ("ring", "double_tree", "recursive_doubling", "direct", "bruck"):
        theirs = synth.solve(instance, reference, time_limit=60).value
        assert theirs is None or value <= theirs, reference
