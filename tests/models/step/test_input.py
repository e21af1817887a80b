"""What a step may not say, all told at once; published profiles, where their data are."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import synth
from synth.errors import InputError, SizeLimitError
from synth.instance import parse
from synth.options import RunOptions
from synth.text.input_file import InputFile
from synth_models.step.bounds.strongest import strongest
from synth_models.step.instance import StepInstance
from synth_models.step.parts.changes import changed
from synth_models.step.parts.profiles import kernel_nodes
from synth_models.step.programs.order import solve

DATA = Path(__file__).resolve().parents[4] / "shared/data/step"


def step(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"format": "synth-instance/1", "family": "step", "name": "s", "source": "test", "nodes": list(nodes),
            "links": [{"name": "net", "bandwidth": 1e9}]}  # fmt: skip


@pytest.mark.parametrize("cell", ['"' + "x" * 200_000 + '"', "\xff", "nan", "1e13", "-1"])
def test_odd_cells_of_kernels_are_told_with_the_file(cell: str, tmp_path: Path) -> None:
    file = tmp_path / "k.csv"
    file.write_text(f"stream,start_us,dur_us,class\n7,{cell},1,c\n", encoding="latin-1")
    with pytest.raises(InputError, match=r"k\.csv"):
        synth.make("step", kernels=file)


def test_many_kernels_wait_for_the_last_of_the_other_chain_that_had_ended(tmp_path: Path) -> None:
    """20,000 of each: the last in order of those that ended in time, as looking at all of them says."""
    chooser, rows = random.Random(3), ["stream,start_us,dur_us,class"]
    for i in range(20_000):
        rows += [
            f"7,{10 * i},{chooser.randint(1, 9)},c",
            f"27,{10 * i + chooser.randint(0, 9)},{chooser.choice([1, 40])},m",
        ]
    (tmp_path / "k.csv").write_text("\n".join(rows) + "\n")
    nodes = {node["name"]: node for node in kernel_nodes(InputFile(tmp_path / "k.csv"))["nodes"]}
    times = sorted(
        (float(at), float(at) + float(long)) for _, at, long, kind in (r.split(",") for r in rows[1:]) if kind == "m"
    )
    for i, row in enumerate(rows[1:200:2]):
        begin = float(row.split(",")[1])
        ended = [k for k, (_, end) in enumerate(times[:100]) if end <= begin]
        assert nodes[f"c{i}"]["after"] == [f"m{k}" for k in ended[-1:]] + [f"c{i - 1}"] * (i > 0)


def test_moments_beyond_64_bits_are_refused_before_any_method() -> None:
    chain = [{"kind": "computation", "name": f"n{i}", "rank": 0, "seconds": 1e4} for i in range(401)]
    slow = {"kind": "operation", "name": "o", "collective": "send", "bytes": 2**50, "ranks": [0, 1], "link": "net"}
    for nodes, links in ((chain, []), ([slow], [{"name": "net", "bandwidth": 1.0}])):
        with pytest.raises(InputError, match="one after the other: at most 4e"):
            parse(step(*nodes) | {"links": links}, StepInstance, "x")
    inside = parse(step(*chain[:400]), StepInstance, "x")
    assert strongest(inside)[0] == 400 * 10**16
    with pytest.raises(SizeLimitError, match="400 nodes of 4e"):
        solve(inside, RunOptions(1.0))


@pytest.mark.parametrize("keys", [{"stages": 2**63, "microbatches": 1}, {"stages": 3, "microbatches": 10**30}])
def test_endless_pipelines_are_refused(keys: dict[str, int]) -> None:
    with pytest.raises(InputError, match="stages"):
        synth.make("step", **keys)


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
