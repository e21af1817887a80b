"""SimGrid beside our replay: the same transfers, in the same order on every link, take the same time.

Where schedules leave nothing idle that could be used, the completion time is ours; where they do, SimGrid's is that of
the same order with everything begun as soon as it can, which fractions give exactly (``order_replay``).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from examples import some, some_of
from models.fabric.making import made
from models.fabric.small_machines import machine, random_instance, random_schedule, schedule_of
from papers.outside.order_replay import ends

import synth
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.solution import Schedule
from synth_models.fabric.views.table import table
from synth_papers.outside import simgrid

CLOSE = 1e-6
KEYS: dict[str, dict[str, Any]] = {
    "ring 8": {"network": "ring", "nodes": 8},
    "ring 8, one way": {"network": "ring", "nodes": 8, "bidirectional": "off"},
    "full 8": {"network": "full", "nodes": 8},
    "torus 4x4": {"network": "torus", "rows": 4, "cols": 4},
    "hypercube 3": {"network": "hypercube", "dimension": 3},
    "mesh 2x4": {"network": "mesh", "rows": 2, "cols": 4},
}
SPEED = {"bandwidth": "25GB/s", "latency": "0.7us"}
METHODS = ("ring", "bruck", "recursive_doubling", "direct", "pat", "double_tree")
COLLECTIVES = ("allgather", "allreduce", "alltoall", "reduce_scatter", "broadcast")
MOST = 20_000  # transfers: a run takes SimGrid a second
WHY = simgrid.missing()
pytestmark = pytest.mark.skipif(WHY is not None, reason=WHY or "")


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built once."""
    return simgrid.build(tmp_path_factory.mktemp("simgrid"))


def solved(keys: dict[str, Any], method: str) -> tuple[FabricInstance, Any] | None:
    """The instance, and the record of a reference that knows it."""
    instance = made(**keys)
    record = synth.solve(instance, method=method, time_limit=60)
    return None if record.value is None else (instance, record)


def marked(at_once: Sequence[tuple[str, ...]], others: Iterable[tuple[str, ...]]) -> list[Any]:
    """The cases of the default run, and the others marked slow."""
    later = [pytest.param(*case, marks=pytest.mark.slow) for case in others if case not in at_once]
    return [*at_once, *later]


def few_rows(keys: dict[str, Any], method: str) -> tuple[Any, Any, Any]:
    """Instance, record and table; skips what the method does not know, and tables that take SimGrid minutes."""
    found = solved(keys, method)
    if found is None:
        pytest.skip(f"{method} knows no {keys['collective']} there")
    rows = table(found[0], found[1].solution())
    if len(rows) > MOST:
        pytest.skip(f"{len(rows)} transfers, more than {MOST}")
    return *found, rows


AT_ONCE = [
    ("ring 8", "ring", "allgather", "1GiB"), ("ring 8", "bruck", "allgather", "1MiB"),
    ("full 8", "recursive_doubling", "allreduce", "1GiB"), ("full 8", "direct", "alltoall", "1MiB"),
    ("torus 4x4", "recursive_doubling", "allgather", "1GiB"), ("torus 4x4", "direct", "allgather", "1GiB"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "method", "collective", "size"),
    marked(AT_ONCE, product(KEYS, METHODS, COLLECTIVES, ["1MiB", "1GiB"])),
)
def test_one_hop_machines_take_our_time(
    name: str, method: str, collective: str, size: str, program: Path, tmp_path: Path
) -> None:
    """Within 1e-6 of our time, hop by hop and over whole routes (which are one hop); every transfer ends when ours
    says. What is ready at once and shares its links never ends before the bound."""
    instance, record, rows = few_rows({**KEYS[name], **SPEED, "collective": collective, "bytes": size}, method)
    ours = rows["end_tick"] / rows["ticks_per_s"]
    for mode in ("one-at-a-time", "whole-routes"):
        theirs = simgrid.replay(program, instance, rows, mode, tmp_path)
        assert theirs.seconds == pytest.approx(record.value, rel=CLOSE)
        assert theirs.times["end_s"].to_numpy() == pytest.approx(ours.to_numpy(), rel=CLOSE, abs=CLOSE * record.value)
    fair = simgrid.replay(program, instance, rows, "fair", tmp_path)
    bound = synth.solve(instance, method="bound", time_limit=60).bound
    assert fair.seconds >= bound * (1 - CLOSE)


@pytest.mark.parametrize(
    ("method", "collective"),
    marked([("recursive_doubling", "allgather")], product(METHODS + ("hierarchical", "two_level"), COLLECTIVES)),
)
def test_two_boxes_of_dgx_a100(method: str, collective: str, program: Path, tmp_path: Path) -> None:
    """Routes of two and four links, at 25 and 300 GB/s: the time is ours within 1e-6 hop by hop; whole routes, of which
    all links are taken for the same time at once, are within the 2 % asked for."""
    instance, record, rows = few_rows(
        {"machine": "dgx-a100", "boxes": 2, "collective": collective, "bytes": "1GiB"}, method
    )
    assert rows["file_links"].str.split().map(len).max() == 4
    hops = simgrid.replay(program, instance, rows, "one-at-a-time", tmp_path)
    assert hops.seconds == pytest.approx(record.value, rel=CLOSE)
    whole = simgrid.replay(program, instance, rows, "whole-routes", tmp_path)
    assert whole.seconds == pytest.approx(record.value, rel=0.02)


@pytest.mark.parametrize("seed", some_of(range(10)))
def test_random_machines_and_schedules(seed: int, program: Path, tmp_path: Path) -> None:
    """Any links, groups, switches, routes, collective: SimGrid ends every transfer when fractions do that begin each as
    soon as the order of the table allows, and none later than our check."""
    chooser = random.Random(f"outside {seed}")
    met = 0
    while met < some(25):
        instance = random_instance(chooser)
        schedule = random_schedule(chooser, instance, useless=0.0)
        if not schedule.transfers or not check_schedule(instance, schedule).ok:
            continue
        met += 1
        rows = table(instance, schedule)
        theirs = simgrid.replay(program, instance, rows, "one-at-a-time", tmp_path).times["end_s"]
        exact = ends(rows.to_dict("records"), simgrid.links_table(instance).to_dict("records"))
        total = float(max(exact))
        assert theirs.to_numpy() == pytest.approx([float(end) for end in exact], rel=CLOSE, abs=CLOSE * total)
        ticks = rows["end_tick"].tolist()
        assert all(end <= Fraction(tick, schedule.ticks_per_s) for end, tick in zip(exact, ticks, strict=True))


def overlapping() -> tuple[FabricInstance, Schedule]:
    """Two pieces of 100 bytes from 0 to 1 at 10 bytes/s, the second begun after 4 s of the first's 10: no schedule."""
    instance = machine(2, [(0, 1, 10.0, 1.0), (1, 0, 10.0, 1.0)], collective="broadcast", bytes=200, root=0)
    return instance, schedule_of([(0, 100), (0, 100)], [(0, 0, [0]), (4, 1, [0])])


def test_what_our_check_refuses_simgrid_does_not_believe(program: Path, tmp_path: Path) -> None:
    """Two transfers on a link at once: one after the other they take 2 * 10 s and the latency, 21 s, though the table
    ends after 15; shared out, the same: 200 bytes at 10 bytes/s."""
    instance, schedule = overlapping()
    assert not check_schedule(instance, schedule).ok
    rows = table(instance, schedule)
    assert rows["end_tick"].max() == 15
    for mode in ("one-at-a-time", "whole-routes", "fair"):
        assert simgrid.replay(program, instance, rows, mode, tmp_path).seconds == pytest.approx(21, rel=CLOSE)


def test_two_flows_share_a_link_fairly(program: Path, tmp_path: Path) -> None:
    """From 0 to 1 at 10 bytes/s 100 and 50 bytes at once: 5 bytes/s each until 50 have gone of both (10 s), then 10
    bytes/s for the 50 that are left (5 s); 1 s of latency. One at a time the first takes 10 s, both 15."""
    instance, schedule = overlapping()
    instance = instance.model_copy(update={"bytes": 150})
    schedule = schedule_of([(0, 100), (0, 50)], [(0, 0, [0]), (10, 1, [0])])
    rows = table(instance, schedule)
    fair = simgrid.replay(program, instance, rows, "fair", tmp_path)
    assert fair.times["end_s"].tolist() == pytest.approx([16, 11], rel=CLOSE)
    alone = simgrid.replay(program, instance, rows, "one-at-a-time", tmp_path)
    assert alone.times["end_s"].tolist() == pytest.approx([11, 16], rel=CLOSE)
    assert alone.times["begin_s"].tolist() == pytest.approx([0, 10], abs=CLOSE)


@pytest.mark.parametrize(("change", "said"), [
    ({"file_links": "1"}, "no link 1 from 0 to 1"),
    ({"file_links": "7"}, "no link 7 from 0 to 1"),
    ({"bytes": 0}, "a byte or more"),
    ({"hop_arrive": ""}, "as many hops as links"),
    ({"bytes": "many"}, "bytes: 'many' is no whole number"),
])  # fmt: skip
def test_tables_that_are_none(change: dict[str, str], said: str, program: Path, tmp_path: Path) -> None:
    """A link that joins other nodes, one that there is not, no bytes, no numbers."""
    instance, schedule = overlapping()
    rows: pd.DataFrame = table(instance, schedule).astype(object).assign(**change)
    with pytest.raises(RuntimeError, match=said):
        simgrid.replay(program, instance, rows, "fair", tmp_path)
