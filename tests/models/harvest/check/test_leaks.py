"""Schedules that lose a little at very many places: each within what one row may be off, their sum a large part."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from models.harvest.instances import made, stated

from synth.method import load
from synth.options import RunOptions
from synth_models.harvest import FAMILY
from synth_models.harvest.check import replay
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.solution import Schedule


def pairs_of(*pairs: tuple[int, int], ports: int, gpus: int = 4):
    """One step of 1e11 bytes a pair at 1e11 bytes/s, no latency: 1 second for a pair that has a link of its own."""
    free = {"alpha": 0.0, "delta": 0.0, "reconfiguration_delay": 0.0}
    return stated(gpus=gpus, ports=ports, steps=[{"bytes": 1e11, "pairs": pairs}], **free)


CYCLE = np.array([[0, 1, 1], [1, 2, 1], [2, 1, 2], [2, 3, 1]])  # with more ports: 1 and 2 to and fro as often as liked


def schedule_of(links, rows) -> Schedule:
    pair, hop, src, dst = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(4))
    share = np.array([row[4] for row in rows], dtype=np.float64)
    return Schedule((links,), np.array([0]), np.array([0, len(rows)]), pair, hop, src, dst, share)


def leaking_walk(rows: int, leak: float) -> list[tuple[int, int, int, int, float]]:
    """From 0 to 1, then between 1 and 2 until ``rows`` are full, then to 3; every hop carries ``leak`` less."""
    walk, at = [(0, 0, 0, 1, 1.0)], 1
    for hop in range(1, rows - 1):
        walk.append((0, hop, at, 3 - at, 1.0 - leak * hop))
        at = 3 - at
    walk.append((0, rows - 1, 2, 3, 1.0 - leak * (rows - 1)))
    return walk


@pytest.mark.parametrize("rows", [7, 101, 40_001])
def test_losses_that_are_small_at_every_hop_are_added_up(rows):
    """Each row is within 1e-9 of the one before; of 40,000 hops that is 4e-5 of the pair's bytes. An odd number of
    rows ends at GPU 3."""
    instance = pairs_of((0, 3), ports=3)
    honest = check_schedule(instance, schedule_of(CYCLE, leaking_walk(rows, 0.0)))
    assert honest.ok
    leaking = check_schedule(instance, schedule_of(CYCLE, leaking_walk(rows, 0.9e-9)))
    assert leaking.value is None
    assert "lost or appear on the way in all" in leaking.faults[0]


def two_to_one(middles: int, leak: float):
    """GPUs 0 and 1 send 1e11 bytes each to GPU 2, all GPUs joined, so 2 / ports of a second: the certified bound. Both
    send a little directly and the rest by the other GPUs, among which it is handed on over every link once, ``leak``
    less after each hop, before it goes to GPU 2; the less arrives, the less its links carry."""
    n = middles + 3
    hops, even = middles - 1, 2 / (n - 1)
    lost = leak * hops * middles
    direct = even - lost / (n - 1)
    each = (1 - direct) / middles
    rows = []
    for pair in (0, 1):
        rows.append((pair, 0, pair, 2, direct))
        place = np.arange(middles)
        rows += [(pair, 0, pair, 3 + w, each) for w in place.tolist()]
        for hop in range(1, hops + 1):
            after = (place + hop) % middles
            rows += [(pair, hop, 3 + u, 3 + v, each - leak * hop) for u, v in zip(place, after, strict=True)]
            place = after
        rows += [(pair, hops + 1, 3 + w, 2, each - leak * hops) for w in place.tolist()]
    links = np.array([[u, v, 1] for u in range(n) for v in range(n) if u != v])
    return pairs_of((0, 2), (1, 2), ports=n - 1, gpus=n), schedule_of(links, rows)


@pytest.mark.parametrize("leak", [0.9e-9, 1e-10])
def test_leaking_rows_do_not_bring_the_value_below_the_certified_bound(leak):
    """62 GPUs in the middle of a full mesh of 65 (64 ports): 7,800 rows, each within 1e-9 of the one before."""
    instance, honest = two_to_one(62, 0.0)
    bound = 2 / 64 * 1e11 / instance.port_bandwidth
    single = {"unit_exponent": 40, "generators": [], "bundles": [], "intervals": []}
    assert load(FAMILY.check_bound)(instance, bound * (1 - 1e-9), single) == []
    verdict = check_schedule(instance, honest)
    assert verdict.ok, verdict.faults
    assert verdict.value == pytest.approx(bound, rel=1e-12)
    assert not check_schedule(instance, two_to_one(62, leak)[1]).ok
    tiny = check_schedule(instance, two_to_one(62, 2e-13)[1])  # 7.6e-10 of each pair: accepted, and not faster
    assert tiny.ok, tiny.faults
    assert tiny.value is not None
    assert tiny.value >= bound * (1 - 1e-14)


def test_thinned_routes_do_not_lower_the_load():
    """Two pairs of 1e11 bytes share the ring's link 1 -> 2, so 2 s; thinned by 1e-9 a row on many rows each, with the
    thinnest rows on the link that counts, the schedule would take less."""
    instance = pairs_of((0, 3), (1, 2), ports=2)
    links = np.array([[0, 1, 1], [1, 0, 1], [1, 2, 1], [2, 3, 1]])

    def rows(leak: float):
        to_and_fro = [(0, h, h % 2, 1 - h % 2, 1.0 - leak * h) for h in range(2001)]
        last = 1.0 - leak * 2001
        return [*to_and_fro, (0, 2001, 1, 2, last), (0, 2002, 2, 3, last), (1, 0, 1, 2, 1.0)]

    assert not check_schedule(instance, schedule_of(links, rows(1e-9))).ok
    assert check_schedule(instance, schedule_of(links, rows(0.0))).value is not None
    tiny = check_schedule(instance, schedule_of(links, rows(4e-13)))  # 8e-10 in all: accepted, and not a bit faster
    assert tiny.ok
    assert tiny.value is not None
    assert tiny.value >= check_schedule(instance, schedule_of(links, rows(0.0))).value
    assert not check_schedule(instance, schedule_of(links, rows(6e-13))).ok  # 1.2e-9 in all


def test_losses_at_many_gpus_are_added_up():
    """40 GPUs, 39 ports: pair (0, 39) by 38 routes of two hops, each losing 0.9e-9 of the pair at its middle GPU."""
    n = 40
    instance = pairs_of((0, n - 1), ports=n - 1, gpus=n)
    links = np.array([[u, v, 1] for u in range(n) for v in range(n) if u != v])

    def rows(leak: float):
        each = 1 / (n - 2)
        return [row for w in range(1, n - 1) for row in ((0, 0, 0, w, each), (0, 1, w, n - 1, each - leak))]

    assert check_schedule(instance, schedule_of(links, rows(0.0))).ok
    assert check_schedule(instance, schedule_of(links, rows(2e-11))).ok  # 38 * 2e-11 < 1e-9
    verdict = check_schedule(instance, schedule_of(links, rows(0.9e-9)))
    assert verdict.value is None
    assert "lost or appear on the way in all" in verdict.faults[0]


def test_shares_from_nowhere_do_not_make_up_for_losses():
    """What is lost at one GPU appears at another: all arrives, but it is not the source's."""
    instance = pairs_of((0, 3), ports=2)
    links = np.array([[0, 1, 1], [0, 2, 1], [1, 3, 1], [2, 3, 1]])
    rows = [(0, 0, 0, 1, 0.5), (0, 0, 0, 2, 0.5), (0, 1, 1, 3, 0.5 - 6e-10), (0, 1, 2, 3, 0.5 + 6e-10)]
    verdict = check_schedule(instance, schedule_of(links, rows))
    assert verdict.value is None
    assert "1 of them arrive" in verdict.faults[0]


def test_tiny_shares_count_exactly():
    """A share beside which others are lost in a float's rounding: 1 and 100,000 times 1e-17, 1e-12 in all."""
    instance = pairs_of((0, 3), ports=3)
    links = np.array([[0, 1, 1], [0, 3, 1], [1, 3, 1]])
    crumbs = [(0, 0, 0, 3, 1e-17)] * 100_000
    verdict = check_schedule(instance, schedule_of(links, [(0, 0, 0, 3, 1.0), *crumbs]))
    assert verdict.ok
    assert verdict.value is not None
    assert verdict.value >= float(1 + 100_000 * Fraction(1e-17))
    crumbs = [(0, 0, 0, 3, 1e-17)] * 300_000
    rows = [(0, 0, 0, 3, 1.0), *crumbs, *[(0, 1, 1, 3, 1e-14)] * 200_000]  # 2e-9 from nowhere, 1e-14 at a time
    assert not check_schedule(instance, schedule_of(links, rows)).ok


@pytest.mark.long(after=6)
@pytest.mark.parametrize("method", ["candidates", "greedy", "bvn", "static_ring", "static_torus", "static_kautz"])
@pytest.mark.parametrize("ports", ["2", "3"])
def test_methods_lose_nothing_but_rounding(method, ports):
    """What the methods hand back is far within the tolerance: their time is computed as if nothing were lost."""
    instance = made(algorithm="swing", gpus=16, ports=ports, message_bytes=1e6, reconfiguration_delay=1e-6)
    schedule = FAMILY.method(method).load()(instance, RunOptions(method={})).solution
    assert check_schedule(instance, schedule).ok
    for step, pairs in enumerate(instance.pairs):
        assert replay._violations(instance.gpus, pairs, replay._flow(schedule, step))[0].max() <= replay.ROUNDING
