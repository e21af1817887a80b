"""`synth show --csv`: a replay from the table and the instance file alone says what the check says."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from examples import some_of
from models.optree.cases import TORUS, grid, limited, options, ring

from synth.errors import InputError
from synth.family import get_family
from synth.text.input_file import InputFile
from synth_models.optree.check.replay import check_solution
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.solution import COLUMNS, Circuits, table
from synth_models.optree.views.from_table import from_table


def short(nodes: int, **more: Any) -> OpTreeInstance:
    """A network whose power allows circuits of one hop."""
    return ring(nodes, 2, power={"laser_dbm": 2.0, "pass_loss_db": 1.0}, **more)


CASES: list[tuple[OpTreeInstance, str]] = [
    (ring(9, 2), "relay"), (ring(16, 4), "optree"), (ring(7, 2), "first_fit"), (ring(6, 1), "longest_first"),
    (limited(8, 2, 2), "relay"), (grid((3, 4), TORUS, 2), "relay"), (grid((2, 3), (False, True), 1), "optree"),
    (short(12, grid={"sides": [2, 2, 3], "kinds": ["line", "line", "ring"]}), "relay"),
    (ring(6, 2, crosstalk={"signal_mw": 1.0, "rx_noise_mw": 1e-9, "max_ber": 3e-10}), "relay"),
]  # fmt: skip


def replay(text: str, instance: dict[str, Any]) -> int:
    """Refuse a table that is no schedule of the instance; the number of its steps."""
    shape = instance.get("grid") or {"sides": [instance["nodes"]], "kinds": ["ring"]}
    sides, nodes = shape["sides"], instance["nodes"]
    rows = sorted([int(row[name]) for name in COLUMNS] for row in csv.DictReader(io.StringIO(text)))
    since, used = {(v, v): 0 for v in range(nodes)}, set()
    for step, src, dst, direction, wavelength, item in rows:
        side, stride, down = sides[direction // 2], math.prod(sides[direction // 2 + 1 :]), direction % 2
        assert 0 <= wavelength < instance["wavelengths"]
        assert direction >= 0
        assert src != dst
        assert since[item, src] < step
        at, hops = src, 0
        while at != dst:
            place = at // stride % side
            assert shape["kinds"][direction // 2] == "ring" or 0 <= place + 1 - 2 * down < side
            assert (step, direction, at, wavelength) not in used
            used.add((step, direction, at, wavelength))
            at, hops = at + ((place + 1 - 2 * down) % side - place) * stride, hops + 1
            assert hops < side
        assert reaches(instance, hops + 1)
        since.setdefault((item, dst), step)
    assert len(since) == nodes**2
    return max(step for step, *_ in rows)


def reaches(instance: dict[str, Any], interfaces: int) -> bool:
    """Whether the file's budgets of power and noise allow a path through so many optical interfaces."""
    power, noise = instance.get("power"), instance.get("crosstalk")
    lost = power and power["modulator_loss_db"] + interfaces * power["pass_loss_db"] + power["penalty_db"]
    if noise:
        heard = interfaces * noise["rx_noise_mw"] + noise["tx_noise_mw"] + noise["other_noise_mw"]
        snr = 10 * math.log10(noise["signal_mw"] / heard)
        if not 0.5 * math.exp(-snr / 4) < noise["max_ber"]:
            return False
    return not power or power["laser_dbm"] >= lost - 1e-9


def said(instance: OpTreeInstance, circuits: Circuits) -> int | None:
    """The steps that the replay from the table finds, None where it refuses."""
    try:
        return replay(table(instance, circuits).to_csv(index=False), json.loads(instance.model_dump_json()))
    except (AssertionError, KeyError, IndexError):
        return None


def read_back(instance: OpTreeInstance, circuits: Circuits, file: Path) -> float | None:
    """The value of what ``synth submit`` reads from the table, None where it or the check refuses."""
    table(instance, circuits).to_csv(file, index=False)
    try:
        return check_solution(instance, from_table(instance, InputFile(file))).value
    except InputError:
        return None


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("instance", "method"), some_of(CASES))
def test_a_replay_from_the_table_alone(instance: OpTreeInstance, method: str, tmp_path: Path) -> None:
    """Ours is taken; of tables with a number changed or a row lost it takes those that the check takes."""
    chosen = get_family("optree").method(method)
    values = {parameter.name: parameter.default for parameter in chosen.parameters}
    circuits = chosen.load()(instance, options(method=values)).solution
    chooser = random.Random(f"{instance.name} {method}")
    assert said(instance, circuits) == check_solution(instance, circuits).value == circuits.steps
    refused = 0
    for _ in range(60):
        name, row = chooser.choice(COLUMNS), chooser.randrange(len(circuits))
        values = getattr(circuits, name).copy()
        values[row] += chooser.choice((-2, -1, 1, 2))
        changed = replace(circuits, **{name: values})
        assert said(instance, changed) == check_solution(instance, changed).value, (name, row)
        assert read_back(instance, changed, tmp_path / "t.csv") == check_solution(instance, changed).value
        refused += said(instance, changed) is None
        lost = Circuits.of(*(getattr(circuits, key)[[i for i in range(len(circuits)) if i != row]] for key in COLUMNS))
        assert said(instance, lost) == check_solution(instance, lost).value
    assert refused > 20
