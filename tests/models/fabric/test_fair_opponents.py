"""What others run, as strong as its best published form; and for twice the bytes never more than twice the time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.fabric.small_machines import machine

import synth
from synth.options import RELATIVE_GAP, RunOptions
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.family import FAMILY
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.even_ways import evenly
from synth_models.fabric.plans.pair_edges import straight_to_goals
from synth_models.fabric.problem.reach import knows
from synth_models.fabric.references import bfb, nvls

KIB, MIB, GIB = 2**10, 2**20, 2**30
EACH = {"bandwidth": "25GB/s", "latency": "0.5us"}


def made(collective: str, size: int, **keys: Any) -> FabricInstance:
    instance = synth.make("fabric", collective=collective, bytes=size, **keys)
    assert isinstance(instance, FabricInstance)
    return instance


def seconds(method: str, instance: FabricInstance) -> float | None:
    """The replayed time, None where the method does not suit the machine."""
    found = FAMILY.methods[method].load()(instance, RunOptions().started_now())
    if found.termination == "unsupported":
        return None
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    return verdict.value


def taken(method: str, instance: FabricInstance) -> float:
    found = seconds(method, instance)
    assert found is not None
    return found


def grid(rates: tuple[int, ...], sides: tuple[int, ...], around: bool) -> Iterator[tuple[int, int, int]]:
    """Ends and rate of every link one way, along each side in turn."""
    number = np.arange(prod(sides)).reshape(sides)
    for at in product(*map(range, sides)):
        for axis, side in enumerate(sides):
            there = (*at[:axis], (at[axis] + 1) % side, *at[axis + 1 :])
            if at[axis] + 1 < side or around:
                yield int(number[at]), int(number[there]), rates[axis]


# of the tests of astra-sim/tacos @1811f1f: sides, whether they close, GiB/s along them, us a link, MiB, its time in us
TACOS = {
    "mesh 5x5": ((5, 5), False, (50, 50), 0.5, 1024, 9606.0),
    "mesh 10x10": ((10, 10), False, (100, 100), 1.0, 1024, 5049.0),
    "mesh 8x5, two speeds": ((8, 5), False, (35, 80), 1.0, 1024, 8595.43),
    "mesh 3x3x3": ((3, 3, 3), False, (50,) * 3, 0.5, 1024, 6671.17),
    "mesh 3x4x5": ((3, 4, 5), False, (50,) * 3, 0.5, 2048, 13353.33),
    "mesh 4x2x3": ((4, 2, 3), False, (50,) * 3, 0.5, 3072, 19178.17),
    "torus 3x3x3": ((3, 3, 3), True, (50,) * 3, 0.5, 1024, 3706.20),
    "torus 3x4x5": ((3, 4, 5), True, (50,) * 3, 0.5, 2048, 6676.67),
}
QUICK = ("mesh 5x5", "torus 3x3x3")


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in TACOS if name not in QUICK)]
)
def test_tacos_is_as_quick_as_its_own_program(name: str, tmp_path: Path) -> None:
    """Allgather in its own tests, which allow it a hundredth."""
    sides, around, rates, latency, size, its_us = TACOS[name]
    rows = {(a, b, rate) for u, v, rate in grid(rates, sides, around) for a, b in ((u, v), (v, u))}
    file = tmp_path / "links.csv"
    lines = [f"{u},{v},{rate * GIB},{latency}us" for u, v, rate in sorted(rows)]
    file.write_text("\n".join(["src,dst,bandwidth,latency", *lines]) + "\n")
    ranks = prod(sides)
    assert taken("tacos", made("allgather", -(-size * MIB // ranks) * ranks, links=file)) <= 1.01e-6 * its_us


def test_direct_allreduce_of_few_bytes_is_one_shot() -> None:
    """Whole buffers to all at once: a hop over the switch, 0.7 us, and 7 messages of 1 KiB at 300 GB/s."""
    found = taken("direct", made("allreduce", KIB, machine="dgx-a100"))
    assert found == pytest.approx(0.7e-6 + 7 * KIB / 300e9, rel=1e-9)


def evenness(instance: FabricInstance, parts: int) -> float:
    """The mean load of a link over the largest."""
    edges = straight_to_goals(instance, instance.blocks.origin, instance.blocks.goal)
    found = evenly(instance, instance.blocks.bytes, edges, parts)
    assert found is not None
    load = np.bincount(found.link, found.piece_bytes[found.piece], instance.machine.links)
    least = int(np.sum(instance.blocks.bytes)) * hops_of(instance)
    assert load.sum() == pytest.approx(least)  # none goes further than it must
    return float(load.mean() / load.max())


@pytest.mark.parametrize("latency", [0.0, 1e-12])
def test_ways_over_links_that_take_no_time_do_not_go_round(latency: float) -> None:
    """Beside a quarter of a second such links are there and back at once."""
    links = [(u, v, 1e15, latency) for u in range(4) for v in range(4) if abs(u - v) == 1]
    links += [(4, 0, 1e9, 0.25), (0, 4, 1e9, 0.25), (4, 1, 1e9, 0.25), (4, 2, 1e9, 0.25)]
    for collective in ("broadcast", "alltoall"):
        instance = machine(5, links, collective=collective, bytes=4000)
        edges = straight_to_goals(instance, instance.blocks.origin, instance.blocks.goal)
        found = evenly(instance, instance.blocks.bytes, edges, 1)
        assert found is not None
        assert len(found.link) <= 4 * len(edges.piece)


def test_a_way_may_be_long() -> None:
    """Longer than calls may be deep."""
    ends = [(u, v, 1e9, 1e-6) for u in range(1200) for v in (u - 1, u + 1) if 0 <= v < 1200]
    instance = machine(1200, ends, collective="broadcast", bytes=8, ranks=[0, 1199], relay=True)
    edges = straight_to_goals(instance, instance.blocks.origin, instance.blocks.goal)
    found = evenly(instance, instance.blocks.bytes, edges, 1)
    assert found is not None
    assert len(found.link) == 1199


def hops_of(instance: FabricInstance) -> float:
    """Links on the way of a block, in the mean."""
    net = instance.machine.network
    far = np.full((net.nodes, net.nodes), np.inf)
    np.fill_diagonal(far, 0)
    far[net.src, net.dst] = 1
    for w in range(net.nodes):
        far = np.minimum(far, far[:, [w]] + far[w])
    return float(far[instance.blocks.origin, instance.blocks.goal].mean())


CUBE: dict[str, Any] = {"network": "hypercube", "dimension": 4, **EACH}
TORUS: dict[str, Any] = {"network": "torus", "rows": 4, "cols": 4, **EACH}


@pytest.mark.parametrize("keys", [CUBE, TORUS], ids=["cube", "torus"])
def test_direct_alltoall_uses_all_links_alike(keys: dict[str, Any]) -> None:
    """All links alike carry all that has to pass any: on a network that looks alike from everywhere that is most."""
    instance = made("alltoall", 64 * MIB, **keys)
    assert evenness(instance, 4) > 0.95
    least = hops_of(instance) * float(np.sum(instance.blocks.bytes)) / (instance.machine.links * 25e9)
    assert least <= taken("direct", instance) <= 1.12 * least


def test_a_pair_of_trees_a_box_loads_all_nics_alike() -> None:
    """Between 4 boxes of 2 GPUs, one NIC each of 50 GB/s: 2 (B - 1) / B of half the data leaves a NIC. With NCCL's two
    trees some NICs carry a third more."""
    instance = made("allreduce", GIB, machine="dgx-h100-nvls", boxes=4, gpus="2")
    least = 2 * 3 / 4 * (GIB / 2) / 50e9
    assert least <= taken("nvls", instance) <= 1.02 * least


def test_trees_of_nvls_are_nccls_from_every_box_on() -> None:
    for boxes in (2, 3, 4, 5, 8):
        same, all_of = nvls.trees_between(boxes, 1), nvls.trees_between(boxes, boxes)
        assert all_of[:2] == same
        assert len(all_of) == 2 * boxes
        for above in all_of:
            [root] = [box for box, up in enumerate(above) if up < 0]
            for box in range(boxes):
                passed = 0
                while box != root:
                    box, passed = above[box], passed + 1
                    assert passed < boxes
        sent = np.zeros(boxes, dtype=int)
        for above in all_of:
            for box, up in enumerate(above):
                if up >= 0:
                    sent[[box, up]] += 1  # the sum one way, the result the other
        assert np.ptp(sent) == 0


@pytest.mark.parametrize(("rates", "least"), [((1.0, 1.0), 6.0), ((1.0, 2.0), 4.0), ((1.0, 0.001), 12.0)])
def test_sharp_uses_all_rails(rates: tuple[float, float], least: float) -> None:
    """Four ranks joined to two switches: 12 bytes over both trees at once, each as much as its links carry of it; of a
    rail that would only get less than a byte, none."""
    links = [(a, b, rates[k], 0.0) for k in (0, 1) for r in range(4) for a, b in ((r, 4 + k), (4 + k, r))]
    switching = {"mode": "cut_through", "multicast": True, "adds": True}
    assert taken("sharp", machine(6, links, (4, 5), collective="allreduce", bytes=12, switching=switching)) == least


TORI: dict[str, dict[str, Any]] = {"torus 4x4": TORUS, "cube 4": CUBE, "torus 2x4x4": {**TORUS, "rows": 2, "layers": 4}}


@pytest.mark.parametrize("collective", ["allgather", "allreduce"])
@pytest.mark.parametrize(
    "name", ["torus 4x4", *(pytest.param(name, marks=pytest.mark.long) for name in list(TORI)[1:])]
)
def test_ours_of_many_bytes_is_no_slower_than_what_others_run(name: str, collective: str) -> None:
    """Within the usual gap. Rings end a few latencies sooner than a timetable of ours, which then is theirs."""
    instance = made(collective, GIB, **TORI[name])
    found = FAMILY.methods["symmetric"].load()(instance, RunOptions().started_now())
    verdict = check_schedule(instance, found.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    if name == "torus 4x4":
        assert found.made_by == ("ring",)
    for method in FAMILY.published:
        theirs = seconds(method, instance) if knows(method, collective) else None
        assert theirs is None or verdict.value <= theirs * (1 + RELATIVE_GAP), method


@pytest.mark.parametrize("size", [MIB, GIB])
def test_ours_in_switches_is_no_slower_than_trees_between_boxes(size: int) -> None:
    instance = made("allreduce", size, machine="dgx-h100-nvls", boxes=4, gpus="2")
    assert taken("in_network", instance) <= taken("nvls", instance)


def test_rings_are_not_made_for_few_bytes() -> None:
    instance = made("allgather", KIB, **TORUS)
    found = FAMILY.methods["symmetric"].load()(instance, RunOptions().started_now())
    assert found.made_by in (None, ("symmetric",))


@pytest.mark.parametrize("switches", [1, 2])
@pytest.mark.parametrize(
    ("method", "collective"),
    [*product(("direct", "pat", "bruck", "recursive_doubling"), ("allgather",)), ("direct", "alltoall"),
     ("direct", "allreduce"), ("recursive_doubling", "allreduce")],
)  # fmt: skip
def test_all_rails_are_used(switches: int, method: str, collective: str) -> None:
    """Eight ranks with two links each, to one switch or one to each of two: 7 / 8 of the data enter a rank over both,
    of an allreduce twice."""
    ends = [(r, 8 + k % switches) for k in (0, 1) for r in range(8)]
    links = [(a, b, 1e9, 1e-6) for u, v in ends for a, b in ((u, v), (v, u))]
    hubs = range(8, 8 + switches)
    instance = machine(8 + switches, links, list(hubs), collective=collective, bytes=64 * MIB)
    least = (2 if collective == "allreduce" else 1) * 7 / 8 * 64 * MIB / 2e9
    assert least <= taken(method, instance) <= 1.02 * least


METHODS = (
    "direct", "pat", "bfb", "tacos", "nvls", "sharp", "two_level", "bruck", "recursive_doubling", "double_tree", "fast",
    "two_step", "spread_out",
)  # fmt: skip
MACHINES: dict[str, dict[str, Any]] = {
    "mesh 2x4": {"network": "mesh", "rows": 2, "cols": 4, **EACH},
    "fat tree": {"network": "fat_tree", "leaves": 2, "hosts": 4, "spines": 2, **EACH},
    "dgx1": {"machine": "dgx1"},
    "two boxes": {"machine": "dgx-a100", "boxes": 2, "gpus": "4"},
    "nvls": {"machine": "dgx-h100-nvls", "boxes": 2, "gpus": "4"},
}
COLLECTIVES = ("allgather", "allreduce", "alltoall", "broadcast")
MORE = 1.06  # what another number of chunks, or another draw, may lose


ONCE = [("mesh 2x4", "alltoall"), ("mesh 2x4", "broadcast")]


@pytest.mark.parametrize(
    ("name", "collective"),
    [pair if pair in ONCE else pytest.param(*pair, marks=pytest.mark.long) for pair in product(MACHINES, COLLECTIVES)],
)
def test_twice_the_bytes_take_hardly_more_than_twice_as_long(name: str, collective: str) -> None:
    """A schedule for M bytes serves 2 M, each piece twice as large."""
    sizes = [KIB, 64 * KIB, 4 * MIB, 512 * MIB]
    for method in METHODS:
        if not knows(method, collective):
            continue
        for size in sizes:
            sooner, later = (seconds(method, made(collective, n, **MACHINES[name])) for n in (size, 2 * size))
            if sooner is None or later is None:
                break
            assert later <= 2 * MORE * sooner, (method, size)


def test_the_least_load_of_a_breadth_first_step() -> None:
    """Blocks that may use some links only, against all sets of links: one that joins two others at last counts, too."""
    chance = random.Random(5)
    joining = [((0b0011, 1), (0b1100, 1), (0b0110, 4))]
    drawn = [
        tuple((chance.randrange(1, 32), chance.randint(1, 4)) for _ in range(chance.randint(1, 5))) for _ in range(200)
    ]
    for classes in (*joining, *drawn):
        width = tuple(Fraction(chance.randint(1, 5)) for _ in range(5))
        sets = [tuple(k for k in range(5) if number >> k & 1) for number in range(1, 32)]
        expected = max(
            Fraction(sum(count for mask, count in classes if not mask & ~sum(1 << k for k in links)))
            / sum(width[k] for k in links)
            for links in sets
        )
        assert bfb.least_load(classes, width) == expected
