"""Method ``pull``: valid on any machine, the same by the same seed, never below the optimum and mostly at it."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import some_of
from models.fabric.brute_force import TooLarge, least_seconds
from models.fabric.small_machines import COLLECTIVES, machine, random_instance

from synth.options import RunOptions
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.race import pull as solve
from synth_models.fabric.solution import Schedule

MACHINES: dict[str, dict[str, Any]] = {
    "star": {"kind": "star", "nodes": 5},
    "mesh": {"kind": "mesh", "rows": 3, "cols": 3},
    "fat_tree": {"kind": "fat_tree", "leaves": 2, "hosts": 3, "spines": 2, "uplink_bandwidth": 1e10},
    "dgx-a100": {"kind": "machine", "name": "dgx-a100", "boxes": 1},
}


def made(network: dict[str, Any], collective: str, size: int, **own: Any) -> FabricInstance:
    """``size`` bytes a rank where the collective shares out its bytes."""
    shared = collective in ("allgather", "reduce_scatter", "alltoall", "gather", "scatter")
    ranks = {"star": 5, "mesh": 9, "fat_tree": 6}.get(network["kind"], 8)
    total = size * ranks if shared else size
    if collective == "demand":
        own |= {"demand": ((0, 1, size), (1, 3, size), (0, 4, 2 * size))}
        total = 4 * size
    return FabricInstance(name="test", source="test", network=network, collective=collective, bytes=total, **own)


def run(instance: FabricInstance, seed: int = 0, restarts: int = 1) -> tuple[Schedule, float]:
    outcome = solve(instance, RunOptions(time_limit_s=None, seed=seed, method={"restarts": restarts}))
    verdict = check_schedule(instance, outcome.solution)
    assert verdict.faults == []
    assert verdict.value is not None
    assert outcome.message
    return outcome.solution, verdict.value


@pytest.mark.long
def test_boxes_that_one_rank_leaves_and_another_enters() -> None:
    """Four ranks a box, all joined; rank 0 of a box sends to rank 1 of the other. Every hop takes 1 us and 8 ns: the
    boxes sum up in one, their sums cross in one, and rank 1 hands on in one. Pieces that follow each other save less
    than the 24 ns of the hops."""
    hop = (1e9, 1e-6)
    inside = [(box + u, box + v, *hop) for box in (0, 4) for u in range(4) for v in range(4) if u != v]
    two = machine(8, [*inside, (0, 5, *hop), (4, 1, *hop)], collective="allreduce", bytes=8)
    assert 3e-6 < run(two)[1] <= 3 * 1.008e-6


@pytest.mark.long
@pytest.mark.parametrize("collective", some_of(COLLECTIVES))
def test_valid_at_every_size(collective: str) -> None:
    for size in (1, 2**26):
        run(made(MACHINES["star"], collective, size))


@pytest.mark.slow
@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("name", MACHINES)
def test_valid_in_both_modes(name: str, collective: str) -> None:
    for mode in ("cut_through", "store_and_forward"):
        for size in (1, 2**10, 2**16, 2**26):
            run(made(MACHINES[name], collective, size, switching={"mode": mode, "copies": False}))


@pytest.mark.long
@pytest.mark.parametrize("part", some_of(range(4)))
def test_valid_on_random_machines(part: int) -> None:
    """Groups of links, parallel links, no latency, relays, process groups, both ways of switching."""
    chooser = random.Random(part)
    for _ in range(8):
        run(random_instance(chooser))


@pytest.mark.long
@pytest.mark.parametrize("collective", ["allgather", "allreduce", "alltoall"])
def test_the_same_seed_gives_the_same_schedule(collective: str) -> None:
    instance = made(MACHINES["fat_tree"], collective, 30_000)
    first, again = run(instance, 3)[0], run(instance, 3)[0]
    for key in ("start", "piece", "link", "route_start", "piece_bytes"):
        assert np.array_equal(getattr(first, key), getattr(again, key))


@pytest.mark.long
def test_latency_rules_small_messages() -> None:
    """One box of DGX A100, 0.35 us a hop, 300 GB/s, 1 B a rank: everything arrives after 0.7 us and seven bytes on the
    last link; the sums of one byte exchanged in one hop may leave a link idle between."""
    for collective in ("allgather", "reduce_scatter", "alltoall"):
        _, value = run(made(MACHINES["dgx-a100"], collective, 1))
        assert value == pytest.approx(0.7e-6 + 7 / 300e9, rel=1e-9)
    _, value = run(made(MACHINES["dgx-a100"], "allreduce", 1))
    assert 0.7e-6 + 7 / 300e9 <= value * (1 + 1e-9) <= 0.7e-6 + 12 / 300e9


def against_brute_force(seeds: range, most_states: int, most_pieces: int) -> list[Fraction]:
    """Time of ``pull`` over the least time for its pieces, on random machines without multicast."""
    ratios = []
    for seed in seeds:
        instance = random_instance(random.Random(seed))
        if instance.switching.mode != "cut_through" or instance.switching.multicast or len(instance.members) > 4:
            continue
        if instance.collective != "demand":
            instance = instance.model_copy(update={"bytes": len(instance.members)})
        if int(instance.blocks.bytes.sum()) > most_pieces:
            continue
        schedule, _ = run(instance)
        pieces = [schedule.piece_bytes[schedule.piece_block == b].tolist() for b in range(len(instance.blocks))]
        try:
            least = least_seconds(instance, pieces, most_states=most_states)
        except TooLarge:
            continue
        value = Fraction(check_schedule(instance, schedule).value or 0)
        assert value >= least * (1 - Fraction(1, 10**12))
        ratios.append(value / least)
    return ratios


@pytest.mark.long
def test_brute_force() -> None:
    """``random_instance`` draws all collectives; a byte a rank, so that the oracle's pieces are few."""
    ratios = against_brute_force(range(350), 100, 3)
    assert len(ratios) >= 10
    assert max(ratios) <= 2
    assert sum(ratio <= 1 + Fraction(1, 10**9) for ratio in ratios) >= 0.7 * len(ratios)


@pytest.mark.slow
def test_brute_force_long() -> None:
    ratios = against_brute_force(range(1000, 2600), 100, 3)
    assert len(ratios) >= 40
    assert max(ratios) <= 2
    assert sum(ratio <= 1 + Fraction(1, 10**9) for ratio in ratios) >= 0.7 * len(ratios)
