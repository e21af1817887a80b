"""Routes, reversal and numbers of chunks: what the methods that move data share."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from models.fabric.small_machines import machine

from synth.errors import UnsupportedError
from synth.options import RunOptions
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.routes.search import Routes
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.scheduling.moves import Moves, pieces_of
from synth_models.fabric.scheduling.reversal import joined, reversed_instance, reversed_transfers
from synth_models.fabric.scheduling.transfers import Transfers
from synth_models.fabric.solution import Schedule


def seconds(instance: FabricInstance, way: list[tuple[int, ...]], size: int, hop_by_hop: bool) -> float:
    """The definition, for direct routes one after the other."""
    net = instance.machine.network
    total = 0.0
    for route in way:
        times = [size / net.bandwidth[e] for e in route]
        total += sum(net.latency[e] for e in route) + (sum(times) if hop_by_hop else max(times))
    return total


def best(instance: FabricInstance, source: int, target: int, size: int, hop_by_hop: bool) -> float:
    """Over all simple paths of nodes and all parallel links: cut at ranks."""
    net, is_switch = instance.machine.network, instance.machine.is_switch
    found = float("inf")
    others = [v for v in range(net.nodes) if v not in (source, target)]
    for count in range(len(others) + 1):
        for middle in itertools.permutations(others, count):
            nodes = (source, *middle, target)
            steps = [
                [e for e in range(net.links) if (net.src[e], net.dst[e]) == pair] for pair in itertools.pairwise(nodes)
            ]
            for links in itertools.product(*steps):
                way: list[tuple[int, ...]] = []
                for e in links:
                    through = way and is_switch[net.src[e]]
                    way = [*way[:-1], (*way[-1], e)] if through else [*way, (e,)]
                found = min(found, seconds(instance, way, size, hop_by_hop))
    return found


@pytest.mark.parametrize("hop_by_hop", [False, True])
def test_routes_are_the_quickest(hop_by_hop: bool) -> None:
    """Against all paths, on random machines of 3 ranks and 2 switches."""
    rng = random.Random(3)
    for _ in range(40):
        links = [(u, v, 1.0, 1.0) for u, v in ((0, 3), (3, 1), (1, 4), (4, 2), (2, 3), (3, 0))]
        for _ in range(6):
            u, v = rng.sample(range(5), 2)
            links.append((u, v, float(rng.randint(1, 4)), rng.choice([0.0, 0.5, 2.0])))
        instance = machine(5, links, (3, 4), collective="broadcast", bytes=3)
        size = rng.choice([1, 4, 20])
        routes = Routes(instance.machine, size, hop_by_hop)
        for source, target in itertools.permutations(range(3), 2):
            way = routes.hops(source, target)
            ends = [(instance.machine.network.src[r[0]], instance.machine.network.dst[r[-1]]) for r in way]
            assert [a for a, _ in ends] == [source, *(b for _, b in ends[:-1])]
            assert ends[-1][1] == target
            right = best(instance, source, target, size, hop_by_hop)
            assert seconds(instance, way, size, hop_by_hop) == pytest.approx(right)
            assert routes.seconds(source)[target] == pytest.approx(right)


@pytest.mark.parametrize("ratio", [1.0, 1e6, 1e18])
def test_hops_of_no_time_beside_others_are_found(ratio: float) -> None:
    """Two triangles joined by one link each way, so much slower that hops in a triangle vanish beside it."""
    fast = [(u, v, 1e-3 * ratio) for half in ((0, 1, 2), (3, 4, 5)) for u, v in itertools.permutations(half, 2)]
    instance = machine(6, [*fast, (2, 3, 1e-3), (3, 2, 1e-3)], collective="broadcast", root=0, bytes=1)
    net, routes = instance.machine.network, Routes.of(instance, 1)
    for source, target in itertools.permutations(range(6), 2):
        way = [e for route in routes.hops(source, target) for e in route]
        ends = [(int(net.src[e]), int(net.dst[e])) for e in way]
        assert [u for u, _ in ends] == [source, *(v for _, v in ends[:-1])]
        assert ends[-1][1] == target
        assert len(way) == (1 if source // 3 == target // 3 else 1 + (source not in (2, 3)) + (target not in (2, 3)))


def test_equal_routes_share_the_load() -> None:
    """Two spines: of four pieces two go over each; parallel links likewise."""
    fat = FabricInstance.model_validate(
        {"name": "t", "source": "t", "bytes": 4, "network": {"kind": "fat_tree", "leaves": 2, "hosts": 1, "spines": 2}}
    )
    routes = Routes.of(fat, 1)
    ways = []
    for _ in range(4):
        ways.append(routes.hops(0, 1)[0])
        routes.take(ways[-1])
    assert sorted(ways.count(way) for way in set(ways)) == [2, 2]
    pair = machine(2, [(0, 1, 1.0), (0, 1, 1.0), (1, 0, 1.0)], bytes=2)
    routes = Routes.of(pair, 1)
    routes.take(routes.hops(0, 1)[0])
    assert routes.hops(0, 1) == [(1,)]


def test_no_way() -> None:
    one_way = machine(2, [(0, 1, 1.0)], collective="broadcast", bytes=1)
    with pytest.raises(UnsupportedError, match="rank 0 cannot be reached from rank 1"):
        Routes.of(one_way, 1).hops(1, 0)


def test_pieces() -> None:
    assert chunks.cut(10, 3) == [3, 3, 4]
    assert chunks.cut(2, 5) == [1, 1]
    assert chunks.cut(0, 5) == []


def test_the_number_of_chunks() -> None:
    """A chain of 3 links, latency 1, 36 bytes at a byte a second: 3 + (2 + k) 36 / k has its least at k = 36 and comes
    within a hundredth of nothing: the search must end near there, and take 1 where a chunk more saves nothing."""
    links = [(k, k + 1, 1.0, 1.0) for k in range(3)]
    instance = machine(4, links, collective="broadcast", bytes=36)

    def make(count: int) -> Schedule:
        block, size = pieces_of([chunks.cut(36, count)])
        moves = Moves(Routes.of(instance, 1), block, size, [0] * len(size))
        for piece in range(len(size)):
            for u in range(3):
                moves.send(piece, u, u + 1, piece)
        return timed(instance, moves.transfers())

    found = chunks.best_number(instance, RunOptions(), make, 36)
    assert found is not None
    assert found[0] >= 24
    assert chunks.seconds(instance, make(12)) == 3 + 14 * 3
    flat = chunks.best_number(instance, RunOptions(), lambda count: make(1), 36)
    assert flat is not None
    assert flat[0] == 1


def lasting(variants: list[Callable[[int], int]], most: int, least: int = 0) -> tuple[int, Counter[tuple[int, int]]]:
    """The seconds of what :func:`most_promising` finds among variants whose schedules with so many chunks last as
    stated, and how often it asked which variant for which number."""
    instance = machine(2, [(0, 1, 1.0, 0.0)], collective="broadcast", bytes=1)
    asked = Counter[tuple[int, int]]()

    def make(number: int, count: int) -> Schedule:
        asked[number, count] += 1
        return timed(instance, Transfers.of([0], [variants[number](count)], [0], [[0]], [[]]))

    tried = [chunks.Variant(partial(make, number), 1, most) for number in range(len(variants))]
    found = chunks.most_promising(instance, RunOptions(time_limit_s=None), tried, Fraction(least))
    assert found is not None
    number, count, schedule = found
    assert chunks.seconds(instance, schedule) == variants[number](count)
    return variants[number](count), asked


@pytest.mark.parametrize("seed", range(20))
def test_the_most_promising_way_goes_first_and_the_best_is_found(seed: int) -> None:
    """Variants that last a + b / k seconds with k chunks: what is found is within a fiftieth of the best of all, no
    number is made twice, and with the bound at hand most of the variants are not made with many chunks."""
    draw = np.random.default_rng(seed)
    most = 2 ** int(draw.integers(0, 8))
    terms = [(int(a), int(b)) for a, b in draw.integers(1000, 100_000, size=(int(draw.integers(1, 5)), 2))]
    variants = [lambda k, a=a, b=b: a + b // k for a, b in terms]
    best = min(variant(k) for variant in variants for k in range(1, most + 1))
    found, asked = lasting(variants, most)
    assert best <= found <= best * 1.02
    assert set(asked.values()) == {1}
    assert all(asked[number, 1] for number in range(len(variants)))


def test_a_way_that_cannot_catch_up_is_left() -> None:
    """With 8 chunks at most, what a variant lasts beyond the bound shrinks to an eighth: 500 + 8000 / 8 is never
    1000."""
    _, asked = lasting([lambda k: 900 + 800 // k, lambda k: 500 + 8000 // k], 8, 500)
    assert [count for number, count in asked if number == 1] == [1]
    assert asked[0, 8]


@pytest.mark.parametrize(("beat", "most"), [(None, 64), (799, 64), (600, 64), (450, 4), (400, 2)])
def test_what_cannot_beat_a_known_schedule_ends_early(beat: int | None, most: int) -> None:
    """500 + 8000 / k is 600 at 80 chunks: of a schedule that takes 450 seconds it is known after 4 chunks that it is
    not beaten, of one that takes 400 after 2."""
    instance = machine(2, [(0, 1, 1.0, 0.0)], collective="broadcast", bytes=1)
    asked: list[int] = []

    def make(count: int) -> Schedule:
        asked.append(count)
        return timed(instance, Transfers.of([0], [500 + 8000 // count], [0], [[0]], [[]]))

    known = None if beat is None else Fraction(beat)
    chunks.best_number(instance, RunOptions(time_limit_s=None), make, 64, beat=known)
    assert max(asked) == most


@pytest.mark.parametrize(
    ("seconds", "first", "begins"), [(1015, 200_000, False), (1015, 50_000, True), (1030, 200_000, True)]
)
def test_no_other_large_variant_begins_almost_at_the_bound(seconds: int, first: int, begins: bool) -> None:
    """Within a fiftieth of the bound, another variant begins only if its first schedule is small."""
    instance = machine(2, [(0, 1, 1.0, 0.0)], collective="broadcast", bytes=1)
    asked: list[int] = []

    def make(number: int, lasts: int, count: int) -> Schedule:
        asked.append(number)
        return timed(instance, Transfers.of([0], [lasts], [0], [[0]], [[]]))

    tried = [
        chunks.Variant(partial(make, 0, seconds), 1, 1),
        chunks.Variant(partial(make, 1, 1000), 1, 1, lambda count: first * count),
    ]
    chunks.most_promising(instance, RunOptions(time_limit_s=None), tried, Fraction(1000))
    assert (1 in asked) == begins


def test_what_a_first_schedule_waits_for_does_not_keep_large_ones_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first schedule takes ten seconds, routes included; with twice the chunks it takes none. A variant that begins
    with a hundred thousand transfers is then tried: by the first schedule's pace it would take eleven days."""
    instance = machine(2, [(0, 1, 1.0, 0.0)], collective="broadcast", bytes=1)
    now, asked = [0.0], Counter[int]()

    def make(number: int, count: int) -> Schedule:
        now[0] += 10.0 if not asked else 0.0
        asked[number] += 1
        return timed(instance, Transfers.of([0], [100 if number else 2000 // count], [0], [[0]], [[]]))

    variants = [
        chunks.Variant(partial(make, 0), 1, 4),
        chunks.Variant(partial(make, 1), 1, 1, lambda count: 100_000 * count),
    ]
    options = RunOptions(time_limit_s=60.0).started_now()
    monkeypatch.setattr(chunks.time, "monotonic", lambda: now[0])
    found = chunks.most_promising(instance, options, variants)
    assert found is not None
    assert found[0] == 1


@pytest.mark.parametrize(("after_s", "count"), [(0.0, 8), (50.0, 4), (58.0, 1)])
def test_time_is_left_for_what_comes_after(monkeypatch: pytest.MonkeyPatch, after_s: float, count: int) -> None:
    """Every schedule takes a second for a chunk; of a minute as much is left as what is done with the best takes."""
    instance = machine(2, [(0, 1, 1.0, 0.0)], collective="broadcast", bytes=1)
    now = [0.0]

    def make(count: int) -> Schedule:
        now[0] += count
        return timed(instance, Transfers.of([0], [1000 // count], [0], [[0]], [[]]))

    monkeypatch.setattr(chunks.time, "monotonic", lambda: now[0])
    options = RunOptions(time_limit_s=60.0).started_now()
    variant = chunks.Variant(make, 1, 8, lambda count: 1000 * count)
    found = chunks.most_promising(instance, options, [variant], after=lambda _: after_s)
    assert found is not None
    assert found[1] == count
    assert now[0] + after_s <= 60.0


def test_nothing_is_tried_once_the_bound_is_met() -> None:
    _, asked = lasting([lambda k: 1000 // k, lambda k: 1], 1000, 1000)
    assert set(asked) == {(0, 1)}


@pytest.mark.parametrize(
    ("seconds", "each", "counts"),
    [(1005, 10_001, []), (1005, 10_000, [1]), (1005, 5000, [1, 2]), (1011, 10_001, [1, 2, 4])],
)
def test_others_are_tried_beside_what_is_near_the_bound_while_they_are_small(
    seconds: int, each: int, counts: list[int]
) -> None:
    """Beside a first variant within a hundredth of the bound, another is tried up to 10,000 transfers. It lasts 1012
    seconds in one chunk and 1006 in two."""
    instance = machine(2, [(0, 1, 1.0, 0.0)], collective="broadcast", bytes=1)
    asked: list[int] = []

    def make(number: int, count: int) -> Schedule:
        asked.extend([count] if number else [])
        return timed(instance, Transfers.of([0], [1000 + 12 // count if number else seconds], [0], [[0]], [[]]))

    tried = [
        chunks.Variant(partial(make, 0), 1, 1),
        chunks.Variant(partial(make, 1), 1, 4, lambda count: each * count),
    ]
    chunks.most_promising(instance, RunOptions(time_limit_s=None), tried, Fraction(1000))
    assert asked == counts


@pytest.mark.parametrize(("each", "counts"), [(10_000, [1, 2, 4, 8, 16]), (100_000, [1, 2])])
def test_a_first_doubling_that_saves_little_ends_no_small_variant(each: int, counts: list[int]) -> None:
    """From 866 seconds to 793 foresees 720 with any number of chunks, more than another variant's 680; with 16 chunks
    it lasts 675. One doubling ends it only where its next schedule is large."""
    instance = machine(2, [(0, 1, 1.0, 0.0)], collective="broadcast", bytes=1)
    lasts, asked = {1: 866, 2: 793, 4: 713, 8: 688, 16: 675}, list[int]()

    def make(number: int, count: int) -> Schedule:
        asked.extend([count] if number else [])
        return timed(instance, Transfers.of([0], [lasts.get(count, 900) if number else 680], [0], [[0]], [[]]))

    tried = [
        chunks.Variant(partial(make, 0), 1, 1),
        chunks.Variant(partial(make, 1), 1, 4096, lambda count: each * count),
    ]
    found = chunks.most_promising(instance, RunOptions(time_limit_s=None), tried, Fraction(645))
    assert found is not None
    assert asked[: len(counts)] == counts
    assert (found[0], len(asked) > 2) == ((1, True) if 16 in counts else (0, False))


@pytest.mark.parametrize(("each", "counts"), [(30_000, [1, 2, 4, 8]), (100_000, [1, 2, 4])])
def test_a_doubling_that_takes_longer_ends_no_variant_of_middle_size(each: int, counts: list[int]) -> None:
    """With 4 chunks it takes longer than with 2, as they fit each other worse, with 8 less than another variant's
    930."""
    instance = machine(2, [(0, 1, 1.0, 0.0)], collective="broadcast", bytes=1)
    lasts, asked = {1: 1050, 2: 964, 4: 977, 8: 927}, list[int]()

    def make(number: int, count: int) -> Schedule:
        asked.extend([count] if number else [])
        return timed(instance, Transfers.of([0], [lasts.get(count, 990) if number else 930], [0], [[0]], [[]]))

    tried = [
        chunks.Variant(partial(make, 0), 1, 1),
        chunks.Variant(partial(make, 1), 1, 4096, lambda count: each * count),
    ]
    found = chunks.most_promising(instance, RunOptions(time_limit_s=None), tried, Fraction(812))
    assert found is not None
    assert asked[: len(counts)] == counts
    assert (found[0], 8 in asked) == ((1, True) if 8 in counts else (0, False))


@pytest.mark.parametrize(("seconds", "large"), [(2004, False), (2020, True)])
def test_no_large_schedule_is_made_for_what_nobody_notices(seconds: int, large: bool) -> None:
    """A schedule within a quarter of a hundredth of the bound is not followed by one of a million transfers, also where
    numbers of chunks between those that were tried are left."""
    instance = machine(2, [(0, 1, 1.0, 0.0)], collective="broadcast", bytes=1)
    asked: list[int] = []

    def make(count: int) -> Schedule:
        asked.append(count)
        return timed(instance, Transfers.of([0], [2000 + (seconds - 2000) // count], [0], [[0]], [[]]))

    variant = chunks.Variant(make, 1, 4, lambda count: 10**6 * count if count > 1 else 1)
    chunks.most_promising(instance, RunOptions(time_limit_s=None), [variant], Fraction(2000))
    assert (max(asked) > 1) == large


def test_numbers_between_are_tried_where_they_may_gain() -> None:
    """Above the bound of 1000 is 400 / k up to 4 chunks, and much from 8 on: 6 chunks may still take less than 4, but
    not less than the 1060 that another variant takes with 8."""
    odd = {1: 1400, 2: 1200, 4: 1100}
    _, asked = lasting([lambda k: odd.get(k, 9000), lambda k: 1000 + 480 // k], 8, 1000)
    assert asked[0, 4] == asked[0, 8] == asked[1, 8] == 1
    assert not asked[0, 6]
    _, alone = lasting([lambda k: odd.get(k, 9000)], 8, 1000)
    assert alone[0, 6]


def spreading(instance: FabricInstance, roots: list[int]) -> Transfers:
    """A chain from every root, over the ranks behind it."""
    count = len(roots)
    moves = Moves(Routes.of(instance, 1), range(count), [1] * count, roots)
    n = len(instance.members)
    for piece, root in enumerate(roots):
        for k in range(n - 1):
            moves.send(piece, (root + k) % n, (root + k + 1) % n, k)
    return moves.transfers()


@pytest.mark.parametrize("mode", ["cut_through", "store_and_forward"])
def test_reversal(mode: str) -> None:
    """A reduce-scatter backwards takes what the allgather took on a ring of links: 4 hops of 2 + 1 s, over ranks
    where the ring is open."""
    links = [(u, v, 1.0, 2.0) for r in range(5) for u, v in ((r, (r + 1) % 5), ((r + 1) % 5, r))]
    for own in ({}, {"failed": {"links": [[2, 3]]}}):
        instance = machine(5, links, collective="reduce_scatter", bytes=5, switching={"mode": mode}, **own)
        there = reversed_instance(instance)
        spread = spreading(there, list(range(5)))
        schedule = timed(there, spread)
        backwards = timed(instance, reversed_transfers(there, spread, schedule))
        verdict = check_schedule(instance, backwards)
        assert verdict.faults == []
        if not own:
            assert verdict.value == 12


def test_up_and_down() -> None:
    links = [(u, v, 1.0, 2.0) for r in range(3) for u, v in ((r, 3), (3, r))]
    instance = machine(4, links, (3,), collective="allreduce", bytes=1)
    there = reversed_instance(instance)
    up = reversed_transfers(there, spreading(there, [0]))
    for later in (True, False):
        both = joined(instance.machine, up, spreading(instance, [0]), later)
        verdict = check_schedule(instance, timed(instance, both))
        assert verdict.faults == []
        assert verdict.value == 4 * (2 + 2 + 1)


def test_no_reversal() -> None:
    """A piece that arrives twice would be added twice; a route that branches has no way back."""
    instance = machine(2, [(0, 1, 1.0), (0, 1, 1.0), (1, 0, 1.0)], collective="reduce", bytes=1)
    there = reversed_instance(instance)
    with pytest.raises(ValueError, match="receives a piece twice"):
        reversed_transfers(there, Transfers.of([0], [1], [0, 0], [[2], [2]], [[], []]))
    tree = machine(4, [(0, 3, 1.0), (3, 1, 1.0), (3, 2, 1.0), (1, 0, 1.0), (2, 0, 1.0)], (3,), bytes=3)
    with pytest.raises(ValueError, match="branches"):
        reversed_transfers(tree, Transfers.of([0], [1], [0], [[0, 1, 2]], [[]]))


def test_exact_fraction_of_seconds() -> None:
    instance = machine(2, [(0, 1, 3.0), (1, 0, 3.0)], collective="broadcast", bytes=1)
    schedule = timed(instance, Transfers.of([0], [1], [0], [[0]], [[]]))
    assert chunks.seconds(instance, schedule) == Fraction(1, 3)
