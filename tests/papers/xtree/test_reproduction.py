"""Effective bandwidth and language models: by hand, and never above the bound of any algorithm."""

from __future__ import annotations

from pathlib import Path

import pytest

from synth.reproduction.collect import Reproduction
from synth_papers.xtree import bandwidth, llm
from synth_papers.xtree.bandwidth import BYTES, EQUIMESH_BOUND, MESH_BOUND, XTREE
from synth_papers.xtree.page import printed_ring

ALPHA, RATE = 20e-9, 128e9


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    page = Reproduction(tmp_path_factory.mktemp("pages") / "xtree", quick=True, instances=Path("nowhere"))
    return {collective: bandwidth.curves(page, 2, 3, collective) for collective in ("allgather", "allreduce")}


@pytest.mark.long(after=1)
@pytest.mark.parametrize("collective", ["allgather", "allreduce"])
def test_no_algorithm_is_above_the_bound_of_its_network(found, collective):
    curve = found[collective]
    for size in BYTES:
        for name in curve.schedules:
            bound = EQUIMESH_BOUND if "EquiMesh" in name else MESH_BOUND
            assert curve.seconds(name, size) >= curve.seconds(bound, size) * (1 - 1e-9), (name, size)
        assert curve.seconds(EQUIMESH_BOUND, size) <= curve.seconds(MESH_BOUND, size)


def test_bounds_by_hand(found):
    """2x3 mesh, allgather: a corner gets 5 shards over 2 links. Allreduce: 2 * 5 * 6 transfers of a shard over 14 links
    (volume, 4.29 shards) or 6 shards across a corner's 2 links (3): volume. EquiMesh: 5 shards over 4 links. Small
    messages wait for the diameter, 3 hops."""
    size = 6 * 1e9  # a shard of 1 GB
    assert found["allgather"].seconds(MESH_BOUND, size) == pytest.approx(ALPHA + 5 / 2 * 1e9 / RATE)
    assert found["allreduce"].seconds(MESH_BOUND, size) == pytest.approx(ALPHA + 60 / 14 * 1e9 / RATE)
    assert found["allgather"].seconds(EQUIMESH_BOUND, size) == pytest.approx(ALPHA + 5 / 4 * 1e9 / RATE)
    assert found["allgather"].seconds(MESH_BOUND, 1.0) == pytest.approx(3 * ALPHA)


def test_bandwidth_is_bytes_per_node_over_time(found):
    curve = found["allgather"]
    assert curve.bandwidth(XTREE, 1e6) == pytest.approx(1e6 / curve.seconds(XTREE, 1e6))
    name, seconds = curve.best_baseline(1e6)
    assert seconds == min(curve.seconds(label, 1e6) for label in bandwidth.BASELINES) == curve.seconds(name, 1e6)


def test_layer_by_hand():
    """One token, hidden 2, query 2, key and value 1: projections 2 * (2*2 + 2*1) = 12; MLP of 3: 2 matrices 12, gated
    18; attention 2 * 1 * 2 = 4. Three tokens: 3 * (12 + 12 + 2 * 3 * 2) = 108."""
    assert llm.Model("plain", 1, 2, 3, 2, 1, False).layer_macs(1) == 28
    assert llm.Model("gated", 1, 2, 3, 2, 1, True).layer_macs(1) == 34
    assert llm.Model("plain", 1, 2, 3, 2, 1, False).layer_macs(3) == 108


@pytest.mark.parametrize(
    ("which", "compute", "gathers"),
    [("forward", 1, 2), ("backward, allgather hidden", 2, 0), ("backward, all exposed", 2, 2)],
)
def test_pass_by_hand(found, which, compute, gathers):
    """An allgather takes 1 s, an allreduce 10 s; two blocks a layer, 7 layers."""
    model = llm.Model("some", 7, 64, 128, 64, 64, False)
    macs = model.layer_macs(llm.TOKENS) / 6 / llm.MACS_PER_SECOND
    times = {"allgather": 1.0, "allreduce": 10.0}
    seconds = llm.pass_seconds(
        model, which, found["allgather"], found["allreduce"], lambda curve, size: times[curve.collective]
    )
    assert seconds == pytest.approx(7 * (compute * macs + gathers * 1.0 + 2 * 10.0))


@pytest.mark.parametrize(("length", "ring"), [(2, [0]), (3, [0, 1]), (4, [0, 2, 1]), (5, [0, 2, 3, 1])])
def test_rings_as_printed_miss_the_last_position(length, ring):
    assert printed_ring(length, True) == ring
