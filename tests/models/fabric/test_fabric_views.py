"""Texts, drawings and animations of schedules: small ones whole, large ones say what they leave out."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from examples import some_of
from models.fabric.small_machines import Link, machine, random_instance, random_schedule, schedule_of

from synth.study import animation
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule, table
from synth_models.fabric.views import frames as views_frames
from synth_models.fabric.views.describe import describe
from synth_models.fabric.views.frames import frames
from synth_models.fabric.views.plot import plot


def ring(ranks: int, chunks: int) -> tuple[FabricInstance, Schedule]:
    """An allgather in which every link is busy all the time; a second and a byte each."""
    links: list[Link] = [(v, (v + 1) % ranks, 1.0) for v in range(ranks)]
    rows = [
        (h * chunks + c, (e - h) % ranks * chunks + c, [e])
        for h in range(ranks - 1)
        for e in range(ranks)
        for c in range(chunks)
    ]
    pieces = [(b, 1) for b in range(ranks) for _ in range(chunks)]
    return machine(ranks, links, bytes=ranks * chunks), schedule_of(pieces, rows)


def test_a_small_schedule_in_words() -> None:
    """In whole ticks the links are taken for 3 + 1, ceil(3/2) + ceil(1/2) and 0 of 8: 7/24 in the mean."""
    links: list[Link] = [(0, 2, 1.0, 1.0), (2, 1, 2.0, 3.0), (1, 0, 1.0)]
    network = machine(3, links, [2], collective="scatter", bytes=8)
    assert describe(network, schedule_of([(0, 3), (0, 1)], [(3, 1, [0, 1]), (0, 0, [0, 1])])).splitlines() == [
        "scatter of 8 B over 2 ranks: 1 block in 2 pieces (1 of 3 B, 1 of 1 B), 2 transfers",
        "busiest link rank 0 -> switch 2: 50.00 % of the time; mean 29.17 %; 1 of 3 links carry nothing",
        "a transfer reads start–arrival  from -> to (through switches): piece, its size and whose it is",
        "0 s–7.00 s           rank 0 -> rank 1 (through switch 2): 0, 3 B of rank 0",
        "3.00 s–8.00 s        rank 0 -> rank 1 (through switch 2): 1, 1 B of rank 0",
    ]


def test_sums_are_marked() -> None:
    instance = machine(2, [(0, 1, 1.0), (1, 0, 1.0)], collective="allreduce", bytes=2)
    text = describe(instance, schedule_of([(0, 2)], [(0, 0, [1], True), (2, 0, [0])]))
    assert "+ is added to what is there" in text
    assert "rank 1 -> rank 0: +0, 2 B a sum" in text
    assert "rank 0 -> rank 1: 0, 2 B a sum" in text


def test_one_block_is_coloured_by_piece() -> None:
    """All of an allreduce is one block: what tells its transfers apart is the piece."""
    instance = machine(2, [(0, 1, 1.0), (1, 0, 1.0)], collective="allreduce", bytes=2)
    rows: list[Any] = [(0, 0, [1], True), (1, 1, [1], True), (1, 0, [0]), (2, 1, [0])]
    figure = plot(instance, schedule_of([(0, 1), (0, 1)], rows), "t")
    chart, bar = figure.axes[1], figure.axes[-1]
    assert bar.get_ylabel() == "piece"
    assert len({tuple(colour) for colour in chart.collections[0].get_facecolor()}) == 2
    assert plot(*ring(3, 1), "t").axes[-1].get_ylabel() == "rank whose data it is"


def test_sizes_that_look_the_same_are_counted_together() -> None:
    instance = machine(2, [(0, 1, 1.0), (1, 0, 1.0)], collective="broadcast", bytes=7001)
    text = describe(instance, schedule_of([(0, 3500), (0, 3501)], [(0, 0, [0]), (3500, 1, [0])]))
    assert "1 block in 2 pieces (2 of 3.42 KiB)" in text


def test_what_a_text_leaves_out() -> None:
    instance, schedule = ring(8, 2)
    text = describe(instance, schedule)
    assert text.endswith("… 72 more transfers (--csv prints all)")
    assert len(text.splitlines()) == 44
    assert describe(*_nothing()) == "nothing has to move"


def _nothing() -> tuple[FabricInstance, Schedule]:
    return machine(2, [(0, 1, 1.0), (1, 0, 1.0)], ranks=[0], bytes=2), schedule_of([], [])


def test_frames_of_a_ring() -> None:
    """Three ranks, a piece each, two moments: three links set out at each; who holds what is known."""
    instance, schedule = ring(3, 1)
    found = frames(instance, schedule)
    assert found is not None
    assert found.step.tolist() == [1, 1, 1, 2, 2, 2]
    assert found.src.tolist() == [0, 1, 2, 0, 1, 2]
    assert found.dst.tolist() == [1, 2, 0, 1, 2, 0]
    assert found.item.tolist() == [0, 1, 2, 2, 0, 1]
    assert list(found.titles) == ["from 0 s: 3 transfers set out", "from 1.00 s: 3 transfers set out"]
    assert found.items[1] == "piece 1 of 1, 1 B"
    assert found.held.tolist() == [[0, 0], [1, 1], [2, 2]]


@pytest.mark.parametrize(("ranks", "pieces"), [(40, 13), (3, 1500)])
def test_frames_of_large_schedules_are_a_sample(ranks: int, pieces: int) -> None:
    """Too many arrows, too many moments: some pieces with all their transfers, and how many there are in all."""
    assert frames(*_nothing()) is None
    instance, schedule = ring(ranks, pieces)
    found = frames(instance, schedule)
    assert found is not None
    assert found.whole == len(schedule.link) > len(found.step) > 1000
    assert np.array_equal(np.bincount(found.item), np.full(len(found.items), ranks - 1))
    assert len(found.moments) <= 2000
    shown = animation.as_data(found)
    assert 500 < sum(map(len, shown["moves"])) <= animation.MOST_MOVES
    assert shown["sample"].endswith(f" of {len(schedule.link):,}")


def test_frames_of_one_piece_that_moves_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views_frames, "MAX_MOVES", 7)
    instance, schedule = ring(30, 1)
    first = {name: getattr(schedule, name)[:1] for name in ("piece_block", "piece_bytes")}
    one = replace(schedule, piece=schedule.piece * 0, **first)
    found = frames(instance, one)
    assert found is not None
    assert 1 <= len(found.step) <= 7


@pytest.mark.parametrize("seed", some_of(range(3)))
def test_every_view_of_random_schedules(seed: int) -> None:
    """Nothing crashes; frames and table hold every transfer."""
    chooser = random.Random(seed)
    for i in range(12):
        instance = random_instance(chooser)
        schedule = random_schedule(chooser, instance)
        assert describe(instance, schedule)
        found = frames(instance, schedule)
        assert found is not None
        assert len(found.step) == len(schedule.link)
        assert np.all(np.diff(found.step) >= 0)
        assert len(table(instance, schedule)) == schedule.transfers
        if i < 3:
            plot(instance, schedule, "t").canvas.draw()


def test_drawings_of_large_schedules_say_what_they_leave_out() -> None:
    instance, schedule = ring(100, 1)
    figure = plot(instance, schedule, "t")
    assert len(figure.axes) == 2  # chart and its colours: a machine of 100 nodes is not drawn
    assert "the 64 busiest of 100 links" in figure.axes[0].get_title()
    plot(*_nothing(), "t").canvas.draw()


def test_views_of_a_schedule_that_the_check_refuses() -> None:
    """What is stored may be anything."""
    instance, _ = ring(3, 1)
    wrong = schedule_of([(0, 1)], [(0, 0, [0, 2])])
    assert "some routes are none" in describe(instance, wrong)
    plot(instance, wrong, "t").canvas.draw()
    assert frames(instance, wrong) is not None
