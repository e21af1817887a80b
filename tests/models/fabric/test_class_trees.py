"""Method ``class_trees`` on tiny re-shards: bound and every rule beside the least time over all schedules."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from models.fabric.plane_brute_force import Block, Plane, TooLarge, least_ticks
from models.fabric.small_machines import machine

from synth.errors import UnsupportedError
from synth.options import RunOptions
from synth.resharding.classes import classes_of
from synth.resharding.mesh import Mesh
from synth.resharding.tensors import read_tensors
from synth.text.input_file import InputFile
from synth_models.fabric import race
from synth_models.fabric.bounds.strongest import strongest
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance

RULES = ("trees", "direct", "balanced", "box_copy", "gather")
LAYOUTS = ("", "", "tp:0", "tp:0", "tp=0", "tp=1", "tp:0/up")
STAR = [Plane((0, 1, 2, 3), 1, 0)]


def behind(planes: list[Plane], blocks: list[Block]) -> FabricInstance:
    """The blocks on a machine of these planes, switches from node 4 on; a tick is a second."""
    links = list[tuple[int, int, float, float]]()
    for z, plane in enumerate(planes, 4):
        for ends in [ends for rank in plane.ranks for ends in ((rank, z), (z, rank))]:
            links.append((*ends, 1.0 / plane.per_byte, plane.latency / 2))
    rows = [{"bytes": n, "holders": sorted(held), "wanters": sorted(wanted)} for n, held, wanted in blocks]
    switches, size = range(4, 4 + len(planes)), sum(block.bytes for block in blocks)
    return machine(switches.stop, links, switches, collective="traffic", traffic=rows, bytes=size)


def drawn(seed: int, folder: Path) -> tuple[list[Plane], list[Block]]:
    """Up to three tensors from ranks 0 and 1 to 2 and 3, or to 1 and 2, in two to four ranges."""
    rng = random.Random(seed)
    table = folder / "t.csv"
    while True:
        meshes = Mesh({"tp": 2}, (0, 1)), Mesh({"tp": 2}, rng.choice([(2, 3), (2, 3), (1, 2)]))
        rows = ["name,shape,dtype,from,to"]
        for k in range(rng.randint(1, 3)):
            rows.append(f"t{k},{rng.choice([2, 4])},i8,{rng.choice(LAYOUTS)},{rng.choice(LAYOUTS)}")
        table.write_text("\n".join(rows))
        blocks = [
            Block(one.bytes, frozenset(one.holders), frozenset(one.lacking))
            for one in classes_of(read_tensors(InputFile(table), *meshes), *meshes)
        ]
        if 2 <= len(blocks) <= 4:
            break
    planes = [Plane((0, 1, 2, 3), rng.randint(1, 2), rng.choice([0, 2]))]
    if rng.random() < 0.5:
        planes.append(Plane(rng.choice([(0, 1), (2, 3), (0, 2), (1, 2, 3)]), 1, rng.choice([0, 2])))
    return planes, blocks


def values(instance: FabricInstance, most: int = 1, rules: tuple[str, ...] = RULES) -> dict[str, float]:
    """The replayed seconds of these rules; with ``most`` 1 one piece a block."""
    found = {}
    for rule in rules:
        options: Any = RunOptions(None, method={"rule": rule, "transfers": most})
        verdict = check_schedule(instance, race.call("class_trees", instance, options).solution)
        assert verdict.ok, verdict.faults
        assert verdict.value is not None
        found[rule] = verdict.value
    return found


def compared(seed: int, folder: Path, most_states: int) -> str:
    """Bound, least time and every rule in their order; what is known of the best rule."""
    planes, blocks = drawn(seed, folder)
    instance = behind(planes, blocks)
    bound, found = strongest(instance, RunOptions()).seconds, values(instance)
    assert bound <= min(found.values())
    try:
        least = least_ticks(planes, blocks, most_states)
    except TooLarge:
        return "too large"
    assert bound <= least <= min(found.values()) * (1 + 1e-12), (planes, blocks, found)
    return "optimal" if min(found.values()) <= least * (1 + 1e-9) else "above"


def test_brute_force_by_hand() -> None:
    """A block of three bytes from 0 to 2 and 3 takes 6 ticks, from 0 and 1 it takes 3. At two ticks a byte and one of
    latency it takes 7, and 3 more over a plane of 2 and 3; of two blocks the second ends at 13 and is handed on."""
    both = frozenset([2, 3])
    assert least_ticks(STAR, [Block(3, frozenset([0]), both)], 1000) == 6
    assert least_ticks(STAR, [Block(3, frozenset([0, 1]), both)], 1000) == 3
    slow = [Plane((0, 1, 2, 3), 2, 1), Plane((2, 3), 1, 0)]
    assert least_ticks(slow, [Block(3, frozenset([0]), both)], 1000) == 10
    assert least_ticks(slow, [Block(3, frozenset([0]), both)] * 2, 20_000) == 16


def test_first_holder_alone_sends_by_the_direct_rule() -> None:
    """Ranks 0 and 1 hold two blocks of four bytes, which 2 and 3 want: 8 seconds from rank 0 alone, 4 from both."""
    blocks = [Block(4, frozenset([0, 1]), frozenset([2])), Block(4, frozenset([0, 1]), frozenset([3]))]
    found = values(behind(STAR, blocks))
    assert (found["direct"], found["balanced"], found["trees"]) == (8.0, 4.0, 4.0)
    assert least_ticks(STAR, blocks, 1000) == 4


def test_a_mate_takes_over_only_from_whom_it_shares_a_plane_with() -> None:
    """Ranks 0 and 1, and 2 and 3, have a switch of their own in one box; from 2 and 3 rails are quick, from 0 slow."""
    planes = [((0, 1), 9.0), ((2, 3), 9.0), ((4, 5, 6, 7), 9.0), ((0, 4), 0.1), ((2, 3, 5, 6), 9.0), ((1, 7), 0.1)]
    links = [
        {"src": u, "dst": v, "bandwidth": rate}
        for z, (ranks, rate) in enumerate(planes, 8)
        for rank in ranks
        for u, v in ((rank, z), (z, rank))
    ]
    boxes = [[0, 1, 2, 3], [4, 5, 6, 7]]
    network = {"kind": "links", "nodes": 14, "switches": list(range(8, 14)), "boxes": boxes, "links": links}
    rows = [{"bytes": 9, "holders": [0], "wanters": wanters} for wanters in ([4, 5], [6])]
    own = {"name": "t", "source": "t", "network": network, "collective": "traffic", "traffic": rows, "bytes": 18}
    instance = FabricInstance.model_validate(own)
    assert values(instance, 1000, ("trees", "gather")) == pytest.approx({"trees": 812 / 9, "gather": 1622 / 9})
    for rule in ("direct", "balanced", "box_copy"):
        with pytest.raises(UnsupportedError, match="shares no plane"):
            values(instance, 1000, (rule,))


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_bound_least_time_and_every_rule(first: int, tmp_path: Path) -> None:
    seen = Counter(compared(seed, tmp_path, 400) for seed in range(first, first + 10))
    assert seen["optimal"] >= 2


@pytest.mark.slow
def test_bound_least_time_and_every_rule_of_300(tmp_path: Path) -> None:
    seen = Counter(compared(seed, tmp_path, 20_000) for seed in range(1000, 1300))
    assert seen["optimal"] >= 150
    assert seen["too large"] <= 75
