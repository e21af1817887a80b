"""Blocks that come over idle rails: how much links work, counted from the sends alone, and replays."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from models.fabric.test_hierarchical import cluster

from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.hierarchical import method as hierarchical
from synth_models.fabric.references.hierarchical import spare_rails
from synth_models.fabric.references.hierarchical.box_known import Known
from synth_models.fabric.references.hierarchical.box_sends import BoxStrategy
from synth_models.fabric.references.hierarchical.box_transfers import transfers_of
from synth_models.fabric.scheduling import chunks

MIB = 2**20
PLAIN, BESIDE = BoxStrategy(), BoxStrategy(spare_rails=True)


def sends_of(instance: FabricInstance, pieces: int, plan: BoxStrategy) -> tuple[Counter[tuple[int, int]], Fraction]:
    """How often each rank gets each piece, and the seconds for which the busiest link works."""
    sizes = [chunks.equal(int(size), pieces) for size in instance.blocks.bytes]
    made = transfers_of(instance, sizes, plan, known=Known())
    net, work, got = instance.machine.network, Counter[int](), Counter[tuple[int, int]]()
    for number, piece in enumerate(made.piece.tolist()):
        route = made.link[made.route_start[number] : made.route_start[number + 1]].tolist()
        got[piece, int(net.dst[route[-1]])] += 1
        for link in route:
            work[link] += int(made.piece_bytes[piece])
    return got, max(Fraction(sent) / Fraction(float(net.bandwidth[link])) for link, sent in work.items())


@pytest.mark.long
@pytest.mark.parametrize(("name", "boxes", "pieces"), [("dgx2", 2, 16), ("dgx-a100", 2, 8), ("dgx-h100", 2, 4)])
def test_no_other_share_works_links_less(name: str, boxes: int, pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rank gets every piece once, however many of them come over rails; of all numbers that chosen is best."""
    instance = cluster(name, boxes, "allgather", 64 * MIB)
    ranks = len(instance.members)
    got, chosen = sends_of(instance, pieces, BESIDE)
    work = {}
    for taken in range(0, (ranks // boxes - 1) * pieces + 1, 1 if pieces < 16 else 7):
        with monkeypatch.context() as patched:
            patched.setattr(spare_rails, "_best", lambda *_, taken=taken: taken)
            each, work[taken] = sends_of(instance, pieces, BESIDE)
        assert set(each.values()) == {1}
        assert len(each) == ranks * (ranks - 1) * pieces
    assert set(got.values()) == {1}
    assert chosen <= min(work.values())
    assert chosen < work[0] == sends_of(instance, pieces, PLAIN)[1]


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter"])
@pytest.mark.parametrize("name", ["dgx2", "dgx-a100"])
def test_it_is_quicker_and_replayed(collective: str, name: str) -> None:
    instance = cluster(name, 2, collective, 64 * MIB)
    seconds = []
    for plan in (PLAIN, BESIDE):
        made = hierarchical._made(instance, plan, 8)
        assert made is not None
        verdict = check_schedule(instance, made)
        assert verdict.faults == []
        assert verdict.value is not None
        seconds.append(verdict.value)
    assert seconds[1] < seconds[0]


def test_rails_that_are_never_idle() -> None:
    """Sixteen boxes of dgx-a100: 15 blocks over 25 GB/s take longer than 127 over 300 GB/s."""
    instance = cluster("dgx-a100", 16, "allgather", 64 * MIB)
    assert hierarchical._made(instance, BESIDE, 8) is None
    assert hierarchical._made(cluster("dgx-a100", 2, "allgather", 64 * MIB), BESIDE, 8) is not None


def test_boxes_that_are_not_alike_have_none() -> None:
    ranks = [*range(4), *range(16, 22)]
    assert hierarchical._made(cluster("dgx2", 2, "allgather", 67_108_800, ranks=ranks), BESIDE, 8) is None


def test_share_by_hand() -> None:
    """Two boxes of g ranks, rails of 1 byte/s and boxes of v: x blocks of 2g - 1 over a rail and the others inside take
    equally long at x = (2g - 1) / (1 + v)."""
    rail, inside = np.array([1.0, 0.0]), np.array([0.0, 7 / 12])  # a block to 7 others over links of 12 bytes/s
    taken = spare_rails._best(rail, inside, 2, 8, 100)
    assert 1 + taken / 100 == pytest.approx(15 / 13, abs=0.01)
