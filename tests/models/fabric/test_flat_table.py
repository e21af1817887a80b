"""`synth show --csv`: a replay from the table and the instance file alone takes ours and refuses what was changed."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from examples import some_of
from models.fabric.flat_replay import HOPS, bits, blocks_of, in_ten_lines, replay
from models.fabric.small_machines import COLLECTIVES, machine, random_instance, random_schedule, schedule_of

from synth.text.input_file import InputFile
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import float_above
from synth_models.fabric.solution import Schedule, table
from synth_models.fabric.views import table as views_table
from synth_models.fabric.views.from_table import from_table

FEATURES = (
    "failed", "process group", "huge ticks", "store and forward", "sums in switches", "reduced",
    "reduced, process group",
)  # fmt: skip


def broken(chooser: random.Random, instance: FabricInstance) -> FabricInstance:
    """The same machine as what is left of a larger one: links and a rank that failed stand between the others; of some
    of the others, mostly, only a share of the bandwidth is left."""
    raw = json.loads(instance.model_dump_json())
    net = raw["network"]
    nodes = net["nodes"]
    there = {(link["src"], link["dst"]) for link in net["links"]}
    free = [(u, v) for u in range(nodes) for v in range(nodes) if u != v and (u, v) not in there]
    gone = chooser.sample(free, min(len(free), 2))
    more = [*gone, (nodes, 0), (0, nodes)]
    for u, v in more:
        net["links"].insert(chooser.randint(0, len(net["links"])), {"src": u, "dst": v, "bandwidth": 9.0})
    net["nodes"] += 1
    raw["failed"] = {"links": [list(pair) for pair in gone], "nodes": [nodes]}
    if chooser.random() < 0.7:
        slow = chooser.sample(sorted(there), chooser.randint(1, len(there)))
        shares = [f"{above}/{above + chooser.randint(1, 9)}" for above in chooser.choices(range(1, 12), k=len(slow))]
        raw["failed"]["reduced"] = [[*pair, share] for pair, share in zip(slow, shares, strict=True)]
    return FabricInstance.model_validate_json(json.dumps(raw))


def finer(schedule: Schedule) -> Schedule:
    """The schedule on a clock so fine that its ticks have no floats of their own."""
    fine = 2 ** (61 - max(int(schedule.start.max(initial=1)), schedule.ticks_per_s).bit_length() - 4)
    return replace(schedule, ticks_per_s=schedule.ticks_per_s * fine, start=schedule.start * fine)


def drawn(chooser: random.Random) -> tuple[FabricInstance, Schedule, set[str]]:
    while True:
        instance = random_instance(chooser)
        features = {"process group"} & ({"process group"} if instance.ranks else set())
        if chooser.random() < 0.5:
            instance = broken(chooser, instance)
            features |= {"failed", *(["reduced"] if instance.failed.reduced else [])}
            if instance.failed.reduced and instance.ranks:
                features.add("reduced, process group")
        schedule = random_schedule(chooser, instance, useless=0.0)
        if chooser.random() < 0.5 and check_schedule(instance, finer(schedule)).ok:
            schedule = finer(schedule)
            features.add("huge ticks")
        if instance.switching.mode == "store_and_forward":
            features.add("store and forward")
            out = instance.machine.network.src[schedule.link[schedule.route_start[:-1]]]
            if schedule.adds.any() and instance.machine.is_switch[out].any():
                features.add("sums in switches")
        if schedule.transfers and check_schedule(instance, schedule).ok:
            return instance, schedule, features


def mutated(chooser: random.Random, text: str, instance: dict[str, Any]) -> str:
    """The table with one number of the exact columns, what a row carries, or all rows of a piece changed."""
    rows = list(csv.DictReader(io.StringIO(text)))
    row = chooser.choice(rows)
    exact = [*HOPS, "start_tick", "end_tick", "ticks_per_s", "contributions"]
    column = chooser.choice([*exact, "bytes", "piece", "all of a piece"])
    if column == "contributions" and column not in row:
        column = "hop_arrive"
    if column == "piece" and sum(other["piece"] == row["piece"] for other in rows) == 1:
        column = "all of a piece"  # another name for a piece is right
    if column == "all of a piece":
        rows = [other for other in rows if other["piece"] != row["piece"]]
    elif column == "contributions":
        row[column] = f"{int(row[column], 16) ^ 1 << chooser.randrange(3):x}"
    elif column == "ticks_per_s" and len(rows) == 1:
        row["end_tick"] += "0"
    else:
        values = [int(value) for value in row[column].split()]
        k = chooser.randrange(len(values))
        links = instance["network"]["links"]
        if column == "file_links":
            ends = links[values[k]]["src"], links[values[k]]["dst"]
            others = [e for e, link in enumerate(links) if (link["src"], link["dst"]) != ends]
            values[k] = chooser.choice(others or [10**6])
        else:
            values[k] += chooser.choice((-1, 1)) * (10**6 if column == "piece" else 1)
        row[column] = " ".join(map(str, values))
    out = io.StringIO()
    writer = csv.DictWriter(out, list(row))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


@pytest.mark.parametrize("seed", some_of(range(6)))
def test_a_replay_from_the_table_alone(seed: int) -> None:
    """Ours is taken, with the check's own time; whatever number of the exact columns is changed, it is refused."""
    chooser = random.Random(f"flat table {seed}")
    for _ in range(40):
        instance, schedule, _ = drawn(chooser)
        raw = json.loads(instance.model_dump_json())
        text = views_table.table(instance, schedule).to_csv(index=False)
        assert float_above(replay(text, raw)) == check_schedule(instance, schedule).value
        for _ in range(4):
            changed = mutated(chooser, text, raw)
            with pytest.raises((AssertionError, KeyError, ValueError, IndexError)):
                replay(changed, raw)


def test_a_replay_in_ten_lines() -> None:
    """It needs the table and what the collective means; a contribution more or less and another source are refused."""
    chooser = random.Random("ten lines")
    for _ in range(60):
        instance, schedule, _ = drawn(chooser)
        raw = json.loads(instance.model_dump_json())
        rows = list(csv.DictReader(io.StringIO(views_table.table(instance, schedule).to_csv(index=False))))
        blocks, bit, switches = blocks_of(raw), bits(raw), raw["network"]["switches"]
        own, goal = {}, {}
        for p, b in {(int(row["piece"]), int(row["block"])) for row in rows}:
            whose, whither, _ = blocks[b]
            own |= {(p, v): bit[v] for v in bit} if whose is None else {(p, whose): 1}
            whole = sum(bit.values()) if whose is None else 1
            goal |= {(p, v): whole for v in (bit if whither is None else [whither])}
        in_ten_lines(rows, switches, dict(own), goal)
        row = chooser.choice(rows)
        if "contributions" in row:
            row["contributions"] = f"{int(row['contributions'], 16) ^ 1:x}"
        else:
            row["src"] = str(raw["network"]["nodes"])
        with pytest.raises(AssertionError):
            in_ten_lines(rows, switches, dict(own), goal)


def test_every_kind_of_schedule_is_among_them() -> None:
    chooser = random.Random("flat table 0")
    seen, collectives = Counter[str](), set()
    for _ in range(200):
        instance, _, features = drawn(chooser)
        seen.update(features)
        collectives.add(instance.collective)
    assert all(seen[feature] > 3 for feature in FEATURES), seen
    assert collectives == set(COLLECTIVES)


def test_columns_that_were_there_stay() -> None:
    """The exact ones come behind them; neighbours that share a float have ticks of their own."""
    instance = machine(3, [(1, 2, 1.0), (0, 1, 1.0)], collective="broadcast", bytes=2, ranks=[0, 1])
    schedule = schedule_of([(0, 1), (0, 1)], [(2**60, 0, [0]), (2**60 + 1, 1, [0])], ticks_per_s=1)
    old, new = table(instance, schedule), views_table.table(instance, schedule)
    assert list(new.columns)[: len(old.columns)] == list(old.columns)
    assert old.equals(new[list(old.columns)])
    assert list(new.columns)[len(old.columns) :] == ["ticks_per_s", "start_tick", "end_tick", *HOPS]
    assert new["start_s"].nunique() == 1
    assert list(new["start_tick"]) == [2**60, 2**60 + 1]
    assert list(new["links"]) == ["0", "0"]
    assert list(new["file_links"]) == ["1", "1"]
    assert replay(new.to_csv(index=False), json.loads(instance.model_dump_json())) == Fraction(2**60 + 2)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", some_of(range(5)))
def test_the_table_is_read_back_as_the_same_schedule(seed: int, tmp_path: Path) -> None:
    """Of machines and schedules of every kind: the same value; without the exact columns too, where starts are written
    with digits enough and the schedule counts in ticks that suit the machine."""
    chooser, plain = random.Random(f"read back {seed}"), 0
    for _ in range(40):
        instance, schedule, _ = drawn(chooser)
        file = tmp_path / "t.csv"
        frame = views_table.table(instance, schedule)
        frame.to_csv(file, index=False)
        back = from_table(instance, InputFile(file))
        found = check_schedule(instance, back)
        assert found.faults == []
        assert found.value == check_schedule(instance, schedule).value
        with localcontext(prec=60):
            frame["start_s"] = [f"{Decimal(n) / Decimal(schedule.ticks_per_s):.50f}" for n in frame["start_tick"]]
        frame.drop(columns=["start_tick", "ticks_per_s"]).to_csv(file, index=False)
        back = from_table(instance, InputFile(file))
        if back.ticks_per_s == schedule.ticks_per_s:
            plain += 1
            assert check_schedule(instance, back).faults == []
            assert check_schedule(instance, back).value == found.value
    assert plain > 2
