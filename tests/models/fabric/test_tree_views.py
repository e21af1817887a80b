"""Routes of several sources or ends in texts, charts, frames and flat tables: in-trees, out-trees and hubs."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from examples import some_of
from models.fabric.test_tree_replay import adding_machine, drawn_schedule
from models.fabric.tree_replay import replay as plain_replay

from synth.text.input_file import InputFile
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule
from synth_models.fabric.views import table as views_table
from synth_models.fabric.views.describe import describe
from synth_models.fabric.views.frames import frames
from synth_models.fabric.views.from_table import from_table
from synth_models.fabric.views.plot import plot

Shape = tuple[bool, bool]  # several sources, several ends


def drawn(chooser: random.Random) -> tuple[FabricInstance, Schedule]:
    instance = adding_machine(chooser)
    return instance, drawn_schedule(chooser, instance)


def shapes(instance: FabricInstance, schedule: Schedule) -> list[Shape]:
    """What every route is, by the ranks that its links leave and enter."""
    net, switch = instance.machine.network, instance.machine.is_switch
    found = []
    for begin, end in zip(schedule.route_start[:-1], schedule.route_start[1:], strict=True):
        links = schedule.link[begin:end]
        found.append((int((~switch[net.src[links]]).sum()) > 1, int((~switch[net.dst[links]]).sum()) > 1))
    return found


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", some_of(range(6)))
def test_table_is_read_back_and_frames_hold_every_link(seed: int, tmp_path: Path) -> None:
    """30 machines a seed: what is read back from the flat table lasts as long by both replays; frames show every link
    of a route, each from its tail to its head; a text and a chart are made."""
    chooser, seen = random.Random(seed), set[Shape]()
    for k in range(30):
        instance, schedule = drawn(chooser)
        seen.update(shapes(instance, schedule))
        file = tmp_path / "t.csv"
        rows = views_table.table(instance, schedule)
        assert len(rows) == schedule.transfers
        rows.to_csv(file, index=False)
        back = from_table(instance, InputFile(file))
        assert check_schedule(instance, back).faults == []
        assert check_schedule(instance, back).value == check_schedule(instance, schedule).value
        assert plain_replay(instance, back)[0] == set()
        assert describe(instance, schedule)
        _frames_hold(instance, schedule)
        if k < 2:
            plot(instance, schedule, "t").canvas.draw()
    assert {(False, False), (True, False), (False, True)} <= seen, seen


def _frames_hold(instance: FabricInstance, schedule: Schedule) -> None:
    found = frames(instance, schedule)
    assert found is not None
    net = instance.machine.network
    shown = sorted(zip(found.src.tolist(), found.dst.tolist(), found.item.tolist(), strict=True))
    piece = np.repeat(schedule.piece, np.diff(schedule.route_start))
    ends = net.src[schedule.link].tolist(), net.dst[schedule.link].tolist()
    assert shown == sorted(zip(*ends, piece.tolist(), strict=True))
    assert np.all(np.diff(found.step) >= 0)


@pytest.mark.long
def test_hubs_are_among_them() -> None:
    chooser, seen = random.Random("hubs"), set[Shape]()
    for _ in range(200):
        seen.update(shapes(*drawn(chooser)))
    assert (True, True) in seen
