"""Collectives of a step that take what records of a machine take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import synth
from synth.errors import InputError
from synth_models.step.bounds.strongest import strongest
from synth_models.step.instance import StepInstance


def step(folder: Path, *sizes: int) -> Path:
    nodes: list[dict[str, Any]] = []
    for i, size in enumerate(sizes):
        nodes.append({"kind": "operation", "name": f"o{i}", "collective": "allgather", "bytes": size,
                      "ranks": [0, 1, 2, 3], "link": "net", "after": [f"o{i - 1}"] if i else []})  # fmt: skip
    raw = {"format": "synth-instance/1", "family": "step", "name": "s", "source": "test", "nodes": nodes,
           "links": [{"name": "net", "bandwidth": 1e9}]}  # fmt: skip
    (folder / "s.json").write_text(json.dumps(raw))
    return folder / "s.json"


def recorded(folder: Path, size: int, network: str = "ring") -> synth.Record:
    instance = synth.make("fabric", network=network, nodes=4, bandwidth="1GB/s", latency="1us", collective="allgather",
                          bytes=size)  # fmt: skip
    (folder.parent / f"{network}-{size}.json").write_text(instance.to_json())
    return synth.solve(synth.read(folder.parent / f"{network}-{size}.json"), "ring", results=folder)


def test_a_step_takes_what_records_take(tmp_path: Path) -> None:
    record = recorded(tmp_path / "records", 4000)
    file = step(tmp_path, 4000, 8000, 4000)
    made = synth.make("step", step=file, priced_by=tmp_path / "records")
    assert isinstance(made, StepInstance)
    assert record.value is not None
    assert [node.seconds for node in made.nodes] == [record.value, None, record.value]
    assert strongest(made)[0] == pytest.approx(2e12 * record.value + 6e6, abs=4)
    for words in (
        "the bound holds for their schedules",
        "Without a record, so by the two algorithms: allgather of 8000",
    ):
        assert words in made.source
    recorded(tmp_path / "records", 8000, "star")
    with pytest.raises(InputError, match="records of several machines"):
        synth.make("step", step=file, priced_by=tmp_path / "records")


def test_records_of_nothing_in_the_step_and_no_change_are_refused(tmp_path: Path) -> None:
    recorded(tmp_path / "records", 4000)
    with pytest.raises(InputError, match="has no record of a collective of this step"):
        synth.make("step", step=step(tmp_path, 12), priced_by=tmp_path / "records")
    with pytest.raises(InputError, match="needs what_if= or priced_by="):
        synth.make("step", step=step(tmp_path, 12))
