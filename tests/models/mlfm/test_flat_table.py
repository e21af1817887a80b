"""`synth show --csv`: a replay from the table and the instance file alone says what the check says."""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import some_of

import synth
from synth.errors import InputError
from synth.family import get_family
from synth.options import RunOptions
from synth.text.input_file import InputFile
from synth_models.mlfm.check.replay import check_phases
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.solution import Phases, PhaseTable, table
from synth_models.mlfm.views.from_table import from_table

INSTANCES = Path(__file__).parents[3] / "instances" / "mlfm"
CASES = [
    ("d3-n2l4m3", "closed_form"), ("d3-n2l4m3", "pairwise"), ("d3-n2l4m3-link", "greedy"), ("d3-n3l3m2", "shift"),
    ("d3-n2l4m3-spine", "greedy"), ("d3-n2l4m3-leaf", "greedy"), ("d3-n2l4m3-server", "greedy"),
    ("d4-fragment-20", "greedy"), ("d3-pairs-24-leaf", "greedy"), ("d4-n2l2m4-detour", "greedy"),
    ("d4-pairs-60-failed", "greedy"), ("d2-five-pairs", "greedy"),
]  # fmt: skip
PARTS = ("dest", "spine", "middle", "second")


def replay(text: str, instance: dict[str, Any]) -> int:
    """Refuse a table that is no schedule of the instance; the phases it takes, of which one that loads its busiest link
    n times counts n."""
    owed, broken = wanted(instance), instance["failed"]
    spines = {frozenset(pair) for pair in broken["spines"]}
    cables = {(tuple(one["leaf"]), frozenset(one["spine"])) for one in broken["links"]}
    load, turn = Counter[Any](), set[Any]()
    rows = [(int(row["phase"]), *map(str, list(row.values())[1:])) for row in csv.DictReader(io.StringIO(text))]
    for phase, source, target, via in rows:
        src, dst = (tuple(map(int, end.split("."))) for end in (source, target))
        words = [tuple(map(int, word.replace("-", ".").split("."))) for word in via.split()]
        leaves, crossed = words[::2], words[1::2]
        assert not {(phase, 0, src), (phase, 1, dst)} & turn
        turn |= {(phase, 0, src), (phase, 1, dst)}
        owed[src, dst] -= 1
        assert (leaves[0], leaves[-1]) == (src[:2], dst[:2])
        assert (len(crossed) == 0) == (src[:2] == dst[:2])
        assert len(crossed) < 2 + (instance["routes"] == "detour")
        assert len(leaves) < 3 or leaves[1][1] not in (src[1], dst[1])
        for (a, b), pair in zip(itertools.pairwise(leaves), crossed, strict=True):
            assert {a[1], b[1]} <= set(pair)
            assert frozenset(pair) not in spines
            for way, leaf in (("up", a), ("down", b)):
                assert list(leaf) not in broken["leaves"]
                assert (leaf, frozenset(pair)) not in cables
                load[phase, way, leaf, pair] += 1
    assert not any(owed.values())
    worst = Counter(dict.fromkeys(range(max(row[0] for row in rows) + 1), 1))
    for (phase, *_), carried in load.items():
        worst[phase] = max(worst[phase], carried)
    return sum(worst.values())


def wanted(instance: dict[str, Any]) -> Counter[Any]:
    """How often each server is to send to each, without those that failed."""
    block, demand, failed = instance.get("block"), instance.get("demand"), instance["failed"]
    works = lambda server: list(server[:2]) not in failed["leaves"] and list(server) not in failed["servers"]  # noqa: E731
    if demand is not None:
        pairs = {(tuple(one["source"]), tuple(one["target"])): one["count"] for one in demand}
        return Counter({pair: count for pair, count in pairs.items() if all(map(works, pair))})
    sides = block and [range(block[key]) for key in ("layers", "columns", "servers")]
    listed = itertools.product(*sides) if sides else map(tuple, instance["subset"])
    return Counter(itertools.product(filter(works, list(listed)), repeat=2))


def said(instance: MLFMInstance, phases: Phases) -> int | None:
    """The phases that the replay from the table finds, None where it refuses."""
    try:
        return replay(table(instance, phases).to_csv(index=False), json.loads(instance.model_dump_json()))
    except (AssertionError, KeyError, IndexError):
        return None


def dense(phases: Phases) -> PhaseTable:
    """The same as one table."""
    blocks = list(phases.rows())
    return PhaseTable(*(np.concatenate([getattr(block, key) for block in blocks]) for key in PARTS))


def read_back(instance: MLFMInstance, phases: Phases, file: Path) -> float | None:
    """The value of what ``synth submit`` reads from the table, None where it or the check refuses."""
    table(instance, phases).to_csv(file, index=False)
    try:
        return check_phases(instance, from_table(instance, InputFile(file))).value
    except InputError:
        return None


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("name", "method"), some_of(CASES))
def test_a_replay_from_the_table_alone(name: str, method: str, tmp_path: Path) -> None:
    """Ours is taken; of tables with a transfer or its route changed it takes those that the check takes, except that
    transfers that split unevenly (detours that meet) may take more phases than their busiest link."""
    instance: Any = synth.read(INSTANCES / f"{name}.json")
    chosen = get_family("mlfm").method(method)
    values = {parameter.name: parameter.default for parameter in chosen.parameters}
    made = chosen.load()(instance, RunOptions(time_limit_s=10.0, method=values).started_now()).solution
    phases, chooser = dense(made), random.Random(f"{name} {method}")
    assert said(instance, made) == check_phases(instance, made).value
    refused = 0
    for _ in range(40):
        key = chooser.choice(["dest", "spine", "detour"])
        p, x = chooser.randrange(phases.phases), chooser.randrange(phases.ranks)
        parts = {part: getattr(phases, part).copy() for part in PARTS}
        if key == "dest":
            parts["dest"][p, x] = chooser.randrange(-1, phases.ranks)
        else:  # a route that the table can show
            parts["spine"][p, x] = chooser.randrange(len(instance.spine_columns))
        if key == "detour":
            parts["second"][p, x] = chooser.randrange(len(instance.spine_columns))
            parts["middle"][p, x] = chooser.randrange(instance.leaves)
        changed = replace(phases, **parts)
        found, value = said(instance, changed), check_phases(instance, changed).value
        assert (found is None) == (value is None), (key, p, x)
        assert read_back(instance, changed, tmp_path / "t.csv") == value, (key, p, x)
        assert found is None or value is None or found <= value
        refused += found is None
    assert refused > 10


def test_rows_lost_or_twice_are_refused() -> None:
    instance: Any = synth.read(INSTANCES / "d3-n2l4m3.json")
    made = synth.solve(instance, "closed_form").solution()
    lines = table(instance, made).to_csv(index=False).splitlines(keepends=True)
    raw = json.loads(instance.model_dump_json())
    assert replay("".join(lines), raw) == 24
    for changed in (lines[:-1], [*lines, lines[5]]):
        with pytest.raises(AssertionError):
            replay("".join(changed), raw)
