"""What a step may not say, all told at once; published profiles, where their data are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import synth
from synth.errors import InputError
from synth.instance import parse
from synth_models.step.bounds.strongest import strongest
from synth_models.step.instance import StepInstance
from synth_models.step.parts.changes import changed

DATA = Path(__file__).resolve().parents[4] / "shared/data/step"


def step(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"format": "synth-instance/1", "family": "step", "name": "s", "source": "test", "nodes": list(nodes),
            "links": [{"name": "net", "bandwidth": 1e9}]}  # fmt: skip


def test_every_fault_is_told_at_once() -> None:
    rows = (
        {"kind": "computation", "name": "a", "rank": 0, "seconds": -1.0, "after": ["b"]},
        {"kind": "computation", "name": "b", "rank": 0, "seconds": 1.0, "after": ["a"]},
        {
            "kind": "operation",
            "name": "c",
            "collective": "send",
            "bytes": 1,
            "ranks": [1],
            "link": "no",
            "after": ["z"],
        },
    )
    with pytest.raises(InputError) as raised:
        parse(step(*rows), StepInstance, "s.json")
    text = str(raised.value)
    for words in ("seconds = -1", "wait for each other: a, b", "is no class of links", "is no node", "has one rank"):
        assert words in text


def test_a_wider_link_halves_what_was_measured() -> None:
    raw = step({"kind": "operation", "name": "c", "collective": "send", "bytes": 1, "ranks": [0, 1], "link": "net",
                "seconds": 2.0})  # fmt: skip
    found = changed(raw, "net=2x", "s.json")
    assert found["nodes"][0]["seconds"] == 1.0
    with pytest.raises(InputError, match="no such class"):
        changed(raw, "nic=2x", "s.json")


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data are not here")
def test_the_published_profile() -> None:
    """983 kernels: at least the 124.3 ms of compute, at most the 129.0 ms measured."""
    made = synth.make("step", kernels=DATA / "deepseek_train_kernels.csv")
    assert isinstance(made, StepInstance)
    assert 124.3e9 <= strongest(made)[0] <= 129.02e9


HEAD = "file,compute_fwd_ms,compute_input_grad_ms,compute_weight_grad_ms,phase,collective,bytes,count\n"


def test_faults_of_a_workload_are_told_together(tmp_path: Path) -> None:
    rows = "a.txt,1,2,3,fwd,ALLREDUCE,8,2\na.txt,1,2,4,ig,ALLSUM,-8,2\na.txt,1,-2,3,back,ALLGATHER,8,x\n"
    (tmp_path / "a.csv").write_text(HEAD + rows)
    with pytest.raises(InputError) as raised:
        synth.make("step", workloads=tmp_path / "a.csv", workload="a", group=8)
    told = str(raised.value)
    for words in (
        "line 3, compute_weight_grad_ms", "is 3 in line 2", "line 3, collective", "line 3, bytes",
        "line 4, compute_input_grad_ms", "line 4, phase", "line 4, count",
    ):  # fmt: skip
        assert words in told


def test_a_workload_is_one_chain(tmp_path: Path) -> None:
    """1 + 2 + 3 ms, and two allreduces of 8000 bytes among eight: 14 us each at 1 GB/s, and a latency."""
    (tmp_path / "a.csv").write_text(HEAD + "a.txt,1,2,3,fwd,ALLREDUCE,8000,2\n")
    made = synth.make("step", workloads=tmp_path / "a.csv", workload="a", group=8, bandwidth="1GB/s", latency="1us")
    assert isinstance(made, StepInstance)
    assert strongest(made)[0] == pytest.approx(6030 * 10**6, abs=10)  # each computation is rounded to a picosecond
