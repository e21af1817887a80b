"""Odd inputs of studies: grids over what an instance's own name leaves out, and damaged records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from synth.errors import InputError
from synth.study.definition import load
from synth.study.table import read_records

GRID = """
name = "grid"
[[generate]]
family = "harvest"
parameters = { algorithm = "ring", gpus = [4, 5], message_bytes = [1e3, 1e6], alpha = [0, 5e-7], ports = 1,
    port_bandwidth = 1e11, delta = 0, reconfiguration_delay = 1e-5 }
[[run]]
methods = ["static_ring"]
""".replace(",\n", ", ")


def test_a_grid_over_message_sizes_makes_distinct_names(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    instances = load(path).prepare(tmp_path / "out").instances
    assert len({one.name for one in instances}) == len(instances) == 8
    assert instances[0].name == "ring-4-p1-message-bytes-1000.0-alpha-0"
    for one in instances:
        stored = json.loads((tmp_path / "out" / "instances" / f"{one.name}.json").read_text())
        assert f"message-bytes-{stored['algorithm']['message_bytes']}" in one.name


def test_names_that_differ_already_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(GRID.replace("[1e3, 1e6]", "1e3").replace("[0, 5e-7]", "0"))
    assert [one.name for one in load(path).prepare(tmp_path / "out").instances] == ["ring-4-p1", "ring-5-p1"]


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    record = tmp_path / "records" / "seed0-60s" / "harvest" / "x" / "bvn.json"
    record.parent.mkdir(parents=True)
    record.write_text("{")
    with pytest.raises(InputError, match=r"records/seed0-60s/harvest/x/bvn\.json: not valid JSON"):
        read_records(tmp_path)
