"""PAT's trees and algorithms on two levels: steps counted, times worked out by hand, every combination replayed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from examples import some_of
from models.fabric.test_references import named, solved, star, value

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans import spreading
from synth_models.fabric.plans.out_trees import Edge
from synth_models.fabric.references import two_level

PATTERNS = (spreading.chain, spreading.star, spreading.doubling, spreading.bruck, spreading.far_first)
COLLECTIVES = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")


def spreads(n: int, first: int, edges: list[Edge]) -> bool:
    """Whether every other place receives once, from one that has received in an earlier step."""
    came = {first: -1}
    for u, v, step in edges:
        if v in came or u not in came or came[u] >= step:
            return False
        came[v] = step
    return sorted(came) == list(range(n))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_spread(pattern: spreading.Pattern) -> None:
    for n in (1, 2, 3, 5, 8, 12, 31):
        for first in {0, n // 2, n - 1}:
            assert spreads(n, first, pattern(n, first)), (n, first)


@pytest.mark.parametrize("together", [1, 2, 4, 8, 32])
def test_messages_of_pat(together: int) -> None:
    """Of A blocks at most, all of a step to places equally far away; with n = 2^k ranks log2 A + n / A - 1 steps, of
    which the first log2 A go n / A places or further, the farthest first."""
    for n in (2, 3, 6, 8, 16, 23, 32):
        edges = spreading.far_first(n, 0, together)
        assert spreads(n, 0, edges)
        blocks = Counter(step for _, _, step in edges)  # of n origins, whose trees are alike: what a place sends
        assert max(blocks.values()) <= together
        away = {step: {(u - v) % n for u, v, other in edges if other == step} for step in blocks}
        assert all(len(distances) == 1 for distances in away.values())
        if n & (n - 1) == 0 and together <= n:
            far = together.bit_length() - 1
            assert sorted(blocks) == list(range(far + n // together - 1))
            assert [away[step] for step in range(far)] == [{n >> (1 + step)} for step in range(far)]


def test_pat_on_a_star() -> None:
    """n = 4, latency 5 a link, blocks of 1 byte: own blocks leave in 0..2, what arrives at 11 from afar arrives next
    door at 22. Without latency 7 of 8 blocks leave a rank one after the other: 7 s."""
    assert value("pat", star(4, 5.0, collective="allgather", bytes=4)) == 22
    assert value("pat", star(4, 5.0, collective="reduce_scatter", bytes=4)) == 22
    assert value("pat", star(8, collective="allgather", bytes=8)) == 7


def two(boxes: int = 2, **own: Any) -> FabricInstance:
    """Boxes of 8 GPUs: 0.7 us and 450 GB/s inside, 2.6 us and 50 GB/s a GPU from box to box."""
    return named({"kind": "machine", "name": "dgx-h100", "boxes": boxes}, **own)


def seconds(instance: FabricInstance, **way: str) -> float:
    found = solved("two_level", instance, **way)
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    return verdict.value


def test_all_lead_their_own_block() -> None:
    """Two boxes, a byte a rank: over the NIC, then to seven others one after the other."""
    way = {"leaders": "all", "inside": "star", "between": "direct"}
    expected = 2.6e-6 + 1 / 50e9 + 0.7e-6 + 7 / 450e9
    assert seconds(two(collective="allgather", bytes=16), **way) == pytest.approx(expected, rel=1e-9)


def test_exchange_between_leaders() -> None:
    """Eight bytes: seven buffers into the leader's port, an exchange (two for four boxes), seven out of it again.
    With all ranks as leaders of a byte each, sevenths of that inside, and a byte over every NIC."""
    way = {"leaders": "one", "inside": "star", "between": "exchange"}
    inside, between = 0.7e-6 + 7 * 8 / 450e9, 2.6e-6 + 8 / 50e9
    for boxes, exchanges in ((2, 1), (4, 2)):
        found = seconds(two(boxes, collective="allreduce", bytes=8), **way)
        assert found == pytest.approx(2 * inside + exchanges * between, rel=1e-9)
    found = seconds(two(collective="allreduce", bytes=8), **{**way, "leaders": "all"})
    assert found == pytest.approx(2 * (0.7e-6 + 7 / 450e9) + 2.6e-6 + 1 / 50e9, rel=1e-9)


def test_a_chain_inside() -> None:
    """Two boxes, a byte from the root: over the NIC, and then seven hops in the other box."""
    way = {"leaders": "one", "inside": "chain", "between": "two_trees"}
    expected = 2.6e-6 + 1 / 50e9 + 7 * (0.7e-6 + 1 / 450e9)
    assert seconds(two(collective="broadcast", bytes=1, root=3), **way) == pytest.approx(expected, rel=1e-9)


@pytest.mark.long(after=2)
@pytest.mark.parametrize("between", some_of([*two_level.BETWEEN, two_level.TWO_TREES, two_level.EXCHANGE]))
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_combination_replays(collective: str, between: str) -> None:
    """Of three and four boxes of two and three ranks, in both ways of switching, with a root that is not the first."""
    groups = ((3, (0, 1, 8, 9, 16, 17)), (4, (2, 0, 1, 9, 10, 8, 17, 16, 18, 25, 24, 26)))
    for number, (boxes, ranks) in enumerate(groups):
        mode = {"mode": ("cut_through", "store_and_forward")[number]}
        root = {"root": ranks[-2]} if collective in ("broadcast", "reduce") else {}
        unmade: set[str] = set()
        instance = two(boxes, collective=collective, bytes=60, ranks=ranks, switching=mode, **root)
        for leaders in ("one", "all"):
            for inside in two_level.INSIDE:
                way = {"leaders": leaders, "inside": inside, "between": between}
                found = solved("two_level", instance, **way)
                if found.termination == "finished":
                    assert check_schedule(instance, found.solution).faults == [], way
                else:
                    assert str(found.message).startswith("two_level")
                    unmade.add(between)
        meaningless = {two_level.TWO_TREES} if collective in ("allgather", "reduce_scatter") else set()
        meaningless |= {two_level.EXCHANGE} if collective != "allreduce" else set()
        assert unmade <= meaningless | {two_level.EXCHANGE}
        assert meaningless & {between} <= unmade


@pytest.mark.parametrize(
    ("instance", "here"),
    [
        (two(collective="allgather", bytes=10, ranks=(0, 1, 2, 3, 8, 9, 10, 11, 12, 13)), "2 of 4 or 6"),
        (two(1, collective="allgather", bytes=8), "1 of 8"),
        (star(3, collective="allgather", bytes=3), "3 of 1"),
    ],
)
def test_boxes_that_are_none(instance: FabricInstance, here: str) -> None:
    found = solved("two_level", instance)
    assert found.termination == "unsupported"
    assert found.message == f"two_level needs several boxes of equally many ranks; here: {here}"
