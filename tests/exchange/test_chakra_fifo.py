"""Exported traces take the schedule's time where links serve first come, first served."""

from __future__ import annotations

from pathlib import Path

import pytest
from exchange import fifo

import synth
from synth.exchange import chakra
from synth.exchange.record_export import transfers_of

RATE, LATENCY = 50e9, 7e-7
SHAPES = {
    "ring": {"network": "ring", "nodes": 8},
    "full mesh": {"network": "full", "nodes": 8},
    "torus": {"network": "torus", "rows": 4, "cols": 4},
}
QUICK = ("ring", "recursive_doubling", "direct", "bruck")
SLOW = ("pat", "double_tree", "bfb", "pull", "symmetric", "tacos", "forest", "flow", "two_level", "hierarchical")
COLLECTIVES = ("allgather", "reduce_scatter", "allreduce", "alltoall")
CASES = [
    pytest.param(shape, collective, method, marks=[pytest.mark.slow] if method in SLOW else [])
    for shape in SHAPES for collective in COLLECTIVES for method in (*QUICK, *SLOW)
]  # fmt: skip


@pytest.mark.parametrize(("shape", "collective", "method"), CASES)
def test_a_trace_takes_the_time_of_the_schedule(shape: str, collective: str, method: str, tmp_path: Path) -> None:
    """Within 0.1 %, in whatever order nodes are issued that can be at the same moment: what reaches a link before its
    turn waits for those that the schedule has first."""
    keys = {**SHAPES[shape], "bandwidth": RATE, "latency": LATENCY, "collective": collective, "bytes": 2**24}
    instance = synth.make("fabric", **keys)
    (tmp_path / "instance.json").write_text(instance.to_json())
    instance = synth.read(tmp_path / "instance.json")
    record = synth.solve(instance, method, time_limit=20)
    if record.value is None:
        pytest.skip(f"{method}: {record['message']}")
    found = transfers_of(record)
    chakra.write(found, tmp_path / "trace")
    assert chakra.faults(chakra.read(tmp_path / "trace")) == []
    for seed in range(3):
        taken = fifo.finished(tmp_path / "trace", found.ranks, RATE, LATENCY, seed)
        assert taken == pytest.approx(record.value, rel=1e-3)
