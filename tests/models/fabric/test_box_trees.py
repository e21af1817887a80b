"""Two trees over boxes, and what ``hierarchical`` makes of them where leaf switches are oversubscribed."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from examples import some_of
from hypothesis import given, settings
from hypothesis import strategies as st

import synth
from synth.arrays import IntArray
from synth.options import RunOptions
from synth_models.fabric import race
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.hierarchical import method as hierarchical
from synth_models.fabric.references.hierarchical.box_sends import GROUPS_LED, BoxStrategy
from synth_models.fabric.references.hierarchical.box_trees import two_trees
from synth_models.fabric.references.hierarchical.group_leaders import groups_of_boxes
from synth_models.fabric.routes.box_routes import PairRoutes
from synth_models.fabric.routes.near_boxes import around, near_boxes, seconds_between
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed_backwards
from synth_models.fabric.scheduling.mirrored import mirrored
from synth_models.fabric.scheduling.reversal import reversed_instance
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule

COLLECTIVES = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")


def made(**keys: Any) -> FabricInstance:
    given = {"machine": "dgx-h100", "bytes": 2**30, **keys}
    instance = synth.make("fabric", **{key: value for key, value in given.items() if value is not None})
    assert isinstance(instance, FabricInstance)
    return instance


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=9).filter(lambda sizes: sum(sizes) > 1),
    st.integers(1, 2),
    st.integers(1, 4),
    st.integers(0, 2),
    st.integers(0, 2),
)
def test_no_box_sends_or_receives_twice_in_a_round(
    sizes: list[int], gates: int, near: int, longer: int, held: int
) -> None:
    """Pieces take the trees in turn, one a round: a box receives a tree's pieces once, and sends them when they have
    been on their way for so many rounds, or some ``longer`` to other groups, and were ``held`` for those; in every
    round each box sends at most one piece and receives at most one; a group takes in and lets out what one box does,
    and if both trees enter it at one box never two pieces in one round."""
    groups, first = [], 0
    for size in sizes:
        groups.append(list(range(first, first + size)))
        first += size
    group_of = {box: number for number, group in enumerate(groups) for box in group}
    out, into = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    leaves, enters = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for which, edges in enumerate(two_trees(groups, gates, near + longer, near, held)):
        there = {0: 0}
        for source, target, wait in edges:
            far = group_of[source] != group_of[target]
            assert there[source] + held * far <= wait
            assert target not in there
            there[target] = wait + near + longer * far
            parity = (which + wait) % 2
            out[source, parity] += 1
            into[target, parity] += 1
            if group_of[source] != group_of[target]:
                leaves[group_of[source], parity] += 1
                enters[group_of[target], parity] += 1
        assert sorted(there) == list(range(first))
    assert max(out.values()) == max(into.values()) == 1
    for number, size in enumerate(sizes):
        assert leaves[number, 0] + leaves[number, 1] <= 2
        assert enters[number, 0] + enters[number, 1] <= 2
        if size == 1 or gates == 1:
            assert max(leaves[number, 0], leaves[number, 1], enters[number, 0], enters[number, 1]) <= 1


SHAPES = [(9, 4, 2), (3, 5, 4), (2, 2, 2, 2), (7, 1, 3), (33, 8, 4), (4, 32), (32, 4)]


@pytest.mark.parametrize(("shape", "gates"), product(SHAPES, (1, 2)))
def test_groups_of_groups_let_out_what_one_box_does(shape: tuple[int, ...], gates: int) -> None:
    """Groups of equally many groups, and so on: no box sends or receives twice in a round, and out of the groups of
    every level, and into them, go two edges at most. With a gate for each tree, trees are four times as deep as two
    binary ones over all boxes at most."""
    boxes = np.arange(int(np.prod(shape))).reshape(shape)
    out, into = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    trees = two_trees(boxes.tolist(), gates)
    for which, edges in enumerate(trees):
        assert sorted(target for _, target, _ in edges) == list(range(1, boxes.size))
        out.update((source, (which + wait) % 2) for source, _, wait in edges)
        into.update((target, (which + wait) % 2) for _, target, wait in edges)
    assert max(out.values()) == max(into.values()) == 1
    source, target, wait = np.concatenate(trees).T
    assert gates == 1 or wait.max() <= 4 * np.ceil(np.log2(boxes.size))
    for level in range(1, len(shape)):
        group = np.arange(boxes.size) // int(np.prod(shape[level:]))
        crossing = group[source] != group[target]
        assert np.bincount(group[source[crossing]]).max() <= 2
        assert np.bincount(group[target[crossing]]).max() <= 2


def test_groups_of_a_dragonfly_are_found() -> None:
    """Hosts of a router, routers of a group, though a router is as near to one of another group: from any host on."""
    keys: dict[str, Any] = {"network": "dragonfly", "groups": 9, "routers": 4, "hosts": 2, "bandwidth": 25e9}
    instance = made(**keys, machine=None, latency=5e-7, collective="broadcast", bytes=2**20)
    seconds = seconds_between(PairRoutes(instance, instance.boxes, 2**20), instance.boxes)
    assert near_boxes(seconds, around(seconds)) == np.arange(72).reshape(9, 4, 2).tolist()


@pytest.mark.parametrize(("leaf", "rails"), [(2, True), (3, True), (2, False)])
def test_boxes_behind_a_leaf_switch_are_near(leaf: int, rails: bool) -> None:
    """Seven boxes, counted from box 3 on: the groups are those of the leaf switches, its own first."""
    instance = made(boxes=7, leaf=leaf, rails=rails, bytes=56 * 2**20)
    order = np.roll(np.arange(7), -3)
    found = near_boxes(seconds_between(PairRoutes(instance, instance.boxes, 2**20), instance.boxes), order)
    assert found[0][0] == 0
    assert {frozenset((3 + box) % 7 for box in group) for group in found} == {
        frozenset(box for box in range(7) if box // leaf == number) for number in range(-(-7 // leaf))
    }


CLUSTERS: list[dict[str, Any]] = [
    {"boxes": 5, "leaf": 2, "oversubscription": 2},
    {"boxes": 6, "leaf": 3, "rails": False, "spines": 2, "root": 17},
    {"machine": "dgx2", "boxes": 3, "leaf": 1, "oversubscription": 4},
]


@pytest.mark.long
@pytest.mark.parametrize(("collective", "keys"), some_of(product(COLLECTIVES, CLUSTERS)))
def test_every_schedule_is_replayed(collective: str, keys: dict[str, Any]) -> None:
    """Small messages and large, groups of unequal size, any root; never below the bound."""
    keys = {key: value for key, value in keys.items() if key != "root" or collective in ("broadcast", "reduce")}
    for size in (48 * 40 * 16, 48 * 40 * 2**14):
        instance = made(**keys, collective=collective, bytes=size)
        found = race.hierarchical(instance, RunOptions(time_limit_s=0.2).started_now())
        verdict = check_schedule(instance, found.solution)
        assert verdict.faults == []
        assert verdict.value is not None
        assert verdict.value >= float(strongest(instance, RunOptions(time_limit_s=0.1).started_now()).seconds)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("own", "collective"),
    some_of(product([{"oversubscription": 4}, {"oversubscription": 2, "rails": False}], COLLECTIVES)),
)
def test_oversubscribed_leaves_hold_nothing_up(collective: str, own: dict[str, Any]) -> None:
    """8 or 16 boxes, 4 a leaf switch, 1 GiB: within a fiftieth of what the NICs of a box need, as without the tree."""
    rooted = collective in ("broadcast", "reduce")
    boxes = 8 if rooted else 16
    instance = made(boxes=boxes, leaf=4, collective=collective, **own)
    plan = BoxStrategy(between="two trees") if rooted else BoxStrategy(passed_on=True)
    verdict = check_schedule(instance, hierarchical._made(instance, plan, 1024 if rooted else 6))
    assert verdict.faults == []
    assert verdict.value is not None
    share = {"allreduce": 240 / 128, "broadcast": 1, "reduce": 1}.get(collective, 120 / 128)
    assert share * 2**30 / 400e9 <= verdict.value <= 1.02 * share * 2**30 / 400e9


def between_boxes(instance: FabricInstance, schedule: Schedule) -> tuple[IntArray, list[tuple[int, int]]]:
    """The box of every node, -1 for none, and the boxes that transfers lead from and to, where they leave one."""
    net, box = instance.machine.network, np.full(instance.machine.nodes, -1)
    for number, members in enumerate(instance.boxes):
        box[list(members)] = number
    ends = net.src[schedule.link[schedule.route_start[:-1]]], net.dst[schedule.link[schedule.route_start[1:] - 1]]
    return box, [(int(u), int(v)) for u, v in zip(box[ends[0]], box[ends[1]], strict=True) if u != v]


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize("keys", [keys for keys in CLUSTERS if keys.get("leaf", 1) > 1])
def test_leaders_bring_a_piece_into_every_group_once(collective: str, keys: dict[str, Any]) -> None:
    """Whatever the root; also where groups are unequal. Between boxes every piece goes as often as there are others."""
    instance = made(**keys, collective=collective, bytes=48 * 2**10)
    seconds = seconds_between(PairRoutes(instance, instance.boxes, 1), instance.boxes)
    groups = groups_of_boxes(seconds)
    assert sorted(box for group in groups for box in group) == list(range(len(instance.boxes)))
    schedule = hierarchical._made(instance, BoxStrategy(between=GROUPS_LED), 6)
    assert check_schedule(instance, schedule).faults == []
    group = {member: k for k, members in enumerate(groups) for member in members}
    box, pairs = between_boxes(instance, schedule)
    pieces = len(schedule.piece_bytes)
    assert len(pairs) == pieces * (len(instance.boxes) - 1)
    home = box[instance.the_root]
    alone = sum(group[other] == group[home] for other in range(len(instance.boxes))) == 1
    assert sum(group[u] != group[v] for u, v in pairs) == pieces * (len(groups) - alone)  # into the root's, too


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter", "allreduce"])
@pytest.mark.parametrize("keys", [*CLUSTERS[:2], {"boxes": 6, "leaf": 2, "oversubscription": 2, "gpus": 3}])
def test_what_everyone_spreads_comes_into_every_group_once(collective: str, keys: dict[str, Any]) -> None:
    """Where groups are alike; elsewhere it goes straight to every box. As often between boxes as there are others."""
    keys = {key: value for key, value in keys.items() if key != "root"}
    instance = made(**keys, collective=collective, bytes=48 * 40 * 2**5)
    groups = groups_of_boxes(seconds_between(PairRoutes(instance, instance.boxes, 1), instance.boxes))
    schedule = hierarchical._made(instance, BoxStrategy(between=GROUPS_LED), 2)
    assert check_schedule(instance, schedule).faults == []
    group = {member: k for k, members in enumerate(groups) for member in members}
    pairs = between_boxes(instance, schedule)[1]
    sends = len(schedule.piece_bytes) * (2 if collective == "allreduce" else 1)
    assert len(pairs) == sends * (len(instance.boxes) - 1)
    if len(set(map(len, groups))) == 1:
        assert sum(group[u] != group[v] for u, v in pairs) == sends * (len(groups) - 1)


def test_narrow_leaf_switches_let_an_allgather_through() -> None:
    """Sixteen DGX H100 of two GPUs behind 2:1: straight to all boxes takes a quarter longer."""
    instance = made(
        boxes=16, leaf=4, oversubscription=2, gpus=2, machine="dgx-h100", collective="allgather", bytes=2**22
    )
    best = [min(chunks.seconds(instance, hierarchical._made(instance, plan, count)) for count in (1, 2, 4))
            for plan in (BoxStrategy(between=GROUPS_LED), BoxStrategy())]  # fmt: skip
    assert best[0] * 1.25 < best[1]
    assert BoxStrategy(between=GROUPS_LED) in hierarchical._strategies(instance)


def test_leaf_switches_that_are_not_narrow_are_crossed_by_every_box() -> None:
    instance = made(boxes=8, leaf=4, gpus=2, machine="dgx-h100", collective="allgather", bytes=2**22)
    assert BoxStrategy(between=GROUPS_LED) not in hierarchical._strategies(instance)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter", "allreduce"])
def test_ranks_of_a_dragonfly_pass_on(collective: str) -> None:
    """72 ranks behind 36 routers, 1 GiB, each rank a box: along a way on which no two steps share a link, so that every
    rank's own link is all that counts."""
    keys: dict[str, Any] = {"network": "dragonfly", "groups": 9, "routers": 4, "hosts": 2, "bandwidth": 25e9}
    instance = made(**keys, machine=None, latency=5e-7, collective=collective, bytes=2**30 // 72 * 72)
    verdict = check_schedule(instance, hierarchical._made(instance, BoxStrategy(passed_on=True), 2))
    least = (2 if collective == "allreduce" else 1) * 71 / 72 * instance.bytes / 25e9
    assert verdict.faults == []
    assert verdict.value is not None
    assert least <= verdict.value <= 1.005 * least


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("collective", "keys"),
    product(
        ("broadcast", "reduce"),
        [{"groups": 9, "routers": 4, "hosts": 2}, {"groups": 5, "routers": 4, "hosts": 3}, {"groups": 9, "routers": 4}],
    ),
)
def test_pieces_on_a_dragonfly_do_not_wait_for_each_other(collective: str, keys: dict[str, int]) -> None:
    """36 to 72 ranks, 1 GiB in 512 pieces, from or to some rank: all that it takes beyond the rank's own link is the
    way to the last rank, some rounds for every binary level."""
    keys = {"hosts": 1, **keys}
    ranks = int(np.prod(list(keys.values())))
    shape: dict[str, Any] = {"network": "dragonfly", "bandwidth": 25e9, "latency": 5e-7, **keys}
    instance = made(**shape, machine=None, collective=collective, root=ranks // 3)
    verdict = check_schedule(instance, hierarchical._made(instance, BoxStrategy(between="two trees"), 512))
    assert verdict.faults == []
    assert verdict.value is not None
    rounds = 6 * np.ceil(np.log2(ranks))
    assert 2**30 / 25e9 <= verdict.value <= (1 + rounds / 512) * 1.01 * 2**30 / 25e9


@pytest.mark.slow
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_a_dragonfly_of_a_thousand_ranks(collective: str) -> None:
    """1,056 ranks, 1,056 MiB, a minute: within a twentieth of the root's link."""
    shape: dict[str, Any] = {"network": "dragonfly", "groups": 33, "routers": 8, "hosts": 4}
    instance = made(**shape, machine=None, collective=collective, bytes=1056 * 2**20)
    record = synth.solve(instance, "hierarchical", time_limit=60)
    assert record.ok, record["verified"]["faults"]
    assert record.value is not None
    assert record.value <= 1056 * 2**20 / 128e9 / 0.95


def test_around_goes_to_the_nearest_that_is_left() -> None:
    """Four boxes in two pairs, by hand; and every box once, whatever the distances."""
    pairs = np.array([[np.inf, 2, 1, 2], [2, np.inf, 2, 1], [1, 2, np.inf, 2], [2, 1, 2, np.inf]])
    assert around(pairs).tolist() == [0, 2, 1, 3]
    rng = np.random.default_rng(0)
    for count in range(1, 20):
        assert sorted(around(rng.random((count, count))).tolist()) == list(range(count))


@pytest.mark.slow
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_a_thousand_gpus_behind_oversubscribed_leaves(collective: str) -> None:
    """128 boxes, 32 a leaf switch, 2 : 1, 1 GiB: within a twentieth of what the NICs of a box need."""
    instance = made(boxes=128, leaf=32, oversubscription=2, collective=collective)
    record = synth.solve(instance, "hierarchical", time_limit=60)
    assert record.ok, record["verified"]["faults"]
    share = {"allreduce": 2032 / 1024, "broadcast": 1, "reduce": 1}.get(collective, 1016 / 1024)
    assert record.value is not None
    assert record.value <= 1.05 * share * 2**30 / 400e9


@pytest.mark.long
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_many_slow_spines_are_as_good_as_few_fast_ones(collective: str) -> None:
    """Six boxes of two GPUs, in groups of two: four spines of half a rank's rate, or one of twice as much. Reductions
    are timed with time reversed, where a slow link in the middle of a route makes the two ends differ."""
    found = []
    for spines in (1, 4):
        instance = made(boxes=6, gpus=2, leaf=2, spines=spines, collective=collective, bytes=2**26)
        outcome = race.hierarchical(instance, RunOptions())
        assert outcome.solution is not None
        assert check_schedule(instance, outcome.solution).faults == []
        found.append(float(chunks.seconds(instance, outcome.solution)))
    assert found[1] <= 1.05 * found[0]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_timed_backwards_is_valid_with_time_reversed(seed: int) -> None:
    """A broadcast in order of priority along random trees over leaf and spine switches of random rates: a reduction."""
    rng = np.random.default_rng(seed)
    instance = synth.make(
        "fabric", network="fat_tree", leaves=3, hosts=3, spines=2, collective="reduce", bytes=9000, root=0,
        bandwidth=float(rng.integers(1, 4)) * 1e9, uplink_bandwidth=float(rng.integers(1, 4)) * 1e9,
    )  # fmt: skip
    there = reversed_instance(instance)
    order = [0, *(1 + rng.permutation(8)).tolist()]
    parents = [order[int(rng.integers(k))] for k in range(1, 9)]
    pieces, transfers = 5, list[tuple[int, int, int]]()
    for piece in range(pieces):
        transfers += [(piece, parent, child) for parent, child in zip(parents, order[1:], strict=True)]
    came = {(piece, child): k for k, (piece, _, child) in enumerate(transfers)}
    before = [[came[piece, source]] if source else [] for piece, source, _ in transfers]
    start, link = PairRoutes(there, there.boxes, 1800).of(*np.array([row[1:] for row in transfers]).T)
    routes = [link[a:b].tolist() for a, b in pairwise(start)]
    spread = Transfers.of([0] * pieces, [1800] * pieces, [row[0] for row in transfers], routes, before)
    made = mirrored(there, spread, timed_backwards(there, spread), backwards=True)
    assert made is not None
    assert check_schedule(instance, made).faults == []
