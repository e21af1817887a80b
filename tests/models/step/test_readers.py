"""Kineto's JSON and GOAL as steps, by hand; what is wrong is named by event and by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import synth
from synth.errors import InputError
from synth.options import RunOptions
from synth_models.step.check.replay import check_step
from synth_models.step.instance import Computation, Operation, StepInstance
from synth_models.step.references.issued import solve


def made(path: Path, text: str) -> StepInstance:
    path.write_text(text)
    found = synth.make("step", file=path, bandwidth="1GB/s", latency="1us")
    assert isinstance(found, StepInstance)
    return found


def end(step: StepInstance) -> float:
    value = check_step(step, solve(step, RunOptions()).solution).value
    assert value is not None
    return value


def kernel(at: float, long: float, stream: int, name: str = "gemm", **args: Any) -> dict[str, Any]:
    told = {"stream": stream, **{key.replace("_", " "): value for key, value in args.items()}}
    return {"ph": "X", "cat": "kernel", "name": name, "ts": at, "dur": long, "pid": 0, "tid": stream, "args": told}


def reduced(at: float, long: float, **changes: Any) -> dict[str, Any]:
    args = {"Collective_name": "allreduce", "In_msg_nelems": 2000, "dtype": "Float", "Group_size": 8} | changes
    return kernel(at, long, 17, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", **args)


def profile(*events: Any) -> str:
    host = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 100}
    return json.dumps({"distributedInfo": {"rank": 3, "world_size": 8}, "traceEvents": [host, {"ph": "M"}, *events]})


def test_a_profile_of_one_rank(tmp_path: Path) -> None:
    """10 us, then an allreduce of 8,000 bytes among eight beside 5 us, then 1 us that waits for it: a ring takes
    14 us of bytes and 14 of latency, not the 900 that were measured."""
    events = [kernel(0, 10, 7), reduced(10, 900), kernel(10, 5, 7), kernel(910, 1, 7)]
    step = made(tmp_path / "k.json", profile(*events))
    assert [one.after for one in step.nodes] == [(), ("k2",), ("k2",), ("k4", "k3")]
    (operation,) = [one for one in step.nodes if isinstance(one, Operation)]
    assert (operation.collective, operation.bytes, operation.ranks, operation.group) == ("allreduce", 8000, (3,), 8)
    assert end(step) == pytest.approx(10e-6 + 28e-6 + 1e-6)
    for words in ("One rank (3) is traced", "1 events of the host are left out"):
        assert words in step.source


def test_what_a_profile_does_not_tell_is_listed(tmp_path: Path) -> None:
    events = [kernel(0, 10, 17, "ncclDevKernel_SendRecv"), reduced(10, 5, Collective_name="barrier"),
              reduced(20, 5, Group_size=1)]  # fmt: skip
    step = made(tmp_path / "k.json", profile(*events))
    assert [one.seconds for one in step.nodes if isinstance(one, Computation)] == [1e-5, 5e-6, 0.0]
    assert "takes as long as measured: 1 of no name, 1 barrier" in step.source
    assert "1 collectives of groups of one rank move nothing" in step.source


def test_faults_of_a_profile_are_told_together(tmp_path: Path) -> None:
    events = [kernel(0, -4, 7), reduced(0, 1, dtype="Complex"), reduced(1, 1, Group_size=-2), kernel("x", 1, 7)]  # type: ignore[arg-type]
    with pytest.raises(InputError) as raised:
        made(tmp_path / "k.json", profile(*events))
    told = str(raised.value)
    for words in (
        "k.json", "traceEvents[2] (gemm): takes -4 us", "traceEvents[3] (nccl", "dtype must tell its bytes",
        "Group size must be a number of ranks", "traceEvents[5] (gemm): ts and dur must be numbers",
    ):  # fmt: skip
        assert words in told
    for text in ("{}", '{"traceEvents": 3}', profile()):
        with pytest.raises(InputError, match=r"k\.json"):
            made(tmp_path / "k.json", text)


GOAL = """num_ranks 3
/* two send to one,
   which adds */
rank 0 {
l0: recv 1000b from 1 tag 7
l1: recv 1000b from 2 tag 7
l2: calc 500 cpu 1
l2 requires l0
l2 requires l1
}
rank 1 {
l0: calc 2000
l1: send 1000b to 0 tag 7
l1 requires l0
}
rank 2 {
l0: calc 2000
l1: send 1000b to 0 tag 7 nic 0
l1 irequires l0 // at once
}
"""


def test_goal(tmp_path: Path) -> None:
    """2 us, two messages of 1 us and a latency each through one port, and 0.5 us."""
    step = made(tmp_path / "s.goal", GOAL)
    assert end(step) == pytest.approx(2e-6 + 2 * 2e-6 + 0.5e-6)
    assert "1 irequires (begins no earlier) are taken as requires (has ended)" in step.source
    assert {one.stream for one in step.nodes if isinstance(one, Computation)} == {"cpu0", "cpu1"}


def test_comments_of_goal_without_end_are_read_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="says 1, but 0 follow"):
        made(tmp_path / "s.goal", "num_ranks 1\n" + "/* " * 200_000)


def test_ranks_alike_in_goal_are_one_class(tmp_path: Path) -> None:
    pairs = "".join(
        f"rank {r} {{\na: calc 7\nb: {'send 8b to' if r < 4 else 'recv 8b from'} {(r + 4) % 8}\nb requires a\n}}\n"
        for r in range(8)
    )
    step = made(tmp_path / "s.goal", "num_ranks 8\n" + pairs)
    assert step.classes == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert len(step.nodes) == 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("l2: calc 500 cpu 1", "l2: calc -5", "line 7: is not understood: l2: calc -5"),
        ("l1: send 1000b to 0 tag 7\n", "l1: send 999b to 0 tag 7\n", "line 13 (rank 1, l1): 999 bytes, but line 5"),
        ("l2 requires l1", "l2 requires l9", "line 9: rank 0 has no label l9"),
        ("l0: calc 2000\nl1: send 1000b to 0 tag 7 n", "l1: calc 20\nl1: send 1000b to 0 tag 7 n", "label is taken"),
        ("l2 requires l1", "l0 requires l2", "waits for itself: line 5 (rank 0, l0); line 7 (rank 0, l2)"),
        ("num_ranks 3", "num_ranks 2", "rank 2 stands twice, or is not among the 2"),
        ("tag 7 nic 0", "tag 8 nic 0", "line 6 (rank 0, l1): nothing in rank 2 meets it"),
        ("num_ranks 3", "num_ranks 4", "says 4, but 3 follow"),
        ("l2: calc 500 cpu 1", "l2: calc 99999999999999", "takes 1e+05 s"),
    ],
)  # fmt: skip
def test_faults_of_goal_are_named_by_line(old: str, new: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        made(tmp_path / "s.goal", GOAL.replace(old, new))
    assert words in str(raised.value)
