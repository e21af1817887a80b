"""What ``synth tune --for torch`` writes: the plan that is the quickest with its calls."""

from __future__ import annotations

from pathlib import Path

import pytest

import synth
from synth.exchange.rounds import read, read_table
from synth.tuning.rows import Candidate, Row
from synth.tuning.torch_folder import write_rounds


@pytest.mark.parametrize(("size", "method", "rounds"), [("64KiB", "direct", 2), ("1GiB", "ring", 6)])
def test_few_rounds_are_taken_where_calls_cost_more_than_links(
    size: str, method: str, rounds: int, tmp_path: Path
) -> None:
    """Four ranks by links of 25 GB/s; the ring is taken to be a tenth quicker by its schedule."""
    keys = {"network": "full", "nodes": 4, "bandwidth": "25GB/s", "latency": "0.7us"}
    instance = synth.make("fabric", collective="allreduce", bytes=size, **keys)
    records = {name: synth.solve(instance, name) for name in ("ring", "direct")}
    quick = 0.9 * records["direct"].value
    offered = [
        Candidate("ring", quick, None, records["ring"]),
        Candidate("direct", quick / 0.9, None, records["direct"]),
    ]
    write_rounds([Row(instance, "allreduce", instance.bytes, best=offered[0], offered=offered)], tmp_path, "full")
    [entry] = read_table(tmp_path).entries
    assert entry.method == method
    assert read(tmp_path / entry.file).rounds == rounds
