"""Calls with one buffer: what is written for them is right there, by the check, in orders drawn at random and with real
data; what is right with two buffers alone is caught."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from command import run
from examples import some
from exchange.by_hand import direct_alltoall, ring_allreduce
from exchange.interpreter import Machine
from exchange.plan_runner import outcome
from exchange.random_transfers import random_transfers
from exchange.small_algorithms import xml

from synth.errors import InputError
from synth.exchange import executors, in_place, msccl_xml, mscclpp, validity
from synth.exchange.counts import even, even_chunks, told
from synth.exchange.file_check import check_file
from synth.exchange.file_kinds import beside
from synth.exchange.formats import FORMATS
from synth.exchange.lowering import Wish
from synth.exchange.mscclpp import registering
from synth.exchange.mscclpp.reader import understood
from synth.exchange.mscclpp.versions import NEWEST, VERSIONS, unknown_to, version_of
from synth.exchange.record_export import algorithm_of, write_schedule
from synth.ranks import from_plan
from synth.ranks.crew import Crew
from synth.ranks.data import Data
from synth.ranks.launcher import Job
from synth.ranks.words import faults
from synth.schedule.collective import NAMES

KINDS = {"msccl-xml": ("azure", "msccl"), "mscclpp": ("mscclpp",)}


def written(folder: Path, seed: int, form: str, executor: str) -> tuple[str, list[Path], list[str]]:
    """The collective of a random schedule, its files, and what was said."""
    t = random_transfers(seed)
    path = folder / f"{executor}-{seed}{FORMATS[form].suffix}"
    notes = write_schedule(t, FORMATS[form], path, executor, both=True)
    return t.collective, [one for one in (path, beside(path)) if one.exists()], notes


def in_mode(text: str, one: bool) -> str:
    """The file as the executor runs it with one buffer, or with two."""
    return re.sub(r' inplace="."', f' inplace="{int(one)}"', text)


def test_xml_for_both_kinds_of_calls_is_right_in_each(tmp_path: Path) -> None:
    shared = 0
    for seed in range(some(40)):
        for executor in KINDS["msccl-xml"]:
            collective, files, notes = written(tmp_path, seed, "msccl-xml", executor) if (
                random_transfers(seed).collective in executors.executor(executor).collectives
            ) else ("", [], [])  # fmt: skip
            modes = [(file, mode) for file in files for mode in msccl_xml.read(file).modes]
            missing = collective in executors.executor(executor).never_in_place
            assert sorted(mode for _, mode in modes) == ([] if not files else [False] if missing else [False, True])
            assert missing == any("no file for calls in place" in note for note in notes)
            shared += len(files) == 1 and not missing
            for file, mode in modes:
                assert not check_file(file, executor=executor).faults, file
                assert Machine(in_mode(file.read_text(), mode)).run(seed) == set(), (file, mode)
    assert shared


def test_plans_for_both_kinds_of_calls_are_right_in_each(tmp_path: Path) -> None:
    for seed in range(some(24)):
        t = random_transfers(seed)
        _, files, _ = written(tmp_path, seed, "mscclpp", "mscclpp")
        plans = [json.loads(file.read_text()) for file in files]
        assert [plan["inplace"] for plan in plans] == [False, True]
        assert len({plan["name"] for plan in plans}) == 2  # by which the executor knows them
        for file, plan in zip(files, plans, strict=True):
            assert not check_file(file).faults, file
            assert outcome(plan, t.collective, seed, t.root or 0), file


SWAP = xml("alltoall", 2, 2, False, """
    gpu 0 2 2 0
    tb 1 1 0: s i1; r >o1
    tb -1 -1 0: cpy i0 >o0
    gpu 1 2 2 0
    tb 0 0 0: r >o0; s i0
    tb -1 -1 0: cpy i1 >o1""")  # fmt: skip


def test_what_writes_over_data_that_must_still_leave_is_caught(tmp_path: Path) -> None:
    """By hand: GPU 1 receives its o[0] before it sends its i[0], which in place is the same chunk."""
    for mode in (False, True):
        (tmp_path / "swap.xml").write_text(in_mode(SWAP, mode).replace('outofplace="1"', f'outofplace="{1 - mode}"'))
        assert bool(check_file(tmp_path / "swap.xml").faults) is mode
        done = run("run", str(tmp_path / "swap.xml"), "--bytes", "64", "--repeat", "1", cwd=tmp_path, code=int(mode))
        assert ("yes" in done.stdout) is not mode
    (tmp_path / "swap.xml").write_text(in_mode(SWAP, True))
    faults = [str(fault) for fault in check_file(tmp_path / "swap.xml").faults]
    assert faults
    assert all("in place: " in fault and "out of place: " not in fault for fault in faults)
    found = msccl_xml.read(tmp_path / "swap.xml").algorithm
    made = in_place.written(replace(found, in_place=False), "azure", _never, Path("x"), lambda what, path: None)
    assert (made.one, made.missing) == (None, "not today")


def _never() -> Any:
    raise InputError("not today")


@pytest.mark.parametrize("collective", NAMES)
def test_real_data_in_one_buffer(collective: str, tmp_path: Path) -> None:
    seed = next(s for s in range(200) if random_transfers(s).collective == collective and random_transfers(s).ranks > 2)
    for form, names in KINDS.items():
        _, files, _ = written(tmp_path, seed, form, names[0])
        for file in files:
            assert "yes" in run("run", file, "--bytes", "64KiB", "--repeat", 1, cwd=tmp_path).stdout, file


def test_one_file_is_run_with_real_data_in_both_ways(tmp_path: Path) -> None:
    write_schedule(ring_allreduce(4), FORMATS["msccl-xml"], file := tmp_path / "ring.xml", "azure", both=True)
    assert msccl_xml.read(file).modes == (True, False)
    for words in ((), ("--out-of-place",)):
        said = run("run", file, "--bytes", "64KiB", "--repeat", 1, *words, cwd=tmp_path).stdout
        assert "yes" in said
        assert ("in place" in said) is (not words)
    write_schedule(ring_allreduce(4), FORMATS["mscclpp"], plan := tmp_path / "ring.json")
    done = run("run", plan, "--in-place", cwd=tmp_path, code=2)
    assert "is for calls out of place alone" in done.stderr


def test_a_plan_is_run_in_its_own_buffers() -> None:
    """By hand: rank 1 waits for what comes from rank 0 before it sends, so that with one buffer it sends that back."""
    t = direct_alltoall(2)
    back = t.src == 1
    t = replace(t, start_s=np.where(back, 2.0, 0.0), end_s=np.where(back, 3.0, 1.0), ticks=None)
    with Crew() as crew:
        for one in (False, True):
            plan = replace(understood(mscclpp.plan(t, thread_blocks=1)), in_place=one)
            program, names = from_plan.program_of(plan, words=3)
            done = crew.run(Job(program, seed=1, patience_s=0.5))
            assert bool(faults(program, done, names, Data(1, t.ranks))) is one


def test_msccl_runs_less_than_its_most_bytes_so_that_one_more_is_written() -> None:
    """nBytes < maxBytes in its source, nBytes <= maxBytes in azure's."""
    t = random_transfers(2)
    for executor, most in (("azure", 'maxBytes="100"'), ("msccl", 'maxBytes="101"')):
        a, _ = algorithm_of(t, executor)
        assert most in "".join(msccl_xml.lines(replace(a, most_bytes=100), executor))


# -------------------------------------------------------------------------------------------------------------- counts


def test_counts_that_do_not_divide_are_said() -> None:
    assert told("azure", "allreduce", 960) == (
        "runs where 960 divides the number of elements of the data; NCCL's own algorithm runs the other calls"
    )
    assert told("msccl:azure", "allgather", 1) == "runs for all counts"
    assert told("mscclpp", "allgather", 3, VERSIONS["0.8"]).endswith("48 divides the bytes of each part; other calls "
                                                                     "end with an error")  # fmt: skip
    assert "no call of NCCL's asks MSCCL++ for it" in told("mscclpp", "alltoall", 3)


def test_numbers_of_chunks_for_all_sizes_of_whole_8_kib_a_rank() -> None:
    """8 KiB are 1024 elements of 8 bytes, 512 units of MSCCL++."""
    assert even(False, "allgather", 6, 2**20, 1024)
    assert not even(False, "allgather", 6, 2**20, 960)
    assert even(False, "allreduce", 6, 6 * 2**20, 6)
    assert not even(True, "allgather", 6, 2**20, 1024)
    assert not even(True, "allreduce", 4, 4096, 512)  # 8 bytes a chunk, which the kernel does not add
    for seed in range(some(40)):
        t = random_transfers(seed).scaled(8192)
        for planned in (False, True):
            for chunks in even_chunks(t, planned):
                assert even(planned, t.collective, t.ranks, t.part_bytes, chunks)
                a, _ = algorithm_of(t, "azure", Wish(chunks=chunks)) if t.ranks > 1 else (None, [])
                assert a is None or validity.check(a).ok


# ------------------------------------------------------------------------------------------------------------ versions


def test_versions_that_are_not_known_are_refused_in_one_line() -> None:
    assert version_of("msccl:azure") is None
    assert version_of("mscclpp") is NEWEST
    assert version_of("mscclpp:0.9") is VERSIONS["0.9"]
    for word in ("mscclpp:", "mscclpp:0.7", "mscclpp:1\n2", "mscclpp:" + "9" * 500):
        with pytest.raises(InputError) as found:
            version_of(word)
        assert len(found.value.faults) == 1
        assert len(str(found.value)) < 200


def test_operations_that_came_later_are_not_written_for_earlier_versions(tmp_path: Path) -> None:
    plan = {"gpus": [{"threadblocks": [{"ops": [{"name": "pipeline", "ops": [{"name": "gstore"}]}]}]}]}
    assert [unknown_to(VERSIONS[name], plan) for name in ("0.8", "0.9", "0.10")] == ["gstore", "gstore", ""]


class Builder:
    """Stands for mscclpp.AlgorithmCollectionBuilder."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.select: Any = None

    def add_algorithm_builder(self, one: Any) -> None:
        self.found.append(one)

    def set_algorithm_selector(self, select: Any) -> None:
        self.select = select


def library(builder: Builder) -> ModuleType:
    """A stand-in for the module mscclpp, as far as the text that registers plans goes."""
    made = ModuleType("mscclpp")
    made.DataType = SimpleNamespace(**{name: name for name in registering.TYPES})  # type: ignore[attr-defined]
    made.AlgorithmCollectionBuilder = lambda: builder  # type: ignore[attr-defined]
    made.ExecutionPlan = lambda path, rank: (json.loads(Path(path).read_text())["name"], rank)  # type: ignore[attr-defined]
    made.Algorithm = lambda id, execution_plan: (id, execution_plan)  # type: ignore[attr-defined]
    return made


def test_the_selector_takes_the_plan_of_a_call_and_none_where_it_would_be_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four ranks; pointers, sizes and types as src/ext/nccl/nccl.cc puts them into a request."""
    rows = [
        registering.Plan(f"{name}{'-in' * one}.json", name, one, 1024, 4096, 2, 1 if name == "broadcast" else None)
        for name in ("allreduce", "allgather", "reduce_scatter", "broadcast", "alltoall") for one in (False, True)
    ]  # fmt: skip
    names = [row.file.removesuffix(".json") for row in rows]
    for name in names:
        (tmp_path / f"{name}.json").write_text(json.dumps({"name": name}))
    text, builder = registering.text(rows, 4, NEWEST), Builder()
    assert set(re.findall(r"^(?:import|from) (\w+)", text, re.M)) == {"os", "pathlib", "mscclpp"}
    monkeypatch.setitem(__import__("sys").modules, "mscclpp", library(builder))
    space: dict[str, Any] = {"__file__": str(tmp_path / registering.FILE)}
    exec(compile(text, registering.FILE, "exec"), space)
    monkeypatch.setenv("RANK", "2")
    space["register"]()
    assert builder.found == [(name, (name, 2)) for name in names if "alltoall" not in name]

    def chosen(kind: str, size: int, apart: int, **other: Any) -> str | None:
        found: dict[str, dict[str, str]] = {"allreduce": {}, "allgather": {}, "reducescatter": {}, "broadcast": {}}
        for name in names:
            found.setdefault(name.removesuffix("-in").replace("_", ""), {})[name] = name
        asked = {"world_size": 4, "dtype": "float32", "rank": 2, "hints": {}, "input_buffer": 10**6} | other
        request = SimpleNamespace(collective=kind, message_size=size, output_buffer=10**6 + apart, **asked)
        got: str | None = builder.select(found, request)
        return got

    assert chosen("allreduce", 4096, 0) == "allreduce-in"
    assert chosen("allreduce", 4096, 10**6) == "allreduce"
    assert chosen("allreduce", 4096 + 32, 0) is None  # larger than any plan is for
    assert chosen("allreduce", 2048 + 16, 0) is None  # 32 bytes must divide it
    assert chosen("allreduce", 2048, 0, dtype="float64") is None
    assert chosen("allreduce", 2048, 0, world_size=8) is None
    assert chosen("allgather", 512, -2 * 512) == "allgather-in"  # a rank's part is counted
    assert chosen("allgather", 512, 0) == "allgather"
    assert chosen("reducescatter", 2048, 2 * 512) == "reduce_scatter-in"  # all parts are
    assert chosen("reducescatter", 2048, 0) == "reduce_scatter"
    assert chosen("broadcast", 2048, 0, hints={"root": [1]}) == "broadcast-in"
    assert chosen("broadcast", 2048, 0, hints={"root": [0]}) is None
