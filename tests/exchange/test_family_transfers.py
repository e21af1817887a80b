"""What families say of their schedules once they leave: replayed from the definition of ``Transfers`` alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchange.possession import replayed
from models.fabric.small_machines import machine, schedule_of

import synth
from synth.errors import InputError
from synth.exchange.record_export import transfers_of
from synth.exchange.transfers import Transfers, seconds
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.views.transfers import transfers

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
RUNS = [
    ("bine/groups-5-3-8-allreduce-large", "bine"), ("bine/groups-5-3-8-allreduce-large", "recursive"),
    ("bine/groups-6-4-6-alltoall", "bruck"), ("bine/groups-3-6-7-scatter", "bine"),
    ("bine/groups-7-6-3-gather", "binomial_halving"), ("bine/groups-5-3-8-reduce", "bine"),
    ("bine/torus-4x4-allreduce-large", "bine_torus"), ("bine/groups-13-root5-broadcast", "bine"),
    ("bine/torus-2x4x8-allgather", "bucket"), ("bine/groups-7-6-3-reducescatter-butterfly", "recursive"),
    ("optree/ring-12-w3", "optree"), ("optree/ring-10-w2", "relay"), ("harvest/alltoall-direct-16-p2", "static_ring"),
    ("xtree/equimesh-2x3-c2", "pull"), ("xtree/equimesh-2x3-c4-allreduce", "pull"), ("xtree/ring-8-c1", "tacos"),
    ("xtree/equimesh-4x5-mixed-c4-reducescatter", "mirror_xtree"), ("xtree/irregular-6-c2", "pull"),
    ("fabric/star-6-scatter-6KiB", "direct"), ("fabric/full-4-allgather-4KiB", "recursive_doubling"),
    ("fabric/ring-5-allreduce-5MiB", "direct"), ("fabric/dgx1-broadcast-16KiB", "double_tree"),
    ("fabric/dgx-h100-x2-allreduce-1MiB-r4", "recursive_doubling"), ("fabric/torus-4x4-allgather-16MiB", "bfb"),
]  # fmt: skip


@pytest.mark.parametrize(("instance", "method"), RUNS)
def test_the_moves_are_the_collective(instance: str, method: str) -> None:
    problem = synth.read(INSTANCES / f"{instance}.json")
    t = transfers_of(synth.solve(problem, method, time_limit=20))
    whole(t)
    replayed(t)


def whole(t: Transfers) -> None:
    """Pieces of a part that moves lie side by side and make it up."""
    for part in np.unique(t.piece_part).tolist():
        mine = t.piece_part == part
        order = np.argsort(t.piece_offset[mine])
        ends = np.cumsum(t.piece_bytes[mine][order])
        assert ends[-1] == t.part_bytes
        assert np.array_equal(t.piece_offset[mine][order], ends - t.piece_bytes[mine][order])


@pytest.mark.parametrize(
    ("instance", "method", "words"),
    [
        ("optree/ring-12-w3", "formula", "counts steps and has no circuits"),
        ("harvest/ring-16-p1", "static_ring", "not which data they are"),
        ("bine/synthetic-jobs-broadcast", "bine", "jobs; an executor runs one collective"),
        ("fabric/dgx-a100-x2-demand", "direct", "a demand is no collective"),
        ("mlfm/uniform-3-2-2", "shift", "no collective that an executor runs"),
        ("fabric/full-4-allgather-4KiB", "bound", "holds no schedule"),
    ],
)
def test_what_is_no_collective_among_ranks_is_refused_with_the_reason(instance: str, method: str, words: str) -> None:
    file = INSTANCES / f"{instance}.json"
    if instance.startswith("mlfm/"):
        file = min((INSTANCES / "mlfm").glob("*.json"), key=lambda path: path.stat().st_size)
    record = synth.solve(synth.read(file), method, time_limit=20)
    with pytest.raises(InputError, match=words):
        transfers_of(record)


def moved(t: Transfers) -> list[tuple[Any, ...]]:
    return list(zip(t.piece.tolist(), t.src.tolist(), t.dst.tolist(), t.adds.tolist(), strict=True))


def test_a_route_through_switches_is_one_move_and_an_out_tree_one_a_leaf() -> None:
    """0 -> switch 3 -> 1 and 2: the route forks in the switch, both leaves get the piece at once."""
    links = [(0, 3, 1.0), (3, 1, 1.0), (3, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0), (3, 0, 1.0)]
    own: dict[str, Any] = {"collective": "broadcast", "bytes": 4, "switching": {"multicast": True}}
    instance = machine(4, links, switches=[3], **own)
    schedule = schedule_of([(0, 3), (0, 1)], [(0, 0, [0, 1, 2]), (3, 1, [0, 1, 2])])
    assert check_schedule(instance, schedule).faults == []
    t = transfers(instance, schedule)
    assert moved(t) == [(0, 0, 1, False), (0, 0, 2, False), (1, 0, 1, False), (1, 0, 2, False)]
    assert t.piece_offset.tolist() == [0, 3]
    replayed(t)


@pytest.mark.parametrize("buffer", [False, True])
def test_hops_that_switches_store_are_put_together(buffer: bool) -> None:
    """Rank 0 sends into switch 2, which sends to switch 3, which sends to rank 1 (a tick later with a buffer)."""
    links = [(0, 2, 1.0), (2, 3, 1.0), (3, 1, 1.0), (1, 0, 1.0)]
    own: dict[str, Any] = {"collective": "broadcast", "bytes": 2, "ranks": [0, 1]}
    instance = machine(4, links, switches=[2, 3], switching={"mode": "store_and_forward", "buffer": buffer}, **own)
    late = int(buffer)
    schedule = schedule_of([(0, 2)], [(0, 0, [0]), (2, 0, [1]), (4 + late, 0, [2])])
    assert check_schedule(instance, schedule).faults == []
    t = transfers(instance, schedule)
    assert moved(t) == [(0, 0, 1, False)]
    assert (t.start_s.tolist(), t.end_s.tolist()) == ([0.0], [6.0 + late])


def test_ranks_are_numbered_by_their_place_in_the_group_and_relays_outside_it_are_refused() -> None:
    links = [(3, 0, 1.0), (0, 1, 1.0), (1, 3, 1.0)]
    ring: dict[str, Any] = {"collective": "broadcast", "bytes": 2, "root": 3}
    instance = machine(4, [*links, (2, 3, 1.0), (3, 2, 1.0)], ranks=[3, 1, 0], **ring)
    t = transfers(instance, schedule_of([(0, 2)], [(0, 0, [0]), (2, 0, [1])]))
    assert (t.root, moved(t)) == (0, [(0, 0, 2, False), (0, 2, 1, False)])
    through = machine(4, links, ranks=[3, 1], relay=True, **ring)
    with pytest.raises(InputError, match="relays through 0, outside the process group"):
        transfers(through, schedule_of([(0, 2)], [(0, 0, [0]), (2, 0, [1])]))


def test_parallel_links_are_hinted_at() -> None:
    instance = machine(2, [(0, 1, 1.0), (0, 1, 1.0), (1, 0, 1.0)], collective="broadcast", bytes=3)
    t = transfers(instance, schedule_of([(0, 1), (0, 2)], [(0, 0, [0]), (0, 1, [1])]))
    assert t.channel_hint.tolist() == [0, 1]


def test_ticks_that_no_float_tells_apart_stay_apart() -> None:
    ticks = np.array([2**61, 2**61 + 1, 2**61 + 2, 2**61 + 1], dtype=np.int64)
    first, second = seconds(10**12, ticks[:2], ticks[2:])
    assert first[0] < first[1] < second[0]
    assert second[1] == first[1]
    plain, _ = seconds(8, np.array([4, 8]), np.array([2]))
    assert plain.tolist() == [0.5, 1.0]
