"""Chakra traces in and out: two ranks written by our own writer, and what is wrong in them named by node and file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command import run

import synth
from synth.errors import InputError
from synth.exchange.chakra.messages import COLL, COMP, RECV, SEND, GlobalMetadata, Node, write_message
from synth.options import RunOptions
from synth_models.step.instance import Computation, Operation, StepInstance
from synth_models.step.references.longest_tail import solve
from synth_models.step.views.chakra import traces

ALLREDUCE, ALLGATHER, BARRIER = 0, 2, 9


def node(number: int, kind: int, *after: int, micros: int = 0, **values: int | str) -> Any:
    made = Node(id=number, name=f"n{number}", type=kind, data_deps=after, duration_micros=micros)
    for name, value in values.items():
        if isinstance(value, str):
            made.attr.add(name=name, string_val=value)
        else:
            made.attr.add(name=name, int64_val=value)
    return made


def write(folder: Path, *files: list[Any]) -> Path:
    for rank, nodes in enumerate(files):
        with (folder / f"t.{rank}.et").open("wb") as stream:
            write_message(stream, GlobalMetadata(version="0.0.4"))
            for one in nodes:
                write_message(stream, one)
    return folder / "t"


def pair(bytes_: int = 1000, micros: int = 7) -> tuple[list[Any], list[Any]]:
    """Each rank computes, both allreduce, rank 0 sends to rank 1, which gathers."""
    first = [
        node(1, COMP, micros=5),
        node(2, COLL, 1, comm_type=ALLREDUCE, comm_size=1000),
        node(3, SEND, 2, comm_dst=1, comm_size=64, comm_tag=3),
        node(4, COLL, 3, comm_type=ALLGATHER, comm_size=500),
    ]
    second = [
        node(7, COMP, micros=micros),
        node(8, COLL, 7, comm_type=ALLREDUCE, comm_size=bytes_),
        node(9, RECV, 8, comm_src=0, comm_size=64, comm_tag=3),
        node(10, COLL, 9, comm_type=ALLGATHER, comm_size=500),
    ]
    return first, second


def made(prefix: Path, **keys: object) -> StepInstance:
    instance = synth.make("step", traces=prefix, bandwidth="1GB/s", latency="0us", **keys)
    assert isinstance(instance, StepInstance)
    return instance


def end(instance: StepInstance) -> float:
    from synth_models.step.check.replay import check_step

    value = check_step(instance, solve(instance, RunOptions()).solution).value
    assert value is not None
    return value


def test_two_ranks_meet(tmp_path: Path) -> None:
    """7 us of the slower rank, 1000 bytes among two 1 us, the message 64 ns, 1000 bytes gathered 0.5 us."""
    instance = made(write(tmp_path, *pair()))
    kinds = [(one.collective, one.bytes, one.ranks) for one in instance.nodes if isinstance(one, Operation)]
    assert kinds == [("allreduce", 1000, (0, 1)), ("send", 64, (0, 1)), ("allgather", 1000, (0, 1))]
    assert end(instance) == pytest.approx(7e-6 + 1e-6 + 64e-9 + 0.5e-6)


def test_out_and_in_again(tmp_path: Path) -> None:
    instance = made(write(tmp_path, *pair()))
    timetable = solve(instance, RunOptions()).solution
    *_, groups = traces(instance, timetable, tmp_path / "out")
    again = made(tmp_path / "out", groups=groups)
    assert end(again) == end(instance)
    assert [type(one) for one in again.nodes] == [type(one) for one in instance.nodes]


def test_ranks_that_disagree_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        made(write(tmp_path, *pair(bytes_=999, micros=2**64 - 3)))
    told = str(raised.value)
    assert "t.1.et, node 8: allreduce of 999 bytes, but t.0.et, node 2 has allreduce of 1000" in told
    assert "t.1.et, node 7: takes -3 us: negative" in told


def test_what_waits_for_itself_is_named(tmp_path: Path) -> None:
    """In no file alone: rank 0 reduces before it gathers, rank 1 makes its first collective wait for the last."""
    first, second = pair()
    second[1].data_deps.append(10)
    second[3].data_deps.append(11)
    with pytest.raises(InputError) as raised:
        made(write(tmp_path, first, second))
    told = str(raised.value)
    assert "waits for itself: t.0.et, node 2; t.0.et, node 3; t.0.et, node 4" in told
    assert "t.1.et, node 10: depends on node 11, which is not in this file" in told


def test_a_collective_that_nobody_else_has_is_named(tmp_path: Path) -> None:
    first, second = pair()
    with pytest.raises(InputError, match=r"t\.0\.et, node 4.*nothing in t\.1\.et meets it"):
        made(write(tmp_path, first, second[:3]))


def test_one_rank_of_eight(tmp_path: Path) -> None:
    """7/4 of 1000 bytes; what is assumed stands in the source. Without a size the group is asked for."""
    prefix = write(tmp_path, [node(1, COMP, micros=5), node(2, COLL, 1, comm_type=ALLREDUCE, comm_size=1000)])
    instance = made(prefix, group=8)
    assert "Of all ranks (8 ranks) 1 traced: the others are taken to come when these do" in (instance.source or "")
    assert end(instance) == pytest.approx(5e-6 + 1.75e-6)
    with pytest.raises(InputError, match=r"t\.0\.et, node 2: the size of its group is not known"):
        made(tmp_path / "t.0.et")


def test_kinds_that_are_not_understood_are_listed(tmp_path: Path) -> None:
    rows = [node(1, 2, micros=4), node(2, COLL, 1, comm_type=BARRIER, comm_size=1), node(3, COMP, 2, micros=1)]
    instance = made(write(tmp_path, rows))
    assert "1 memory load, 1 collective of another kind" in (instance.source or "")
    assert end(instance) == pytest.approx(5e-6)


def test_operations_without_durations_need_a_rate(tmp_path: Path) -> None:
    prefix = write(tmp_path, [node(1, COMP, num_ops=4000)])
    assert isinstance(one := made(prefix, flops=1e9).nodes[0], Computation)
    assert one.seconds == pytest.approx(4e-6)
    with pytest.raises(InputError, match=r"t\.0\.et, node 1: has 4000 operations and no duration: give flops="):
        made(prefix)


def test_what_no_instance_holds_is_named(tmp_path: Path) -> None:
    rows = [node(1, COMP, micros=10**12), node(2, COLL, 1, comm_type=ALLGATHER, comm_size=2**49), node(3, COLL, 2)]
    with pytest.raises(InputError) as raised:
        made(write(tmp_path, rows), group=8)
    told = str(raised.value)
    assert "t.0.et, node 1: takes 1e+06 s" in told
    assert f"t.0.et, node 2: leaves {2**52} bytes" in told
    assert "t.0.et, node 3: comm_size is missing" in told


def test_a_file_that_is_none_and_groups_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "t.0.et").write_bytes(b"\xff\xff")
    (tmp_path / "g.json").write_text('{"1": [0, 0]}')
    with pytest.raises(InputError, match=r"t\.0\.et: message 0"):
        made(tmp_path / "t")
    with pytest.raises(InputError, match="must be ranks, each once"):
        made(tmp_path / "t", groups=tmp_path / "g.json")
    with pytest.raises(InputError, match="there is no file"):
        made(tmp_path / "u")


def test_the_commands(tmp_path: Path) -> None:
    write(tmp_path, *pair())
    run("make", "step", "traces=t.*.et", "bandwidth=1GB/s", "name=t", "-o", "t.json", cwd=tmp_path)
    run("solve", "t.json", "-m", "longest_tail", cwd=tmp_path)
    run("export", "results/step/t/longest_tail.json", "--format", "chakra", "-o", "out", cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.glob("out.*")) == ["out.0.et", "out.1.et", "out.groups.json"]
