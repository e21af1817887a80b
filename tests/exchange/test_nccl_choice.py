"""NCCL's choice by its cost model: numbers by hand from tuning.cc (@5067397c), and machines of all kinds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

import synth
from synth.errors import InputError
from synth.exchange.selection import FORMATS, chosen
from synth.exchange.selection.choice import choices, rules, solved
from synth.exchange.selection.nccl_choice import Nccl
from synth.exchange.selection.nccl_reach import Boxes

BOX = Nccl(Boxes("allreduce", 8, 1, 450e9, sums=True), 1, "hopper")
BOXES = Nccl(Boxes("allreduce", 32, 4, 450e9, 8, 50e9, True), 4, "hopper", sharp=395e9)


def test_latencies_by_hand() -> None:
    """Microseconds of an allreduce of a byte. Ring: base and 2 (n - 1) steps in a box of 8; among 4 boxes 6 of 62 over
    the net, those inside no less than what a NIC costs to be told (1, of Simple 3). Tree: 2 ((8 - 1) inside + 2
    between). NVLS 25; NVLSTree 25 + 2 * 2 * 20.9, with CollNet 25 + 18; CollNetDirect 2 (3.7 + 7 * 0.4) + 31; Chain
    14 * 2.8 + 30."""
    box, boxes = (
        {key: value * 1e6 for key, value in nccl.times(nccl.group, "allreduce", 1).items()} for nccl in (BOX, BOXES)
    )
    assert box == pytest.approx({
        ("ring", "LL"): 6.6 + 14 * 0.6, ("ring", "LL128"): 14 + 14 * 1.9, ("ring", "Simple"): 8.4 + 14 * 3.4,
        ("tree", "LL"): 6.8 + 14 * 0.6, ("tree", "LL128"): 14 + 14 * 1.25, ("tree", "Simple"): 8.4 + 14 * 4.0,
        ("nvls", "Simple"): 25,
    }, rel=1e-4)  # fmt: skip
    assert boxes == pytest.approx({
        ("ring", "LL"): 6.6 + 56 * 1.0 + 6 * 2.7, ("ring", "LL128"): 14 + 56 * 1.9 + 6 * 4.0,
        ("ring", "Simple"): 8.4 + 56 * 3.4 + 6 * 14, ("tree", "LL"): 6.8 + 14 * 0.6 + 4 * 5,
        ("tree", "LL128"): 14 + 14 * 1.25 + 4 * 8.5, ("tree", "Simple"): 8.4 + 14 * 4 + 4 * 14,
        ("nvls_tree", "Simple"): 25 + 4 * 20.9, ("nvls", "Simple"): 25 + 18,
        ("collnet_direct", "Simple"): 2 * (3.7 + 7 * 0.4) + 31, ("collnet_chain", "Simple"): 14 * 2.8 + 30,
    }, rel=1e-4)  # fmt: skip


def test_chains_by_hand() -> None:
    """A broadcast: in a box one step, of 4 boxes as many as ranks; 12 channels of 30 GB/s and 8 of 48, of which LL has
    half, but not more than 141 GB/s in a box and 20.4 between four."""
    box, boxes = (nccl.times(nccl.group, "broadcast", 10**12) for nccl in (BOX, BOXES))
    assert {protocol: 1e3 / value for (_, protocol), value in box.items()} == pytest.approx(
        {"LL": 141, "LL128": 0.92 * 360, "Simple": 360}, rel=1e-3
    )
    assert {protocol: 1e3 / value for (_, protocol), value in boxes.items()} == pytest.approx(
        {"LL": 20.4, "LL128": 0.92 * 384, "Simple": 384}, rel=1e-3
    )
    assert {protocol: value * 1e6 for (_, protocol), value in BOX.times(BOX.group, "reduce", 1).items()} == (
        pytest.approx({"LL": 7.2, "LL128": 15.9, "Simple": 11.8}, rel=1e-3)
    )
    assert BOXES.times(BOXES.group, "reduce", 1)["ring", "LL"] == pytest.approx(6.6e-6 + 32 * 2.7e-6, rel=1e-4)


def test_what_is_there() -> None:
    """PAT with one GPU a box only, NVLS from Hopper on, no LL128 on MI300X, trees for allreduce, CollNet where switches
    of the network add and boxes are of 8 at most."""
    alone = Nccl(Boxes("allreduce", 4, 4, 0.0, 1, 50e9), 4, "ampere")
    every = {("ring", "LL"), ("ring", "LL128"), ("ring", "Simple")}
    assert set(alone.times(alone.group, "allgather", 1024)) == {*every, ("pat", "Simple")}
    assert {word for word, _ in replace(BOX, gpu="ampere").times(BOX.group, "allreduce", 1024)} == {"ring", "tree"}
    assert {word for word, _ in BOX.times(BOX.group, "reduce_scatter", 1024)} == {"ring", "nvls"}
    assert {word for word, _ in BOXES.times(BOXES.group, "allgather", 1024)} == {"ring"}
    mi300x = Nccl(Boxes("allreduce", 8, 1, 336e9), 1, "mi300x")
    assert {protocol for _, protocol in mi300x.times(mi300x.group, "allreduce", 1024)} == {"LL", "Simple"}
    assert set(BOXES.times(BOXES.group, "broadcast", 1024)) == every
    wide = Nccl(Boxes("allreduce", 64, 4, 450e9, 8, 50e9, True), 4, "hopper", 390e9)
    assert {word for word, _ in wide.times(wide.group, "allreduce", 1024)} == {"ring", "tree", "nvls", "nvls_tree"}


def make(keys: dict[str, Any]) -> Any:
    return lambda collective, size: synth.make("fabric", **keys, collective=collective, bytes=size)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("keys", "gpu", "nodes", "parts"),
    [
        ({"machine": "dgx-h100-nvls", "gpus": 2}, "hopper", 1, None),
        ({"machine": "dgx-a100", "boxes": 2, "gpus": "3+2"}, "ampere", 2, (2, 2)),
        ({"machine": "dgx-h100", "boxes": 3, "gpus": 1}, "hopper", 3, None),
        ({"machine": "mi300x", "gpus": 3}, "mi300x", 1, None),
        ({"network": "star", "nodes": 4, "bandwidth": 1e10, "latency": 1e-6}, "volta", None, None),
        ({"machine": "gb200-nvl72", "boxes": 2, "gpus": 2}, "blackwell", 1, None),
    ],
)
def test_every_machine_has_rows_for_every_call(
    keys: dict[str, Any], gpu: str, nodes: int | None, parts: tuple[int, int] | None
) -> None:
    """Of the group itself, of a box of it, of one rank a box, and of any other: all sizes, one after the other; no
    channels are set anywhere."""
    nccl = Nccl.of(make(keys), solved)
    assert (nccl.gpu, nccl.nodes) == (gpu, nodes)
    assert (None if nccl.box is None or nccl.rail is None else (nccl.box.ranks, nccl.rail.ranks)) == parts
    rows = FORMATS["nccl"].read(FORMATS["nccl"].write(nccl.beside(())))
    assert {row.parameters["channels"] for row in rows} == {0}
    for place in {row.place for row in rows}:
        mine = sorted((row for row in rows if row.place == place), key=lambda row: row.min_bytes)
        assert mine[0].min_bytes == 0
        assert mine[-1].max_bytes is None
        assert all(a.max_bytes is not None and a.max_bytes + 1 == b.min_bytes for a, b in pairwise(mine))
    for collective in ("broadcast", "reduce", "allgather", "reduce_scatter", "allreduce"):
        for ranks, on in ((nccl.group.ranks, nccl.nodes or 1), (2, 1), (2, 2), (1000, 125)):
            row = chosen(rows, collective, 2**20, ranks, on)
            assert row is not None
            if (ranks, on) == (1000, 125):
                assert row.parameters["protocol"] in ("ll", "simple")
                assert row.algorithm in ("ring", "tree")


def test_a_choice_is_no_quicker_than_the_machine() -> None:
    """With a latency of 1 ms a hop NCCL's microseconds are no guide: the time is that of the ring on the machine."""
    slow = make({"network": "star", "nodes": 4, "bandwidth": 1e10, "latency": 0.5e-3})
    (one,) = choices("nccl", slow, "allgather", [4096])
    assert one.seconds["ring"] >= 3e-3
    assert one.bound is not None
    assert one.bound <= one.seconds[one.algorithm]
    (rule,) = rules("nccl", [one])
    assert (rule.ranks, rule.nodes, rule.min_bytes, rule.max_bytes) == (4, None, 0, None)


def test_ranks_that_do_not_reach_each_other_have_no_choice() -> None:
    keys = {"machine": "dgx-h100", "gpus": 2, "boxes": 2, "fail": "rail0,rail1"}
    with pytest.raises(InputError):
        choices("nccl", make(keys), "allreduce", [1024])
