"""Boxes of unequal size: what `synth make fabric gpus=4+6` makes, and schedules beside what the NICs allow."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from examples import some_of
from models.fabric.making import faults, made

import synth
from synth.options import RunOptions
from synth_models.fabric import race
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.hierarchical import box_sends

GIB = 2**30
NIC = {"dgx-h100": (50e9, 1), "dgx-a100": (25e9, 1), "dgx2": (12.5e9, 2)}  # bytes/s of a port, and GPUs that share it
COLLECTIVES = ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce")


def links_by_name(instance: FabricInstance) -> list[tuple[str, str, float, float]]:
    machine, net = instance.machine, instance.machine.network
    return sorted(
        (machine.names[u], machine.names[v], b, a)
        for u, v, b, a in zip(
            net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), net.latency.tolist(), strict=True
        )
    )


def least(name: str, sizes: tuple[int, int], collective: str) -> float:
    """Seconds that the ports of two boxes need at least: those of the smaller box carry what one box lacks of an
    allgather, or the whole buffer."""
    rate, sharing = NIC[name]
    ports = -(-min(sizes) // sharing) * rate
    if collective in ("allgather", "reduce_scatter"):
        return max(sizes) / sum(sizes) * GIB / ports
    return GIB / ports


@pytest.mark.parametrize("name", ["dgx1", "dgx2", "dgx-a100", "dgx-h100", "mi250", "amd16"])
def test_links_are_those_of_full_boxes(name: str) -> None:
    """All links of full boxes between nodes that are there; ranks are numbered without gaps; of a box's switches those
    that lead to one of its ranks."""
    full, part = (made(machine=name, bytes=1680, **keys) for keys in ({"boxes": 2}, {"gpus": "3+5"}))
    names = set(part.machine.names)
    assert links_by_name(part) == [link for link in links_by_name(full) if {link[0], link[1]} <= names]
    assert part.boxes == [(0, 1, 2), (3, 4, 5, 6, 7)]
    assert part.machine.names[:8] == (*(f"0/gpu{g}" for g in range(3)), *(f"1/gpu{g}" for g in range(5)))
    there = {link[0] for link in links_by_name(part)}
    assert {node for node in names if "/" in node} <= there
    gone = {node for node in full.machine.names if "/" in node} - names
    assert not [
        (u, v)
        for u, v, _, _ in links_by_name(full)
        if u in gone and v in names and "gpu" in v and u[0] == v[0] and "gpu" not in u
    ]


def test_keys_and_names() -> None:
    """As many boxes as numbers; one number for all boxes; the same instance from its file, and from numbers."""
    two = made(machine="dgx-h100", gpus="4+6", bytes="1GiB")
    assert (two.name, len(two.boxes), len(two.members)) == ("dgx-h100-x2-gpus4-6-allgather-1073741760B", 2, 10)
    same = made(machine="dgx-h100", boxes=3, gpus=4, bytes=12)
    assert [len(box) for box in same.boxes] == [4, 4, 4]
    assert same.name == "dgx-h100-x3-gpus4-allgather-12B"
    assert synth.make("fabric", machine="dgx-h100", gpus=[4, 6], bytes=10).boxes == two.boxes
    again = FabricInstance.model_validate_json(two.model_dump_json())
    assert again.model_dump() == two.model_dump()
    assert links_by_name(again) == links_by_name(two)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"machine": "dgx-h100", "gpus": "4+9"}, "gpus: a box of dgx-h100 has 8 at most, not 9"),
        ({"machine": "dgx-h100", "gpus": "4+6", "boxes": 3}, "gpus: 2 numbers for boxes=3"),
        ({"machine": "dgx-h100", "gpus": "4+"}, "must be GPUs of a box such as 4, or of every box such as 4+6"),
        ({"machine": "dgx-h100", "gpus": "0+6"}, "must be >= 1"),
        ({"network": "ring", "nodes": 4, "gpus": "4+6"}, "gpus = '4+6': has no meaning without machine"),
    ],
)
def test_what_is_wrong(keys: dict[str, Any], words: str) -> None:
    assert any(words in fault for fault in faults(**keys, bytes=840))


def test_a_file_with_other_numbers() -> None:
    raw = made(machine="dgx-h100", gpus="4+6", bytes=10).model_dump(mode="json")
    for gpus, words in (([4], "1 numbers for boxes=2"), ([4, 60], "8 at most, not 60"), ([0, 6], "greater than or")):
        with pytest.raises(ValueError, match=words):
            FabricInstance.model_validate(raw | {"network": raw["network"] | {"gpus": gpus}})


UNEQUAL = [("dgx-h100", (4, 6)), ("dgx-h100", (8, 3)), ("dgx-h100", (2, 7)), ("dgx-a100", (4, 6)), ("dgx2", (4, 6))]


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("name", "sizes", "collective"),
    some_of((name, sizes, collective) for collective, (name, sizes) in product(COLLECTIVES, UNEQUAL)),
)
def test_within_five_percent_of_what_the_ports_allow(name: str, sizes: tuple[int, int], collective: str) -> None:
    instance = made(machine=name, gpus=f"{sizes[0]}+{sizes[1]}", collective=collective, bytes="1GiB")
    found = race.hierarchical(instance, RunOptions(time_limit_s=4.0).started_now())
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    bound = least(name, sizes, collective) * instance.bytes / GIB
    assert bound <= verdict.value <= 1.05 * bound


@pytest.mark.long(after=1)
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_a_root_in_the_larger_box(collective: str) -> None:
    """Six ranks deal to four: what two of them have enters over all four ports in turn."""
    instance = made(machine="dgx-h100", gpus="4+6", collective=collective, root=5, bytes="1GiB")
    found = race.hierarchical(instance, RunOptions(time_limit_s=4.0).started_now())
    verdict = check_schedule(instance, found.solution)
    assert verdict.value is not None
    assert least("dgx-h100", (4, 6), collective) <= verdict.value <= 1.05 * least("dgx-h100", (4, 6), collective)


@pytest.mark.long
def test_more_than_two_boxes() -> None:
    """8 + 8 + 8 + 4: 24 of 28 blocks enter the small box over 200 GB/s."""
    instance = made(machine="dgx-h100", gpus="8+8+8+4", collective="allgather", bytes="1GiB")
    found = race.hierarchical(instance, RunOptions(time_limit_s=20.0).started_now())
    verdict = check_schedule(instance, found.solution)
    assert verdict.value is not None
    assert 24 / 28 * instance.bytes / 200e9 <= verdict.value <= 1.05 * 24 / 28 * instance.bytes / 200e9


@pytest.mark.long
@pytest.mark.parametrize("gpus", ["4+4+4+2", pytest.param("8+8+8+4", marks=pytest.mark.slow)])
def test_an_allreduce_of_several_unequal_boxes(gpus: str) -> None:
    """The small box has to send and to receive the whole buffer once, over half as many NICs as the others: within a
    tenth of that, where it would carry one and a half buffers if all boxes summed up equal parts."""
    instance = made(machine="dgx-h100", gpus=gpus, collective="allreduce", bytes="1GiB")
    record = synth.solve(instance, "hierarchical", time_limit=60)
    assert record.ok
    assert record.value is not None
    assert record.value <= 1.1 * instance.bytes / (50e9 * int(gpus[-1]))


@pytest.mark.parametrize("sizes", [(4, 6), (8, 8), (1, 2, 16), (7, 5, 3), (16, 15), (13, 11, 9)])
def test_roots_of_shares(sizes: tuple[int, ...]) -> None:
    """The ranks of a box have equally many shares, at least one, and boxes about as many; all one where boxes are
    equal."""
    first = [sum(sizes[:k]) for k in range(len(sizes))]
    boxes = [range(start, start + size) for start, size in zip(first, sizes, strict=True)]
    roots = box_sends.roots_of_shares(boxes)
    counts = [{roots.count(rank) for rank in box} for box in boxes]
    assert all(len(count) == 1 and 0 not in count for count in counts)
    of_box = [sum(rank in box for rank in roots) for box in boxes]
    assert max(of_box) <= 1.2 * min(of_box)
    if len(set(sizes)) == 1:
        assert roots == list(range(sum(sizes)))
