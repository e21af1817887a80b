"""`synth show --csv` and `--flows`: a replay from the two tables and the instance file says what the check says."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from examples import some_of

import synth
from synth.family import get_family
from synth.options import RunOptions
from synth_models.harvest.check.replay import check_schedule
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.solution import Schedule, flow_table, table

INSTANCES = Path(__file__).parents[3] / "instances" / "harvest"
CASES = [
    ("swing-8-p2", "greedy"), ("swing-8-p2", "dp_k"), ("bruck-alltoall-8-p1", "greedy"), ("demand-6-p2", "greedy"),
    ("binomial-broadcast-8-p2", "greedy"), ("moe-8-p2", "greedy"), ("recursive-doubling-8-circuits-p1", "greedy"),
    ("recursive-doubling-8-overlap-p2", "greedy"), ("swing-16-by-ports-p2", "greedy"),
]  # fmt: skip
TOLERANCE = Fraction(1, 10**9)  # of a pair's bytes over all its way: shares are floats
Flows = dict[tuple[int, int, int], dict[tuple[int, int], list[tuple[int, int, Fraction]]]]


def replay(links: str, flows: str, instance: dict[str, Any]) -> Fraction:
    """Refuse tables that are no schedule of the instance; its time in seconds, but for what the shares' rounding is."""
    steps = instance["steps"]
    built = [Counter[tuple[int, int]]() for _ in steps]
    for step, src, dst, count in (map(int, row.values()) for row in csv.DictReader(io.StringIO(links))):
        assert count > 0
        assert src != dst
        built[step][src, dst] += count
    ways: list[Any] = [defaultdict(list) for _ in steps]
    for row in csv.DictReader(io.StringIO(flows)):
        step, s, t, u, v = (int(row[key]) for key in ("step", "pair_src", "pair_dst", "src", "dst"))
        shares = [Fraction(float(share)) for share in row["shares"].split()]
        for hop, share in zip(map(int, row["hops"].split()), shares, strict=True):
            ways[step][s, t].append((hop, u, v, share))
        assert abs(sum(shares) - Fraction(float(row["flow"]))) <= TOLERANCE
    time = Fraction(0)
    for k, step in enumerate(steps):
        for side in (0, 1):
            ends = Counter[int]()
            for ends_of, count in built[k].items():
                ends[ends_of[side]] += count
            assert max(ends.values()) <= instance["ports"]
        time += of_step(instance, step, built[k], ways[k])
        time += change(instance, step, built[k - 1], built[k]) if k else 0
    return time


def of_step(instance: dict[str, Any], step: dict[str, Any], built: Counter[tuple[int, int]], ways: Any) -> Fraction:
    """Every pair's shares go over links that are there, hop by hop, until all has arrived; seconds of the step."""
    n, volume, load = instance["gpus"], Counter[tuple[int, int]](), defaultdict[Any, Fraction](Fraction)
    pairs = step["pairs"] or [[u, (u + step["shift"]) % n] for u in range(n)]
    for pair, amount in zip(pairs, step["volumes"] or [1] * len(pairs), strict=True):
        volume[pair[0], pair[1]] += amount
    assert ways.keys() == volume.keys()
    for (s, t), rows in ways.items():
        there = defaultdict[Any, Fraction](Fraction, {(0, s): Fraction(1)})
        for hop, u, v, share in rows:
            assert built[u, v]
            assert 0 < share <= 1 + TOLERANCE
            assert u != t
            assert hop > 0 or u == s
            there[hop, u] -= share
            there[hop + 1, v] += share if v != t else 0
            load[u, v] += share * volume[s, t] / built[u, v]
        assert sum(map(abs, there.values())) <= TOLERANCE
    longest = max(row[0] for rows in ways.values() for row in rows) + 1
    hops = longest * Fraction(instance["delta"]) if instance["latency"] == "on" else Fraction(0)
    rate = Fraction(instance["port_bandwidth"])
    return Fraction(instance["alpha"]) + hops + Fraction(step["bytes"]) * max(load.values()) / rate


def change(instance: dict[str, Any], step: dict[str, Any], old: Counter[Any], new: Counter[Any]) -> Fraction:
    """Seconds that the change of the links costs before the step."""
    more, less = new - old, old - new
    ports = sum(
        max(sum(c for ends, c in one.items() if ends[side] == gpu) for one in (more, less))
        for side in (0, 1)
        for gpu in range(instance["gpus"])
    )
    took = Fraction(instance["reconfiguration_delay"]) + sum(more.values()) * Fraction(
        instance.get("delay_per_circuit") or 0
    )
    took += next((Fraction(s) for most, s in instance.get("delay_by_ports") or () if ports <= most), Fraction(0))
    return max(took - Fraction(step.get("overlap") or 0), Fraction(0)) if ports else Fraction(0)


def said(instance: HarvestInstance, schedule: Schedule) -> Fraction | None:
    """The seconds that the replay from the tables finds, None where it refuses."""
    texts = [make(instance, schedule).to_csv(index=False) for make in (table, flow_table)]
    try:
        return replay(texts[0], texts[1], json.loads(instance.model_dump_json()))
    except (AssertionError, KeyError, IndexError):
        return None


def changed(chooser: random.Random, schedule: Schedule) -> Schedule:
    """The schedule with one number changed, or one flow left out in favour of another."""
    key, row = chooser.choice(["share", "hop", "dst", "src", "pair", "links"]), chooser.randrange(len(schedule.hop))
    if key == "links":
        links = [one.copy() for one in schedule.topologies]
        one = chooser.choice(links)
        one[chooser.randrange(len(one)), 2] += chooser.choice((-1, 1))
        return replace(schedule, topologies=tuple(links))
    values = getattr(schedule, key).copy()
    if key == "share":
        values[row] *= chooser.choice((0.5, 1 - 1e-6, 1 + 1e-6))
    elif key == "pair":
        values[row] = values[chooser.randrange(len(values))]
    else:
        values[row] = max(0, values[row] + chooser.choice((-1, 1)))
    return replace(schedule, **{key: values})


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("name", "method"), some_of(CASES))
def test_a_replay_from_the_tables_alone(name: str, method: str) -> None:
    """Ours is taken, with the check's time to 1e-9; changed tables are taken where the check takes them, no others."""
    instance: Any = synth.read(INSTANCES / f"{name}.json")
    chosen = get_family("harvest").method(method)
    values = {parameter.name: parameter.default for parameter in chosen.parameters}
    schedule = chosen.load()(instance, RunOptions(time_limit_s=10.0, method=values).started_now()).solution
    chooser, refused = random.Random(f"{name} {method}"), 0
    for number in range(24):
        one = changed(chooser, schedule) if number else schedule
        try:
            found = said(instance, one)
        except IndexError:  # a pair that the step does not have stands in no table
            continue
        value = check_schedule(instance, one).value
        assert (found is None) == (value is None), number
        assert found is None or float(found) == pytest.approx(value, rel=1e-9)
        assert found is not None or number
        refused += found is None
    assert refused > 6


def test_columns_that_were_there_stay() -> None:
    instance: Any = synth.read(INSTANCES / "swing-8-p2.json")
    schedule = synth.solve(instance, "greedy").solution()
    made = flow_table(instance, schedule)
    assert list(made.columns) == ["step", "pair_src", "pair_dst", "src", "dst", "flow", "hops", "shares"]
    assert not made.duplicated(list(made.columns)[:5]).any()
