"""The brute force itself: schedules worked out by hand, its schedules replayed, and none of random ones below it."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
from examples import some_of
from models.fabric.brute_force import TooLarge, best_schedule, least_seconds
from models.fabric.small_machines import COLLECTIVES, Link, machine, random_schedule, schedule_of

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance


def star(ranks: int, latency: float) -> list[Link]:
    return [(u, v, 1.0, latency) for r in range(ranks) for u, v in ((r, ranks), (ranks, r))]


def every_pair(ranks: int, latency: float = 0.0) -> list[Link]:
    return [(u, v, 1.0, latency) for u in range(ranks) for v in range(ranks) if u != v]


def test_by_hand() -> None:
    """Star of three ranks, latency 1, a byte a rank. Allgather: every rank sends two pieces, up at 0 and 1, the second
    there at 1 + 1 + 1 + 1 = 4; with multicast one tree each, every rank's two arrive over its link down at 3 and 4.
    Broadcast of 3 bytes: 5 to one rank and, a tick before the link is free again, 3 more: 8; as a tree 5. Allreduce of
    3 bytes: 5 for a reduction of one hop... two ranks to the third 3 + 3 + 2 = 8 (one link down) and back, or an
    exchange: every rank sends to both others in 3 + 3 + 2 = 8."""
    for collective, seconds, tree in (("allgather", 4, 4), ("broadcast", 8, 5), ("allreduce", 8, 8)):
        for multicast, expected in ((False, seconds), (True, tree)):
            own = dict(collective=collective, bytes=3, switching={"multicast": multicast})
            assert least_seconds(machine(4, star(3, 1.0), [3], **own)) == expected


def test_rounds() -> None:
    """Everybody with everybody, no latency, 1 byte: one round. Where what leaves a rank takes turns, a broadcast
    doubles: ceil(log2 n) rounds; where what comes to a rank does, so does a reduction. Along a line of four it is 3."""
    for ranks, rounds in ((2, 1), (3, 2), (4, 2)):
        for collective, port in (("broadcast", 0), ("reduce", 1)):
            links: list[Link] = [(*link, f"port{link[port]}") for link in every_pair(ranks)]
            assert least_seconds(machine(ranks, links, collective=collective, bytes=1)) == rounds
            assert least_seconds(machine(ranks, every_pair(ranks), collective=collective, bytes=1)) == 1
        assert least_seconds(machine(ranks, every_pair(ranks), collective="allreduce", bytes=1)) == 1
    line: list[Link] = [(u, v, 1.0) for a in range(3) for u, v in ((a, a + 1), (a + 1, a))]
    assert least_seconds(machine(4, line, collective="broadcast", bytes=1)) == 3


def test_pieces_pipeline() -> None:
    """4 bytes over a line of two links: 8 whole, in two pieces 2 + 2 + 2, in four 5."""
    line: list[Link] = [(0, 1, 1.0), (1, 2, 1.0)]
    instance = machine(3, line, collective="broadcast", bytes=4)
    for pieces, seconds in (([4], 8), ([2, 2], 6), ([1, 1, 1, 1], 5), ([1, 3], 7)):
        assert least_seconds(instance, [pieces]) == seconds


def test_groups_take_turns() -> None:
    """Scatter of 2 bytes to each of two ranks over two links: 2, behind one port 4."""
    for group, seconds in ((None, 2), ("port", 4)):
        links: list[Link] = [(0, 1, 1.0, 0.0, group), (0, 2, 1.0, 0.0, group)]
        assert least_seconds(machine(3, links, collective="scatter", bytes=6)) == seconds


def small_instance(chooser: random.Random, most_ranks: int) -> FabricInstance:
    """Two to four ranks and perhaps a switch, cut-through, few speeds, so that a tick is long."""
    while True:
        ranks, switches = chooser.randint(2, most_ranks), chooser.randint(0, 1)
        nodes = ranks + switches
        pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v]
        links: list[Link] = [
            (u, v, chooser.choice([1.0, 1.0, 2.0]), chooser.choice([0.0, 0.0, 1.0]), chooser.choice([None] * 6 + ["g"]))
            for u, v in chooser.sample(pairs, chooser.randint(nodes, min(len(pairs), 8)))
        ]
        own: dict[str, Any] = {"collective": chooser.choice(COLLECTIVES), "bytes": 2 * ranks}
        own["switching"] = {"multicast": chooser.random() < 0.3}
        if own["collective"] in ("broadcast", "reduce", "allreduce"):
            own["bytes"] = 2
        if own["collective"] == "demand":
            own["demand"] = [(*chooser.sample(range(ranks), 2), 2) for _ in range(chooser.randint(1, 3))]
            own["bytes"] = 2 * len(own["demand"])
        try:
            return machine(nodes, links, range(ranks, nodes), **own)
        except ValueError:
            continue


@pytest.mark.parametrize("seed", some_of(range(4)))
def test_its_schedules_pass_the_check_and_random_ones_are_no_faster(seed: int) -> None:
    """Its ticks are those of the replay, except where a reduction has to send just before something arrives."""
    chooser, compared = random.Random(seed), 0
    for _ in range(30):
        instance = small_instance(chooser, 3)
        pieces = [[int(n)] if chooser.random() < 0.7 else [1, int(n) - 1] for n in instance.blocks.bytes]
        try:
            seconds, tick, rows = best_schedule(instance, pieces, most_states=1500)
        except TooLarge:
            continue
        compared += 1
        cut = [(b, n) for b, row in enumerate(pieces) for n in row]
        verdict = check_schedule(instance, schedule_of(cut, _in_ticks(rows, tick), _ticks(tick)))
        if verdict.ok or instance.collective != "allreduce":
            assert verdict.faults == []
            assert verdict.value == pytest.approx(float(seconds), rel=1e-15)
        for _ in range(10):
            drawn = random_schedule(chooser, instance)
            sizes = [drawn.piece_bytes[drawn.piece_block == b].tolist() for b in range(len(instance.blocks))]
            if sorted(map(sorted, sizes)) == sorted(map(sorted, pieces)) and sizes == pieces:
                value = check_schedule(instance, drawn).value
                assert value is not None
                assert value >= float(seconds) * (1 - 1e-12)
    assert compared > 20


def _ticks(tick: Fraction) -> int:
    return tick.denominator


def _in_ticks(rows: list[tuple[int, int, list[int], bool]], tick: Fraction) -> list[tuple[int, int, list[int], bool]]:
    return [(start * tick.numerator, *rest) for start, *rest in rows]  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(2))
def test_estimates_of_what_is_left_change_nothing(seed: int) -> None:
    chooser, compared = random.Random(50 + seed), 0
    for _ in range(25):
        instance = small_instance(chooser, 3)
        try:
            assert least_seconds(instance) == least_seconds(instance, pruned=False, most_states=3000)
            compared += 1
        except TooLarge:
            continue
    assert compared > 10


@pytest.mark.parametrize("seed", some_of(range(3)))
def test_reversal(seed: int) -> None:
    """A reduction turned around in time is a copy on the reversed links, where routes are single links."""
    chooser = random.Random(90 + seed)
    for _ in range(15):
        ranks = chooser.randint(2, 4)
        pairs = [(u, v) for u in range(ranks) for v in range(ranks) if u != v]
        drawn = chooser.sample(pairs, chooser.randint(ranks, min(len(pairs), 7)))
        links: list[Link] = [(u, v, chooser.choice([1.0, 2.0]), chooser.choice([0.0, 1.0])) for u, v in drawn]
        turned: list[Link] = [(v, u, *rest) for u, v, *rest in links]
        for there, back in (("allgather", "reduce_scatter"), ("broadcast", "reduce"), ("scatter", "gather")):
            try:
                one = machine(ranks, links, collective=there, bytes=2 * ranks)
                other = machine(ranks, turned, collective=back, bytes=2 * ranks)
                assert least_seconds(one) == least_seconds(other)
            except (ValueError, TooLarge) as error:
                assert "no schedule" not in str(error)  # noqa: PT017
